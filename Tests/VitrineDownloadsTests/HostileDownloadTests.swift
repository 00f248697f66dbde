#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineDownloads
import VitrineNetwork

/// What servers say that nobody may trust: lengths, names, and answers that bring nothing.
struct HostileDownloadTests {
    private let content = pattern(60_000)

    @Test(arguments: ["9223372036854775807", "9223372036854775000"])
    func aLengthThatNoNumberHoldsWithTheReserveIsRefused(length: String) async throws {
        let fixture = try DownloadFixture()
        let server = try LoopbackServer { _ in
            [.text("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\nabc"), .hang]
        }
        let words = [fixture.journal.path, fixture.files.path, server.url("/a").absoluteString, "reserve=64000000"]
        let last = try await offPool {
            let child = try ChildProcess(executable: "DownloadChild", words)
            var last = ""
            while let line = child.line() { last = line }
            #expect(child.wait() == .exit(1))
            return last
        }
        #expect(last.hasPrefix("error -611 "), "\(last)")
        #expect(fixture.files.names.isEmpty)
    }

    @Test(arguments: [204, 205]) func anAnswerWithoutContentIsNoFile(status: Int) async throws {
        let fixture = try DownloadFixture()
        let server = try LoopbackServer { _ in
            [.text("HTTP/1.1 \(status) Nothing\r\nConnection: close\r\n\r\n"), .close]
        }
        let download = try await fixture.manager().start(server.url("/a").absoluteString)
        #expect(await code { _ = try await download.file } == -402)
        #expect(download.status?.state == .failed)
        #expect(download.status?.failure?.message.contains("\(status)") == true)
        #expect(fixture.files.names.isEmpty)
    }

    @Test func namesOfServersDoNotReplaceFiles() async throws {
        let fixture = try DownloadFixture(), content = content
        try fixture.files.write("mine", to: "thesis.tar.gz")
        let server = try LoopbackServer { _ in
            [.reply(200, ["Content-Disposition: attachment; filename=\"thesis.tar.gz\""], body: content)]
        }
        let manager = fixture.manager()
        for number in 2...3 {
            let download = try await manager.start(server.url("/a").absoluteString)
            #expect(try await download.file == fixture.files.file("thesis (\(number)).tar.gz"))
        }
        #expect(fixture.files.read("thesis.tar.gz") == "mine")
        // A name of the user's own replaces.
        let own = try await manager.start(request(server.url("/a")) { $0.name = "thesis.tar.gz" })
        #expect(try await own.file == fixture.files.file("thesis.tar.gz"))
        #expect(fixture.bytes("thesis.tar.gz") == content)
    }

    @Test func manyWithOneNameOfTheServersEachGetAFile() async throws {
        let fixture = try DownloadFixture()
        let server = try LoopbackServer { request in
            [.reply(200, ["Content-Disposition: attachment; filename=a.txt"], body: Array(request.target.utf8))]
        }
        let manager = fixture.manager {
            $0.limit = 8
            $0.limitPerHost = 8
        }
        let paths = try await withThrowingTaskGroup(of: String.self) { group in
            for number in 0..<16 {
                group.addTask { try await manager.start(server.url("/\(number)").absoluteString).file }
            }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(paths.count == 16 && fixture.files.names.count == 16)
        #expect(Set(fixture.files.names.compactMap { fixture.files.read($0) }).count == 16)
    }

    @Test(arguments: [1, 5000]) func nameOfOneCharacterWithManyMarksFits(count: Int) async throws {
        let fixture = try DownloadFixture(), content = content
        let marks = String(repeating: "%CC%81", count: count)
        let server = try LoopbackServer { _ in
            [.reply(200, ["Content-Disposition: attachment; filename*=UTF-8''a\(marks).txt"], body: content)]
        }
        let path = try await fixture.manager().start(server.url("/x").absoluteString).file
        #expect(FilePath.name(of: path).unicodeScalars.starts(with: "a\u{301}".unicodeScalars))
        #expect(FileManager.default.contents(atPath: path).map { Array($0) } == content)
    }

    @Test(arguments: [
        ("-rf", "_rf"), ("--help.txt", "_-help.txt"), ("~", "_"), ("~root.txt", "_root.txt"), ("..-x", "_x"),
        ("a:b*c?d\"e<f>g|h.txt", "a_b_c_d_e_f_g_h.txt"), ("con.txt", "_con.txt"), ("LPT1", "_LPT1"),
        ("console", "console"), ("\u{2066}a\u{2069}\u{200F}b\u{7F}\u{85}.png", "ab.png"), ("a\u{FEFF}", "a"),
        ("x.vitrine-part", "x.vitrine-part_"), ("a-b~c.txt", "a-b~c.txt"), (".\u{202E}.-x", "_x"),
    ])
    func namesThatMeanMoreThanANameAreMadeHarmless(name: String, safe: String) {
        #expect(DownloadName.safe(name) == safe)
    }

    @Test func longNamesAreCutByBytes() throws {
        for text in ["e\u{301}", "👩‍👩‍👧‍👦", "ü", "x\u{301}\u{302}\u{303}"] {
            let long = try #require(DownloadName.safe(String(repeating: text, count: 300) + ".jpeg"))
            // There is room for the part file's suffix.
            #expect(long.utf8.count <= 242 && long.utf8.count > 180 && long.hasSuffix(".jpeg"))
            #expect(DownloadName.numbered(long, 9999).utf8.count <= 255)
        }
        let marks = try #require(DownloadName.safe("a" + String(repeating: "\u{301}", count: 5000) + ".jpeg"))
        #expect(marks.unicodeScalars.first == "a")
        #expect(marks.utf8.count > 180 && marks.utf8.count <= 242 && marks.hasSuffix(".jpeg"))
        #expect(DownloadName.safe(String(repeating: "\u{301}", count: 9999)).map { $0.utf8.count <= 242 } == true)
        let space = String(repeating: ". ", count: 400)
        #expect(DownloadName.safe(space + "a" + space) == "a")
    }

    @Test(arguments: ["-x", "~x", "a:b"]) func namesOfOnesOwnMayBeUnusual(name: String) async throws {
        let fixture = try DownloadFixture(), content = content
        let server = try LoopbackServer { _ in [.reply(body: content)] }
        let download = try await fixture.manager().start(request(server.url("/a")) { $0.name = name })
        #expect(try await download.file == fixture.files.file(name))
    }

    @Test func refusedConnectionsEndADownload() async throws {
        let fixture = try DownloadFixture(), port = try ReservedPort()
        let url = try #require(URL(string: "http://127.0.0.1:\(port.number)/a"))
        let download = try await fixture.manager().start(request(url) { $0.attempts = 1 })
        #expect(await code { _ = try await download.file } == -421)
        let message = download.status?.failure?.message ?? ""
        #expect(message.contains("127.0.0.1") && message.contains("connect"), "\(message)")
    }
}
#endif
