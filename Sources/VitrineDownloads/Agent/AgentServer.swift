import CVitrineDownloads
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore

/// Lets clients in, and notices when nobody needs the agent any more.
final class AgentServer: Sendable {
    private struct State {
        var sessions: [Int: AgentSession] = [:]
        /// How many there have been.
        var count = 0
        var isStopping = false
    }

    private let engine: DownloadEngine
    private let listener: Int32
    /// After how long without clients and work it ends; nil for never.
    private let idleTime: Duration?
    private let finish: @Sendable () -> Void
    private let state = Locked(State())
    /// How long it waits at least for its first client.
    private static let firstVisit = Duration.seconds(10)
    private let thread = BlockingExecutor(threads: 1, name: "vitrine-accept")

    /// - Parameters:
    ///   - listener: A socket that listens; the server's from now on.
    ///   - finish: Called when the agent is to end.
    init(_ engine: DownloadEngine, listener: Int32, idleTime: Duration?, finish: @escaping @Sendable () -> Void) {
        self.engine = engine
        self.listener = listener
        self.idleTime = idleTime
        self.finish = finish
    }

    /// Begins to let clients in.
    func begin() {
        thread.submit { self.accept() }
        // Whoever started it is about to come.
        if let idleTime { endWhenIdle(after: max(idleTime, Self.firstVisit)) }
    }

    private func accept() {
        var descriptor: Int32 = -1
        while true {
            switch cdownloads_accept(listener, &descriptor) {
            case 0: admit(AgentChannel(descriptor))
            // Too many files are open: those who are there go sooner or later.
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

    /// Ends the agent if nobody has come, and nothing is to be done, for a while.
    private func endWhenIdle(after idleTime: Duration) {
        let count = state.withLock { $0.count }
        Task {
            // A list that cannot be had gives nothing to do.
            try? await self.engine.settled()
            try? await Task.sleep(for: idleTime)
            let isIdle = self.state.withLock { state in
                guard state.sessions.isEmpty, state.count == count, self.engine.state.withLock({ $0.isSettled }) else {
                    return false
                }
                // Who comes now is not let in, and starts another one.
                state.isStopping = true
                return true
            }
            if isIdle { self.finish() }
        }
    }

    /// Lets nobody in any more, and tells those who are there. The process has to end after that.
    func stop() async {
        let sessions = state.withLock { state in
            state.isStopping = true
            return Array(state.sessions.values)
        }
        for session in sessions { await session.end() }
    }
}
