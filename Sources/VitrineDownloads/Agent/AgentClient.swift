import VitrineCore

/// Downloads that the agent carries: what is asked of it, and what it tells, on a board of this process.
///
/// When the connection breaks, because the agent was killed, it is started again by the next question, or at once if
/// anything is under way.
final class AgentClient: DownloadBackend {
    private struct State {
        var link: AgentLink?
        /// Whether there was one before: then what is new is news.
        var hasConnected = false
        /// Why there will be none any more.
        var end: DownloadError?
        /// When the last connection was made, and how many in a row were lost soon after.
        var connected = ContinuousClock.now, losses = 0
        /// Asks the agent from time to time whether it is there.
        var heartbeat: Task<Void, Never>?
    }

    let board = StatusBroadcaster()
    private let configuration: DownloadManager.Configuration
    private let state = Locked(State())
    private let connecting = SingleFlight<String, AgentLink>()
    private let thread = BlockingExecutor(threads: 1, name: "vitrine-agent-c")
    /// How often one question is asked again because the agent ended meanwhile.
    private static let attempts = 100
    /// How often an agent may end before it has told what there is.
    private static let connections = 20

    init(_ configuration: DownloadManager.Configuration) { self.configuration = configuration }

    // MARK: The connection

    private func link() async throws(DownloadError) -> AgentLink {
        let known = try state.withLock { state throws(DownloadError) in
            if let end = state.end { throw end }
            return state.link
        }
        if let known, !known.isLost { return known }
        do {
            return try await connecting.value(for: "agent") { _ in try await self.connect() }
        } catch let error as DownloadError {
            throw error
        } catch {
            throw .cancelled
        }
    }

    private func connect() async throws(DownloadError) -> AgentLink {
        if let link = state.withLock({ $0.link }), !link.isLost { return link }
        for attempt in 0..<Self.connections {
            if attempt > 2 {
                do { try await Task.sleep(for: .milliseconds(50 * attempt)) } catch { throw .cancelled }
            }
            let channel = try await thread.run { [configuration] () throws(DownloadError) in
                let location = try AgentLocation(configuration)
                return try AgentLauncher(location: location, settings: configuration.agent).connect()
            }
            let link = AgentLink(channel, responseTime: configuration.agent.responseTime)
            let isNews = state.withLock { $0.hasConnected }
            link.begin { [weak self] message in
                self?.hear(message, isNews: isNews)
            } lose: { [weak self] in
                self?.lose()
            }
            // The snapshot is on the board before this has its reply.
            guard try await link.ask(.watch) != nil else {
                if Task.isCancelled { throw .cancelled }
                continue
            }
            try state.withLock { state throws(DownloadError) in
                if let end = state.end { throw end }
                state.link = link
                state.hasConnected = true
                state.connected = .now
            }
            watchOver(link)
            return link
        }
        throw Self.endless
    }

    /// Asks from time to time whether the agent is there, as long as somebody may wait for it, so that those who wait
    /// for downloads do not wait for a process that hangs.
    private func watchOver(_ link: AgentLink) {
        guard let time = configuration.agent.responseTime else { return }
        let heartbeat = Task { [weak self, weak link] in
            while true {
                do { try await Task.sleep(for: time / 2) } catch { return }
                guard let self, let link, !link.isLost else { return }
                let isUnderWay = board.snapshot.statuses.contains { !$0.state.isSettled }
                guard link.isAwaited || isUnderWay else { continue }
                do throws(DownloadError) { _ = try await link.ask(.info) } catch { return end(with: error) }
            }
        }
        state.withLock { state in
            state.heartbeat?.cancel()
            state.heartbeat = heartbeat
        }
    }

    private func hear(_ message: AgentMessage, isNews: Bool) {
        switch message {
        case .snapshot(let statuses):
            let ids = Set(statuses.map(\.id))
            for known in board.snapshot.statuses where !ids.contains(known.id) { board.remove(known.id) }
            for status in statuses { board.show(status, isFresh: isNews) }
        case .status(let status): board.show(status)
        case .removed(let id, let last): board.remove(id, last: last)
        case .stopping: end(with: .agent(reason: "it was told to stop"))
        case .hello, .reply: break
        }
    }

    private func lose() {
        let isOver = state.withLock { $0.end != nil }
        guard !isOver, board.snapshot.statuses.contains(where: { !$0.state.isSettled }) else { return }
        // One that ends again and again is not to be started as fast as the machine can.
        let losses = state.withLock { state in
            state.losses = ContinuousClock.now - state.connected < .seconds(10) ? min(state.losses + 1, 12) : 0
            return state.losses
        }
        // Somebody may wait for what is under way.
        Task { [weak self] in
            if losses > 4 { try? await Task.sleep(for: .milliseconds(100 << (losses - 4))) }
            do throws(DownloadError) {
                // One that was being made meanwhile may be lost as well.
                while let link = try await self?.link(), link.isLost {}
            } catch {
                self?.end(with: error)
            }
        }
    }

    private func end(with error: DownloadError) {
        let link = state.withLock { state in
            if state.end == nil { state.end = error }
            state.heartbeat.take()?.cancel()
            return state.link.take()
        }
        link?.close()
        board.close()
    }

    var ending: DownloadError? { state.withLock { $0.end } }

    // MARK: Questions

    private func ask(_ call: AgentCall, about id: String = "") async throws(DownloadError) -> AgentReply {
        for attempt in 0..<Self.attempts {
            let reply = try await link().ask(call)
            if Task.isCancelled { throw .cancelled }
            switch reply {
            case .failed(let failure)?:
                let error = AgentReply.error(failure, id: id)
                // It had been removed, and only the answer was lost.
                if attempt > 0, case .perform(.remove, _) = call, case .unknown = error { return .done }
                throw error
            case let reply?: return reply
            case nil: break
            }
        }
        throw Self.endless
    }

    func list() async throws(DownloadError) -> [DownloadStatus] {
        guard case .list(let statuses) = try await ask(.list) else { throw Self.nonsense }
        for status in statuses { showIfUnknown(status) }
        return statuses
    }

    func start(_ request: DownloadRequest, id: String) async throws(DownloadError) -> DownloadStatus {
        guard case .download(let status) = try await ask(.start(request, id: id)) else { throw Self.nonsense }
        showIfUnknown(status)
        return status
    }

    /// The board may know more than a reply, and may not have heard yet.
    private func showIfUnknown(_ status: DownloadStatus) {
        if board.status(of: status.id) == nil { board.show(status) }
    }

    func perform(_ command: DownloadCommand, on id: String) async throws(DownloadError) {
        _ = try await ask(.perform(command, id: id), about: id)
        if command == .remove { board.remove(id) }
    }

    func set(_ limits: DownloadLimits) async throws(DownloadError) { _ = try await ask(.set(limits)) }

    func settled() async throws(DownloadError) { _ = try await ask(.settled) }

    func error(of id: String) -> DownloadError? { nil }

    func shutDown() { end(with: .cancelled) }

    func close() async { shutDown() }

    private static var endless: DownloadError { .agent(reason: "it ends again and again before it answers") }

    private static var nonsense: DownloadError { .agent(reason: "it gives another answer than was asked for") }
}
