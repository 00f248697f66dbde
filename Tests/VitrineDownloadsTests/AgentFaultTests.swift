#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineDownloads
import VitrineNetwork

/// Agents that hang, transfers that never end, and clients that all want the same.
struct AgentFaultTests {
    private let content = pattern(60_000)

    @Test func anAgentThatDoesNotAnswerIsNamed() async throws {
        let fixture = try AgentFixture()
        try await fixture.manager().restore()
        let known = fixture.manager { $0.agentResponseTime = .milliseconds(300) }
        try await answered { try await known.restore() }
        let agent = try #require(fixture.agents.first)
        try await offPool { try halt(agent) }
        defer { kill(agent, SIGCONT) }
        // One that was connected, one that connects, and one that only looks.
        let configuration = fixture.configuration { $0.agentResponseTime = .milliseconds(300) }
        for ask in [
            { @Sendable in try await known.restore() },
            { @Sendable in try await DownloadManager(configuration).restore() },
            { @Sendable in _ = try await DownloadAgent(configuration).info() as Any; return [] },
            { @Sendable in _ = try await DownloadAgent(configuration).stop(); return [] },
        ] as [@Sendable () async throws -> [Download]] {
            do {
                _ = try await ask()
                Issue.record("it answers")
            } catch let error as DownloadError {
                #expect(error.code == -633)
                #expect(error.description.contains("process \(agent)"))
                #expect(error.description.contains("kill -9 \(agent)"))
            }
        }
        kill(agent, SIGCONT)
        try await fixture.manager().restore()
        #expect(fixture.agents == [agent])
    }

    @Test func thoseWhoWaitForDownloadsHearThatTheAgentHangs() async throws {
        let fixture = try AgentFixture()
        let server = try LoopbackServer { _ in [.hang] }
        let patient = fixture.manager()
        await (try await patient.start(server.url("/a").absoluteString)).reaches { $0.state == .running }
        let manager = fixture.manager { $0.agentResponseTime = .milliseconds(300) }
        let download = try #require(try await answered { try await manager.restore() }.first)
        let agent = try #require(fixture.agents.first)
        async let file = code { _ = try await download.file }
        async let settled = code { try await manager.settled() }
        try await offPool { try halt(agent) }
        #expect(await file == -633)
        #expect(await settled == -633)
        kill(agent, SIGCONT)
    }

    /// What has no line end takes no memory without end.
    @Test func anAgentWhoseSocketWasDeletedGivesWayToAnother() async throws {
        let fixture = try AgentFixture(), site = FileSite(content)
        let server = try LoopbackServer { $0.target == "/slow" ? [.hang] : site.reply(to: $0) }
        let before = fixture.manager()
        let slow = try await before.start(server.url("/slow").absoluteString)
        await slow.reaches { $0.state == .running }
        let old = try #require(fixture.agents.first)
        for name in fixture.sockets.names { try FileManager.default.removeItem(atPath: fixture.sockets.file(name)) }
        let after = fixture.manager()
        #expect(try await after.start(server.url("/a").absoluteString).file == fixture.files.file("a"))
        waitForEnd(of: old)
        #expect(fixture.agents.count == 1)
        // The list is the same, also for the program that was connected.
        #expect(try await before.restore().map(\.id).contains(slow.id))
        #expect(try await after.restore().count == 2)
    }

    /// The next agent has begun an empty list before this one can notice that its own was deleted.
    @Test func anAgentWhoseListWasDeletedTooHandsItsDownloadsOver() async throws {
        let fixture = try AgentFixture(), content = pattern(150_000), site = FileSite(content), isOpen = Locked(false)
        let server = try LoopbackServer { request in
            isOpen.withLock { $0 } ? site.reply(to: request) : site.reply(to: request, upTo: 100_000, then: [.hang])
        }
        let before = fixture.manager()
        let running = try await before.start(server.url("/a").absoluteString)
        await running.reaches { $0.received == 100_000 }
        let paused = try await before.start(server.url("/b").absoluteString)
        try await paused.pause()
        let old = try #require(fixture.agents.first)
        try await offPool { try halt(old) }
        defer { kill(old, SIGCONT) }
        for directory in [fixture.sockets, fixture.journal] {
            for name in directory.names { try FileManager.default.removeItem(atPath: directory.file(name)) }
        }
        let after = fixture.manager()
        #expect(try await after.restore().isEmpty)
        isOpen.withLock { $0 = true }
        kill(old, SIGCONT)
        try await offPool { waitForEnd(of: old) }
        let found = try await after.restore()
        #expect(Set(found.map(\.id)) == [running.id, paused.id])
        #expect(found.first { $0.id == paused.id }?.status?.state == .paused)
        #expect(try await running.file == fixture.files.file("a"))
        #expect(fixture.bytes("a") == content)
        #expect(server.requests.contains { $0.header("Range") == "bytes=100000-" })
        #expect(fixture.agents.count == 1)
    }

    @Test func anAgentEndsTheConnectionOfALineThatNeverEnds() async throws {
        let fixture = try AgentFixture()
        try await fixture.manager().restore()
        let names = try FileManager.default.contentsOfDirectory(atPath: fixture.sockets.path)
        let isEnded = try await offPool { () throws -> Bool in
            for name in names {
                var address = sockaddr_un()
                address.sun_family = sa_family_t(AF_UNIX)
                withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: fixture.sockets.file(name).utf8) }
                let client = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
                defer { close(client) }
                let isConnected = withUnsafeBytes(of: &address) { bytes in
                    bytes.baseAddress.map {
                        connect(client, $0.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count)) == 0
                    } ?? false
                }
                guard isConnected else { continue }
                let part = [UInt8](repeating: UInt8(ascii: "a"), count: 64 << 10)
                // More than the limit and the buffers of the socket. The agent takes no more than the limit.
                for _ in 0..<64 where send(client, part, part.count, Int32(MSG_NOSIGNAL)) <= 0 { return true }
                return false
            }
            return false
        }
        #expect(isEnded)
        // The agent serves others.
        #expect(try await fixture.manager().restore().isEmpty)
    }

    @Test func aRequestThatIsTooLongForTheAgentIsAnError() async throws {
        let fixture = try AgentFixture()
        var request = DownloadRequest(try #require(URL(string: "http://127.0.0.1:9/a")))
        request.headers.append("Cookie", String(repeating: "a", count: 2 << 20))
        do {
            _ = try await fixture.manager().start(request)
            Issue.record("it is accepted")
        } catch {
            #expect(error.description.contains("the limit is 1048576"), "\(error)")
        }
    }

    @Test func anAgentThatDoesNotBeginIsTold() async throws {
        let fixture = try AgentFixture()
        try await fixture.manager().restore()
        let name = try #require(fixture.sockets.names.first { $0.hasSuffix(".lock") })
        let agent = try #require(fixture.agents.first)
        kill(agent, SIGKILL)
        try await offPool { waitForEnd(of: agent) }
        // The next one waits for what makes it the agent.
        let lock = open(fixture.sockets.file(name), O_RDWR | O_CLOEXEC)
        defer { close(lock) }
        #expect(flock(lock, LOCK_EX) == 0)
        let manager = fixture.manager { $0.agentResponseTime = .milliseconds(300) }
        #expect(await code { try await manager.restore() } == -633)
    }

    /// As many as there are processors would otherwise keep all tasks from running.
    @Test func transfersThatNeverEndDoNotFreezeAnswers() async throws {
        let fixture = try DownloadFixture(), site = FileSite(content), releases = Counter()
        defer { releases.add(1) }
        let server = try LoopbackServer { site.reply(to: $0) }
        let manager = fixture.manager {
            $0.client = StuckLoader(releases: releases)
            $0.limit = 4
            $0.limitPerHost = 4
            $0.stoppingTime = .milliseconds(10)
        }
        var stuck: [Download] = []
        for number in 0..<4 { stuck.append(try await manager.start(server.url("/stuck\(number)").absoluteString)) }
        for download in stuck { await download.reaches { $0.state == .running } }
        let next = try await manager.start(server.url("/a").absoluteString)
        #expect(try await manager.restore().count == 5 && next.status?.state == .waiting)
        try await stuck[0].setPriority(.low)
        try await stuck[1].pause()
        // Those who want one to stop do not wait for ever, and another one has its turn.
        try await stuck[2].cancel()
        #expect(stuck[2].status?.state == .cancelled)
        try await stuck[3].remove()
        #expect(stuck[3].status == nil)
        #expect(try await next.file == fixture.files.file("a"))
        releases.add(1)
        try await stuck[0].remove()
        try await stuck[1].remove()
        try await manager.settled()
        await manager.close()
        #expect(try await fixture.manager().restore().map(\.id) == [stuck[2].id, next.id])
    }

    /// A response that ends within its head was waited for in a loop.
    @Test func anAgentWithResponsesThatEndInTheirHeadsAnswers() async throws {
        let fixture = try AgentFixture(), site = FileSite(content)
        let server = try LoopbackServer { request in
            request.target == "/good" ? site.reply(to: request) : [.text("HTTP/1.1 200 OK\r\nContent-Le"), .close]
        }
        let manager = fixture.manager()
        try await manager.setLimit(8, perHost: 8)
        for number in 0..<6 { try await manager.start(request(server.url("/\(number)")) { $0.attempts = 1 }) }
        let good = try await manager.start(server.url("/good").absoluteString)
        #expect(try await good.file == fixture.files.file("good"))
        #expect(try await fixture.agent.info()?.downloads == 7)
    }

    @Test func aLengthThatNoNumberHoldsDoesNotEndTheAgent() async throws {
        let fixture = try AgentFixture(), site = FileSite(content)
        let server = try LoopbackServer { request in
            request.target == "/a"
                ? [.text("HTTP/1.1 200 OK\r\nContent-Length: \(Int.max)\r\n\r\nabc"), .hang] : site.reply(to: request)
        }
        let manager = fixture.manager()
        try await manager.restore()
        let agent = fixture.agents
        let download = try await manager.start(server.url("/a").absoluteString)
        #expect(await code { _ = try await download.file } == -611)
        let good = try await manager.start(server.url("/b").absoluteString)
        _ = try await good.file
        #expect(fixture.agents == agent && agent.count == 1)
    }

    /// Each takes it off the list when it has been told of the end, as `vitrine download add --wait` does.
    @Test(arguments: 0..<4) func allWhoWaitForOneHearOfItsEnd(round: Int) async throws {
        let fixture = try AgentFixture(), site = FileSite(content)
        let barrier = LoopbackServer.Barrier(), waiting = Counter()
        let server = try LoopbackServer { [.wait(barrier)] + site.reply(to: $0) }
        let managers = (0..<8).map { _ in fixture.manager() }
        let ends = try await withThrowingTaskGroup(of: DownloadStatus?.self) { group in
            for (number, manager) in managers.enumerated() {
                group.addTask {
                    let download = try await manager.start(server.url("/a").absoluteString)
                    if waiting.add(1) == managers.count { barrier.open() }
                    var last: DownloadStatus?
                    if number % 2 == 0 {
                        for await status in download.updates { last = status }
                    } else {
                        let path = try await download.file
                        for await status in download.updates { last = status }
                        #expect(path == last?.path)
                    }
                    if last?.state == .completed { try? await download.remove() }
                    return last
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(ends.allSatisfy { $0?.state == .completed && $0?.path == fixture.files.file("a") })
        #expect(server.requests.count == 1)
        #expect(try await managers[0].restore().isEmpty)
    }
}

/// Repeats a call that a busy machine does not answer in the time that the test allows.
@discardableResult
private func answered<Value>(_ call: () async throws -> Value) async throws -> Value {
    while true {
        do { return try await call() } catch let error as DownloadError where error.code == -633 {}
    }
}

/// Loads nothing whose path has "stuck" in it, and keeps the thread all the while, whatever it is told.
private struct StuckLoader: HTTPTransport {
    let releases: Counter
    private let loader = CurlLoader()

    init(releases: Counter) { self.releases = releases }

    func load(_ request: HTTPRequest) async throws(NetworkError) -> HTTPResponse {
        if request.url.path.contains("stuck") { wait() }
        return try await loader.load(request)
    }

    private func wait() {
        while releases.value == 0 { usleep(1000) }
    }
}
#endif
