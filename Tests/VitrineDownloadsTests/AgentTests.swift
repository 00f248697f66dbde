#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineDownloads
import VitrineNetwork

/// Downloads that a process of their own carries.
struct AgentTests {
    private let content = pattern(200_000)

    @Test func itIsAsWithoutAnAgent() async throws {
        let site = FileSite(content), fixture = try AgentFixture()
        let server = try LoopbackServer { request in
            request.target == "/missing" ? [.reply(404)] : site.reply(to: request)
        }
        let manager = fixture.manager()
        let download = try await manager.start(server.url("/a.bin").absoluteString)
        #expect(try await download.file == fixture.files.file("a.bin"))
        #expect(fixture.bytes("a.bin") == content)
        var last: DownloadStatus?
        for await status in download.updates { last = status }
        #expect(last?.state == .completed && last?.received == content.count)
        let missing = try await manager.start(request(server.url("/missing")) { $0.attempts = 1 })
        #expect(await code { _ = try await missing.file } == -402)
        try await manager.settled()
        #expect(try await manager.restore().map(\.id) == [download.id, missing.id])
        #expect(try await manager.download(for: server.url("/missing"))?.id == missing.id)
        try await missing.remove()
        #expect(missing.status == nil)
        #expect(await code { try await missing.retry() } == -640)
        #expect(await code { _ = try await missing.file } == -640)
        #expect(await code { try await manager.start("ftp://example.org/a") } == -600)
        let info = try #require(try await fixture.agent.info())
        #expect(info.downloads == 1 && info.unsettled == 0 && [info.process] == fixture.agents)
        #expect(fixture.files.names == ["a.bin"])
        #expect(try await fixture.agent.stop())
        try await offPool { waitForEnd(of: info.process) }
        #expect(try await fixture.agent.info() == nil)
        #expect(try await !fixture.agent.stop())
    }

    @Test func commandsReachIt() async throws {
        let site = FileSite(content), fixture = try AgentFixture(), isOpen = Locked(false)
        let server = try LoopbackServer { request in
            isOpen.withLock { $0 } ? site.reply(to: request) : site.reply(to: request, upTo: 50_000, then: [.hang])
        }
        let manager = fixture.manager(), other = fixture.manager()
        let download = try await manager.start(server.url("/a").absoluteString)
        await download.reaches { $0.received == 50_000 }
        try await download.pause()
        // Another program sees the same.
        let same = try #require(try await other.restore().first { $0.id == download.id })
        await same.reaches { $0.state == .paused }
        try await other.settled()
        try await same.setPriority(.high)
        await download.reaches { $0.priority == .high }
        isOpen.withLock { $0 = true }
        try await same.resume()
        #expect(try await download.file == fixture.files.file("a"))
        #expect(server.requests.last?.header("Range") == "bytes=50000-")
        isOpen.withLock { $0 = false }
        try await manager.setLimit(1, perHost: 1)
        let second = try await manager.start(server.url("/b").absoluteString)
        let third = try await manager.start(server.url("/c").absoluteString)
        await second.reaches { $0.received == 50_000 }
        #expect(third.status?.state == .waiting)
        try await third.move(before: second)
        #expect(try await other.restore().map(\.url.lastPathComponent) == ["a", "c", "b"])
        try await second.cancel()
        #expect(await code { _ = try await second.file } == -641)
        await third.reaches { $0.received == 50_000 }
        try await third.remove()
        #expect(fixture.files.names == ["a"])
    }

    @Test func manyWhoWantItAtOnceGetOne() async throws {
        let fixture = try AgentFixture(), site = FileSite(content)
        let server = try LoopbackServer { site.reply(to: $0) }
        let managers = (0..<12).map { _ in fixture.manager() }
        let ids = try await withThrowingTaskGroup(of: String.self) { group in
            for manager in managers {
                group.addTask {
                    let download = try await manager.start(server.url("/a").absoluteString)
                    _ = try await download.file
                    return download.id
                }
            }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(fixture.agents.count == 1)
        // Those who came after the first had ended began another one.
        #expect(server.requests.count == ids.count)
        #expect(fixture.files.names == ["a"])
    }

    @Test func itGoesOnWithoutTheOneWhoAsked() async throws {
        let fixture = try AgentFixture(), site = FileSite(content), barrier = LoopbackServer.Barrier()
        let server = try LoopbackServer { [.wait(barrier)] + site.reply(to: $0) }
        let id: String
        do {
            let manager = fixture.manager()
            id = try await manager.start(server.url("/a").absoluteString).id
            await manager.close()
            #expect(await code { try await manager.restore() } == -641)
        }
        barrier.open()
        let download = try #require(try await fixture.manager().restore().first { $0.id == id })
        #expect(try await download.file == fixture.files.file("a"))
        #expect(fixture.bytes("a") == content)
    }

    @Test func whatWasUnderWayGoesOnAfterItWasKilled() async throws {
        let fixture = try AgentFixture(), site = FileSite(content), isOpen = Locked(false)
        let server = try LoopbackServer { request in
            isOpen.withLock { $0 } ? site.reply(to: request) : site.reply(to: request, upTo: 50_000, then: [.hang])
        }
        let manager = fixture.manager()
        let download = try await manager.start(server.url("/a").absoluteString)
        async let settled: Void = manager.settled()
        await download.reaches { $0.received == 50_000 }
        isOpen.withLock { $0 = true }
        let agent = try #require(fixture.agents.first)
        kill(agent, SIGKILL)
        // Those who wait start another one, without being asked again.
        #expect(try await download.file == fixture.files.file("a"))
        try await settled
        #expect(fixture.bytes("a") == content)
        #expect(server.requests.last?.header("Range") == "bytes=50000-")
        #expect(fixture.files.names == ["a"])
        #expect(fixture.agents.count == 1 && fixture.agents.first != agent)
    }

    @Test func itEndsWhenNobodyNeedsIt() async throws {
        let fixture = try AgentFixture(), site = FileSite(content), barrier = LoopbackServer.Barrier()
        let server = try LoopbackServer { [.wait(barrier)] + site.reply(to: $0) }
        let agent: pid_t
        do {
            let manager = fixture.manager { $0.agentIdleTime = .zero }
            _ = try await manager.start(server.url("/a").absoluteString)
            agent = try #require(fixture.agents.first)
            await manager.close()
        }
        // It has work still.
        #expect(fixture.agents == [agent])
        barrier.open()
        try await offPool { waitForEnd(of: agent) }
        #expect(fixture.bytes("a") == content)
        // The next one has the list, and nothing to do.
        let manager = fixture.manager { $0.agentIdleTime = .zero }
        #expect(try await manager.restore().map(\.status?.state) == [.completed])
    }

    @Test func agentsThatEndAtOnceServeAllTheSame() async throws {
        let fixture = try AgentFixture(), site = FileSite(content)
        let server = try LoopbackServer { site.reply(to: $0) }
        for number in 0..<20 {
            let manager = fixture.manager { $0.agentIdleTime = .zero }
            let download = try await manager.start(server.url("/\(number)").absoluteString)
            #expect(try await download.file == fixture.files.file("\(number)"))
            await manager.close()
        }
        #expect(fixture.files.names.count == 20)
    }

    @Test func whoWaitsHearsThatItWasStopped() async throws {
        let fixture = try AgentFixture()
        let server = try LoopbackServer { _ in [.hang] }
        let manager = fixture.manager()
        let download = try await manager.start(server.url("/a").absoluteString)
        let waiting = Task { await code { _ = try await download.file } }
        await download.reaches { $0.state == .running }
        #expect(try await fixture.agent.stop())
        #expect(await waiting.value == -632)
        #expect(await code { try await manager.restore() } == -632)
        // It is on the list still.
        let next = fixture.manager()
        #expect(try await next.restore().map(\.id) == [download.id])
    }

    @Test func whatIsWrongWithItIsTold() async throws {
        let fixture = try AgentFixture()
        let missing = fixture.manager { $0.agentProgram = "/nonexistent/vitrine-agent" }
        #expect(await code { try await missing.restore() } == -632)
        let open = try TemporaryDirectory()
        chmod(open.path, 0o755)
        let exposed = fixture.manager { $0.agentDirectory = open.path }
        #expect(await code { try await exposed.restore() } == -610)
        let long = fixture.manager { $0.agentDirectory = open.path + "/" + String(repeating: "x", count: 120) }
        #expect(await code { try await long.restore() } == -610)
        #expect(fixture.agents.isEmpty)
    }

    @Test func nobodyElseMayConnect() async throws {
        let fixture = try AgentFixture()
        try await fixture.manager().restore()
        let socket = try #require(fixture.sockets.names.first { $0.hasSuffix(".socket") })
        var status = stat()
        #expect(lstat(fixture.sockets.file(socket), &status) == 0)
        #expect(status.st_mode & 0o7777 == 0o600 && status.st_mode & S_IFMT == S_IFSOCK)
    }

    /// The agent asks the kernel for the user of each client: the file system would let this one in.
    @Test(.enabled(if: Namespace.isRoot, "needs root")) func anAgentRefusesAnotherUser() async throws {
        let fixture = try AgentFixture()
        try await fixture.manager().restore()
        let socket = try #require(fixture.sockets.names.first { $0.hasSuffix(".socket") })
        chmod(fixture.sockets.path, 0o777)
        chmod(fixture.sockets.file(socket), 0o777)
        let answer = try await offPool {
            let words = ["setpriv", "--reuid=65534", "--clear-groups"]
            let script = """
                import socket,sys
                s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print('got', len(s.recv(100)))
                """
            let process = Process()
            process.executableURL = URL(filePath: "/usr/bin/env")
            process.arguments = words + ["python3", "-c", script, fixture.sockets.file(socket)]
            let output = Pipe()
            process.standardOutput = output
            process.standardError = FileHandle.nullDevice
            try process.run()
            process.waitUntilExit()
            return String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        }
        #expect(answer == "got 0\n" || answer.isEmpty)
    }
}
#endif
