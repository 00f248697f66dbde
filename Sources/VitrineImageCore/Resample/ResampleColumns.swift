import CVitrinePixels
import VitrineCore

/// The resampler's pass down the columns: source rows in a ring, of which it makes eight lines at a time.
struct ResampleColumns {
    typealias Vector = SIMD8<Int16>

    let down: ResampleWeights
    /// Eight lines of source width, interleaved sample by sample.
    let columns: UnsafeMutablePointer<Vector>
    /// Vectors from one row of the ring to the next.
    private let stride: Int
    private let ringRows: Int
    private let ring: UnsafeMutablePointer<Vector>
    /// Weights of the rows of eight lines, and the rows themselves, each line's at a multiple of the largest count.
    private let weights: UnsafeMutablePointer<Int16>
    private let taps: UnsafeMutablePointer<UnsafePointer<Int16>?>

    /// - Parameters:
    ///   - samples: Samples a source row, of all channels.
    ///   - lines: Rows of the result.
    init(_ down: ResampleWeights, samples: Int, lines: Int) {
        self.down = down
        stride = (samples + 31) / 32 * 4
        var most = 1
        for y in Swift.stride(from: 0, to: lines, by: 8) {
            let last = min(y + 7, lines - 1)
            most = max(most, down.starts[last] + down.counts[last] - down.starts[y])
        }
        ringRows = most
        ring = .allocate(capacity: stride * ringRows)
        columns = .allocate(capacity: stride * 8)
        weights = .allocate(capacity: 8 * down.maximumCount)
        taps = .allocate(capacity: 8 * down.maximumCount)
    }

    func deallocate() {
        ring.deallocate()
        columns.deallocate()
        weights.deallocate()
        taps.deallocate()
    }

    /// The source rows that `count` lines from `line` on are made of.
    func rows(of line: Int, count: Int) -> Range<Int> {
        let last = line + count - 1
        return down.starts[line]..<max(down.starts[line], down.starts[last] + down.counts[last])
    }

    /// Where a source row is held until ``filter(_:count:)`` no longer needs it.
    func row(_ y: Int) -> UnsafeMutablePointer<Int16> {
        UnsafeMutableRawPointer(ring + (y % ringRows) * stride).assumingMemoryBound(to: Int16.self)
    }

    /// Makes up to eight lines in ``columns``; the last of `lines` again if there are fewer.
    func filter(_ y: Int, count lines: Int) {
        let width = down.maximumCount
        let samples = stride * 8
        withUnsafeTemporaryAllocation(of: Int32.self, capacity: 8) { counts in
            withUnsafeTemporaryAllocation(of: Int16.self, capacity: 8) { biases in
                for i in 0..<8 {
                    let line = y + min(i, lines - 1)
                    biases[i] = down.biases[line]
                    var count = 0
                    for k in 0..<down.counts[line] {
                        let weight = down.weights[line * width + k]
                        guard weight != 0 else { continue }
                        weights[i * width + count] = weight
                        taps[i * width + count] = UnsafePointer(row(down.starts[line] + k))
                        count += 1
                    }
                    counts[i] = Int32(count)
                }
                UnsafeMutableRawPointer(columns).withMemoryRebound(to: Int16.self, capacity: samples * 8) {
                    cpixels_sum_rows(taps, weights, width, counts.baseAddress, biases.baseAddress, samples, $0)
                }
            }
        }
    }
}
