/// Notifies caches and other holders of memory that memory is low.
///
/// ```swift
/// let subscription = MemoryPressure.shared.subscribe { level in
///     level == .critical ? cache.removeAll() : cache.trim(to: .mebibytes(16))
/// }
/// ```
///
/// ``shared`` observes the system: on Linux the pressure stall information of the machine and of the process's control
/// group, on Apple platforms the dispatch source. Where neither exists, only ``send(_:)`` reports. Programs report
/// other events, such as the move to the background or a signal of a supervisor, with ``send(_:)``.
public final class MemoryPressure: Sendable {
    /// The severity of memory pressure.
    public enum Level: Sendable, Comparable, CaseIterable {
        /// Memory is low. Release everything that is cheap to make again.
        case warning
        /// The system is about to end processes. Release everything that can be made again.
        case critical
    }

    /// Keeps a handler subscribed until deinitialization.
    public final class Subscription: Sendable {
        private let pressure: MemoryPressure
        private let id: Int

        fileprivate init(_ pressure: MemoryPressure, id: Int) {
            self.pressure = pressure
            self.id = id
        }

        /// Ends the subscription. A call that is in progress is not waited for.
        package func cancel() { pressure.remove(id) }

        deinit { pressure.remove(id) }
    }

    private struct State {
        var nextID = 0
        var hasStarted = false
        var handlers: [Int: @Sendable (Level) -> Void] = [:]
    }

    /// The memory pressure of the system.
    public static let shared = MemoryPressure(source: SystemMemoryPressure())

    private let source: (any MemoryPressureSource)?
    private let state = Locked(State())

    /// Creates an object that reports only the levels of ``send(_:)``.
    public convenience init() { self.init(source: nil) }

    /// Creates an object that reports the levels of a source and of ``send(_:)``.
    ///
    /// - Parameter source: Started at the first subscription and stopped when this object is deinitialized.
    package init(source: (any MemoryPressureSource)?) {
        self.source = source
    }

    deinit {
        source?.stop()
    }

    /// Whether the system reports memory pressure here. Known before the first subscription.
    package var isAvailable: Bool { source?.isAvailable ?? false }

    /// Calls a handler at every report, on the reporting thread.
    ///
    /// - Parameter handler: Releases memory. It should return quickly.
    /// - Returns: The subscription, which the caller retains.
    public func subscribe(_ handler: @escaping @Sendable (Level) -> Void) -> Subscription {
        let (id, isFirst) = state.withLock { state in
            state.nextID += 1
            state.handlers[state.nextID] = handler
            defer { state.hasStarted = true }
            return (state.nextID, !state.hasStarted)
        }
        if isFirst { source?.start { [weak self] level in self?.send(level) } }
        return Subscription(self, id: id)
    }

    /// Reports a level to all subscribers, in the order of their subscriptions, before the call returns.
    ///
    /// - Parameter level: The level to report.
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

/// A source of memory pressure reports.
package protocol MemoryPressureSource: Sendable {
    /// Whether it can report on this system.
    var isAvailable: Bool { get }

    /// Starts reporting, on any thread. Called at most once.
    func start(_ report: @escaping @Sendable (MemoryPressure.Level) -> Void)

    /// Stops reporting. A report that is in progress is not waited for.
    func stop()
}
