#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// How fast a transfer is: an average of the last seconds in which older ones count less and less.
struct SpeedMeter {
    private var last: (bytes: Int, time: ContinuousClock.Instant)?
    /// Bytes a second; nil before anything was measured.
    private(set) var speed: Double?
    /// After so many seconds a measurement counts a third of a new one.
    private static let memory = 3.0

    /// Takes how far the transfer is.
    mutating func measure(_ bytes: Int, at time: ContinuousClock.Instant) {
        guard let (before, start) = last, bytes >= before else {
            // The transfer has begun, or begun anew.
            last = (bytes, time)
            speed = nil
            return
        }
        let seconds = (time - start) / .seconds(1)
        guard seconds >= 0.05 else { return }
        let current = (Double(bytes) - Double(before)) / seconds
        let weight = speed == nil ? 1 : 1 - exp(-seconds / Self.memory)
        speed = (speed ?? 0) + ((current - (speed ?? 0)) * weight)
        last = (bytes, time)
    }
}
