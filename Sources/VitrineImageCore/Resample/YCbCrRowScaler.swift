import CVitrinePixels
import VitrineCore

/// Scales the rows of three planes while they are decoded, and converts them to red, green and blue.
///
/// The planes have rows of different lengths but the same number of rows, as in 4:2:2. Colour is converted first, at its
/// own width, to the differences of red, green and blue from Y′, in whole levels as in libjpeg. Where colour is even,
/// the rounding of a difference does not average out: without it, results are 2 dB further from libjpeg's image.
/// Scaled samples keep five bits below a level until Y′ and a difference are added.
package final class YCbCrRowScaler {
    /// One plane: samples a row, and how many of them the image spans.
    package struct Plane {
        package var width: Int
        package var extent: Double

        package init(width: Int, extent: Double) { (self.width, self.extent) = (width, extent) }
    }

    private typealias Vector = SIMD8<Int16>

    /// Bits below a level of scaled samples. More could overflow where a filter overshoots.
    private static let fraction = 5

    private let size: PixelSize
    private let luma: ResampleWeights
    private let chroma: ResampleWeights
    private let columns: ResampleColumns
    private let height: Int
    /// The first sample of Y′ and of each difference in a row of the ring.
    private let offsets: [Int]
    private let widths: [Int]
    private let result: UnsafeMutablePointer<SIMD8<UInt8>>
    private let storage: PixelStorage
    private var loaded = 0
    private var line = 0

    /// - Parameters:
    ///   - luma: The plane of Y′.
    ///   - chroma: The planes of Cb and Cr.
    ///   - height: Rows of each plane, and how many of them the image spans.
    /// - Returns: nil for rows of less than a vector, and unless the plane of Y′ is reduced in both directions, by less
    ///   than the resampler's boxes.
    package init?(luma: Plane, chroma: Plane, height: Int, extentHeight: Double, to size: PixelSize) {
        guard !size.isEmpty, chroma.width >= 8 else { return nil }
        let across = luma.extent / Double(size.width), down = extentHeight / Double(size.height)
        guard min(across, down) > 1, max(across, down) < Resampler.boxThreshold else { return nil }
        func weights(_ samples: Int, extent: Double, count: Int) -> ResampleWeights {
            ResampleWeightsCache.shared.weights(
                ResampleWeights.Axis(
                    samples: samples, extent: extent, origin: 0, length: extent, count: count, kernel: .lanczos3,
                    highPrecision: false))
        }
        self.size = size
        self.height = height
        self.luma = weights(luma.width, extent: luma.extent, count: size.width)
        self.chroma = weights(chroma.width, extent: chroma.extent, count: size.width)
        widths = [luma.width, chroma.width, chroma.width]
        offsets = [0, luma.width, luma.width + chroma.width, luma.width + 2 * chroma.width]
        columns = ResampleColumns(
            weights(height, extent: extentHeight, count: size.height), samples: luma.width + 3 * chroma.width,
            lines: size.height)
        result = .allocate(capacity: 3 * size.width)
        storage = PixelStorage(zeroedByteCount: 3 * size.width * size.height)
    }

    deinit {
        result.deallocate()
        columns.deallocate()
    }

    /// Adds the next row of Y′, Cb and Cr, a level `v` as `(v - 128) * 256`. Ignores rows behind the last one of the
    /// image.
    package func add(y: UnsafePointer<Int16>, cb: UnsafePointer<Int16>, cr: UnsafePointer<Int16>) {
        guard loaded < height, line < size.height else { return }
        let row = columns.row(loaded)
        row.update(from: y, count: widths[0])
        addColor(cb, cr, to: row)
        loaded += 1
        while line < size.height {
            let count = min(8, size.height - line)
            guard loaded >= columns.rows(of: line, count: count).upperBound else { return }
            columns.filter(line, count: count)
            filterAcross()
            let row = 3 * size.width
            let bytes = storage.bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
            UnsafeRawPointer(result).withMemoryRebound(to: UInt8.self, capacity: row * 8) {
                cpixels_store_lines($0, row, bytes.map { $0 + line * row }, row, Int32(count))
            }
            line += count
        }
    }

    /// Writes how far red, green and blue are from Y′, by the factors of JFIF (ITU-T T.871 §7) less the whole part of
    /// each, in whole levels like libjpeg.
    private func addColor(
        _ cb: UnsafePointer<Int16>, _ cr: UnsafePointer<Int16>, to row: UnsafeMutablePointer<Int16>
    ) {
        let count = widths[1]
        let red = UnsafeMutableRawPointer(row + offsets[1]), green = UnsafeMutableRawPointer(row + offsets[2])
        let blue = UnsafeMutableRawPointer(row + offsets[3])
        let (cb, cr) = (UnsafeRawPointer(cb), UnsafeRawPointer(cr))
        let one = Vector(repeating: 1), most = Vector(repeating: 127), seven = Vector(repeating: 7)
        // Products are rounded down, so that a sum of two is one too small on average.
        let half = Vector(repeating: 64), halfOfTwo = Vector(repeating: 65)
        @inline(__always)
        func whole(_ v: Vector) -> Vector {
            let w = (v &>> Vector(repeating: 8)) &+ ((v &>> seven) & one)
            return w.replacing(with: most, where: w .> most)
        }
        @inline(__always)
        func product(_ v: Vector, _ factor: Double) -> Vector {
            Lanes.multiplyHigh(v &<< seven, Vector(repeating: Int16(factor * 65_536)))
        }
        for x in stride(from: 0, to: count, by: 8) {
            // In bytes; the last eight samples may overlap those before.
            let i = 2 * min(x, count - 8)
            let b = whole(cb.loadUnaligned(fromByteOffset: i, as: Vector.self))
            let r = whole(cr.loadUnaligned(fromByteOffset: i, as: Vector.self))
            let dr = r &+ ((product(r, 0.402) &+ half) &>> seven)
            let dg = ((product(b, -0.34414) &+ product(r, 0.28586) &+ halfOfTwo) &>> seven) &- r
            let db = b &+ b &+ ((product(b, -0.228) &+ half) &>> seven)
            red.storeBytes(of: dr &<< seven, toByteOffset: i, as: Vector.self)
            green.storeBytes(of: dg &<< seven, toByteOffset: i, as: Vector.self)
            blue.storeBytes(of: db &<< seven, toByteOffset: i, as: Vector.self)
        }
    }

    /// Red, green and blue; nil before all rows have been added.
    package var scaled: PixelPlane? {
        guard line == size.height else { return nil }
        return PixelPlane(width: size.width, height: size.height, channels: 3, storage: storage)
    }

    private func filterAcross() {
        let y = Pass(across: luma, down: columns.down, scale: 8), c = Pass(across: chroma, down: columns.down, scale: 7)
        let lines = UnsafePointer(columns.columns)
        let red = lines + offsets[1], green = lines + offsets[2], blue = lines + offsets[3]
        luma.withTaps { luma in
            chroma.withTaps { chroma in
                for x in 0..<size.width {
                    let level = y.sample(lines, taps: luma, x: x)
                    let to = result + 3 &* x
                    let (r, g, b) = c.samples(one: red, other: green, third: blue, taps: chroma, x: x)
                    to[0] = Self.level(level &+ r)
                    to[1] = Self.level(level &+ g)
                    to[2] = Self.level(level &+ b)
                }
            }
        }
    }

    /// One pass along the rows.
    private struct Pass {
        let right: Vector
        let left: Vector

        /// - Parameter scale: Bits below a level in the ring.
        init(across: ResampleWeights, down: ResampleWeights, scale: Int) {
            let bits = Int16(truncatingIfNeeded: across.bits + down.bits + scale - 32 - YCbCrRowScaler.fraction)
            right = Vector(repeating: max(0, bits))
            left = Vector(repeating: max(0, 0 - bits))
        }

        @inline(__always)
        private func whole(_ sum: Vector) -> Vector { (sum &>> right) &<< left }

        /// One sample of eight lines.
        @inline(__always)
        func sample(_ columns: UnsafePointer<Vector>, taps: ResampleWeights.Taps, x: Int) -> Vector {
            let weights = taps.weights + x &* taps.stride
            let from = columns + taps.starts[x]
            var sum = Vector(repeating: taps.biases[x])
            for k in 0..<taps.counts[x] { sum &+= Lanes.multiplyHigh(from[k], Vector(repeating: weights[k])) }
            return whole(sum)
        }

        /// One sample of eight lines of three planes.
        @inline(__always)
        func samples(
            one: UnsafePointer<Vector>, other: UnsafePointer<Vector>, third: UnsafePointer<Vector>,
            taps: ResampleWeights.Taps, x: Int
        ) -> (Vector, Vector, Vector) {
            let weights = taps.weights + x &* taps.stride
            let start = taps.starts[x]
            var a = Vector(repeating: taps.biases[x]), b = a, c = a
            for k in 0..<taps.counts[x] {
                let weight = Vector(repeating: weights[k])
                a &+= Lanes.multiplyHigh(one[start &+ k], weight)
                b &+= Lanes.multiplyHigh(other[start &+ k], weight)
                c &+= Lanes.multiplyHigh(third[start &+ k], weight)
            }
            return (whole(a), whole(b), whole(c))
        }
    }

    /// Rounds to whole levels and undoes the centring.
    @inline(__always)
    private static func level(_ value: Vector) -> SIMD8<UInt8> {
        let half = Vector(repeating: 1 << Int16(fraction - 1))
        return Lanes.level(((value &+ half) &>> Vector(repeating: Int16(fraction))) &+ Vector(repeating: 128))
    }
}
