import VitrineCore

/// A client's side of one connection: questions and their replies, and what the agent tells unasked.
final class AgentLink: Sendable {
    private struct State {
        var pending: [Int: CheckedContinuation<AgentReply?, Never>] = [:]
        var nextNumber = 0
        var isLost = false
    }

    private let channel: AgentChannel
    private let state = Locked(State())
    private let reader = BlockingExecutor(threads: 1, name: "vitrine-agent-r")
    private let writer = BlockingExecutor(threads: 1, name: "vitrine-agent-w")

    init(_ channel: AgentChannel) { self.channel = channel }

    deinit { channel.end() }

    /// Whether the connection has ended.
    var isLost: Bool { state.withLock { $0.isLost } }

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
    func ask(_ call: AgentCall) async -> AgentReply? {
        let number = state.withLock { state in
            state.nextNumber += 1
            return state.nextNumber
        }
        return await withTaskCancellationHandler {
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
