#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The time of day, for what is compared across processes and restarts: expiry, last use. May jump; who measures
/// durations takes a `Clock`.
public struct WallClock: Sendable {
    private let read: @Sendable () -> Duration

    /// A clock that reads the time from a closure: since 1970-01-01 00:00 UTC.
    public init(_ read: @escaping @Sendable () -> Duration) { self.read = read }

    /// Time since 1970-01-01 00:00 UTC.
    public var now: Duration { read() }

    /// The system's.
    public static let system = WallClock {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
    }

    /// One that begins at `start` and moves with a ``ManualClock``: for tests.
    public static func following(_ clock: ManualClock, from start: Duration = .zero) -> WallClock {
        WallClock { start + clock.now.offset }
    }
}
