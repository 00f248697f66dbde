import VitrineCore

/// The backend whose downloads the agent carries. It sends calls to the agent and keeps the statuses that it reports.
///
/// When the connection ends because the agent was killed, the next call starts it again. If downloads are in progress,
/// it is started at once.
final class AgentClient: DownloadBackend {
    private struct State {
        var link: AgentLink?
        /// Whether there was a connection before. Statuses of later ones are new events.
        var hasConnected = false
        /// The reason why there are no more connections.
        var end: DownloadError?
        /// The time of the last connection, and the number of connections in a row that ended soon.
        var connected = ContinuousClock.now, losses = 0
        /// Polls the agent.
        var heartbeat: Task<Void, Never>?
    }

    let broadcaster = StatusBroadcaster()
    private let configuration: DownloadManager.Configuration
    private let state = Locked(State())
    private let connecting = SingleFlight<String, AgentLink>()
    private let thread = BlockingExecutor(threads: 1, name: "vitrine-agent-c")
    /// The number of times a call is repeated because the agent has ended.
    private static let attempts = 100
    /// The number of times an agent may end before its first reply.
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
                return try AgentLauncher(location: location, settings: configuration).connect()
            }
            let link = AgentLink(channel, responseTime: configuration.agentResponseTime)
            let isNew = state.withLock { $0.hasConnected }
            link.begin { [weak self] message in
                self?.receive(message, isNew: isNew)
            } disconnected: { [weak self] in
                self?.disconnected()
            }
            // The snapshot is shown before this call has its reply.
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
            startHeartbeat(link)
            return link
        }
        throw Self.repeatedLoss
    }

    /// Polls the agent while tasks may wait for it, so that they do not wait for a process that hangs.
    private func startHeartbeat(_ link: AgentLink) {
        guard let time = configuration.agentResponseTime else { return }
        let heartbeat = Task { [weak self, weak link] in
            while true {
                do { try await Task.sleep(for: time / 2) } catch { return }
                guard let self, let link, !link.isLost else { return }
                let isUnderWay = broadcaster.snapshot.statuses.contains { !$0.state.isSettled }
                guard link.isAwaited || isUnderWay else { continue }
                do throws(DownloadError) { _ = try await link.ask(.info) } catch { return end(with: error) }
            }
        }
        state.withLock { state in
            state.heartbeat?.cancel()
            state.heartbeat = heartbeat
        }
    }

    private func receive(_ message: AgentMessage, isNew: Bool) {
        switch message {
        case .snapshot(let stored):
            let statuses = stored.map(\.wrappedValue)
            let ids = Set(statuses.map(\.id))
            for known in broadcaster.snapshot.statuses where !ids.contains(known.id) { broadcaster.remove(known.id) }
            for status in statuses { broadcaster.show(status, isFresh: isNew) }
        case .status(let status): broadcaster.show(status.wrappedValue)
        case .removed(let id, let last): broadcaster.remove(id, last: last?.wrappedValue)
        case .stopping: end(with: .agent(reason: "it was stopped"))
        case .hello, .reply: break
        }
    }

    private func disconnected() {
        let isOver = state.withLock { $0.end != nil }
        guard !isOver, broadcaster.snapshot.statuses.contains(where: { !$0.state.isSettled }) else { return }
        // An agent that keeps ending is restarted with growing delays.
        let losses = state.withLock { state in
            state.losses = ContinuousClock.now - state.connected < .seconds(10) ? min(state.losses + 1, 12) : 0
            return state.losses
        }
        // Tasks may wait for downloads in progress.
        Task { [weak self] in
            if losses > 4 { try? await Task.sleep(for: .milliseconds(100 << (losses - 4))) }
            do throws(DownloadError) {
                // A new connection may already be lost, too.
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
        broadcaster.close()
    }

    var ending: DownloadError? { state.withLock { $0.end } }

    // MARK: Calls

    private func ask(_ call: AgentCall, about id: String = "") async throws(DownloadError) -> AgentReply {
        for attempt in 0..<Self.attempts {
            let reply = try await link().ask(call)
            if Task.isCancelled { throw .cancelled }
            switch reply {
            case .failed(let failure)?:
                let error = AgentReply.error(failure, id: id)
                // The download was removed, and only the reply was lost.
                if attempt > 0, case .perform(.remove, _) = call, case .unknown = error { return .done }
                throw error
            case let reply?: return reply
            case nil: break
            }
        }
        throw Self.repeatedLoss
    }

    func list() async throws(DownloadError) -> [DownloadStatus] {
        guard case .list(let stored) = try await ask(.list) else { throw Self.unexpectedReply }
        let statuses = stored.map(\.wrappedValue)
        for status in statuses { showIfUnknown(status) }
        return statuses
    }

    func start(_ request: DownloadRequest, id: String) async throws(DownloadError) -> DownloadStatus {
        let call = AgentCall.start(Stored(wrappedValue: request), id: id)
        guard case .download(let status) = try await ask(call) else { throw Self.unexpectedReply }
        showIfUnknown(status.wrappedValue)
        return status.wrappedValue
    }

    /// Shows the status of a reply if no newer one was reported.
    private func showIfUnknown(_ status: DownloadStatus) {
        if broadcaster.status(of: status.id) == nil { broadcaster.show(status) }
    }

    func perform(_ command: DownloadCommand, on id: String) async throws(DownloadError) {
        _ = try await ask(.perform(command, id: id), about: id)
        if command == .remove { broadcaster.remove(id) }
    }

    func set(_ limits: DownloadLimits) async throws(DownloadError) { _ = try await ask(.set(limits)) }

    func settled() async throws(DownloadError) { _ = try await ask(.settled) }

    func error(of id: String) -> DownloadError? { nil }

    func shutDown() { end(with: .cancelled) }

    func close() async { shutDown() }

    private static var repeatedLoss: DownloadError { .agent(reason: "it keeps ending before it replies") }

    private static var unexpectedReply: DownloadError { .agent(reason: "it sent an unexpected reply") }
}

/// The client's side of one connection: calls and their replies, and the messages of the agent.
final class AgentLink: Sendable {
    private struct State {
        var pending: [Int: CheckedContinuation<AgentReply?, Never>] = [:]
        var nextNumber = 0
        var isLost = false
    }

    private let channel: AgentChannel
    private let responseTime: Duration?
    private let state = Locked(State())
    private let reader = BlockingExecutor(threads: 1, name: "vitrine-agent-r")
    private let writer = BlockingExecutor(threads: 1, name: "vitrine-agent-w")

    /// - Parameter responseTime: The time limit of a reply; nil for no limit.
    init(_ channel: AgentChannel, responseTime: Duration?) {
        self.channel = channel
        self.responseTime = responseTime
    }

    deinit { channel.end() }

    /// Whether the connection has ended.
    var isLost: Bool { state.withLock { $0.isLost } }

    /// The number of the agent's process, or nil if the system does not report it.
    var process: Int32? { channel.process }

    /// Whether a call waits for its reply.
    var isAwaited: Bool { state.withLock { !$0.pending.isEmpty } }

    /// Starts reading.
    ///
    /// - Parameters:
    ///   - receive: Called on the link's thread with each message that is not a reply, in order.
    ///   - disconnected: Called on the link's thread at the end of the connection.
    func begin(receive: @escaping @Sendable (AgentMessage) -> Void, disconnected: @escaping @Sendable () -> Void) {
        reader.submit { [channel, weak self] in
            while let message = channel.receive(AgentMessage.self) {
                if case .reply(let number, let reply) = message {
                    self?.take(number)?.resume(returning: reply)
                } else {
                    receive(message)
                }
            }
            self?.end()
            disconnected()
        }
    }

    /// Ends the connection.
    func close() { channel.end() }

    /// Sends a call and returns its reply.
    ///
    /// - Returns: nil if the connection ended before the reply, or the task is cancelled.
    /// - Throws: ``DownloadError/agentTimedOut(process:after:)``, except for calls that wait for downloads.
    func ask(_ call: AgentCall) async throws(DownloadError) -> AgentReply? {
        let number = state.withLock { state in
            state.nextNumber += 1
            return state.nextNumber
        }
        let isLate = Locked(false)
        var timer: Task<Void, Never>?
        if let responseTime, !call.mayTakeLong {
            timer = Task { [weak self] in
                do { try await Task.sleep(for: responseTime) } catch { return }
                guard let waiting = self?.take(number) else { return }
                isLate.withLock { $0 = true }
                waiting.resume(returning: nil)
            }
        }
        defer { timer?.cancel() }
        let reply = await reply(to: call, number)
        if isLate.withLock({ $0 }) { throw .agentTimedOut(process: channel.process, after: responseTime ?? .zero) }
        return reply
    }

    private func reply(to call: AgentCall, _ number: Int) async -> AgentReply? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOpen = state.withLock { state in
                    if !state.isLost { state.pending[number] = continuation }
                    return !state.isLost
                }
                guard isOpen else { return continuation.resume(returning: nil) }
                // The cancellation may have come before the call was registered.
                if Task.isCancelled { take(number)?.resume(returning: nil) }
                writer.submit { [channel] in
                    let line = AgentChannel.line(of: AgentRequest(number: number, call: call))
                    if let line, line.count > AgentProtocol.longestRequest {
                        let limit = AgentProtocol.longestRequest
                        let error = DownloadError.agent(
                            reason: "a request has \(line.count) bytes, and the limit is \(limit)")
                        self.take(number)?.resume(returning: .failed(DownloadStatus.Failure(error)))
                    } else if line.map({ channel.send(line: $0) }) != true {
                        channel.end()
                    }
                }
            }
        } onCancel: {
            take(number)?.resume(returning: nil)
        }
    }

    private func take(_ number: Int) -> CheckedContinuation<AgentReply?, Never>? {
        state.withLock { $0.pending.removeValue(forKey: number) }
    }

    private func end() {
        let pending = state.withLock { state in
            state.isLost = true
            defer { state.pending = [:] }
            return Array(state.pending.values)
        }
        for continuation in pending { continuation.resume(returning: nil) }
    }
}
