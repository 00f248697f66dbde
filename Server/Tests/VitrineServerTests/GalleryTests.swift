#if os(Linux)
import Foundation
import Glibc
import ServerTestSupport
import Testing
import VitrineImaging
import VitrineServer

/// A directory of pictures for a gallery, removed with this object.
final class GalleryRoot: Sendable {
    let path = NSTemporaryDirectory() + "vitrine-gallery-" + UUID().uuidString

    init() throws { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func folder(_ name: String) throws {
        try FileManager.default.createDirectory(atPath: path + "/" + name, withIntermediateDirectories: true)
    }

    /// Writes a file; its name is bytes.
    func write(_ bytes: [UInt8], to name: [UInt8]) throws {
        let place = (Array((path + "/").utf8) + name + [0]).map { CChar(truncatingIfNeeded: $0) }
        let descriptor = open(place, O_CREAT | O_WRONLY | O_TRUNC, 0o644)
        try #require(descriptor >= 0, "errno \(errno)")
        defer { close(descriptor) }
        #expect(Glibc.write(descriptor, bytes, bytes.count) == bytes.count)
    }

    func copy(_ sample: String, to name: String) throws { try write(try Samples.bytes(sample), to: Array(name.utf8)) }

    func remove(_ name: String) throws { try FileManager.default.removeItem(atPath: path + "/" + name) }

    /// Many names of one file.
    func links(of sample: String, count: Int, in folder: String = "") throws {
        let end = (sample as NSString).pathExtension
        for number in 0..<count {
            // Systems of files allow so many names for one of them.
            let original = ".original\(number / 30_000)"
            if number % 30_000 == 0 { try copy(sample, to: original) }
            let name = "\(path)/\(folder)\(folder.isEmpty ? "" : "/")IMG_\(number).\(end)"
            try #require(link("\(path)/\(original)", name) == 0)
        }
    }

    /// A picture of many pixels.
    func enlarge(_ sample: String, width: Int, height: Int, to name: String) throws {
        let small = try ImageDecoder().decode(.bytes(try Samples.bytes(sample)))
        let image = try ImageResizer.stretch(width: width, height: height).resize(small)
        try write(try image.encoded(as: .jpeg(quality: 0.9)), to: Array(name.utf8))
    }

    func set(_ name: String, seconds: Int) {
        var times = [timeval(tv_sec: seconds, tv_usec: 0), timeval(tv_sec: seconds, tv_usec: 0)]
        utimes(path + "/" + name, &times)
    }
}

/// The gallery by real HTTP.
@Suite struct GalleryTests {
    struct Folder {
        let listing: String
        let total: Int
        let folders: [String]
        let names: [String]
        let versions: [String]
        let kinds: [String: Int]
        let isTruncated: Bool

        init(_ reply: HTTPReply) throws {
            #expect(reply.status == 200, "\(reply.text)")
            let object = try #require(try JSONSerialization.jsonObject(with: Data(reply.body)) as? [String: Any])
            listing = try #require(object["listing"] as? String)
            total = try #require(object["total"] as? Int)
            folders = object["folders"] as? [String] ?? []
            isTruncated = try #require(object["truncated"] as? Bool)
            let items = try #require(object["items"] as? [[Any]])
            names = items.compactMap { $0[0] as? String }
            versions = items.compactMap { $0[4] as? String }
            kinds = Dictionary(uniqueKeysWithValues: items.compactMap { item in
                (item[0] as? String).flatMap { name in (item[3] as? Int).map { (name, $0) } }
            })
        }
    }

    static func run(
        _ root: GalleryRoot, _ change: (inout ServerConfiguration) -> Void = { _ in }, gate: RequestGate? = nil,
        _ body: (ImageProgram) async throws -> Void
    ) async throws {
        let adjust = { (configuration: inout ServerConfiguration) in
            configuration.localRoot = root.path
            configuration.gallery = true
            configuration.timeout = 600
            change(&configuration)
        }
        try await ImageProgram.run(adjust, gate: gate, body)
        withExtendedLifetime(root) {}
    }

    static func folder(_ program: ImageProgram, _ query: String = "") async throws -> Folder {
        try Folder(try await program.ask("/gallery/api/folder?\(query)"))
    }

    @Test func pagesHaveAStrictPolicyAndTheirFiles() async throws {
        try await Self.run(try GalleryRoot()) { program in
            let home = try await program.ask("/")
            #expect(home.status == 303 && home["location"] == "/gallery/")
            let page = try await program.ask("/gallery/")
            let policy = try #require(page["content-security-policy"])
            #expect(policy.contains("default-src 'none'") && policy.contains("script-src 'self'"))
            #expect(!policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"))
            #expect(page["content-type"] == "text/html; charset=utf-8")
            for name in ["gallery.js", "grid.js", "kinds.js", "layout.js", "lightbox.js", "zoom.js", "tiles.js",
                "dom.js", "previews.js", "server.js", "thumbhash.js", "style.css", "icon.svg"]
            {
                let file = try await program.ask("/gallery/assets/\(name)")
                #expect(file.status == 200 && file.body.count > 100, "\(name)")
                let again = try await program.ask("/gallery/assets/\(name)", [("If-None-Match", file["etag"] ?? "")])
                #expect(again.status == 304 && again.body.isEmpty)
            }
            #expect(try await program.ask("/gallery/assets/nothing.js").status == 404)
            #expect(try await program.ask("/gallery/", method: "PUT").status == 405)
        }
    }

    @Test func serverWithoutTheSettingHasNoGallery() async throws {
        try await ImageProgram.run { program in
            for path in ["/", "/gallery/", "/gallery/api/folder"] {
                let status = try await program.ask(path).status
                #expect(status >= 400, "\(path)")
            }
        }
    }

    @Test func galleryNeedsALocalRoot() {
        var configuration = ServerConfiguration()
        configuration.gallery = true
        #expect(throws: ConfigurationError("gallery: it needs local-root")) { try configuration.validate() }
    }

    @Test func namesOfEveryKindAreListedAndShown() async throws {
        let root = try GalleryRoot()
        let lake = try Samples.bytes("lake.jpg")
        let names: [[UInt8]] = [
            Array("a b+c%20d?e#f&g=h;i.jpg".utf8), Array("\"<script>alert(1)</script>'.jpg".utf8.filter { $0 != 47 }),
            Array("line\nbreak\ttab.jpg".utf8), Array("日本語 🏔️.jpg".utf8), [0xFF, 0xFE, 0x80] + Array(".jpg".utf8),
            [UInt8](repeating: 0xE9, count: 251) + Array(".jpg".utf8),
            Array(String(repeating: "x", count: 251).utf8) + Array(".jpg".utf8), Array("back\\slash.jpg".utf8),
            Array("@png.jpg".utf8), Array("UPPER.JPG".utf8),
        ]
        for name in names { try root.write(lake, to: name) }
        try await Self.run(root) { program in
            let folder = try await Self.folder(program)
            #expect(folder.total == names.count && Set(folder.names).count == names.count)
            for (name, version) in zip(folder.names, folder.versions) {
                let once = try #require(name.addingPercentEncoding(withAllowedCharacters: .alphanumerics))
                let twice = try #require(
                    "local:///\(once)".addingPercentEncoding(withAllowedCharacters: .alphanumerics))
                let base64 = Data("local:///\(once)".utf8).base64EncodedString().replacing("+", with: "-")
                    .replacing("/", with: "_").filter { $0 != "=" }
                var paths = ["w:40/cb:\(version)/\(base64).jpg"]
                if twice.utf8.count < 4_000 { paths.append("w:40/cb:\(version)/plain/\(twice)@jpg") }
                for path in paths {
                    let reply = try await program.ask("/gallery/media/insecure/\(path)")
                    #expect(reply.status == 200, "\(name): \(reply.text.prefix(99))")
                    #expect(reply["content-type"] == "image/jpeg")
                }
                let tile = try await program.ask("/gallery/media/iiif/3/\(once)/0,0,512,512/256,256/0/default.jpg")
                // A name with a line break is no identifier.
                #expect(tile.status == (name.contains("\n") ? 404 : 200), "\(name)")
                let original = try await program.ask("/gallery/original/\(once)?download=1")
                #expect(original.status == 200 && original.body == lake, "\(name)")
                #expect(original["content-disposition"]?.hasPrefix("attachment; filename*=UTF-8''") == true)
            }
        }
    }

    @Test func nothingOutsideTheRootAndNothingHiddenIsShown() async throws {
        let root = try GalleryRoot()
        let outside = try GalleryRoot()
        try outside.copy("lake.jpg", to: "secret.jpg")
        try root.copy("lake.jpg", to: "seen.jpg")
        try root.copy("lake.jpg", to: ".hidden.jpg")
        try root.folder(".private")
        try root.copy("lake.jpg", to: ".private/x.jpg")
        try Data("text".utf8).write(to: URL(filePath: root.path + "/notes.txt"))
        symlink(outside.path + "/secret.jpg", root.path + "/link.jpg")
        symlink(outside.path, root.path + "/elsewhere")
        mkfifo(root.path + "/pipe.jpg", 0o644)
        try await Self.run(root) { program in
            let folder = try await Self.folder(program)
            #expect(folder.names == ["seen.jpg"] && folder.folders.isEmpty)
            let found = try await Self.folder(program, "q=jpg")
            #expect(found.names == ["seen.jpg"])
            for path in [
                "link.jpg", "elsewhere/secret.jpg", ".hidden.jpg", ".private/x.jpg", "notes.txt", "pipe.jpg",
                "../\((outside.path as NSString).lastPathComponent)/secret.jpg", "%2e%2e/x.jpg", "a/%2E./x.jpg",
                "x%00.jpg",
                "..%2fsecret.jpg",
            ] {
                let status = try await program.ask("/gallery/original/\(path)").status
                #expect(status == 404 || status == 400, "\(path): \(status)")
                let escaped = try #require(
                    "local:///\(path)".addingPercentEncoding(withAllowedCharacters: .alphanumerics))
                let media = try await program.ask("/gallery/media/insecure/w:40/plain/\(escaped)@jpg").status
                #expect(media == 404 || media == 400 || path == "notes.txt" && media == 422, "\(path): \(media)")
                let identifier = try #require(path.addingPercentEncoding(withAllowedCharacters: .alphanumerics))
                let tile = try await program.ask("/gallery/media/iiif/3/\(identifier)/full/max/0/default.jpg").status
                #expect(tile == 404 || tile == 400 || path == "notes.txt" && tile == 422, "\(path): \(tile)")
            }
            for path in ["..", "elsewhere", ".private", "seen.jpg", "a/../..", "%00"] {
                let status = try await program.ask("/gallery/api/folder?path=\(path)").status
                #expect(status == 404 || status == 400, "\(path)")
            }
            // Only local files.
            let web = try await program.ask(
                "/gallery/media/insecure/w:40/plain/http://127.0.0.1:\(program.port)/health")
            #expect(web.status == 403)
            let data = try await program.ask("/gallery/media/insecure/w:40/plain/data:image%2Fpng;base64,AAAA")
            #expect(data.status == 403)
        }
        withExtendedLifetime(outside) {}
    }

    @Test func foldersAreSortedAndSearched() async throws {
        let root = try GalleryRoot()
        try root.folder("Été")
        let names = ["IMG_10.jpg", "IMG_9.jpg", "img_1.png", "Zoo.jpg", "Été/Lac d'été.jpg", "Été/lake.pdf"]
        for (index, name) in names.enumerated() {
            let sample = ["png": "leaf.png", "pdf": "lake.pdf"][(name as NSString).pathExtension] ?? "lake.jpg"
            try root.copy(sample, to: name)
            root.set(name, seconds: 1_700_000_000 + index * 86_400)
        }
        try await Self.run(root) { program in
            let folder = try await Self.folder(program)
            #expect(folder.names == ["img_1.png", "IMG_9.jpg", "IMG_10.jpg", "Zoo.jpg"])
            #expect(folder.folders == ["Été"])
            #expect(try await Self.folder(program, "descending=1").names.first == "Zoo.jpg")
            let byDate = try await Self.folder(program, "sort=date")
            #expect(byDate.names == ["IMG_10.jpg", "IMG_9.jpg", "img_1.png", "Zoo.jpg"])
            #expect(try await Self.folder(program, "sort=size").names.first == "img_1.png")
            #expect(try await Self.folder(program, "q=ETE%20lac").names == ["Été/Lac d'été.jpg"])
            #expect(try await Self.folder(program, "q=img%2010").names == ["IMG_10.jpg"])
            #expect(try await Self.folder(program, "after=\(1_700_000_000 + 4 * 86_400)").total == 2)
            #expect(try await Self.folder(program, "before=1700000000").names == ["IMG_10.jpg"])
            #expect(try await Self.folder(program, "path=%C3%89t%C3%A9").names == ["Lac d'été.jpg", "lake.pdf"])
            #expect(try await program.ask("/gallery/api/folder?sort=colour").status == 400)
            #expect(try await program.ask("/gallery/api/folder?limit=1000000").status == 400)
            let cover = try await program.ask("/gallery/api/cover?path=%C3%89t%C3%A9")
            #expect(cover.text == #"{"names":["Lac d'été.jpg","lake.pdf"]}"#)
        }
    }

    @Test func hugeFoldersAreReadInPagesThatFitTogether() async throws {
        let root = try GalleryRoot()
        try root.links(of: "leaf.webp", count: 20_000)
        try await Self.run(root) { program in
            let first = try await Self.folder(program, "limit=1000")
            #expect(first.total == 20_000 && first.names.count == 1_000 && first.names[999] == "IMG_999.webp")
            // The pages of a listing do not move when files come.
            try root.copy("leaf.webp", to: "AAA.webp")
            let next = try await Self.folder(program, "limit=1000&offset=19500&listing=\(first.listing)")
            #expect(next.listing == first.listing && next.names.count == 500 && next.names.last == "IMG_19999.webp")
            let fresh = try await Self.folder(program, "limit=1")
            #expect(fresh.total == 20_001 && fresh.names == ["AAA.webp"])
            let beyond = try await Self.folder(program, "offset=30000&listing=\(first.listing)")
            #expect(beyond.names.isEmpty)
        }
    }

    @Test func detailsAreSizesAndThenPlaceholders() async throws {
        let root = try GalleryRoot()
        for name in ["lake.jpg", "orientation-6.jpg", "moon.gif", "lake.mp4", "lake.pdf", "vitrine.svg"] {
            try root.copy(name, to: name)
        }
        try root.write(Array("no picture".utf8), to: Array("broken.jpg".utf8))
        try root.write([], to: Array("empty.png".utf8))
        try await Self.run(root) { program in
            let folder = try await Self.folder(program)
            func details(_ more: String) async throws -> [[Any]?] {
                let reply = try await program.ask("/gallery/api/details?listing=\(folder.listing)\(more)")
                let object = try #require(try JSONSerialization.jsonObject(with: Data(reply.body)) as? [String: Any])
                return try #require(object["details"] as? [Any]).map { $0 as? [Any] }
            }
            func known(_ name: String, _ all: [[Any]?]) throws -> [Any]? {
                all[try #require(folder.names.firstIndex(of: name))]
            }
            let sizes = try await details("")
            #expect(sizes.count == folder.total)
            let lake = try #require(try known("lake.jpg", sizes))
            #expect(lake[0] as? Int ?? 0 > 0 && lake[2] is NSNull)
            let (video, document) = (try known("lake.mp4", sizes), try known("lake.pdf", sizes))
            #expect(video?[0] as? Int == 0 && document?[0] as? Int == 0)
            let broken = try #require(try known("broken.jpg", sizes))
            #expect(broken[0] as? Int == 0 && broken[5] as? String == "not-an-image")
            #expect(try #require(try known("moon.gif", sizes))[3] as? Int ?? 0 > 1)
            let whole = try await details("&placeholders=1")
            #expect((try known("lake.jpg", whole))?[2] as? String != "")
            #expect((try known("broken.jpg", whole))?[2] is NSNull)
            #expect((try known("lake.mp4", whole))?[4] as? Double ?? 0 > 0)
            #expect((try known("lake.pdf", whole))?[1] as? Int ?? 0 > 0)
            #expect(try await program.ask("/gallery/api/details?listing=nothing").status == 410)
        }
    }

    @Test func originalsAreSentInPartsAndConfined() async throws {
        let root = try GalleryRoot()
        for name in ["lake.mp4", "vitrine.svg"] { try root.copy(name, to: name) }
        let drawn = try ChildProcess.run("/bin/gzip", ["-nc", root.path + "/vitrine.svg"]).output
        try Data(drawn).write(to: URL(filePath: root.path + "/packed.svgz"))
        let lake = try Samples.bytes("lake.mp4")
        try await Self.run(root) { program in
            let whole = try await program.ask("/gallery/original/lake.mp4")
            #expect(whole.body == lake && whole["content-type"] == "video/mp4" && whole["accept-ranges"] == "bytes")
            let part = try await program.ask("/gallery/original/lake.mp4", [("Range", "bytes=100-299")])
            #expect(part.status == 206 && part.body == Array(lake[100..<300]))
            #expect(part["content-range"] == "bytes 100-299/\(lake.count)")
            let beyond = try await program.ask("/gallery/original/lake.mp4", [("Range", "bytes=99999999-")])
            #expect(beyond.status == 416)
            let same = try await program.ask("/gallery/original/lake.mp4", [("If-None-Match", whole["etag"] ?? "")])
            #expect(same.status == 304)
            let head = try await program.ask("/gallery/original/lake.mp4", method: "HEAD")
            #expect(head["content-length"] == String(lake.count) && head.body.isEmpty)
            // A picture with scripts is a document to a browser.
            let drawing = try await program.ask("/gallery/original/vitrine.svg")
            #expect(drawing["content-security-policy"]?.contains("sandbox") == true)
            #expect(drawing["x-content-type-options"] == "nosniff" && drawing["content-encoding"] == nil)
            let packed = try await program.ask("/gallery/original/packed.svgz")
            #expect(packed["content-type"] == "image/svg+xml" && packed["content-encoding"] == "gzip")
            // A file that is saved stays as it is.
            let saved = try await program.ask("/gallery/original/packed.svgz?download=1")
            #expect(saved["content-encoding"] == nil && saved.body == packed.body)
        }
    }

    @Test func otherMachinesNeedTheToken() async throws {
        let root = try GalleryRoot()
        try root.copy("lake.jpg", to: "lake.jpg")
        let far = ("X-Forwarded-For", "203.0.113.9")
        try await Self.run(root) { program in
            let (near, other) = (
                try await program.ask("/gallery/api/folder"), try await program.ask("/gallery/api/folder", [far]))
            #expect(near.status == 200 && other.status == 403)
            // What browsers and command lines send is no sign of a proxy; all else may be.
            let browser = [
                ("User-Agent", "Mozilla/5.0"), ("Accept", "text/html"), ("Accept-Language", "de"), ("DNT", "1"),
                ("Sec-Fetch-Site", "none"), ("Upgrade-Insecure-Requests", "1"), ("Priority", "u=7"),
            ]
            #expect(try await program.ask("/gallery/", browser).status == 200)
            for name in [
                "Forwarded", "X-Forwarded-Proto", "X-Real-IP", "Via", "CF-Connecting-IP", "True-Client-IP",
                "Fastly-Client-IP",                "X-Envoy-External-Address", "X-Amzn-Trace-Id", "X-Client-Verify", "X-Varnish", "Surrogate-Capability",
            ] {
                #expect(try await program.ask("/gallery/", [(name, "https")]).status == 403, "\(name)")
            }
            for (host, status) in [
                ("localhost:1", 200), ("127.9.9.9", 200), ("[::1]:80", 200), ("203.0.113.5", 403),
                ("[2001:db8::1]", 403),                ("10.0.0.1", 403), ("localhost.evil.example", 403),
            ] {
                let connection = try program.connect()
                await connection.send("GET /gallery/api/folder HTTP/1.1\r\nHost: \(host)\r\n\r\n")
                #expect(await connection.readReply()?.status == status, "\(host)")
            }
        }
        // A proxy of the configuration is no program of this machine, whatever it sends.
        let loopback = try AddressRange("127.0.0.0/8")
        try await Self.run(root, { $0.trustedProxies = [loopback] }) { program in
            let status = try await program.ask("/gallery/api/folder").status
            #expect(status == 403)
        }
        let token = "correct horse battery"
        try await Self.run(root, { $0.galleryToken = token }) { program in
            // The token is asked for on this machine, too.
            #expect(try await program.ask("/gallery/api/folder").status == 401)
            for path in [
                "api/folder", "original/lake.jpg", "media/insecure/w:9/plain/local:///lake.jpg", "api/changes",
                "media/iiif/3/lake.jpg/full/9,/0/default.jpg", "media/iiif/3/lake.jpg/info.json",
            ] {
                #expect(try await program.ask("/gallery/\(path)", [far]).status == 401, "\(path)")
            }
            let page = try await program.ask("/gallery/", [far])
            #expect(page.status == 401 && page.text.contains("name=\"token\""))
            let bearer = try await program.ask("/gallery/api/folder", [far, ("Authorization", "Bearer \(token)")])
            #expect(bearer.status == 200)
            let wrong = try await program.ask("/gallery/api/folder", [far, ("Authorization", "Bearer \(token)x")])
            #expect(wrong.status == 401)
            let connection = try program.connect()
            for (text, status) in [("token=wrong", 401), ("token=correct+horse+battery", 303)] {
                await connection.send(
                    "POST /gallery/token HTTP/1.1\r\nHost: a.example\r\n"
                        + "Content-Length: \(text.utf8.count)\r\n\r\n\(text)")
                let reply = try #require(await connection.readReply())
                #expect(reply.status == status)
                guard status == 303 else { continue }
                let cookie = try #require(reply["set-cookie"])
                #expect(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"))
                let pair = String(cookie.prefix { $0 != ";" })
                #expect(try await program.ask("/gallery/api/folder", [far, ("Cookie", pair)]).status == 200)
            }
            // A page of another host whose name leads to this machine.
            await connection.send("GET /gallery/api/folder HTTP/1.1\r\nHost: evil.example\r\n\r\n")
            #expect(await connection.readReply()?.status == 401)
        }
    }

    /// A page of another host is on this machine, too, when its user's browser is.
    @Test func scriptsOfOtherHostsReadNothing() async throws {
        let root = try GalleryRoot()
        try root.copy("lake.jpg", to: "lake.jpg")
        try await Self.run(root, { configuration in
            configuration.allowOrigin = "*"
            configuration.iiif = true
        }) { program in
            for path in [
                "media/insecure/w:40/plain/local:///lake.jpg", "media/iiif/3/lake.jpg/full/40,/0/default.jpg",
                "media/iiif/3/lake.jpg/info.json", "media/iiif/3/gone.jpg/full/40,/0/default.jpg", "api/folder",
                "original/lake.jpg",
            ] {
                let reply = try await program.ask("/gallery/\(path)", [("Origin", "https://evil.example")])
                #expect(reply["access-control-allow-origin"] == nil, "\(path)")
                #expect(reply["cross-origin-resource-policy"] == "same-origin", "\(path)")
            }
        }
    }

    @Test func galleryNeedsNoSignatures() async throws {
        let root = try GalleryRoot()
        try root.copy("lake.jpg", to: "lake.jpg")
        try await Self.run(root, { configuration in
            configuration.keys = [[1, 2, 3]]
            configuration.salts = [[4, 5, 6]]
            configuration.presets = ["small": "w:50"]
            configuration.onlyPresets = true
        }) { program in
            #expect(try await program.ask("/insecure/w:40/plain/local:///lake.jpg").status == 403)
            let image = try await program.ask("/gallery/media/insecure/w:40/plain/local:///lake.jpg@jpg")
            #expect(image.status == 200 && image["cache-control"]?.contains("private") == true)
            let tile = try await program.ask("/gallery/media/iiif/3/lake.jpg/0,0,512,512/512,512/0/default.jpg?version")
            #expect(tile.status == 200 && tile["cache-control"]?.contains("private") == true)
            #expect(try await program.ask("/iiif/3/lake.jpg/full/max/0/default.jpg").status >= 400)
        }
    }

    @Test func changesArriveWithoutAsking() async throws {
        let root = try GalleryRoot()
        try await Self.run(root) { program in
            let connection = try program.connect()
            await connection.send("GET /gallery/api/changes?path= HTTP/1.1\r\nHost: localhost\r\n\r\n")
            let head = try #require(await connection.read(until: "retry: 2000"))
            #expect(head.contains("text/event-stream"))
            try root.copy("lake.jpg", to: "new.jpg")
            #expect(await connection.read(until: "event: changed") != nil)
            try root.remove("new.jpg")
            #expect(await connection.read(until: "event: changed") != nil)
            #expect(try await program.ask("/gallery/api/changes?path=nowhere").status == 404)
            // The stream must not keep the server from stopping: the test would not end.
        }
    }

    // MARK: The operator's page

    @Test func operatorsPageSignsShowsAndPurges() async throws {
        try await ImageProgram.run({ configuration in
            configuration.adminHosts = ["pictures.example"]
            configuration.keys = [[1, 2, 3]]
            configuration.salts = [[4, 5, 6]]
        }) { program in
            let admin = try RawConnection(port: program.adminPort)
            let page = try await admin.ask("/admin")
            #expect(page.status == 200 && page["content-security-policy"]?.contains("default-src 'none'") == true)
            for name in ["admin.js", "admin.css", "icon.svg"] {
                #expect(try await admin.ask("/admin/assets/\(name)").status == 200)
            }
            let signed = try await admin.ask("/admin/sign?path=/w:40/plain/local:///lake.jpg")
            let object = try #require(try JSONSerialization.jsonObject(with: Data(signed.body)) as? [String: String])
            let path = try #require(object["path"])
            #expect(try await program.ask(path).status == 200)
            let preview = try await admin.ask("/admin/preview?path=/w:40/plain/local:///lake.jpg@png")
            #expect(preview.status == 200 && preview["content-type"] == "image/png")
            #expect(try await admin.ask("/admin/preview?path=/w:x/plain/local:///lake.jpg").status == 400)
            #expect(try await admin.ask("/admin/sign?path=").status == 400)
            // The main listener has nothing of this.
            #expect(try await program.ask("/admin").status >= 400)
            #expect(try await program.ask("/admin/sign?path=/w:40/plain/local:///lake.jpg").status >= 400)

            _ = try await program.ask("/insecure/w:40/plain/local:///lake.jpg")
            let debug = try await admin.ask("/debug")
            #expect(debug.text.contains("\"errors\":[{\"path\":\"/insecure/w:40/plain/local:///lake.jpg\""))

            for path in ["/debug", "/config", "/metrics", "/health", "/ready", "/admin", "/nothing"] {
                let answer = try await admin.ask(path)
                #expect(answer["x-content-type-options"] == "nosniff", "\(path)")
                #expect(answer["content-security-policy"]?.contains("default-src 'none'") == true, "\(path)")
                #expect(answer["cross-origin-resource-policy"] == "same-origin", "\(path)")
                // A page of another host whose name leads to this machine.
                await admin.send("GET \(path) HTTP/1.1\r\nHost: evil.example\r\n\r\n")
                let refused = try #require(await admin.readReply())
                #expect(refused.status == 421 && refused["content-security-policy"] != nil, "\(path)")
                await admin.send("GET \(path) HTTP/1.1\r\nHost: pictures.example:8081\r\n\r\n")
                #expect(await admin.readReply()?.status != 421, "\(path)")
            }

            // Pages of other hosts neither read nor purge.
            await admin.send("GET /admin/sign?path=/w:4/plain/local:///lake.jpg HTTP/1.1\r\nHost: evil.example\r\n\r\n")
            #expect(await admin.readReply()?.status == 421)
            let body = "{\"all\":true}"
            for (origin, status) in [("http://evil.example", 415), ("http://localhost:\(program.adminPort)", 200)] {
                await admin.send(
                    "POST /purge HTTP/1.1\r\nHost: localhost:\(program.adminPort)\r\nOrigin: \(origin)\r\n"
                        + "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
                #expect(await admin.readReply()?.status == status)
            }
        }
    }
}
#endif
