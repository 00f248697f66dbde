import CAllocations

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Clocks and counters of the process.
enum Measuring {
    private static func nanoseconds(_ clock: clockid_t) -> Int {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int(time.tv_sec) * 1_000_000_000 + Int(time.tv_nsec)
    }

    /// Processor time of the calling thread.
    static var threadTime: Int { nanoseconds(CLOCK_THREAD_CPUTIME_ID) }
    /// Time on the wall.
    static var wallTime: Int { nanoseconds(CLOCK_MONOTONIC) }

    /// Bytes allocated and not freed, as the C library counts them.
    static var heapBytes: Int { Int(benchmark_heap_bytes()) }

    /// Blocks the calling thread has allocated so far.
    static var allocations: Int { benchmark_allocations() }
}

/// Times of slices of a run, in nanoseconds per operation.
struct Samples {
    private(set) var values: [Double] = []

    mutating func add(_ value: Double) { values.append(value) }

    var median: Double {
        let sorted = values.sorted()
        return sorted.isEmpty ? 0 : sorted[sorted.count / 2]
    }

    var best: Double { values.min() ?? 0 }

    var mean: Double { values.isEmpty ? 0 : values.reduce(0, +) / Double(values.count) }
}

/// Numbers for tables.
func text(_ number: Double, _ digits: Int) -> String {
    var scale = 1.0
    for _ in 0..<digits { scale *= 10 }
    let rounded = Int((abs(number) * scale).rounded())
    let sign = number < 0 && rounded > 0 ? "-" : ""
    let whole = rounded / Int(scale), fraction = rounded % Int(scale)
    guard digits > 0 else { return sign + String(whole) }
    let tail = String(fraction)
    return sign + String(whole) + "." + String(repeating: "0", count: digits - tail.count) + tail
}

/// A fixed sequence of pseudo-random numbers (SplitMix64, Steele, Lea, Flood 2014).
struct SplitMix {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ z >> 30) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ z >> 27) &* 0x94d0_49bb_1331_11eb
        return z ^ z >> 31
    }

    /// 0 ..< 1.
    mutating func unit() -> Double { Double(next() >> 11) / 9_007_199_254_740_992 }
}
