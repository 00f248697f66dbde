import Foundation
import Synchronization
import VitrineFleet

/// Numbers with names.
struct Report {
    private var fields: [(String, Double)] = []

    mutating func add(_ name: String, _ value: Double) { fields.append((name, value)) }

    mutating func add(_ name: String, _ value: Int) { add(name, Double(value)) }

    /// Adds the number of times, their median, their 99th percentile and the longest, in milliseconds.
    mutating func add(_ name: String, _ times: [Duration]) {
        let sorted = times.sorted()
        add("\(name) count", sorted.count)
        for (suffix, share) in [("p50", 0.5), ("p99", 0.99), ("max", 1)] {
            let index = min(sorted.count - 1, Int(share * Double(sorted.count)))
            add("\(name) \(suffix)", index < 0 ? 0 : sorted[index].milliseconds)
        }
    }

    /// An object of JSON.
    var text: String {
        let lines = fields.map { name, value in "\"\(name)\": \(value.isFinite ? "\(value)" : "null")" }
        return "{\(lines.joined(separator: ", "))}"
    }
}

extension Duration {
    var milliseconds: Double {
        Double(components.seconds) * 1_000 + Double(components.attoseconds) / 1_000_000_000_000_000
    }
}

#if canImport(Darwin)
private let thisProcess = RUSAGE_SELF
#else
private let thisProcess = __rusage_who_t(RUSAGE_SELF.rawValue)
#endif

/// The processor time of this process since it was started.
func processorTime() -> Duration {
    var usage = rusage()
    getrusage(thisProcess, &usage)
    let seconds = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec
    return .seconds(Int64(seconds)) + .microseconds(Int64(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec))
}

/// The most memory that this process has had, in MB.
func peakMemory() -> Double {
    var usage = rusage()
    getrusage(thisProcess, &usage)
    #if canImport(Darwin)
    return Double(usage.ru_maxrss) / 1_000_000
    #else
    return Double(usage.ru_maxrss) * 1_024 / 1_000_000
    #endif
}

/// Collects times from many tasks.
final class Times: Sendable {
    private let all = Mutex<[String: [Duration]]>([:])

    func add(_ name: String, _ time: Duration) { all.withLock { $0[name, default: []].append(time) } }

    subscript(name: String) -> [Duration] { all.withLock { $0[name] ?? [] } }
}

/// A number that tasks share.
final class Counter: Sendable {
    private let value = Atomic(0)

    /// Adds one. Returns the number before.
    @discardableResult func next() -> Int { value.add(1, ordering: .relaxed).oldValue }

    var current: Int { value.load(ordering: .relaxed) }
}

/// Draws numbers by Zipf's law. The same seed draws the same numbers.
struct Zipf {
    private let sums: [Double]
    private var state: UInt64

    /// - Parameter exponent: How much more frequent the first numbers are.
    init(count: Int, exponent: Double, seed: UInt64) {
        var sum = 0.0
        sums = (1...count).map { rank in
            sum += 1 / pow(Double(rank), exponent)
            return sum
        }
        state = seed
    }

    mutating func next() -> Int {
        let target = uniform() * (sums.last ?? 0)
        var (low, high) = (0, sums.count - 1)
        while low < high {
            let middle = (low + high) / 2
            if sums[middle] < target { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// A number from 0 to 1, by SplitMix64.
    mutating func uniform() -> Double {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return Double((value ^ (value >> 31)) >> 11) / Double(1 << 53)
    }
}
