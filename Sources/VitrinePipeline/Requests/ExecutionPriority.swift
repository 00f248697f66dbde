/// How much of the processor the making of a thumbnail may claim against everything else on the machine.
///
/// On Linux a thread's nice value, on Apple platforms its quality of service. Of several requests for one thumbnail the
/// highest counts.
public enum ExecutionPriority: Int, Sendable, Hashable, CaseIterable, Comparable {
    /// Only idle time, for images that are not visible yet. They may wait long on a busy machine. Nice 10.
    case background
    /// Less than others, so that nothing the user touches is slowed down. The default of requests. Nice 5.
    case low
    /// As the program itself. Nice 0.
    case normal
    /// More than others, where the system lets the program: nice -5, else as ``normal``.
    case high

    public static func < (one: ExecutionPriority, other: ExecutionPriority) -> Bool { one.rawValue < other.rawValue }
}
