#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

extension Resampler {
    /// The filter a picture is scaled with.
    package enum Kernel: Sendable, Hashable {
        /// Lanczos with three lobes, stretched by the reduction so that nothing aliases.
        ///
        /// Source: C. E. Duchon, "Lanczos Filtering in One and Two Dimensions", J. Appl. Meteor. 18 (1979).
        case lanczos3
        /// The same for samples that are means of the square they stand for (block means, box-reduced pixels), whose
        /// loss of contrast at high frequencies it makes good.
        ///
        /// A mean differs from the value in the middle by 1/24 of the second difference, to fourth order: the relation
        /// between cell averages and point values of finite-volume methods. Without effect below a reduction of 1.25.
        case lanczos3ForMeans
    }
}

/// For every sample of one axis of the result: which source samples it is made of, and how much of each.
struct ResampleWeights {
    /// Fraction bits of a weight.
    let bits: Int
    /// The most source samples that one result sample has.
    let maximumCount: Int
    /// First source sample of each result sample.
    private(set) var starts: [Int] = []
    /// Source samples of each result sample.
    private(set) var counts: [Int] = []
    /// Half the number of weights that are not zero: what rounding each product down takes from the sum on average.
    private(set) var biases: [Int16] = []
    /// Weights, `maximumCount` a result sample, each group adding up to `1 << bits` (saturated at `Int16.max`).
    private(set) var weights: [Int16] = []

    /// Weights for mapping the stretch of source that starts at `origin` and is `length` long onto `count` samples.
    ///
    /// - Parameters:
    ///   - samples: Source samples that exist; taps beyond either end are left out and the rest renormalised.
    ///   - extent: What they span. If it is less than `samples`, the last sample stands for the fraction that is left:
    ///     it counts for that much and lies in the middle of it.
    ///   - highPrecision: Whether 16 fraction bits may be used where all weights are small enough for it.
    init(
        samples: Int, extent: Double, origin: Double, length: Double, count: Int, kernel: Resampler.Kernel,
        highPrecision: Bool
    ) {
        let step = length / Double(count)
        let stretch = max(1, step)
        let inverse = 1 / stretch
        let coverage = max(0.01, min(1, extent - Double(samples - 1)))
        let sharpens = kernel == .lanczos3ForMeans && step >= 1.25
        // A weight reaches 1/step, at an edge or sharpened a quarter more; it must fit 16 bits with its sign.
        bits = step < 1.5 ? 14 : highPrecision && step >= 3 ? 16 : 15
        let margin = sharpens ? 1 : 0
        maximumCount = min(samples, Int(min(Double(samples), 6 * stretch)) + 2 + 2 * margin)
        starts.reserveCapacity(count)
        counts.reserveCapacity(count)
        biases.reserveCapacity(count)
        weights.reserveCapacity(count * maximumCount)
        var taps = [Double](repeating: 0, count: maximumCount)
        var sharp = taps
        for i in 0..<count {
            let centre = origin + (Double(i) + 0.5) * step
            let first = Self.clamp(centre - 3 * stretch - 0.5, to: samples - 1).rounded(.up)
            let last = Self.clamp(centre + 3 * stretch - 0.5, to: samples - 1).rounded(.down)
            let start = max(0, Int(first) - margin)
            let end = min(samples, max(Int(first), Int(last)) + 1 + margin, start + maximumCount)
            var total = 0.0
            Self.table.withUnsafeBufferPointer { table in
                for j in start..<end {
                    let isLast = j == samples - 1
                    let middle = isLast ? Double(j) + coverage / 2 : Double(j) + 0.5
                    let weight = Self.lanczos3((middle - centre) * inverse, table)
                    taps[j - start] = isLast ? weight * coverage : weight
                    total += taps[j - start]
                }
            }
            if abs(total) < 1e-6 {
                taps[0] = 1
                for k in 1..<max(1, end - start) { taps[k] = 0 }
                total = 1
            }
            if sharpens { Self.sharpen(&taps, into: &sharp, start: start, end: end, samples: samples) }
            append(sharpens ? sharp : taps, start: start, count: end - start, total: total)
        }
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

    /// Turns weights of point values into weights of means. The picture goes on beyond its edge with its last sample.
    private static func sharpen(
        _ taps: inout [Double], into sharp: inout [Double], start: Int, end: Int, samples: Int
    ) {
        for k in 0..<(end - start) { sharp[k] = taps[k] }
        for j in start..<end {
            let share = taps[j - start] / 24
            for neighbour in [j - 1, j + 1] where neighbour >= start && neighbour < end {
                sharp[j - start] += share
                sharp[neighbour - start] -= share
            }
        }
    }

    /// Stores one group in fixed point, giving what rounding loses to the largest weight.
    private mutating func append(_ taps: [Double], start: Int, count: Int, total: Double) {
        let one = 1 << bits
        var sum = 0
        var largest = 0
        let base = weights.count
        for k in 0..<maximumCount {
            let value = k < count ? taps[k] / total * Double(one) : 0
            let weight = Int16(clamping: Int(max(-40_000, min(40_000, value)).rounded()))
            weights.append(weight)
            sum += Int(weight)
            if weight > weights[base + largest] { largest = k }
        }
        weights[base + largest] = Int16(clamping: Int(weights[base + largest]) + one - sum)
        let used = weights[base...].reduce(0) { $1 == 0 ? $0 : $0 + 1 }
        biases.append(Int16(clamping: used / 2))
        starts.append(start)
        counts.append(count)
    }
}
