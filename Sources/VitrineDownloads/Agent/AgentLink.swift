import VitrineCore

/// A client's side of one connection: questions and their replies, and what the agent tells unasked.
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

    /// - Parameter responseTime: How long a reply may take; nil for as long as it likes.
    init(_ channel: AgentChannel, responseTime: Duration?) {
        self.channel = channel
        self.responseTime = responseTime
    }

    deinit { channel.end() }

    /// Whether the connection has ended.
    var isLost: Bool { state.withLock { $0.isLost } }

    /// The number of the agent's process; nil where the system does not tell.
    var process: Int32? { channel.process }

    /// Whether somebody waits for a reply.
    var isAwaited: Bool { state.withLock { !$0.pending.isEmpty } }

    /// Begins to read.
    ///
    /// - Parameters:
    ///   - hear: Called on the link's thread with everything but replies, in order.
    ///   - lose: Called on the link's thread at the end.
    func begin(hear: @escaping @Sendable (AgentMessage) -> Void, lose: @escaping @Sendable () -> Void) {
        reader.submit { [channel, weak self] in
            while let message = channel.receive(AgentMessage.self) {
                if case .reply(let number, let reply) = message {
                    self?.take(number)?.resume(returning: reply)
                } else {
                    hear(message)
                }
            }
            self?.end()
            lose()
        }
    }

    /// Ends the connection.
    func close() { channel.end() }

    /// Asks something.
    ///
    /// - Returns: nil if the connection ended before the reply came, or the task is cancelled.
    /// - Throws: ``DownloadError/agentTimedOut(process:after:)``, but not for questions that wait for downloads.
    func ask(_ call: AgentCall) async throws(DownloadError) -> AgentReply? {
        let number = state.withLock { state in
            state.nextNumber += 1
            return state.nextNumber
        }
        let isLate = Locked(false)
        var alarm: Task<Void, Never>?
        if let responseTime, !call.mayTakeLong {
            alarm = Task { [weak self] in
                do { try await Task.sleep(for: responseTime) } catch { return }
                guard let waiting = self?.take(number) else { return }
                isLate.withLock { $0 = true }
                waiting.resume(returning: nil)
            }
        }
        defer { alarm?.cancel() }
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
                // The cancellation may have come before there was something to end.
                if Task.isCancelled { take(number)?.resume(returning: nil) }
                writer.submit { [channel] in
                    if !channel.send(AgentQuestion(number: number, call: call)) { channel.end() }
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
