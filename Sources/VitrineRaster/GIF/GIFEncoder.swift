import VitrineImageCore
import VitrinePixels

/// Writes GIF89a: one image, or an animation. Pure Swift.
///
/// Images of at most 256 colours keep them exactly; others get a palette by variance (``GIFQuantizer``) and, unless
/// it is turned off, Floyd–Steinberg dithering. Alpha from 128 on becomes opaque, below that transparent.
///
/// Source: GIF89a specification; the Netscape application extension for loops.
package struct GIFEncoder: ImageEncoding {
    package let format = ImageFormat.gif
    /// Whether colours the palette lacks are mixed from neighbouring pixels. Default true.
    package var isDithered: Bool

    package init(isDithered: Bool = true) {
        self.isDithered = isDithered
    }

    package func encode(_ image: PixelImage, quality: Double, options: EncodeOptions) throws(ImageError) -> [UInt8] {
        try encode(frames: [(image: image, delay: 0)], loopCount: 1)
    }

    /// An animation of frames of one size.
    ///
    /// - Parameters:
    ///   - frames: Images and how many seconds each stays, to a hundredth, at most 655.35.
    ///   - loopCount: How often it is shown; 0 for ever, at most 65,536.
    /// - Throws: ``ImageError/encodingFailed(format:reason:)`` without frames, for frames of different sizes, or a side
    ///   above 65,535.
    package func encode(frames: [(image: PixelImage, delay: Double)], loopCount: Int) throws(ImageError) -> [UInt8] {
        guard let size = frames.first?.image.size else { throw failure("an animation needs a frame") }
        guard size.longestSide <= 0xFFFF else { throw failure("a GIF has at most 65,535 pixels a side") }
        guard frames.allSatisfy({ $0.image.size == size }) else { throw failure("frames must have one size") }
        var file = GIFWriter(size)
        if frames.count > 1, loopCount != 1 { file.writeLoops(loopCount) }
        var previous: PixelImage?
        for (i, frame) in frames.enumerated() {
            // A frame that can be transparent must not lie on the one before; an opaque one only covers what changed.
            let next = i + 1 < frames.count ? frames[i + 1].image : nil
            let area = previous.map { GIFEncoder.changedArea(from: $0, to: frame.image) } ?? GIFArea(size)
            let indexed = GIFQuantizer.index(frame.image, area, isDithered: isDithered)
            let clears = next.map(\.hasAlpha) ?? false
            file.writeFrame(
                indexed, area, delay: GIFEncoder.hundredths(frame.delay), isAnimated: frames.count > 1, clears: clears)
            previous = clears ? nil : frame.image
        }
        return file.finished()
    }

    private func failure(_ reason: String) -> ImageError { .encodingFailed(format: .gif, reason: reason) }

    private static func hundredths(_ seconds: Double) -> Int {
        seconds.isFinite ? Int(min(max((seconds * 100).rounded(), 0), 65_535)) : 0
    }

    /// The smallest rectangle outside of which two images are equal; one pixel when they are equal.
    private static func changedArea(from old: PixelImage, to new: PixelImage) -> GIFArea {
        // Different meanings of the fourth channel cannot be compared byte by byte; transparency cannot be painted
        // over.
        guard old.alpha == new.alpha, !new.hasAlpha else { return GIFArea(new.size) }
        var (left, right, top, bottom) = (new.width, -1, new.height, -1)
        old.withUnsafeBytes { a in
            new.withUnsafeBytes { b in
                for y in 0..<new.height {
                    let p = a.baseAddress! + y * old.bytesPerRow
                    let q = b.baseAddress! + y * new.bytesPerRow
                    func differs(_ x: Int) -> Bool {
                        p.loadUnaligned(fromByteOffset: 4 * x, as: UInt32.self)
                            != q.loadUnaligned(fromByteOffset: 4 * x, as: UInt32.self)
                    }
                    guard let first = (0..<new.width).first(where: differs) else { continue }
                    var last = new.width - 1
                    while last > first, !differs(last) { last -= 1 }
                    (left, right) = (min(left, first), max(right, last))
                    (top, bottom) = (min(top, y), y)
                }
            }
        }
        guard right >= 0 else { return GIFArea(x: 0, y: 0, width: 1, height: 1) }
        return GIFArea(x: left, y: top, width: right - left + 1, height: bottom - top + 1)
    }
}

/// Chooses at most 256 colours for an image and maps its pixels to them.
///
/// The colours are those of ``ColorPalette``. Dithering: Floyd and Steinberg, "An Adaptive Algorithm for Spatial
/// Greyscale" (1976), rows in alternating directions.
private enum GIFQuantizer {
    /// A part of an image, indexed. Exact when it has at most 256 colours, transparency included.
    static func index(_ image: PixelImage, _ area: GIFArea, isDithered: Bool) -> IndexedPixels {
        let colors = opaqueColors(image, area)
        if let exact = exact(colors) { return exact }
        let hasTransparency = colors.contains(transparent)
        let palette = ColorPalette(ColorHistogram(colors), count: hasTransparency ? 255 : 256, rounds: 1).pixels
        var map = NearestColor(palette)
        let transparentIndex = hasTransparency ? palette.count : nil
        var indices = [UInt8](repeating: 0, count: colors.count)
        if isDithered {
            dither(colors, width: area.width, map: &map, transparentIndex: transparentIndex ?? 0, indices: &indices)
        } else {
            for i in colors.indices {
                indices[i] = colors[i] == transparent
                    ? UInt8(truncatingIfNeeded: transparentIndex ?? 0)
                    : map.index(
                        red: Int(colors[i] & 0xFF), green: Int(colors[i] >> 8 & 0xFF), blue: Int(colors[i] >> 16 & 0xFF)
                    )
            }
        }
        return IndexedPixels(
            palette: hasTransparency ? palette + [0] : palette, transparentIndex: transparentIndex, indices: indices)
    }

    /// Stands for a transparent pixel; all others are opaque here.
    private static let transparent: UInt32 = 0

    private static func opaqueColors(_ image: PixelImage, _ area: GIFArea) -> [UInt32] {
        [UInt32](unsafeUninitializedCapacity: area.width * area.height) { colors, count in
            image.withUnsafeBytes { bytes in
                let alpha = image.alpha
                for y in 0..<area.height {
                    let row = bytes.baseAddress! + (area.y + y) * image.bytesPerRow + area.x * 4
                    for x in 0..<area.width {
                        var pixel = PixelMath.load(row + 4 &* x)
                        if alpha == .premultiplied { pixel = PixelMath.unpremultiply(pixel) }
                        let isVisible = alpha == .opaque || pixel >> 24 >= 128
                        colors[y &* area.width &+ x] = isVisible ? pixel | 0xFF00_0000 : transparent
                    }
                }
            }
            count = area.width * area.height
        }
    }

    private static func exact(_ colors: [UInt32]) -> IndexedPixels? {
        var palette: [UInt32] = []
        var places: [UInt32: UInt8] = [:]
        var transparentIndex: Int?
        var indices = [UInt8](repeating: 0, count: colors.count)
        var (last, lastIndex) = (UInt32(0), -1)
        for i in colors.indices {
            let color = colors[i]
            if lastIndex >= 0, color == last {
                indices[i] = UInt8(truncatingIfNeeded: lastIndex)
                continue
            }
            if let place = places[color] {
                indices[i] = place
            } else {
                guard palette.count < 256 else { return nil }
                let place = UInt8(truncatingIfNeeded: palette.count)
                if color == transparent { transparentIndex = palette.count }
                palette.append(color)
                places[color] = place
                indices[i] = place
            }
            (last, lastIndex) = (color, Int(indices[i]))
        }
        return IndexedPixels(palette: palette, transparentIndex: transparentIndex, indices: indices)
    }

    private static func dither(
        _ colors: [UInt32], width: Int, map: inout NearestColor, transparentIndex: Int, indices: inout [UInt8]
    ) {
        // Errors in sixteenths for this row and the next, with a pixel to spare on both sides.
        var current = [SIMD4<Int32>](repeating: SIMD4(repeating: 0), count: width + 2)
        var next = current
        for y in 0..<(colors.count / max(1, width)) {
            let forward = y & 1 == 0
            let step = forward ? 1 : -1
            for i in 0..<width {
                let x = forward ? i : width &- 1 &- i
                let color = colors[y &* width &+ x]
                if color == transparent {
                    indices[y &* width &+ x] = UInt8(truncatingIfNeeded: transparentIndex)
                    continue
                }
                let stored = SIMD4<Int32>(
                    Int32(truncatingIfNeeded: color & 0xFF), Int32(truncatingIfNeeded: color >> 8 & 0xFF),
                    Int32(truncatingIfNeeded: color >> 16 & 0xFF), 0)
                let wanted = (stored &+ ((current[x &+ 1] &+ 8) &>> 4)).clamped(
                    lowerBound: SIMD4(repeating: 0), upperBound: SIMD4(repeating: 255))
                let index = map.index(red: Int(wanted[0]), green: Int(wanted[1]), blue: Int(wanted[2]))
                indices[y &* width &+ x] = index
                let error = wanted &- map.color(index)
                current[x &+ 1 &+ step] = current[x &+ 1 &+ step] &+ error &* 7
                next[x &+ 1 &- step] = next[x &+ 1 &- step] &+ error &* 3
                next[x &+ 1] = next[x &+ 1] &+ error &* 5
                next[x &+ 1 &+ step] = next[x &+ 1 &+ step] &+ error
            }
            swap(&current, &next)
            for i in next.indices { next[i] = SIMD4(repeating: 0) }
        }
    }
}

/// An image in at most 256 colours.
private struct IndexedPixels {
    /// Red in the lowest byte, then green and blue; the highest byte means nothing.
    var palette: [UInt32]
    var transparentIndex: Int?
    /// One byte a pixel, rows without gaps.
    var indices: [UInt8]
}

/// Puts the blocks of a GIF file together.
private struct GIFWriter {
    private var bytes: [UInt8] = Array("GIF89a".utf8)

    /// A file with this canvas and without a global colour table.
    init(_ size: PixelSize) {
        append16(size.width)
        append16(size.height)
        bytes += [0x70, 0, 0]  // eight bits a channel; no table, no aspect
    }

    /// The Netscape extension, which counts repeats: plays less one, 0 for ever.
    mutating func writeLoops(_ plays: Int) {
        bytes += [0x21, 0xFF, 11] + Array("NETSCAPE2.0".utf8) + [3, 1]
        append16(plays <= 0 ? 0 : min(plays - 1, 0xFFFF))
        bytes.append(0)
    }

    mutating func writeFrame(_ frame: IndexedPixels, _ area: GIFArea, delay: Int, isAnimated: Bool, clears: Bool) {
        if isAnimated || frame.transparentIndex != nil {
            let disposal: UInt8 = !isAnimated ? 0 : clears ? 2 : 1
            bytes += [0x21, 0xF9, 4, disposal << 2 | (frame.transparentIndex == nil ? 0 : 1)]
            append16(delay)
            bytes += [UInt8(truncatingIfNeeded: frame.transparentIndex ?? 0), 0]
        }
        var depth = 1
        while 1 << depth < frame.palette.count { depth += 1 }
        bytes.append(0x2C)
        for value in [area.x, area.y, area.width, area.height] { append16(value) }
        bytes.append(0x80 | UInt8(truncatingIfNeeded: depth - 1))
        for i in 0..<(1 << depth) {
            let color = i < frame.palette.count ? frame.palette[i] : 0
            bytes += [
                UInt8(truncatingIfNeeded: color), UInt8(truncatingIfNeeded: color >> 8),
                UInt8(truncatingIfNeeded: color >> 16),
            ]
        }
        let minimum = max(2, depth)
        bytes.append(UInt8(truncatingIfNeeded: minimum))
        let data = LZWEncoder.encode(frame.indices, minimumCodeSize: minimum)
        var at = 0
        while at < data.count {
            let count = min(255, data.count - at)
            bytes.append(UInt8(truncatingIfNeeded: count))
            bytes += data[at..<(at + count)]
            at += count
        }
        bytes.append(0)
    }

    /// The file, with its trailer.
    func finished() -> [UInt8] { bytes + [0x3B] }

    private mutating func append16(_ value: Int) {
        bytes += [UInt8(truncatingIfNeeded: value), UInt8(truncatingIfNeeded: value >> 8)]
    }
}
