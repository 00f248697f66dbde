import VitrineCore

extension ColorProfile {
    /// Whether colours are encoded by PQ or HLG, of which 8 bits are steps of 4 % of light: smooth skies would show
    /// them. Samples of more bits are converted before they are cut to bytes.
    package var isHighRange: Bool { highRange != nil }

    /// Converts samples of 16 bits, with or without alpha at the end, to bytes of sRGB with as many channels.
    ///
    /// - Parameter gain: The way to the image of standard range that the file has beside; nil to map tones by rule.
    /// - Returns: nil when cancelled, or unless the profile is of high range and there are 1 to 4 channels.
    package func shown(
        _ samples: UnsafeRawBufferPointer, size: PixelSize, channels: Int, isPremultiplied: Bool,
        gain: GainSamples? = nil, _ cancellation: CancellationToken
    ) -> PixelPlane? {
        guard let colors = highRange, (1...4).contains(channels), !size.isEmpty,
            samples.count / 2 / channels / size.width >= size.height
        else { return nil }
        let hasAlpha = channels & 1 == 0
        let isGray = channels <= 2
        let count = size.width * channels
        let storage = PixelStorage(zeroedByteCount: count * size.height)
        let target = storage.bytes
        for y in 0..<size.height {
            if y & 7 == 0, cancellation.isCancelled { return nil }
            for x in stride(from: y * count, to: (y + 1) * count, by: channels) {
                func sample(_ c: Int) -> Float {
                    Float(samples.loadUnaligned(fromByteOffset: 2 &* (x &+ c), as: UInt16.self)) / 65_535
                }
                let alpha = hasAlpha ? sample(channels &- 1) : 1
                var color = isGray ? SIMD4(1, 1, 1, 0) * sample(0) : SIMD4(sample(0), sample(1), sample(2), 0)
                if isPremultiplied { color *= alpha > 0 ? 1 / alpha : 0 }
                let levels: SIMD4<UInt8>
                if let gain {
                    let column = (x - y * count) / channels
                    levels = colors.levels(
                        color, through: gain, x: (Float(column) + 0.5) / Float(size.width),
                        y: (Float(y) + 0.5) / Float(size.height))
                } else {
                    levels = colors.levels(color)
                }
                for c in 0..<(isGray ? 1 : 3) {
                    target[x &+ c] =
                        isPremultiplied ? UInt8(min(255, Float(levels[c]) * alpha + 0.5)) : levels[c]
                }
                if hasAlpha { target[x &+ channels &- 1] = UInt8(alpha * 255 + 0.5) }
            }
        }
        return PixelPlane(width: size.width, height: size.height, channels: channels, storage: storage)
    }
}

extension ColorProfile {
    /// Converts opaque bytes of grey, or of red, green and blue, to sRGB by the map of their maker.
    ///
    /// - Returns: A plane of red, green and blue; nil when cancelled, or unless the profile is of high range.
    package func shown(
        _ plane: PixelPlane, through gain: GainSamples, _ cancellation: CancellationToken
    ) -> PixelPlane? {
        guard let colors = highRange, plane.channels == 1 || plane.channels == 3 else { return nil }
        let shown = PixelPlane(
            width: plane.width, height: plane.height, channels: 3, extent: (plane.extentWidth, plane.extentHeight),
            storage: PixelStorage(zeroedByteCount: 3 * plane.width * plane.height))
        let (source, target) = (plane.storage.bytes, shown.storage.bytes)
        let (green, blue) = plane.channels == 1 ? (0, 0) : (1, 2)
        for y in 0..<plane.height {
            if y & 7 == 0, cancellation.isCancelled { return nil }
            for x in 0..<plane.width {
                let from = y &* plane.bytesPerRow &+ x &* plane.channels
                let color = SIMD4(
                    Float(source[from]), Float(source[from &+ green]), Float(source[from &+ blue]), 0)
                let levels = colors.levels(
                    color / 255, through: gain, x: (Float(x) + 0.5) / Float(plane.extentWidth),
                    y: (Float(y) + 0.5) / Float(plane.extentHeight))
                for c in 0..<3 { target[3 &* (y &* plane.width &+ x) &+ c] = levels[c] }
            }
        }
        return shown
    }
}

/// A decoded frame of PQ or HLG with more than 8 bits a sample, as planes of words.
package struct DeepFrame {
    /// Samples of one channel, and the block of them that becomes one.
    package struct Plane {
        package var samples: UnsafeRawPointer
        package var bytesPerRow: Int
        package var size: PixelSize
        package var block: (x: Int, y: Int)

        package init(samples: UnsafeRawPointer, bytesPerRow: Int, size: PixelSize, block: (x: Int, y: Int)) {
            (self.samples, self.bytesPerRow, self.size, self.block) = (samples, bytesPerRow, size, block)
        }

        fileprivate var columns: Int { (size.width - 1) / block.x + 1 }
        fileprivate var rows: Int { (size.height - 1) / block.y + 1 }

        /// The means of a row of blocks.
        fileprivate func read(_ row: Int, into line: UnsafeMutablePointer<Float>) {
            let first = row * block.y
            let height = min(block.y, size.height - first)
            for x in 0..<columns {
                let left = x &* block.x
                let width = min(block.x, size.width &- left)
                var sum: UInt64 = 0
                for y in first..<(first + height) {
                    let from = (samples + y &* bytesPerRow).assumingMemoryBound(to: UInt16.self) + left
                    for i in 0..<width { sum &+= UInt64(from[i]) }
                }
                line[x] = Float(sum) / Float(width &* height)
            }
        }
    }

    /// Luma, and blue and red differences at any resolution; without a matrix green, blue and red, or one of grey.
    package var planes: [Plane]
    package var matrix: DecodedImage.Matrix?
    package var isFullRange: Bool
    /// The value of a step of 8 bits: 4 for samples of 10 bits.
    package var unit: Float
    /// The largest sample.
    package var peak: Float
    /// The way to the image of standard range that the file has beside; nil to map tones by rule.
    package var gain: GainSamples?
    /// Alpha of each mean; nil for an opaque frame.
    package var alpha: PixelPlane?

    package init(
        planes: [Plane], matrix: DecodedImage.Matrix?, isFullRange: Bool, depth: Int, shift: Int = 0
    ) {
        (self.planes, self.matrix, self.isFullRange) = (planes, matrix, isFullRange)
        unit = Float(1 << (depth - 8 + shift))
        peak = Float(((1 << depth) - 1) << shift)
    }

    /// The means of blocks in sRGB, without the extent of the last ones.
    ///
    /// - Returns: A plane of red, green and blue, and alpha if there is any; nil when cancelled, or for a profile that is
    ///   not of high range.
    package func shown(in profile: ColorProfile, _ cancellation: CancellationToken) -> PixelPlane? {
        guard let colors = profile.highRange, planes.count == 1 || planes.count == 3 else { return nil }
        let (width, height) = (planes[0].columns, planes[0].rows)
        let channels = alpha == nil ? 3 : 4
        guard alpha.map({ $0.width == width && $0.height == height && $0.channels == 1 }) ?? true else { return nil }
        let storage = PixelStorage(zeroedByteCount: width * height * channels)
        let lines = planes.map { Line($0, beside: planes[0]) }
        let weights = DeepWeights(matrix)
        let (low, range) = isFullRange ? (0, peak) : (16 * unit, 219 * unit)
        let (middle, span) = (128 * unit, isFullRange ? peak : 224 * unit)
        for y in 0..<height {
            if y & 7 == 0, cancellation.isCancelled { return nil }
            for line in lines { line.load(y) }
            for x in 0..<width {
                let first = (lines[0].value(x) - low) / range
                let color: SIMD4<Float>
                if lines.count == 1 {
                    color = SIMD4(first, first, first, 0)
                } else if let weights {
                    let blue = (lines[1].value(x) - middle) / span
                    let red = (lines[2].value(x) - middle) / span
                    color = SIMD4(1, 1, 1, 0) * first + weights.blue * blue + weights.red * red
                } else {
                    color = SIMD4((lines[2].value(x) - low) / range, first, (lines[1].value(x) - low) / range, 0)
                }
                let levels: SIMD4<UInt8>
                if let gain {
                    levels = colors.levels(
                        color, through: gain, x: (Float(x) + 0.5) / Float(width), y: (Float(y) + 0.5) / Float(height))
                } else {
                    levels = colors.levels(color)
                }
                let at = channels &* (y &* width &+ x)
                for c in 0..<3 { storage.bytes[at &+ c] = levels[c] }
                if let alpha { storage.bytes[at &+ 3] = alpha.storage.bytes[y &* alpha.bytesPerRow &+ x] }
            }
        }
        return PixelPlane(width: width, height: height, channels: channels, storage: storage)
    }

    /// One row of a plane at the resolution of the first one, interpolated between the middles of its samples.
    private final class Line {
        private let plane: Plane
        private let rows: [UnsafeMutablePointer<Float>]
        /// The rows that `rows` hold.
        private var loaded = [-1, -1]
        private var weight: Float = 0
        private let line: UnsafeMutablePointer<Float>
        /// Samples of this plane on one of the first.
        private let across: Float
        private let down: Float

        init(_ plane: Plane, beside first: Plane) {
            self.plane = plane
            rows = (0..<2).map { _ in .allocate(capacity: plane.columns) }
            line = .allocate(capacity: plane.columns)
            for memory in rows + [line] { memory.initialize(repeating: 0, count: plane.columns) }
            // Chroma of odd sides is one sample for the last pixel.
            func ratio(_ own: Int, ownBlock: Int, other: Int, otherBlock: Int) -> Float {
                own == other ? Float(otherBlock) / Float(ownBlock) : Float(otherBlock) / Float(2 * ownBlock)
            }
            across = ratio(
                plane.size.width, ownBlock: plane.block.x, other: first.size.width, otherBlock: first.block.x)
            down = ratio(
                plane.size.height, ownBlock: plane.block.y, other: first.size.height, otherBlock: first.block.y)
        }

        deinit { for memory in rows + [line] { memory.deallocate() } }

        func load(_ y: Int) {
            let position = max(0, (Float(y) + 0.5) * down - 0.5)
            let upper = min(Int(position), plane.rows - 1)
            let lower = min(upper + 1, plane.rows - 1)
            for (wanted, slot) in [(upper, upper & 1), (lower, lower & 1)] where loaded[slot] != wanted {
                plane.read(wanted, into: rows[slot])
                loaded[slot] = wanted
            }
            weight = upper == lower ? 0 : position - Float(upper)
            let (a, b) = (rows[upper & 1], rows[lower & 1])
            for x in 0..<plane.columns { line[x] = a[x] + (b[x] - a[x]) * weight }
        }

        @inline(__always)
        func value(_ x: Int) -> Float {
            if across == 1 { return line[x] }
            let position = max(0, (Float(x) + 0.5) * across - 0.5)
            let left = min(Int(position), plane.columns - 1)
            let right = min(left + 1, plane.columns - 1)
            return line[left] + (line[right] - line[left]) * (position - Float(left))
        }
    }
}

/// The red, green and blue that a unit of each difference adds (ITU-T H.273 §8.3).
private struct DeepWeights {
    let blue: SIMD4<Float>
    let red: SIMD4<Float>

    init?(_ matrix: DecodedImage.Matrix?) {
        guard let matrix else { return nil }
        let (kr, kb): (Float, Float) =
            switch matrix {
            case .bt601: (0.299, 0.114)
            case .bt709: (0.2126, 0.0722)
            case .bt2020: (0.2627, 0.0593)
            }
        let kg = 1 - kr - kb
        blue = SIMD4(0, -2 * (1 - kb) * kb / kg, 2 * (1 - kb), 0)
        red = SIMD4(2 * (1 - kr), -2 * (1 - kr) * kr / kg, 0, 0)
    }
}
