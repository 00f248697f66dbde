package import NIOCore
import Synchronization

/// Waits for an event that may be earlier than the wait, for a time, or for the end of the task.
package final class Signal: Sendable {
    private enum State {
        case idle
        case waiting(CheckedContinuation<Void, Never>)
        case fired
    }

    private let state = Mutex(State.idle)

    /// Creates a signal that has not been fired.
    package init() {}

    /// Whether the signal was fired.
    package var isFired: Bool {
        state.withLock { if case .fired = $0 { true } else { false } }
    }

    /// Ends the wait. Further calls have no effect.
    package func fire() {
        let waiting = state.withLock { state -> CheckedContinuation<Void, Never>? in
            defer { state = .fired }
            if case .waiting(let continuation) = state { return continuation }
            return nil
        }
        waiting?.resume()
    }

    /// Waits until the signal is fired, the time has passed or the task is cancelled. One task may wait.
    package func wait(atMost time: Duration, on loop: any EventLoop) async {
        guard !isFired, time > .zero else { return }
        let timer = loop.scheduleTask(in: TimeAmount(time)) { self.fire() }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isFired = state.withLock { state -> Bool in
                    if case .fired = state { return true }
                    state = .waiting(continuation)
                    return false
                }
                if isFired { continuation.resume() }
            }
        } onCancel: {
            fire()
        }
        timer.cancel()
    }
}

/// A server with a few connections and a breaker.
///
/// A node is up as long as it has a connection and replies. After ``RedisConfiguration/failureLimit`` commands in
/// succession without a reply, all connections are closed and each command fails at once. A single task connects anew,
/// logs in and pings the server until it replies in time; only then commands are sent again.
package final class RedisNode: Sendable {
    /// A change of a node.
    package enum Event: Sendable, Equatable {
        case up
        case down(RedisError)
    }

    private struct State {
        var connections: [RedisConnection] = []
        var next = 0
        var failures = 0
        /// The last reason for which the node was not available.
        var error: RedisError?
        var isUp = false
        /// The task that connects.
        var supervisor: Task<Void, Never>?
        /// The callers that wait for the end of the first attempt; nil afterwards.
        var first: [Signal]? = []
        var isShutDown = false
    }

    package typealias Resolve = @Sendable () async throws(RedisError) -> RedisConfiguration.Address

    private let state = Mutex(State())
    private let configuration: RedisConfiguration
    private let options: RedisConnection.Options
    private let group: any EventLoopGroup
    private let resolve: Resolve
    private let mustBeMaster: Bool
    private let report: @Sendable (Event) -> Void

    /// Creates a node and begins to connect.
    ///
    /// - Parameters:
    ///   - mustBeMaster: Whether a server that is a replica counts as down, so that its address is resolved anew.
    ///   - resolve: Returns the address, before each attempt to connect.
    ///   - report: Called when the node goes up or down.
    package init(
        _ configuration: RedisConfiguration, _ options: RedisConnection.Options, group: any EventLoopGroup,
        mustBeMaster: Bool = false, report: @escaping @Sendable (Event) -> Void, resolve: @escaping Resolve
    ) {
        (self.configuration, self.options, self.group) = (configuration, options, group)
        (self.resolve, self.mustBeMaster, self.report) = (resolve, mustBeMaster, report)
        supervise()
    }

    /// Whether commands are sent.
    package var isUp: Bool { state.withLock { $0.isUp } }

    /// The reason for which the node is down; nil if it is up or has not been tried.
    package var error: RedisError? { state.withLock { $0.isUp ? nil : $0.error } }

    /// The address of the server that commands are sent to; nil if it is down.
    package var address: RedisConfiguration.Address? { state.withLock { $0.connections.first?.address } }

    /// Sends a command and returns its reply, which may be an error reply.
    package func call(
        _ command: RESPCommand, isAsking: Bool = false, timeout: Duration
    ) async throws(RedisError) -> RESPValue {
        let connection = try await connection(timeout: timeout)
        do throws(RedisError) {
            let reply = try await connection.call(command, isAsking: isAsking, timeout: timeout)
            if case .error(let text) = reply { noteReply(text) } else { noteSuccess() }
            return reply
        } catch {
            note(error, connection)
            throw error
        }
    }

    private func connection(timeout: Duration) async throws(RedisError) -> RedisConnection {
        if let connection = picked() { return connection }
        // A node that was created a moment ago has its first attempt awaited.
        let signal = Signal()
        let isWaiting = state.withLock { state in
            state.first?.append(signal)
            return state.first != nil
        }
        if isWaiting {
            await signal.wait(atMost: timeout, on: group.any())
            if let connection = picked() { return connection }
        }
        throw .unavailable
    }

    private func picked() -> RedisConnection? {
        state.withLock { state in
            guard state.isUp, !state.connections.isEmpty else { return nil }
            let count = state.connections.count
            state.next = (state.next &+ 1) % count
            // One that needs no switch between threads, if there is one.
            for offset in 0..<count where state.connections[(state.next + offset) % count].isOnEventLoop {
                state.next = (state.next + offset) % count
                break
            }
            return state.connections[state.next]
        }
    }

    private func noteSuccess() {
        state.withLock { if $0.failures != 0 { $0.failures = 0 } }
    }

    private func noteReply(_ text: String) {
        noteSuccess()
        // The server was a master and is none any more, or it has not read its data yet.
        if (mustBeMaster && text.hasPrefix("READONLY")) || text.hasPrefix("LOADING") || text.hasPrefix("MASTERDOWN") {
            trip(.server(text))
        }
    }

    private func note(_ error: RedisError, _ connection: RedisConnection) {
        switch error {
        case .timedOut:
            let isOver = state.withLock { state in
                state.failures += 1
                return state.failures >= configuration.failureLimit
            }
            if isOver { trip(.timedOut) }
        case .overloaded, .unavailable: break
        default: remove(connection, error)
        }
    }

    /// Closes all connections. Commands fail until a server answers again.
    package func trip(_ error: RedisError) {
        let (closing, wasUp) = state.withLock { state in
            let result = (state.connections, state.isUp)
            (state.connections, state.isUp, state.error, state.failures) = ([], false, error, 0)
            return result
        }
        for connection in closing { connection.close() }
        if wasUp { report(.down(error)) }
        supervise()
    }

    private func remove(_ connection: RedisConnection, _ error: RedisError) {
        connection.close()
        let wentDown = state.withLock { state in
            state.connections.removeAll { $0 === connection }
            guard state.connections.isEmpty, state.isUp else { return false }
            (state.isUp, state.error, state.failures) = (false, error, 0)
            return true
        }
        if wentDown { report(.down(error)) }
        supervise()
    }

    /// Ends all connections for good.
    package func shutDown() {
        let (closing, task) = state.withLock { state in
            let result = (state.connections, state.supervisor)
            (state.connections, state.isUp, state.isShutDown, state.supervisor) = ([], false, true, nil)
            return result
        }
        task?.cancel()
        for connection in closing { connection.close() }
        endFirst()
    }

    // MARK: Connecting

    private func supervise() {
        state.withLock { state in
            guard state.supervisor == nil, !state.isShutDown else { return }
            state.supervisor = Task { [weak self] in
                var delay = Duration.milliseconds(25)
                while let pause = await self?.attempt(after: delay) {
                    delay = pause
                    try? await Task.sleep(for: pause)
                }
            }
        }
    }

    /// Makes one connection. Returns the time until the next attempt, nil if there are enough connections.
    private func attempt(after last: Duration) async -> Duration? {
        guard !Task.isCancelled else { return nil }
        do throws(RedisError) {
            let connection = try await verified()
            add(connection)
            // The task is given up under the same lock that counts connections: one lost now starts another task.
            let isComplete = state.withLock { state in
                guard state.isShutDown || state.connections.count >= configuration.connectionsPerNode else {
                    return false
                }
                state.supervisor = nil
                return true
            }
            return isComplete ? nil : .zero
        } catch {
            let isNews = state.withLock { state in
                defer { if !state.isUp { state.error = error } }
                return !state.isUp && state.error != error
            }
            if isNews { report(.down(error)) }
            endFirst()
            // What only an operator can change need not be tried often.
            let limit: Duration = error.isLasting ? .seconds(5) : .milliseconds(400)
            return min(limit, max(last, .milliseconds(25)) * 2)
        }
    }

    private func verified() async throws(RedisError) -> RedisConnection {
        let address = try await resolve()
        let connection = try await RedisConnection.connect(to: address, options, group: group)
        do throws(RedisError) {
            // A server that accepts connections and answers slowly stays down.
            let command = mustBeMaster ? RESPCommand("ROLE") : RESPCommand("PING")
            let reply = try await connection.call(command, timeout: configuration.commandTimeout)
            if case .error(let text) = reply { throw RedisError(reply: text) }
            if mustBeMaster, reply.items?.first?.text != "master" { throw .noMaster("\(address) is a replica") }
            return connection
        } catch {
            connection.close()
            throw error
        }
    }

    private func add(_ connection: RedisConnection) {
        let (wentUp, others, isShutDown) = state.withLock { state in
            guard !state.isShutDown else { return (false, [RedisConnection](), true) }
            // Another address is that of a new master.
            let others = state.connections.filter { $0.address != connection.address }
            state.connections.removeAll { $0.address != connection.address }
            state.connections.append(connection)
            let wentUp = !state.isUp
            (state.isUp, state.failures) = (true, 0)
            return (wentUp, others, false)
        }
        for other in others { other.close() }
        if isShutDown { connection.close() }
        connection.onClose { [weak self, weak connection] in
            guard let self, let connection else { return }
            remove(connection, .unreachable("\(connection.address) closed the connection"))
        }
        if wentUp { report(.up) }
        endFirst()
    }

    private func endFirst() {
        let signals = state.withLock { state in
            defer { state.first = nil }
            return state.first ?? []
        }
        for signal in signals { signal.fire() }
    }
}
