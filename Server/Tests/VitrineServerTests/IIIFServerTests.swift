import Foundation
import NIOCore
import Testing
import VitrineImaging

import VitrineServer

/// The APIs of IIIF by the whole program.
@Suite struct IIIFServerTests {
    private static func run(
        _ change: @escaping (inout ServerConfiguration) -> Void = { _ in }, _ body: (ImageProgram) async throws -> Void
    ) async throws {
        try await ImageProgram.run({ configuration in
            configuration.iiif = true
            change(&configuration)
        }, body)
    }

    private static func image(_ reply: HTTPReply) throws -> PixelImage { try ImageDecoder().decode(.bytes(reply.body)) }

    private static func json(_ reply: HTTPReply) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(reply.body)) as? [String: Any])
    }

    private static func difference(_ one: PixelImage, _ other: PixelImage) -> Int {
        guard one.size == other.size else { return 255 }
        var most = 0
        one.withUnsafeBytes { a in
            other.withUnsafeBytes { b in
                for y in 0..<one.height {
                    for x in 0..<(4 * one.width) {
                        most = max(most, abs(Int(a[y * one.bytesPerRow + x]) - Int(b[y * other.bytesPerRow + x])))
                    }
                }
            }
        }
        return most
    }

    @Test func pathsAreNotThereUntilEnabled() async throws {
        try await ImageProgram.run { program in
            for path in ["/iiif/3/lake.jpg/info.json", "/iiif/3/lake.jpg/full/max/0/default.jpg"] {
                let reply = try await program.ask(path)
                #expect((400...404).contains(reply.status))
            }
        }
    }

    @Test func informationDescribesThePicture() async throws {
        let lake = try ImageInfo(of: .bytes(try Samples.bytes("lake.jpg"))).size
        try await Self.run { program in
            let reply = try await program.ask("/iiif/3/lake.jpg/info.json", [("Origin", "https://viewer.example")])
            #expect(reply.status == 200 && reply["content-type"] == "application/json")
            #expect(reply["access-control-allow-origin"] == "*" && reply["vary"] == "Accept, Host")
            let document = try Self.json(reply)
            #expect(document["id"] as? String == "http://localhost/iiif/3/lake.jpg")
            #expect(document["@context"] as? String == "http://iiif.io/api/image/3/context.json")
            #expect(document["width"] as? Int == lake.width && document["height"] as? Int == lake.height)
            #expect(document["profile"] as? String == "level2" && document["maxWidth"] as? Int == 8_192)
            let sizes = try #require(document["sizes"] as? [[String: Int]])
            #expect(sizes.last == ["width": lake.width, "height": lake.height])
            #expect((document["tiles"] as? [[String: Any]])?.first?["width"] as? Int == 512)

            let tag = try #require(reply["etag"])
            let again = try await program.ask("/iiif/3/lake.jpg/info.json", [("If-None-Match", tag)])
            #expect(again.status == 304 && again["access-control-allow-origin"] == "*")
            let linked = try await program.ask("/iiif/3/lake.jpg/info.json", [("Accept", "application/ld+json")])
            #expect(
                linked["content-type"]
                    == "application/ld+json;profile=\"http://iiif.io/api/image/3/context.json\"")
        }
    }

    @Test func versionTwoIsAPathAndATypeThatIsAccepted() async throws {
        try await Self.run { program in
            let accept = "application/ld+json;profile=\"http://iiif.io/api/image/2/context.json\""
            let wishes = [("/iiif/2/lake.jpg/info.json", "*/*"), ("/iiif/3/lake.jpg/info.json", accept)]
            for (path, accept) in wishes {
                let document = try Self.json(try await program.ask(path, [("Accept", accept)]))
                #expect(document["@id"] as? String == "http://localhost/iiif/2/lake.jpg")
                let profile = try #require(document["profile"] as? [Any])
                #expect(profile.first as? String == "http://iiif.io/api/image/2/level2.json")
            }
            #expect(try await program.ask("/iiif/2/lake.jpg/full/full/0/default.jpg").status == 200)
        }
    }

    @Test func addressesOfImagesLeadToTheirInformation() async throws {
        try await Self.run { program in
            let reply = try await program.ask("/iiif/3/lake.jpg")
            #expect(reply.status == 303)
            #expect(reply["location"] == "http://localhost/iiif/3/lake.jpg/info.json")
            let old = try await program.ask("/iiif/2/lake.jpg")
            #expect(old["location"] == "http://localhost/iiif/2/lake.jpg/info.json")
            let options = try await program.ask("/iiif/3/lake.jpg/info.json", method: "OPTIONS")
            #expect(options.status == 204 && options["access-control-allow-origin"] == "*")
            #expect(options["access-control-allow-methods"]?.contains("GET") == true)
        }
        try await Self.run({ $0.publicURL = "https://pictures.example/vitrine" }) { program in
            let document = try Self.json(try await program.ask("/iiif/3/lake.jpg/info.json"))
            #expect(document["id"] as? String == "https://pictures.example/vitrine/iiif/3/lake.jpg")
        }
    }

    /// Every region, size, rotation and mirror shows the pixels that a whole decode has there.
    @Test func regionsAndRotationsShowTheRightPixels() async throws {
        let whole = try ImageDecoder().decode(.bytes(try Samples.bytes("leaf.png")))
        let (width, height) = (whole.width, whole.height)
        let (x, y, w, h) = (width / 5, height / 4, width / 3, height / 2)
        let part = try whole.processed(by: [.crop(x: x, y: y, width: w, height: h)])
        let turns: [(String, Orientation)] = [
            ("0", .up), ("90", .right), ("180", .down), ("270", .left), ("!0", .upMirrored),
        ]
        try await Self.run { program in
            for (rotation, orientation) in turns {
                let reply = try await program.ask("/iiif/3/leaf.png/\(x),\(y),\(w),\(h)/max/\(rotation)/default.png")
                #expect(reply.status == 200, "\(rotation)")
                #expect(Self.difference(try Self.image(reply), part.oriented(orientation)) <= 1, "\(rotation)")
            }
            // The picture is mirrored before it is turned.
            let mirrored = try await program.ask("/iiif/3/leaf.png/\(x),\(y),\(w),\(h)/max/!90/default.png")
            #expect(Self.difference(try Self.image(mirrored), part.oriented(.upMirrored).oriented(.right)) <= 1)
            let small = try await program.ask("/iiif/3/leaf.png/\(x),\(y),\(w),\(h)/20,30/90/default.png")
            #expect(try Self.image(small).size == PixelSize(width: 30, height: 20))
            let large = try await program.ask("/iiif/3/leaf.png/0,0,10,5/%5E40,/0/default.png")
            #expect(try Self.image(large).size == PixelSize(width: 40, height: 20))
        }
    }

    @Test func picturesAreUprightInEveryOrientation() async throws {
        try await Self.run { program in
            var sizes: Set<PixelSize> = []
            for number in 1...8 {
                let reply = try await program.ask("/iiif/3/orientation-\(number).jpg/full/max/0/default.jpg")
                sizes.insert(try Self.image(reply).size)
                let document = try Self.json(try await program.ask("/iiif/3/orientation-\(number).jpg/info.json"))
                sizes.insert(
                    PixelSize(width: document["width"] as? Int ?? 0, height: document["height"] as? Int ?? 0))
            }
            #expect(sizes.count == 1)
        }
    }

    @Test func qualitiesAndFormatsAreWritten() async throws {
        try await Self.run { program in
            let gray = try Self.image(try await program.ask("/iiif/3/lake.jpg/full/60,/0/gray.png"))
            let bitonal = try Self.image(try await program.ask("/iiif/3/lake.jpg/full/60,/0/bitonal.png"))
            func levels(_ image: PixelImage) -> Set<[UInt8]> {
                image.withUnsafeBytes { bytes in
                    Set(stride(from: 0, to: bytes.count, by: 4).map { Array(bytes[$0..<($0 + 3)]) })
                }
            }
            #expect(levels(gray).allSatisfy { $0[0] == $0[1] && $0[1] == $0[2] } && levels(gray).count > 2)
            #expect(levels(bitonal) == [[0, 0, 0], [255, 255, 255]])
            for (name, type) in [("jpg", "jpeg"), ("png", "png"), ("webp", "webp"), ("gif", "gif")] {
                let reply = try await program.ask(
                    "/iiif/3/lake.jpg/full/60,/0/default.\(name)", [("Accept", "image/avif")])
                #expect(reply["content-type"] == "image/\(type)" && reply["vary"] == nil)
                #expect(reply["access-control-allow-origin"] == "*")
            }
        }
    }

    /// From the cache as well.
    @Test func imagesNameTheirCanonicalPath() async throws {
        let lake = try ImageInfo(of: .bytes(try Samples.bytes("lake.jpg"))).size
        let disk = NSTemporaryDirectory() + "vitrine-iiif-" + UUID().uuidString
        for _ in 0..<2 {
            try await Self.run({ $0.diskCache = disk }) { program in
                let path = "/iiif/3/lake.jpg/0,0,\(lake.width),\(lake.height)/40,/0/color.jpg"
                for _ in 0..<2 {
                    let reply = try await program.ask(path)
                    let size = try Self.image(reply).size
                    #expect(
                        reply["link"]
                            == "<http://iiif.io/api/image/3/level2.json>;rel=\"profile\", "
                            + "<../../../full/40,\(size.height)/0/default.jpg>;rel=\"canonical\"")
                    let tag = try #require(reply["etag"])
                    let kept = try await program.ask(path, [("If-None-Match", tag)])
                    #expect(kept.status == 304 && kept["link"] == reply["link"])
                }
                let other = try await program.ask("/iiif/2/lake.jpg/full/40,/0/color.jpg")
                #expect(
                    other["link"]
                        == "<http://iiif.io/api/image/2/level2.json>;rel=\"profile\", "
                        + "<../../../full/40,/0/default.jpg>;rel=\"canonical\"")
            }
        }
    }

    @Test(arguments: [
        ("/iiif/3/lake.jpg/99999,0,10,10/max/0/default.jpg", 400), ("/iiif/3/lake.jpg/full/0,/0/default.jpg", 400),
        ("/iiif/3/lake.jpg/full/pct:101/0/default.jpg", 400), ("/iiif/3/lake.jpg/full/%5E9000,/0/default.jpg", 400),
        ("/iiif/3/lake.jpg/full/max/359.999/default.jpg", 501), ("/iiif/3/missing.jpg/full/max/0/default.jpg", 404),
        ("/iiif/3/missing.jpg/info.json", 404), ("/iiif/3/..%2Flake.jpg/info.json", 404), ("/iiif/3/", 404),
        ("/iiif/3//info.json", 404), ("/iiif/4/lake.jpg/info.json", 404), ("/iiif/3/lake.jpg/full/max", 404),
        ("/iiif/3/lake.jpg/", 404), ("/iiif/3/lake.jpg/full/max/0/default.jpg/more", 400), ("/iiif/x", 404),
        ("/iiif/presentation/3/missing/manifest", 404), ("/iiif/presentation/3/..%2F/manifest", 404),
        ("/iiif/presentation/2/manifest", 404), ("/iiif/3/make-samples/info.json", 422),
        ("/iiif/3/make-samples/full/max/0/default.jpg", 422),
    ]) func junkIsRefused(path: String, expected: Int) async throws {
        try await Self.run { program in
            for _ in 0..<2 {
                let reply = try await program.ask(path)
                #expect(reply.status == expected && reply["access-control-allow-origin"] == "*")
                #expect(!String(decoding: reply.body, as: UTF8.self).contains(Samples.directory))
            }
        }
    }

    /// Numbers beyond every type, results beyond all memory, and names in every disguise.
    @Test func hostileRequestsAreRefusedAtOnce() async throws {
        let end = "/0/default.jpg"
        let huge = [
            "9223372036854775807", "9223372036854775808", "18446744073709551615", "-9223372036854775808", "1e400",
            "0x10", "999999999", "00000000000000000000000000000001", String(repeating: "9", count: 4_000),
        ]
        var refused: [(String, Set<Int>)] = []
        for number in huge {
            refused += [
                ("lake.jpg/\(number),0,10,10/max" + end, [400, 414]),
                ("lake.jpg/0,\(number),10,10/max" + end, [400, 414]),
                ("lake.jpg/full/^\(number)," + end, [400, 414]), ("lake.jpg/full/^,\(number)" + end, [400, 414]),
                ("lake.jpg/full/^!\(number),\(number)" + end, [400, 414]),
                ("lake.jpg/full/^pct:\(number)" + end, [400, 414]),
                ("lake.jpg/pct:\(number),0,1,1/max" + end, [400, 414]),
                ("lake.jpg/full/max/\(number)/default.jpg", [400, 414, 501]),
            ]
        }
        for name in [
            "..%2f..%2fetc%2fpasswd", "%252e%252e%252fetc", "%2e%2e/%2e%2e/etc/passwd", "%c0%ae%c0%ae%2fetc",
            "%00lake.jpg", "lake.jpg%00.png", "%ff%fe", "lake%2", "lake%zz.jpg", "local:%2F%2F%2Flake.jpg",
            "data:image%2Fpng,AAAA", "file:%2F%2F%2Fetc%2Fpasswd", "http:%2F%2F169.254.169.254%2Flatest",
            String(repeating: "a%2F", count: 1_000), String(repeating: "x", count: 300), "lake.jpg;99999999999999999999", "lake.jpg;0",
        ] {
            refused.append((name + "/full/max" + end, [400, 404, 414]))
            refused.append((name + "/info.json", [400, 404, 414]))
        }
        refused += [
            ("lake.jpg/full%2Fmax/0/default.jpg", [400, 404]), ("lake.jpg/full/max/0%2Fdefault.jpg", [400, 404]),
            ("lake.jpg/%66ull/max/0/default%2Ejpg%00", [400]), ("lake.jpg/0,0,10,10%00/max" + end, [400]),
            ("lake.jpg/full/max/0/default.jp%67x", [400]), ("lake.jpg/full/%FF" + end, [400]),
        ]
        try await Self.run { program in
            for (path, statuses) in refused {
                let reply = try await program.ask("/iiif/3/" + path)
                #expect(statuses.contains(reply.status), "\(reply.status) \(path.prefix(100))")
            }
            // Numbers that are percent-encoded are numbers.
            let part = try await program.ask("/iiif/3/lake.jpg/%30%2C0%2C4%30,30/%34,3/%30/default.%70ng")
            #expect(part.status == 200)
            #expect(try Self.image(part).size == PixelSize(width: 4, height: 3))
            // The last pixel, with a region that reaches beyond as far as a number can.
            let lake = try ImageInfo(of: .bytes(try Samples.bytes("lake.jpg"))).size
            let last = try await program.ask(
                "/iiif/3/lake.jpg/\(lake.width - 1),\(lake.height - 1),999999999,999999999/max/0/default.png")
            #expect(try Self.image(last).size == PixelSize(1))
        }
    }

    /// Signatures of other URLs neither open nor close these.
    @Test func linksAreNotFollowedAndOtherURLsStaySigned() async throws {
        let root = NSTemporaryDirectory() + "vitrine-iiif-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        try Data(try Samples.bytes("leaf.png")).write(to: URL(filePath: root + "/a b#é.png"))
        try FileManager.default.createSymbolicLink(
            atPath: root + "/link.png", withDestinationPath: Samples.directory + "/leaf.png")
        try await Self.run({ configuration in
            configuration.localRoot = root
            configuration.keys = [[1]]
            configuration.salts = [[2]]
        }) { program in
            #expect(try await program.ask("/iiif/3/a%20b%23%C3%A9.png/full/10,/0/default.png").status == 200)
            #expect(try await program.ask("/iiif/3/link.png/info.json").status == 404)
            #expect(try await program.ask("/insecure/plain/local:///a%20b%23%C3%A9.png").status == 403)
            let manifest = try Self.json(try await program.ask("/iiif/presentation/3/manifest"))
            #expect((manifest["items"] as? [Any])?.count == 1)
        }
    }

    // MARK: Manifests

    @Test func foldersAndDocumentsHaveManifests() async throws {
        let root = NSTemporaryDirectory() + "vitrine-iiif-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: root + "/album", withIntermediateDirectories: true)
        for name in ["leaf.png", "lake.jpg", "lake.pdf", "lake.webp"] {
            try Data(try Samples.bytes(name)).write(to: URL(filePath: root + "/album/" + name))
        }
        try Data("no image".utf8).write(to: URL(filePath: root + "/album/notes.txt"))
        try Data("\u{89}PNG\r\n\u{1A}\n".utf8).write(to: URL(filePath: root + "/album/broken.png"))
        try await Self.run({ $0.localRoot = root }) { program in
            let base = "http://localhost/iiif"
            let manifest = try Self.json(try await program.ask("/iiif/presentation/3/album/manifest"))
            #expect(manifest["id"] as? String == base + "/presentation/3/album/manifest")
            #expect(manifest["type"] as? String == "Manifest")
            let canvases = try #require(manifest["items"] as? [[String: Any]])
            #expect(
                canvases.map { ($0["label"] as? [String: [String]])?["none"] ?? [] }
                    == [["lake.jpg"], ["lake.webp"], ["leaf.png"]])
            let page = try #require((canvases[0]["items"] as? [[String: Any]])?.first)
            let annotation = try #require((page["items"] as? [[String: Any]])?.first)
            #expect(annotation["target"] as? String == canvases[0]["id"] as? String)
            let body = try #require(annotation["body"] as? [String: Any])
            let service = try #require((body["service"] as? [[String: Any]])?.first?["id"] as? String)
            #expect(service == base + "/3/album%2Flake.jpg")
            let information = try Self.json(try await program.ask("/iiif/3/album%2Flake.jpg/info.json"))
            #expect(information["width"] as? Int == canvases[0]["width"] as? Int)

            let document = try Self.json(try await program.ask("/iiif/presentation/3/album%2Flake.pdf/manifest"))
            let pages = try #require(document["items"] as? [[String: Any]])
            #expect(!pages.isEmpty)
            let (width, height) = (pages[0]["width"] as? Int ?? 0, pages[0]["height"] as? Int ?? 0)
            // Drawn at three pixels for each point, and in tiles of the same pixels.
            let whole = try Self.image(
                try await program.ask("/iiif/3/album%2Flake.pdf;1/full/max/0/default.png"))
            #expect(whole.size == PixelSize(width: width, height: height))
            let part = try Self.image(
                try await program.ask("/iiif/3/album%2Flake.pdf;1/\(width / 2),0,100,80/max/0/default.png"))
            let expected = try whole.processed(by: [.crop(x: width / 2, y: 0, width: 100, height: 80)])
            #expect(Self.difference(part, expected) <= 1)
        }
    }
}
