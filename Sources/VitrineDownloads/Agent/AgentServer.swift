import CVitrineDownloads
import VitrineCore
import VitrineDatabase

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The main function of `vitrine-agent`.
package enum AgentProcess {
    /// Serves clients until no work is left or the agent is stopped.
    ///
    /// - Parameter words: The command line, without the name of the program.
    /// - Returns: The exit status: 0, 1 if it could not start, or 64 for an invalid command line.
    package static func run(_ words: [String]) async -> Int32 {
        // The starting process may have ended before the agent reports its readiness.
        signal(SIGPIPE, SIG_IGN)
        guard let arguments = AgentArguments(words) else { return 64 }
        let location: AgentLocation
        do throws(DownloadError) { location = try arguments.location() } catch { return fail("\(error)") }
        do throws(FileError) {
            guard let lock = try acquireLock(location) else { return 0 }
            defer { close(lock) }
            return await serve(arguments, at: location)
        } catch {
            return fail("\(error)")
        }
    }

    private static func fail(_ reason: String) -> Int32 {
        Log.logger("downloads").error("The agent cannot start", metadata: ["reason": "\(reason)"])
        return 1
    }

    /// Acquires the lock of the agent. Blocks, because there is no other work yet.
    ///
    /// - Returns: The descriptor of the lock, or nil if another agent accepts clients.
    private static func acquireLock(_ location: AgentLocation) throws(FileError) -> Int32? {
        let descriptor = PathText.withSystemPath(location.lock, failure: -1) {
            open($0, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        }
        guard descriptor >= 0 else { throw FileError(operation: "open", path: location.lock, code: errno) }
        var settings = DownloadManager.Configuration()
        // A serving agent replies at once, and the process that started this one does not wait longer.
        settings.agentResponseTime = .seconds(5)
        let launcher = AgentLauncher(location: location, settings: settings)
        var code = EWOULDBLOCK
        for _ in 0..<5000 {
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return descriptor }
            guard errno == EWOULDBLOCK || errno == EINTR else {
                code = errno
                break
            }
            do throws(DownloadError) {
                if let channel = try launcher.connectIfRunning() {
                    channel.end()
                    close(descriptor)
                    reportReadiness()
                    return nil
                }
            } catch .agentTimedOut {
                break
            } catch {
                // It has another version or another user, and may end.
            }
            // It is ending or starting.
            usleep(2000)
        }
        close(descriptor)
        throw FileError(operation: "flock", path: location.lock, code: code)
    }

    private static func serve(_ arguments: AgentArguments, at location: AgentLocation) async -> Int32 {
        var configuration = DownloadManager.Configuration()
        configuration.journalDirectory = location.journalDirectory
        configuration.identifier = location.journalIdentifier
        let engine = DownloadEngine(configuration)
        await prepare(engine)
        var listener: Int32 = -1
        let code = PathText.withSystemPath(location.socket, failure: EINVAL) { cdownloads_listen($0, &listener) }
        guard code == 0 else { return fail("\(FileError(operation: "bind", path: location.socket, code: code))") }
        let socket = InodeIdentity(path: location.socket)
        let (ends, ending) = AsyncStream<End>.makeStream()
        let server = AgentServer(engine, listener: listener, idleTime: arguments.idleTime) { ending.yield(.stopped) }
        server.begin()
        reportReadiness()
        let watching = Task {
            await waitForLoss(of: socket, at: location.socket)
            ending.yield(.unreachable)
        }
        var reason = End.stopped
        for await end in ends {
            reason = end
            break
        }
        watching.cancel()
        if reason == .unreachable {
            Log.logger("downloads").notice("The agent ends because its socket was deleted; the next one continues")
        }
        // Another agent may have made a socket there.
        if InodeIdentity(path: location.socket) == socket {
            _ = PathText.withSystemPath(location.socket, failure: -1) { unlink($0) }
        }
        // A client that does not read, or a transfer that does not stop, ends with the process. Clients of an agent that
        // is only unreachable connect to the next one.
        let hasStopped = reason == .stopped
        let end = Task {
            if hasStopped { await server.stop() }
            await engine.close()
            if !hasStopped { await handOver(engine.unlisted, at: location) }
        }
        if await !end.hasEnded(within: .seconds(10)) {
            Log.logger("downloads").error("The agent ends although a transfer or a client did not stop")
        }
        return 0
    }

    /// Why an agent ends.
    private enum End: Sendable {
        case stopped
        /// No new client can connect, because the socket was deleted or replaced.
        case unreachable
    }

    /// Returns when the socket is no longer at its path.
    private static func waitForLoss(of socket: InodeIdentity?, at path: String) async {
        while true {
            do { try await Task.sleep(for: .seconds(1)) } catch { return }
            if FileState(path: path).isLoss(of: socket) { return }
        }
    }

    /// Adds downloads to the list of the agent that has taken the place of this one, if one has.
    private static func handOver(_ records: [DownloadRecord], at location: AgentLocation) async {
        guard !records.isEmpty else { return }
        var settings = DownloadManager.Configuration()
        settings.journalDirectory = location.journalDirectory
        settings.identifier = location.identifier
        settings.agentDirectory = location.directory
        settings.agentResponseTime = .seconds(5)
        do throws(DownloadError) {
            guard let link = try await DownloadAgent(settings).link() else { return }
            defer { link.close() }
            for record in records { _ = try await link.ask(.adopt(record)) }
        } catch {
            Log.logger("downloads").error(
                "Downloads were not handed over to the next agent", metadata: ["reason": "\(error)"])
        }
    }

    /// Opens the list before the first client connects, so that downloads resume without clients.
    ///
    /// If another program uses the list, clients receive that error.
    private static func prepare(_ engine: DownloadEngine) async {
        // A killed agent may have released its own lock, but not yet that of the list. One whose socket was deleted
        // notices that within a second.
        for _ in 0..<500 {
            do throws(DownloadError) { return try await engine.open() } catch .inUse {
                try? await Task.sleep(for: .milliseconds(10))
            } catch {
                return
            }
        }
    }

    /// Reports to the starting process that clients can connect.
    private static func reportReadiness() {
        guard fcntl(readiness, F_GETFD) >= 0 else { return }
        var status = stat()
        guard fstat(readiness, &status) == 0, status.st_mode & S_IFMT == S_IFIFO else { return }
        _ = write(readiness, [1], 1)
        close(readiness)
    }

    /// The descriptor of that report, see `cdownloads_start`.
    private static let readiness: Int32 = 3
}

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Accepts clients, and ends the agent when no work is left.
final class AgentServer: Sendable {
    private struct State {
        var sessions: [Int: AgentSession] = [:]
        /// The number of sessions so far.
        var count = 0
        var isStopping = false
    }

    private let engine: DownloadEngine
    private let listener: Int32
    /// The time without clients and work after which the agent ends; nil for never.
    private let idleTime: Duration?
    private let finish: @Sendable () -> Void
    private let state = Locked(State())
    /// The minimum time to wait for the first client.
    private static let firstClientTime = Duration.seconds(10)
    private let thread = BlockingExecutor(threads: 1, name: "vitrine-accept")

    /// - Parameters:
    ///   - listener: A listening socket, which the server owns.
    ///   - finish: Ends the agent.
    init(_ engine: DownloadEngine, listener: Int32, idleTime: Duration?, finish: @escaping @Sendable () -> Void) {
        self.engine = engine
        self.listener = listener
        self.idleTime = idleTime
        self.finish = finish
    }

    /// Starts accepting clients.
    func begin() {
        thread.submit { self.accept() }
        // The starting process is about to connect.
        if let idleTime { endWhenIdle(after: max(idleTime, Self.firstClientTime)) }
    }

    private func accept() {
        var descriptor: Int32 = -1
        while true {
            switch cdownloads_accept(listener, &descriptor) {
            case 0: admit(AgentChannel(descriptor, longestLine: AgentProtocol.longestRequest))
            // Too many files are open, until a client disconnects.
            case EMFILE, ENFILE, ENOMEM, ENOBUFS: usleep(10_000)
            default: return
            }
        }
    }

    private func admit(_ channel: AgentChannel) {
        guard channel.isTrusted else { return }
        let session = AgentSession(channel, engine) { [weak self] in self?.finish() }
        let number = state.withLock { state -> Int? in
            guard !state.isStopping else { return nil }
            state.count += 1
            state.sessions[state.count] = session
            return state.count
        }
        guard let number else { return }
        let isStarted = Thread.start(name: "vitrine-client") {
            session.run()
            self.leave(number)
        }
        if !isStarted { leave(number) }
    }

    private func leave(_ number: Int) {
        let isLast = state.withLock { state in
            state.sessions[number] = nil
            return state.sessions.isEmpty
        }
        if isLast, let idleTime { endWhenIdle(after: idleTime) }
    }

    // MARK: The end

    /// Ends the agent if it stays without clients and work for a while.
    private func endWhenIdle(after idleTime: Duration) {
        let count = state.withLock { $0.count }
        Task {
            // A list that cannot be opened has no work.
            try? await self.engine.settled()
            try? await Task.sleep(for: idleTime)
            let isIdle = self.state.withLock { state in
                guard state.sessions.isEmpty, state.count == count, self.engine.state.withLock({ $0.isSettled }) else {
                    return false
                }
                // A client that connects now is refused, and starts another agent.
                state.isStopping = true
                return true
            }
            if isIdle { self.finish() }
        }
    }

    /// Refuses new clients and notifies the connected ones. The process must end after that.
    func stop() async {
        let sessions = state.withLock { state in
            state.isStopping = true
            return Array(state.sessions.values)
        }
        for session in sessions { await session.end() }
    }
}

/// The agent's side of one connection.
final class AgentSession: Sendable {
    private let channel: AgentChannel
    private let engine: DownloadEngine
    private let stop: @Sendable () -> Void
    private let writer = BlockingExecutor(threads: 1, name: "vitrine-write")
    /// The calls in progress, which end with the connection.
    private let tasks = Locked<[Int: Task<Void, Never>]>([:])

    /// - Parameter stop: Ends the agent.
    init(_ channel: AgentChannel, _ engine: DownloadEngine, stop: @escaping @Sendable () -> Void) {
        self.channel = channel
        self.engine = engine
        self.stop = stop
    }

    /// Serves the client until it disconnects. Blocks.
    func run() {
        guard channel.send(AgentMessage.hello(version: AgentProtocol.version)) else { return }
        while let question = channel.receive(AgentRequest.self) {
            tasks.withLock { tasks in
                // The task cannot remove itself before it is stored, because that takes the lock.
                tasks[question.number] = Task {
                    await self.answer(question)
                    self.tasks.withLock { $0[question.number] = nil }
                }
            }
        }
        for task in tasks.withLock({ $0 }).values { task.cancel() }
    }

    /// Notifies the client of the end, and returns when the message was sent.
    func end() async {
        await writer.run { [channel] in
            channel.send(AgentMessage.stopping)
            channel.end()
        }
    }

    private func answer(_ question: AgentRequest) async {
        switch question.call {
        case .watch: await watch(question.number)
        case .stop:
            await send(.reply(number: question.number, .done))
            stop()
        default:
            let reply: AgentReply
            do throws(DownloadError) { reply = try await perform(question.call) } catch {
                reply = .failed(DownloadStatus.Failure(error))
            }
            await send(.reply(number: question.number, reply))
        }
    }

    private func perform(_ call: AgentCall) async throws(DownloadError) -> AgentReply {
        switch call {
        case .list: return .list(try await engine.list().map { Stored(wrappedValue: $0) })
        case .start(let request, let id):
            return .download(Stored(wrappedValue: try await engine.start(request.wrappedValue, id: id)))
        case .adopt(let record): try await engine.adopt(record)
        case .perform(let command, let id): try await engine.perform(command, on: id)
        case .set(let limits): try await engine.set(limits)
        case .settled: try await engine.settled()
        case .info: return .info(DownloadAgent.Info(engine.broadcaster.snapshot.statuses))
        case .watch, .stop: break
        }
        return .done
    }

    /// Sends all statuses, and then each change, as fast as the client reads.
    private func watch(_ number: Int) async {
        // Calls that need the list report why it cannot be opened.
        try? await engine.open()
        let (statuses, version) = engine.broadcaster.snapshot
        await send(.snapshot(statuses.map { Stored(wrappedValue: $0) }))
        await send(.reply(number: number, .done))
        var seen = version
        while let update = await engine.broadcaster.next(after: seen, of: nil) {
            seen = update.version
            let last = update.removedCompletion.map { Stored(wrappedValue: $0) }
            await send(
                update.status.map { .status(Stored(wrappedValue: $0)) } ?? .removed(id: update.id, last: last))
        }
    }

    private func send(_ message: AgentMessage) async {
        await writer.run { [channel] in
            if !channel.send(message) { channel.end() }
        }
    }
}
