/// Chooses at most 256 colours for a picture and maps its pixels to them.
///
/// The colours are those of ``ColorPalette``. Dithering: Floyd and Steinberg, "An Adaptive Algorithm for Spatial
/// Greyscale" (1976), rows in alternating directions.
enum GIFQuantizer {
    /// A part of an image, indexed. Exact when it has at most 256 colours, transparency included.
    static func index(_ image: Image, _ area: GIFArea, isDithered: Bool) -> IndexedPixels {
        let colors = opaqueColors(image, area)
        if let exact = exact(colors) { return exact }
        let hasTransparency = colors.contains(transparent)
        let palette = ColorPalette(ColorHistogram(colors), count: hasTransparency ? 255 : 256, rounds: 1).pixels
        var map = NearestColor(palette)
        let transparentIndex = hasTransparency ? palette.count : nil
        var indices = [UInt8](repeating: 0, count: colors.count)
        if isDithered {
            dither(colors, area.width, &map, transparentIndex ?? 0, &indices)
        } else {
            for i in colors.indices {
                indices[i] = colors[i] == transparent
                    ? UInt8(truncatingIfNeeded: transparentIndex ?? 0)
                    : map.index(Int(colors[i] & 0xFF), Int(colors[i] >> 8 & 0xFF), Int(colors[i] >> 16 & 0xFF))
            }
        }
        return IndexedPixels(
            palette: hasTransparency ? palette + [0] : palette, transparentIndex: transparentIndex, indices: indices)
    }

    /// Stands for a transparent pixel; all others are opaque here.
    private static let transparent: UInt32 = 0

    private static func opaqueColors(_ image: Image, _ area: GIFArea) -> [UInt32] {
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
        _ colors: [UInt32], _ width: Int, _ map: inout NearestColor, _ transparentIndex: Int, _ indices: inout [UInt8]
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
                let index = map.index(Int(wanted[0]), Int(wanted[1]), Int(wanted[2]))
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
