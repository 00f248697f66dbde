#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineDatabase

@Suite final class DownloadCommandTests {
    private let scratch: Scratch
    private let home: URL
    private let content = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 9) }

    init() throws {
        scratch = try Scratch()
        home = scratch.file("h")
    }

    /// The agent goes with the test.
    deinit { _ = try? Tool.runHere(["download", "agent", "stop"], home: home) }

    private func run(_ arguments: [String]) async throws -> Tool.Outcome {
        let home = home, directory = scratch.url
        return try await Tool.run(["download"] + arguments, in: directory, home: home)
    }

    private func bytes(_ name: String) -> [UInt8]? {
        (try? Data(contentsOf: scratch.file(name))).map { Array($0) }
    }

    private func digest(_ bytes: [UInt8]) -> String { Hexadecimal.text(SHA256Digest.digest(of: bytes)) }

    @Test func addWaitsAndIsDone() async throws {
        let site = FileSite(content)
        let server = try LoopbackServer { site.reply(to: $0) }
        let url = server.url("/a.bin").absoluteString
        let sum = "sha256:\(digest(content))"
        let outcome = try await run(["add", "--wait", "--json", url, "-o", "b", "--checksum", sum])
        #expect(outcome.status == 0, "\(outcome.errors)")
        let last = try #require(outcome.objects.last)
        #expect(last["state"] as? String == "completed" && last["fraction"] as? Double == 1)
        #expect(last["path"] as? String == scratch.file("b").path && last["error"] is NSNull)
        #expect(outcome.objects.allSatisfy { $0["id"] as? String == last["id"] as? String })
        #expect(bytes("b") == content)
        #expect(try await run(["list"]).output.isEmpty)
        // Several go into a directory that is made, in words for people.
        let others = ["/x/1", "/x/2"].map { server.url($0).absoluteString }
        let text = try await run(["add", "--wait"] + others + ["-o", "new"])
        #expect(text.status == 0)
        #expect(text.output.split(separator: "\n").count == 2 && text.output.contains("completed  300 kB"))
        #expect(bytes("new/1") == content && bytes("new/2") == content)
        #expect(scratch.contents.allSatisfy { !$0.contains("vitrine-") })
    }

    /// Packages have a link in the place of the agent's program.
    @Test func theCommandIsTheAgentUnderItsName() async throws {
        let site = FileSite(content)
        let server = try LoopbackServer { site.reply(to: $0) }
        let agent = scratch.file("vitrine-agent")
        try FileManager.default.createSymbolicLink(at: agent, withDestinationURL: Tool.executable)
        let environment = Tool.environment(home: home).map { "\($0)=\($1)" } + ["VITRINE_AGENT=\(agent.path)"]
        let words = ["download", "add", "--wait", server.url("/a").absoluteString, "-o", scratch.file("a").path]
        try await offPool {
            let child = try ChildProcess(executable: "vitrine", words, wrapper: ["env"] + environment)
            while child.line() != nil {}
            #expect(child.wait() == .exit(0))
        }
        #expect(bytes("a") == content)
        let status = try await run(["agent", "status", "--json"])
        let process = try #require(status.objects.first?["process"] as? Int, "\(status.output)")
        let name = try String(contentsOfFile: "/proc/\(process)/comm", encoding: .utf8)
        #expect(name == "vitrine-agent\n")
    }

    @Test(arguments: [false, true]) func whatWasKilledGoesOnWhenRunAgain(noAgent: Bool) async throws {
        let site = FileSite(content), isOpen = Locked(false)
        let server = try LoopbackServer { request in
            isOpen.withLock { $0 } ? site.reply(to: request) : site.reply(to: request, upTo: 100_000, then: [.hang])
        }
        let words = ["add", "--wait", "--json", server.url("/a").absoluteString] + (noAgent ? ["--no-agent"] : [])
        let environment = Tool.environment(home: home).map { "\($0)=\($1)" }, directory = scratch.url.path
        try await offPool {
            let child = try ChildProcess(
                executable: "vitrine", ["download"] + words, wrapper: ["env", "-C", directory] + environment)
            while let line = child.line(), !line.contains("\"received\":100000,") {}
            child.kill()
            #expect(child.wait() == .signal(SIGKILL))
            // At once: where other tests block the tasks' threads, the agent would ask again meanwhile.
            isOpen.withLock { $0 = true }
        }
        if !noAgent {
            // The one that carries it has to ask again, too.
            _ = try await run(["agent", "stop"])
        }
        let outcome = try await run(words)
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(bytes("a") == content)
        // Nothing is loaded twice, also if the agent has lost its patience before and asked again.
        let ranges = server.requests.map { $0.header("Range") }
        let wanted = [nil] + (1..<max(2, ranges.count)).map { "bytes=\($0)00000-" }
        #expect(ranges == wanted)
        #expect(scratch.contents.filter { !$0.hasPrefix("h") } == ["a"])
    }

    @Test func commandsWithoutTheAgentWaitForEachOther() async throws {
        let site = FileSite(content), arrived = LoopbackServer.Barrier(), mayEnd = LoopbackServer.Barrier()
        let server = try LoopbackServer { request in
            guard request.target == "/a" else { return site.reply(to: request) }
            arrived.open()
            return [.wait(mayEnd)] + site.reply(to: request)
        }
        let environment = Tool.environment(home: home).map { "\($0)=\($1)" }, directory = scratch.url.path
        @Sendable func command(_ target: String) throws -> ChildProcess {
            try ChildProcess(
                executable: "vitrine", ["download", "add", "--no-agent", server.url(target).absoluteString],
                wrapper: ["env", "-C", directory] + environment + ["sh", "-c", "exec \"$0\" \"$@\" 2>&1"])
        }
        try await offPool {
            defer { mayEnd.open() }
            let first = try command("/a")
            arrived.wait()
            let second = try command("/b")
            let line = try #require(second.line())
            #expect(line.contains("waiting for another program"), "\(line)")
            mayEnd.open()
            for child in [first, second] {
                while child.line() != nil {}
                #expect(child.wait() == .exit(0))
            }
        }
        #expect(bytes("a") == content && bytes("b") == content)
    }

    @Test func longDelaysAreTold() async throws {
        let server = try LoopbackServer { _ in [.reply(503, ["Retry-After: 3600"])] }
        let environment = Tool.environment(home: home).map { "\($0)=\($1)" }, directory = scratch.url.path
        try await offPool {
            let child = try ChildProcess(
                executable: "vitrine", ["download", "add", "--no-agent", server.url("/a").absoluteString],
                wrapper: ["env", "-C", directory] + environment + ["sh", "-c", "exec \"$0\" \"$@\" 2>&1"])
            let line = try #require(child.line())
            #expect(line.contains("the next attempt begins in 60 min"), "\(line)")
            child.kill()
            _ = child.wait()
        }
    }

    @Test func theListIsCaredFor() async throws {
        let site = FileSite(content), isOpen = Locked(false)
        let server = try LoopbackServer { request in
            isOpen.withLock { $0 } ? site.reply(to: request) : site.reply(to: request, upTo: 1000, then: [.hang])
        }
        let added = try await run(["add", "--json"] + ["/1", "/2", "/3"].map { server.url($0).absoluteString })
        #expect(added.status == 0)
        let ids = added.objects.compactMap { $0["id"] as? String }
        #expect(ids.count == 3)
        #expect(try await run(["pause", ids[0], ids[1]]).status == 0)
        #expect(try await run(["cancel", String(ids[2].prefix(13))]).status == 0)
        let listed = try await run(["list", "--json"]).objects
        #expect(listed.map { $0["id"] as? String } == ids)
        #expect(listed.map { $0["state"] as? String } == ["paused", "paused", "cancelled"])
        #expect(try await run(["list"]).output.split(separator: "\n").count == 3)
        isOpen.withLock { $0 = true }
        #expect(try await run(["resume", ids[0]]).status == 0)
        let waited = try await run(["wait", ids[0], "--json"])
        #expect(waited.status == 0 && waited.objects.last?["state"] as? String == "completed")
        #expect(bytes("1") == content)
        #expect(try await run(["retry", ids[2]]).status == 0)
        #expect(try await run(["watch", "--json"]).status == 0)
        #expect(bytes("3") == content)
        #expect(try await run(["wait", ids[1]]).status == 1)
        #expect(try await run(["remove", "--ended"]).status == 0)
        #expect(try await run(["list", "--json"]).objects.map { $0["id"] as? String } == [ids[1]])
        #expect(try await run(["remove", ids[1]]).status == 0)
        #expect(try await run(["pause", ids[1]]).status == 2)
        #expect(scratch.contents.filter { !$0.hasPrefix("h") } == ["1", "3"])
    }

    @Test func failuresAreToldWithTheirReason() async throws {
        let site = FileSite(content)
        let server = try LoopbackServer { $0.target == "/missing" ? [.reply(404)] : site.reply(to: $0) }
        let address = server.url("/missing").absoluteString
        let missing = try await run(["add", "--wait", address])
        #expect(missing.status == 1 && missing.output.isEmpty && missing.errors.contains("404"))
        #expect(missing.errors.components(separatedBy: address).count == 2, "\(missing.errors)")
        let zeros = String(repeating: "0", count: 64)
        let wrong = try await run(
            ["add", "--wait", "--json", server.url("/a").absoluteString, "--checksum", "sha256:" + zeros])
        #expect(wrong.status == 1)
        let error = wrong.objects.last?["error"] as? String ?? ""
        #expect(error.contains(zeros) && error.contains(digest(content)))
        #expect(wrong.objects.last?["code"] as? Int == -620)
        let url = server.url("/a").absoluteString
        for arguments in [
            ["add"], ["add", "nonsense"], ["add", url, "--checksum", "sha256:1"], ["add", url, url, "--mirror", url],
            ["pause"], ["pause", "none"], ["remove"], ["remove", "--ended", "x"],
        ] {
            #expect(try await run(arguments).status == 2, "\(arguments)")
        }
        #expect(try await run(["add", "--wait", "ftp://example.org/a"]).status == 1)
        #expect(scratch.contents.filter { !$0.hasPrefix("h") }.isEmpty)
    }

    @Test func namesNobodyHasGivenReplaceNothing() async throws {
        let content = content
        let server = try LoopbackServer { request in
            let field = request.target == "/x" ? ["Content-Disposition: attachment; filename=a.txt"] : []
            return [.reply(200, field, body: content)]
        }
        try FileManager.default.createDirectory(at: scratch.file("d"), withIntermediateDirectories: true)
        for name in ["d/a.txt", "b"] { try Data("mine".utf8).write(to: scratch.file(name)) }
        // By the server's name, by the address's, and by the server's in spite of a wish to replace.
        for words in [["/x"], ["/a.txt"], ["/x", "--existing", "replace"]] {
            let url = server.url(words[0]).absoluteString
            #expect(try await run(["add", "--wait", url, "-o", "d/"] + words.dropFirst()).status == 0)
        }
        #expect(bytes("d/a.txt") == Array("mine".utf8))
        for number in 2...4 { #expect(bytes("d/a (\(number)).txt") == content) }
        // A name of one's own is what is wanted.
        #expect(try await run(["add", "--wait", server.url("/x").absoluteString, "-o", "b"]).status == 0)
        #expect(bytes("b") == content)
    }

    @Test func manyWhoWaitForOneAddressAllSucceed() async throws {
        let site = FileSite(content), barrier = LoopbackServer.Barrier(), count = 8
        let server = try LoopbackServer { [.wait(barrier)] + site.reply(to: $0) }
        let words = ["download", "add", "--wait", "--json", server.url("/a").absoluteString]
        let environment = Tool.environment(home: home).map { "\($0)=\($1)" }, directory = scratch.url.path
        let ends = try await offPool {
            let children = try (0..<count).map { _ in
                try ChildProcess(executable: "vitrine", words, wrapper: ["env", "-C", directory] + environment)
            }
            // Each has begun to wait for the same.
            for child in children { #expect(child.line()?.contains("\"state\":\"") == true) }
            barrier.open()
            return children.map { child in
                var last = ""
                while let line = child.line() { last = line }
                return (child.wait(), last)
            }
        }
        for (end, last) in ends {
            #expect(end == .exit(0) && last.contains("\"state\":\"completed\""), "\(last)")
        }
        #expect(server.requests.count == 1)
        #expect(scratch.contents.filter { !$0.hasPrefix("h") } == ["a"])
    }

    @Test func aDamagedListIsToldAndSetAside() async throws {
        let directory = home.appending(path: "data/vitrine/downloads")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let list = directory.appending(path: "DownloadManagerBackgroundDownload.agent.sqlite")
        try Data("this is no database".utf8).write(to: list)
        for _ in 0..<2 {
            let listed = try await run(["list"])
            #expect(listed.status != 0 && listed.errors.contains(list.path))
            #expect(listed.errors.contains("vitrine download reset"), "\(listed.errors)")
        }
        let reset = try await run(["reset"])
        #expect(reset.status == 0 && reset.output.hasPrefix(list.path + ".damaged-"), "\(reset.errors)")
        #expect(try await run(["list"]).status == 0)
        #expect(try await run(["reset"]).output == "The list is not damaged.\n")
    }

    @Test func aDownloadWhoseRecordIsDamagedIsListedAndRemoved() async throws {
        let server = try LoopbackServer { _ in [.hang] }
        let url = server.url("/a").absoluteString
        let id = try #require(try await run(["add", "--json", url]).objects.first?["id"] as? String)
        #expect(try await run(["pause", id]).status == 0)
        _ = try await run(["agent", "stop"])
        let list = home.appending(path: "data/vitrine/downloads/DownloadManagerBackgroundDownload.agent.sqlite").path
        try Database(path: list).execute("UPDATE download SET record = replace(record, 'paused', 'Paused')")
        let listed = try await run(["list"])
        #expect(listed.status == 0 && listed.output.isEmpty, "\(listed.output)")
        let reason = "\(url): failed: The record of the download \(id) is damaged"
        #expect(listed.errors.contains(reason), "\(listed.errors)")
        #expect(try await run(["list", "--json"]).objects.first?["code"] as? Int == -635)
        #expect(try await run(["retry", id]).status == 1)
        #expect(try await run(["remove", id]).status == 0)
        let after = try await run(["list"])
        #expect(after.output.isEmpty && after.errors.isEmpty, "\(after.errors)")
    }

    /// Runs a command while there is an agent. On a busy machine, one without a client may end before the command comes.
    private func runBesideAgent(_ words: [String]) async throws -> Tool.Outcome {
        for _ in 0..<4 {
            _ = try await run(["list"])
            let result = try await run(words)
            if result.status == 0 { return result }
        }
        _ = try await run(["list"])
        return try await run(words)
    }

    @Test func theAgentCanBeLookedAt() async throws {
        #expect(try await run(["agent", "status"]).status == 1)
        let status = try await runBesideAgent(["agent", "status", "--json"])
        #expect(status.status == 0 && status.objects.first?["downloads"] as? Int == 0)
        #expect(try await runBesideAgent(["agent", "stop"]).status == 0)
        #expect(try await run(["agent", "status"]).status == 1)
        let installed = try await run(["agent", "install"])
        let unit = home.appending(path: "config/systemd/user/vitrine-agent.service")
        #expect(installed.status == 0 && installed.output.hasPrefix(unit.path + "\n"))
        let text = String(decoding: try Data(contentsOf: unit), as: UTF8.self)
        #expect(text.contains("ExecStart=\"\(ChildProcess.path(of: "vitrine-agent"))\" --idle never\n"))
        #expect(try await run(["agent", "install", "--print-only"]).output == text)
    }
}
#endif
