import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

extension Resampler {
    /// The filter an image is scaled with.
    package enum Kernel: Sendable, Hashable {
        /// Lanczos with three lobes, stretched by the reduction so that nothing aliases.
        ///
        /// Source: C. E. Duchon, "Lanczos Filtering in One and Two Dimensions", J. Appl. Meteor. 18 (1979).
        case lanczos3
        /// The same for samples that are means of their square (block means, box-reduced pixels). It restores the
        /// contrast that means lose at high frequencies.
        ///
        /// A mean differs from the value in the middle by 1/24 of the second difference, to fourth order: the relation
        /// between cell averages and point values of finite-volume methods. Without effect below a reduction of 1.25.
        case lanczos3ForMeans
    }
}

/// The source samples of every result sample along one axis, with their weights.
struct ResampleWeights: Sendable {
    /// The mapping of the source from `origin` on, `length` long, onto `count` samples. Weights depend on nothing else.
    struct Axis: Hashable, Sendable {
        /// Source samples that exist; taps beyond either end are left out and the rest renormalised.
        var samples: Int
        /// The length of all samples. If it is less than `samples`, the last sample represents the remaining fraction:
        /// it has this weight and lies in its middle.
        var extent: Double
        var origin: Double
        var length: Double
        var count: Int
        var kernel: Resampler.Kernel
        /// Whether 16 fraction bits may be used where all weights are small enough for it.
        var highPrecision: Bool
    }

    /// Fraction bits of a weight.
    let bits: Int
    /// The most source samples that one result sample has.
    let maximumCount: Int
    /// First source sample of each result sample.
    private(set) var starts: [Int]
    /// Source samples of each result sample.
    private(set) var counts: [Int]
    /// Half the number of weights that are not zero: the average loss of the sum by rounding each product down.
    private(set) var biases: [Int16]
    /// Weights, `maximumCount` a result sample, each group adding up to `1 << bits` (saturated at `Int16.max`).
    private(set) var weights: [Int16]

    /// The addresses of the arrays, for a loop to keep in registers.
    struct Taps {
        let starts: UnsafePointer<Int>
        let counts: UnsafePointer<Int>
        let biases: UnsafePointer<Int16>
        let weights: UnsafePointer<Int16>
        /// Weights from one result sample to the next.
        let stride: Int
    }

    /// Calls `body` with the addresses, which are valid until it returns.
    func withTaps(_ body: (Taps) -> Void) {
        starts.withUnsafeBufferPointer { starts in
            counts.withUnsafeBufferPointer { counts in
                biases.withUnsafeBufferPointer { biases in
                    weights.withUnsafeBufferPointer { weights in
                        guard let starts = starts.baseAddress, let counts = counts.baseAddress,
                            let biases = biases.baseAddress, let weights = weights.baseAddress
                        else { return }
                        body(
                            Taps(
                                starts: starts, counts: counts, biases: biases, weights: weights,
                                stride: maximumCount))
                    }
                }
            }
        }
    }

    /// Computes the weights of an axis. ``ResampleWeightsCache`` may have them already.
    init(_ axis: Axis) {
        let count = axis.count
        let step = axis.length / Double(count)
        let stretch = max(1, step)
        let sharpens = axis.kernel == .lanczos3ForMeans && step >= 1.25
        // A weight reaches 1/step, at an edge or sharpened a quarter more; it must fit 16 bits with its sign.
        bits = step < 1.5 ? 14 : axis.highPrecision && step >= 3 ? 16 : 15
        let margin = sharpens ? 1 : 0
        maximumCount = min(axis.samples, Int(min(Double(axis.samples), 6 * stretch)) + 2 + 2 * margin)
        starts = [Int](repeating: 0, count: count)
        counts = starts
        biases = [Int16](repeating: 0, count: count)
        weights = [Int16](repeating: 0, count: count * maximumCount)
        let (bits, width) = (bits, maximumCount)
        weights.withUnsafeMutableBufferPointer { weights in
            withUnsafeTemporaryAllocation(of: Double.self, capacity: 2 * width) { memory in
                Self.table.withUnsafeBufferPointer { table in
                    guard let taps = memory.baseAddress, let group = weights.baseAddress else { return }
                    for i in 0..<count {
                        let centre = axis.origin + (Double(i) + 0.5) * step
                        let range = Self.range(centre, stretch, samples: axis.samples, margin: margin, width: width)
                        let total = Self.fill(
                            taps, range: range, centre: centre, inverse: 1 / stretch, axis: axis, table: table)
                        if sharpens { Self.sharpen(taps, into: taps + width, count: range.count) }
                        starts[i] = range.lowerBound
                        counts[i] = range.count
                        biases[i] = Self.quantise(
                            sharpens ? taps + width : taps, count: range.count, total: total, bits: bits,
                            into: group + i * width)
                    }
                }
            }
        }
    }

    /// The source samples of the result sample at `centre`.
    private static func range(
        _ centre: Double, _ stretch: Double, samples: Int, margin: Int, width: Int
    ) -> Range<Int> {
        let first = clamp(centre - 3 * stretch - 0.5, to: samples - 1).rounded(.up)
        let last = clamp(centre + 3 * stretch - 0.5, to: samples - 1).rounded(.down)
        let start = max(0, Int(first) - margin)
        return start..<min(samples, max(Int(first), Int(last)) + 1 + margin, start + width)
    }

    /// Writes the kernel's values at the samples of `range`.
    ///
    /// - Returns: Their sum, never zero.
    private static func fill(
        _ taps: UnsafeMutablePointer<Double>, range: Range<Int>, centre: Double, inverse: Double, axis: Axis,
        table: UnsafeBufferPointer<Double>
    ) -> Double {
        var total = 0.0
        for j in range {
            var weight = 0.0
            if j == axis.samples - 1 {
                let coverage = max(0.01, min(1, axis.extent - Double(j)))
                weight = lanczos3((Double(j) + coverage / 2 - centre) * inverse, table) * coverage
            } else {
                weight = lanczos3((Double(j) + 0.5 - centre) * inverse, table)
            }
            taps[j - range.lowerBound] = weight
            total += weight
        }
        guard abs(total) < 1e-6 else { return total }
        taps.update(repeating: 0, count: range.count)
        taps[0] = 1
        return 1
    }

    /// Whether the result is the source itself.
    static func isIdentity(samples: Int, origin: Double, length: Double, count: Int) -> Bool {
        samples == count && origin == 0 && length == Double(samples)
    }

    private static func clamp(_ value: Double, to limit: Int) -> Double {
        min(max(value, 0), Double(limit))
    }

    private static let resolution = 1024

    /// The kernel at every 1,024th from 0 to 3 and a little beyond: linear interpolation is exact to 1e-6, and the sine
    /// is taken once a process instead of for every weight.
    private static let table: [Double] = (0...(3 * resolution + 1)).map { i in
        let x = Double(i) / Double(resolution) * Double.pi
        if i == 0 { return 1 }
        return i >= 3 * resolution ? 0 : 3 * sin(x) * sin(x / 3) / (x * x)
    }

    private static func lanczos3(_ x: Double, _ table: UnsafeBufferPointer<Double>) -> Double {
        let position = min(abs(x), 3) * Double(resolution)
        let i = Int(position)
        let low = table[i]
        return low + (table[i + 1] - low) * (position - Double(i))
    }

    /// Converts weights of point values to weights of means. The last sample continues beyond the edge.
    private static func sharpen(
        _ taps: UnsafePointer<Double>, into sharp: UnsafeMutablePointer<Double>, count: Int
    ) {
        for k in 0..<count { sharp[k] = taps[k] }
        for k in 0..<count {
            let share = taps[k] / 24
            for neighbour in [k - 1, k + 1] where neighbour >= 0 && neighbour < count {
                sharp[k] += share
                sharp[neighbour] -= share
            }
        }
    }

    /// Stores one group in fixed point, and adds the rounding error to the largest weight.
    ///
    /// - Parameter weights: Zeros, of which the first `count` are written.
    /// - Returns: Half the number of weights that are not zero.
    private static func quantise(
        _ taps: UnsafePointer<Double>, count: Int, total: Double, bits: Int,
        into weights: UnsafeMutablePointer<Int16>
    ) -> Int16 {
        let one = 1 << bits
        var (sum, largest) = (0, 0)
        for k in 0..<count {
            let weight = Int16(clamping: rounded(max(-40_000, min(40_000, taps[k] / total * Double(one)))))
            weights[k] = weight
            sum += Int(weight)
            if weight > weights[largest] { largest = k }
        }
        weights[largest] = Int16(clamping: Int(weights[largest]) + one - sum)
        var used = 0
        for k in 0..<count where weights[k] != 0 { used += 1 }
        return Int16(clamping: used / 2)
    }

    /// Returns the nearest whole number, halves away from zero, like `rounded()`. That is a function call on processors
    /// without an instruction for it.
    @inline(__always)
    private static func rounded(_ value: Double) -> Int {
        let whole = Int(value)
        let rest = value - Double(whole)
        return rest >= 0.5 ? whole + 1 : rest <= -0.5 ? whole - 1 : whole
    }
}

/// A cache of weights: the two chroma planes of an image use the same, and the images of one camera, too.
///
/// Holds at most ``capacity`` axes of at most ``maximumWeights`` weights each, less than a megabyte. Can be used from
/// any thread.
final class ResampleWeightsCache: Sendable {
    /// Axes kept: luma and chroma, across and down, of two kinds of images.
    static let capacity = 8
    /// The most weights of a cached axis. More weights belong to large images, which take long in any case.
    static let maximumWeights = 32_768

    static let shared = ResampleWeightsCache()

    /// The most recently used last.
    private let entries = Locked<[(axis: ResampleWeights.Axis, weights: ResampleWeights)]>([])

    /// Returns the weights of an axis, from the cache or computed.
    func weights(_ axis: ResampleWeights.Axis) -> ResampleWeights {
        let known = entries.withLock { entries -> ResampleWeights? in
            guard let i = entries.lastIndex(where: { $0.axis == axis }) else { return nil }
            if i != entries.count - 1 { entries.append(entries.remove(at: i)) }
            return entries[entries.count - 1].weights
        }
        if let known { return known }
        let new = ResampleWeights(axis)
        guard new.weights.count <= ResampleWeightsCache.maximumWeights else { return new }
        entries.withLock { entries in
            if entries.count == ResampleWeightsCache.capacity { entries.removeFirst() }
            entries.append((axis, new))
        }
        return new
    }
}
