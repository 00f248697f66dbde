/// Where reports of memory pressure come from.
public protocol MemoryPressureSource: Sendable {
    /// Whether it can report on this system.
    var isAvailable: Bool { get }

    /// Starts reporting, on any thread. Called at most once.
    func start(_ report: @escaping @Sendable (MemoryPressure.Level) -> Void)

    /// Stops reporting. A report that is under way is not waited for.
    func stop()
}
