/// Tells those who hold memory to let it go (R17).
///
/// ```swift
/// let subscription = MemoryPressure.shared.subscribe { level in
///     level == .critical ? cache.removeAll() : cache.trim(toShare: 0.5)
/// }
/// ```
///
/// ``shared`` hears the system: pressure stall information of the machine and of the process's control group on
/// Linux, the dispatch source on Apple platforms. Where neither exists ``isAvailable`` is false and nothing is ever
/// reported by itself. Programs report with ``send(_:)`` what they know themselves: going to the background (R18), a
/// signal from a supervisor.
public final class MemoryPressure: Sendable {
    /// How bad it is.
    public enum Level: Int, Sendable, Comparable, CaseIterable {
        /// Give up what is cheap to make again.
        case warning
        /// Give up everything that can be made again: the system is about to end processes.
        case critical

        public static func < (one: Level, other: Level) -> Bool { one.rawValue < other.rawValue }
    }

    /// Keeps a handler subscribed as long as it lives, or until ``cancel()``.
    public final class Subscription: Sendable {
        private let pressure: MemoryPressure
        private let id: Int

        fileprivate init(_ pressure: MemoryPressure, id: Int) {
            self.pressure = pressure
            self.id = id
        }

        /// Ends the subscription. A call that is under way is not waited for.
        public func cancel() { pressure.remove(id) }

        deinit { pressure.remove(id) }
    }

    private struct State {
        var nextID = 0
        var hasStarted = false
        var handlers: [Int: @Sendable (Level) -> Void] = [:]
    }

    /// The system's.
    public static let shared = MemoryPressure(source: SystemMemoryPressure())

    private let source: (any MemoryPressureSource)?
    private let state = Locked(State())

    /// One that reports what a source reports, besides what is sent.
    ///
    /// - Parameter source: Started at the first subscription and stopped when this object goes; nil for none.
    public init(source: (any MemoryPressureSource)? = nil) {
        self.source = source
    }

    deinit {
        source?.stop()
    }

    /// Whether anything but ``send(_:)`` can report. Known before the first subscription.
    public var isAvailable: Bool { source?.isAvailable ?? false }

    /// Calls `handler` at every report, on the reporting thread, which it must not hold up for long.
    ///
    /// - Returns: What keeps the handler subscribed: hold on to it.
    public func subscribe(_ handler: @escaping @Sendable (Level) -> Void) -> Subscription {
        let (id, isFirst) = state.withLock { state in
            state.nextID += 1
            state.handlers[state.nextID] = handler
            defer { state.hasStarted = true }
            return (state.nextID, !state.hasStarted)
        }
        if isFirst, let source, source.isAvailable {
            source.start { [weak self] level in self?.send(level) }
        }
        return Subscription(self, id: id)
    }

    /// The reports from now on. Who reads slowly gets the last eight.
    public var levels: AsyncStream<Level> {
        AsyncStream(bufferingPolicy: .bufferingNewest(8)) { continuation in
            let subscription = subscribe { continuation.yield($0) }
            continuation.onTermination = { _ in subscription.cancel() }
        }
    }

    /// Reports a level to all subscribers, in the order in which they subscribed, before the call returns.
    public func send(_ level: Level) {
        let handlers = state.withLock { $0.handlers.sorted { $0.key < $1.key } }
        for handler in handlers { handler.value(level) }
    }

    private func remove(_ id: Int) {
        let handler = state.withLock { $0.handlers.removeValue(forKey: id) }
        // Released here, outside the lock.
        _ = handler
    }
}
