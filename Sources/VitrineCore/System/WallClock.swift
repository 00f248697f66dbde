#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The time of day, for times that are compared across processes and restarts, such as expiry and last use.
///
/// The time of day may jump, so durations are measured with a `Clock` instead. Tests replace the clock of a cache or a
/// request:
///
/// ```swift
/// let yesterday = WallClock { WallClock.system.now - .seconds(86_400) }
/// ```
public struct WallClock: Sendable {
    private let read: @Sendable () -> Duration

    /// Creates a clock that reads the time from a closure.
    ///
    /// - Parameter read: Returns the time since 1970-01-01 00:00 UTC.
    public init(_ read: @escaping @Sendable () -> Duration) { self.read = read }

    /// The time since 1970-01-01 00:00 UTC.
    public var now: Duration { read() }

    /// The clock of the system.
    public static let system = WallClock {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
    }

}
