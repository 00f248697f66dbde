#if os(Linux)
import Foundation
import TestSupport
import Testing

@Suite struct FetchCommandTests {
    private let scratch: Scratch
    private let content = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 9) }

    init() throws { scratch = try Scratch() }

    /// Words before the command that keep the environment's proxies out.
    private static let direct = ["env", "-u", "http_proxy", "-u", "all_proxy", "-u", "ALL_PROXY"]

    private func bytes(_ name: String) -> [UInt8]? {
        (try? Data(contentsOf: scratch.file(name))).map { Array($0) }
    }

    private static func size(of path: String) -> Int? {
        var status = stat()
        return stat(path, &status) == 0 ? Int(status.st_size) : nil
    }

    /// The number of bytes of a part that have a checksum: bytes without one are received again.
    private static func recordedSize(of part: String) -> Int? {
        let path = part.replacing(".vitrine-part", with: ".vitrine-sums")
        guard let bytes = try? Data(contentsOf: URL(filePath: path)), bytes.count % 8 == 0 else { return nil }
        var sum = 0
        for (index, byte) in bytes.enumerated() where index % 8 < 4 { sum += Int(byte) << (index % 8 * 8) }
        return sum
    }

    @Test func severalAddressesBecomeFilesOfADirectory() async throws {
        let site = FileSite(content)
        let server = try LoopbackServer { request in
            request.target == "/missing" ? [.reply(404)] : site.reply(to: request)
        }
        let words = ["/a.jpg", "/b/a.jpg?x=1", "/missing", "/.profile", "/"].map { server.url($0).absoluteString }
        let arguments = ["fetch", "--json"] + words + ["nonsense", "-o", scratch.file("out").path]
        let outcome = try await Tool.run(arguments)
        #expect(outcome.status == 1)
        let objects = outcome.objects
        #expect(objects.map { $0["url"] as? String } == words + ["nonsense"])
        #expect(objects[2]["error"] as? String == "the server answers 404")
        #expect(objects[5]["error"] is String)
        #expect(objects[0]["bytes"] as? Int == content.count)
        #expect(objects[0]["status"] as? Int == 200)
        #expect(objects[0]["source"] as? String == "network")
        let names = try FileManager.default.contentsOfDirectory(atPath: scratch.file("out").path).sorted()
        #expect(names == ["127.0.0.1", "_.profile", "a-2.jpg", "a.jpg"])
        for name in names { #expect(bytes("out/" + name) == content) }
    }

    @Test func standardOutputTakesOneResult() async throws {
        let site = FileSite(content)
        let server = try LoopbackServer { site.reply(to: $0) }
        let url = server.url("/a.jpg").absoluteString
        for arguments in [[], ["--no-cache"]] {
            let outcome = try await Tool.run(["fetch", url, "--json", "-o", "-"] + arguments)
            #expect(outcome.status == 0)
            #expect(outcome.bytes == content)
            #expect(outcome.errors.contains("\"output\":\"-\""))
        }
        let several = try await Tool.run(["fetch", url, url, "-o", "-"])
        #expect(several.status == 2)
        #expect(several.output.isEmpty)
    }

    @Test func failuresAreToldByAddressAndReason() async throws {
        let server = try LoopbackServer { _ in [.reply(404)] }
        let url = server.url("/x").absoluteString, output = scratch.file("x").path
        let outcome = try await Tool.run(["fetch", url, "-o", output])
        #expect(outcome.status == 1)
        #expect(outcome.output.isEmpty)
        #expect(outcome.errors == "\(url): the server answers 404\n")
        #expect(scratch.contents.filter { $0.hasPrefix("x") }.isEmpty)
        for wrong in [
            [], [url, url, "--id", "a", "-o", "x"], [url, "-o", "x", "--header", "no colon"], [url, "--no-cache"],
            [url, "--depth", "disk", "--refresh"],
        ] {
            #expect(try await Tool.run(["fetch"] + wrong).status == 2)
        }
    }

    @Test(arguments: [
        "Host", "host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "TE", "Trailer", "Range",
        "If-Range", "If-None-Match", "Accept-Encoding",
    ])
    func fieldsOfTheLoaderAreRefused(_ name: String) async throws {
        let server = try LoopbackServer { _ in [.reply()] }
        let url = server.url("/x").absoluteString
        for words in [["fetch", url], ["download", "add", url, "--no-agent"]] {
            let outcome = try await Tool.run(words + ["--header", "\(name): x"], home: scratch.file("home"))
            #expect(outcome.status == 2)
            #expect(outcome.errors.contains("--header cannot set \(name)"))
        }
        #expect(server.requests.isEmpty)
    }

    @Test func whatCameFromPrivateAddressesIsNotGivenWherePublicOnesAreWanted() async throws {
        let content = content
        let fields = ["Cache-Control: max-age=1000, stale-while-revalidate=1000", "ETag: \"1\""]
        let server = try LoopbackServer { _ in [.reply(200, fields, body: content)] }
        let home = scratch.file("home"), url = server.url("/x").absoluteString
        let elsewhere = "http://no-such-host.invalid/x"
        for words in [[url], [url, "--id", "film"]] {
            #expect(try await Tool.run(["fetch"] + words, home: home).status == 0)
            #expect(try await Tool.run(["fetch", "--depth", "disk"] + words, home: home).status == 0)
            for depth in ["memory", "disk", "network"] {
                for target in [url, elsewhere] {
                    let strict = ["fetch", target, "--public-only", "--depth", depth, "-o", "-"] + words.dropFirst()
                    let outcome = try await Tool.run(strict, home: home)
                    #expect(outcome.status == 1)
                    #expect(outcome.bytes.isEmpty)
                }
            }
        }
        #expect(server.requests.count == 2)
    }

    @Test func aRequestMayTakeSoLongInAll() async throws {
        let server = try LoopbackServer { _ in
            [.text("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n"), .trickle([1])]
        }
        let url = server.url("/x").absoluteString
        for words in [["-o", scratch.file("x").path, "--no-cache"], []] {
            let outcome = try await Tool.run(["fetch", url, "--max-time", "1"] + words, home: scratch.file("home"))
            // Without a file, what is too large to be kept has nowhere to go.
            #expect(outcome.status == 1)
            if !words.isEmpty { #expect(outcome.errors.contains("time limit")) }
        }
        #expect(try await Tool.run(["fetch", url, "--max-time", "0"]).status == 2)
    }

    @Test func fieldsAreSentAndPrivateAddressesKeptAwayFrom() async throws {
        let site = FileSite(content)
        let server = try LoopbackServer { site.reply(to: $0) }
        let words = ["fetch", server.url("/x").absoluteString, "-o", scratch.file("x").path]
        let fields = ["--header", "X-Key: a: b", "--header", "Accept: image/*"]
        let sent = try await Tool.run(words + fields)
        #expect(sent.status == 0)
        #expect(server.requests.first?.header("X-Key") == "a: b")
        #expect(server.requests.first?.header("Accept") == "image/*")
        let refused = try await Tool.run(words + ["--public-only"])
        #expect(refused.status == 1)
        #expect(refused.errors.contains("not"))
        #expect(server.requests.count == 1)
    }

    @Test func picturesAreBroughtToASize() async throws {
        let picture = Array(try Data(contentsOf: Samples.directory.appending(path: "lake.jpg")))
        let server = try LoopbackServer { request in
            [.reply(200, ["Cache-Control: max-age=1000"], body: request.target == "/text" ? [60, 62] : picture)]
        }
        let home = scratch.file("home"), output = scratch.file("small.webp")
        let url = server.url("/lake.jpg").absoluteString
        let outcome = try await Tool.run(["fetch", url, "--size", "90x90", "-o", output.path], home: home)
        #expect(outcome.status == 0, "\(outcome.errors)")
        let shown = try await Tool.run(["inspect", "--json", output.path])
        #expect(shown.objects.first?["format"] as? String == "webp")
        #expect(shown.objects.first?["width"] as? Int == 90)
        let text = server.url("/text").absoluteString
        let none = try await Tool.run(["fetch", text, "--size", "90", "-o", output.path], home: home)
        #expect(none.status == 1 && none.errors.hasPrefix(text + ": "))
        #expect(try await Tool.run(["fetch", url, "--size", "90"]).status == 2)
    }

    // MARK: The cache

    @Test func whatIsFreshIsNotLoadedAgainAndWhatHasExpiredIsConfirmed() async throws {
        let content = content
        let server = try LoopbackServer { request in
            let fields = [
                "ETag: \"v1\"", "Content-Type: image/png",
                "Cache-Control: max-age=\(request.target == "/fresh" ? 1000 : 0)",
            ]
            return [request.header("If-None-Match") == nil ? .reply(200, fields, body: content) : .reply(304, fields)]
        }
        let home = scratch.file("home"), output = scratch.file("x").path
        let fresh = server.url("/fresh").absoluteString, expired = server.url("/expired").absoluteString
        var sources: [String] = []
        for arguments in [
            [fresh], [fresh, "-o", output], [fresh, "--refresh"], [expired], [expired, "-o", output],
            [expired, "--depth", "disk"], [server.url("/other").absoluteString, "--depth", "disk"],
            [fresh, "--depth", "memory"],
        ] {
            let object = try await Tool.run(["fetch", "--json"] + arguments, home: home).objects.first
            sources.append(object?["source"] as? String ?? object?["error"] as? String ?? "")
        }
        let missing = "it is not in the cache; use --depth network to load it"
        #expect(
            sources == [
                "network", "cache", "revalidated", "network", "revalidated", "stale", missing, missing,
            ])
        #expect(server.requests.map(\.target) == ["/fresh", "/fresh", "/expired", "/expired"])
        #expect(bytes("x") == content)
    }

    @Test func identitiesOutliveSignedAddresses() async throws {
        let content = content
        let server = try LoopbackServer { _ in [.reply(200, ["Cache-Control: max-age=1000"], body: content)] }
        let home = scratch.file("home")
        let words = ["/?s=1", "/?s=2"].map { ["fetch", server.url($0).absoluteString, "--id", "film", "--json"] }
        var outcomes: [Tool.Outcome] = []
        for words in words { outcomes.append(try await Tool.run(words, home: home)) }
        #expect(outcomes.map { $0.objects.first?["source"] as? String } == ["network", "cache"])
        #expect(server.requests.count == 1)
    }

    // MARK: Downloads that break off

    @Test func aKilledDownloadGoesOnWhereItWas() async throws {
        let site = FileSite(content), output = scratch.file("file").path
        for cut in [1, 65_536, 150_000, 299_999] {
            let barrier = LoopbackServer.Barrier(), turn = Counter()
            let server = try LoopbackServer { request in
                if turn.add(1) > 1 { return site.reply(to: request) }
                return site.reply(to: request, upTo: cut, then: [.wait(barrier), .close])
            }
            let words = ["fetch", server.url("/x").absoluteString, "-o", output, "--no-cache"]
            try await offPool {
                let child = try ChildProcess(executable: "vitrine", words, wrapper: Self.direct)
                let part = output + ".vitrine-part"
                while Self.size(of: part) != cut || Self.recordedSize(of: part) != cut { usleep(1000) }
                child.kill()
                child.wait()
                barrier.open()
            }
            #expect(!FileManager.default.fileExists(atPath: output))
            let outcome = try await Tool.run(words + ["--json"])
            #expect(outcome.objects.first?["resumed"] as? Int == cut)
            #expect(server.requests.last?.header("Range") == "bytes=\(cut)-")
            #expect(bytes("file") == content)
            try FileManager.default.removeItem(atPath: output)
        }
    }

    @Test func aKilledDownloadOfWhatHasChangedStartsOver() async throws {
        let site = FileSite(content), output = scratch.file("file").path
        var changed = FileSite(content.map { ~$0 })
        changed.tag = "\"v2\""
        let barrier = LoopbackServer.Barrier(), turn = Counter(), second = changed
        let server = try LoopbackServer { request in
            if turn.add(1) > 1 { return second.reply(to: request) }
            return site.reply(to: request, upTo: 100_000, then: [.wait(barrier), .close])
        }
        let words = ["fetch", server.url("/x").absoluteString, "-o", output, "--no-cache"]
        try await offPool {
            let child = try ChildProcess(executable: "vitrine", words, wrapper: Self.direct)
            let part = output + ".vitrine-part"
            while Self.size(of: part) != 100_000 { usleep(1000) }
            child.kill()
            child.wait()
            barrier.open()
        }
        let outcome = try await Tool.run(words + ["--json"])
        #expect(outcome.objects.first?["resumed"] as? Int == 0)
        #expect(bytes("file") == second.content)
        #expect(scratch.contents.filter { $0.hasPrefix("file") } == ["file"])
    }

    @Test(.enabled(if: Namespace.isAvailable, "needs unshare and the right to mount"))
    func aFullDiskIsAnErrorAndWhatWasThereStays() async throws {
        let site = FileSite(content + content + content + content)
        let server = try LoopbackServer { site.reply(to: $0) }
        let directory = scratch.file("small").path, url = server.url("/x").absoluteString
        let mount = Namespace.command(
            """
            mkdir "$0" && mount -t tmpfs -o size=2m tmpfs "$0" && echo before > "$0/file" \
            && head -c 1500000 /dev/zero > "$0/ballast"
            """, directory)
        let script = """
            "$@"; echo; echo "status $?"; cat '\(directory)/file'
            rm '\(directory)/ballast'; "$@"; wc -c < '\(directory)/file'; ls '\(directory)'
            """
        try await offPool {
            let child = try ChildProcess(
                executable: "vitrine", ["fetch", url, "-o", directory + "/file", "--json", "--no-cache"],
                wrapper: Self.direct + mount + ["sh", "-c", script, "sh"])
            var lines: [String] = []
            while let line = child.line() { lines.append(line) }
            #expect(lines.first?.contains("no space is left on its disk") == true, "\(lines)")
            #expect(lines.contains("before"), "\(lines)")
            #expect(lines.contains("1200000"), "\(lines)")
            #expect(lines.last == "file", "\(lines)")
        }
    }

    // MARK: Progress

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/script"), "needs script"))
    func aTerminalSeesHowFarItIs() async throws {
        let site = FileSite(content), barrier = LoopbackServer.Barrier()
        let server = try LoopbackServer { request in
            let reply = site.reply(to: request)
            guard case .bytes(let bytes) = reply[0] else { return reply }
            let half = bytes.count - site.content.count / 2
            return [.bytes(Array(bytes[..<half])), .wait(barrier), .bytes(Array(bytes[half...]))]
        }
        let words = ["fetch", server.url("/x").absoluteString, "--no-cache", "-o", scratch.file("x").path]
        let terminal = ["sh", "-c", "exec script -qfec \"$*\" /dev/null", "sh"]
        let shown = try await offPool {
            let child = try ChildProcess(executable: "vitrine", words, wrapper: Self.direct + terminal)
            var text = ""
            while let line = child.line() {
                text += line + "\n"
                if line.contains("50 %") { barrier.open() }
            }
            return text
        }
        #expect(shown.contains("█░"))
        #expect(shown.contains("150 kB of 300 kB"))
        #expect(bytes("x") == content)
        // Nothing of it is left when it ends.
        #expect(shown.split(separator: "\u{1B}[0J").last?.contains("%") == false)
    }
}
#endif
