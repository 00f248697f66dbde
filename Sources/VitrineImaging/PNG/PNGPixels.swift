/// The smallest lossless form in which a picture's pixels can be written to a PNG file.
struct PNGPixels {
    /// Samples a pixel: 1 grey or palette index, 2 grey and alpha, 3 RGB, 4 RGBA with straight alpha.
    let channels: Int
    let width: Int
    let height: Int
    /// Rows of `width * channels` bytes, one behind the other.
    let bytes: [UInt8]
    /// Red, green, blue and alpha of each entry, entries that are not opaque first; nil without a palette.
    let palette: [UInt8]?
    /// Entries of the palette that are not opaque.
    let transparentCount: Int

    /// What a look at every pixel found.
    private struct Findings {
        var isGray = true
        var isOpaque = true
        /// Colours in order of appearance, with alpha; nil when there are more than 256.
        var colors: [UInt32: UInt8]? = [:]
    }

    /// Converts an image. Grey pictures become grey, pictures of at most 256 colours get a palette.
    ///
    /// - Parameter allChannels: Whether it stays RGBA whatever its colours are.
    init(_ image: Image, allChannels: Bool = false) {
        let straight = Self.straight(image)
        width = image.width
        height = image.height
        if allChannels {
            (channels, bytes, palette, transparentCount) = (4, straight, nil, 0)
            return
        }
        let findings = Self.look(at: straight)
        if findings.isGray {
            channels = findings.isOpaque ? 1 : 2
            bytes = Self.pick(straight, findings.isOpaque ? [0] : [0, 3])
            palette = nil
            transparentCount = 0
        } else if let colors = findings.colors {
            let order = colors.keys.sorted { a, b in
                let (first, second) = (a >> 24 < 255, b >> 24 < 255)
                return first == second ? colors[a, default: 0] < colors[b, default: 0] : first
            }
            var indices: [UInt32: UInt8] = [:]
            for (i, color) in order.enumerated() { indices[color] = UInt8(i) }
            channels = 1
            bytes = Self.index(straight, indices)
            palette = order.flatMap { color in (0..<4).map { UInt8(truncatingIfNeeded: color >> ($0 * 8)) } }
            transparentCount = order.count { $0 >> 24 < 255 }
        } else {
            channels = findings.isOpaque ? 3 : 4
            bytes = findings.isOpaque ? Self.pick(straight, [0, 1, 2]) : straight
            palette = nil
            transparentCount = 0
        }
    }

    /// All pixels as RGBA with straight alpha, without padding between rows.
    private static func straight(_ image: Image) -> [UInt8] {
        let rowBytes = image.width * Image.bytesPerPixel
        return [UInt8](unsafeUninitializedCapacity: rowBytes * image.height) { buffer, count in
            count = rowBytes * image.height
            let to = UnsafeMutableRawBufferPointer(buffer)
            image.withUnsafeBytes { from in
                for y in 0..<image.height {
                    let row = from[(y * image.bytesPerRow)..<(y * image.bytesPerRow + rowBytes)]
                    UnsafeMutableRawBufferPointer(rebasing: to[(y * rowBytes)...]).copyMemory(
                        from: UnsafeRawBufferPointer(rebasing: row))
                }
            }
            if image.alpha == .premultiplied {
                AlphaMath.unpremultiply(to.baseAddress!.assumingMemoryBound(to: UInt8.self), count: to.count / 4)
            }
            if image.alpha == .opaque { for i in stride(from: 3, to: to.count, by: 4) { to[i] = 255 } }
        }
    }

    private static func look(at pixels: [UInt8]) -> Findings {
        var findings = Findings()
        var last: UInt32?
        pixels.withUnsafeBytes { bytes in
            for i in stride(from: 0, to: bytes.count, by: 4) {
                let pixel = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: i, as: UInt32.self))
                if pixel == last { continue }
                last = pixel
                if pixel & 0xFF != pixel >> 8 & 0xFF || pixel & 0xFF != pixel >> 16 & 0xFF { findings.isGray = false }
                if pixel >> 24 != 255 { findings.isOpaque = false }
                if let colors = findings.colors, colors[pixel] == nil {
                    if colors.count == 256 {
                        findings.colors = nil
                    } else {
                        findings.colors?[pixel] = UInt8(colors.count)
                    }
                }
                if findings.colors == nil && !findings.isGray && !findings.isOpaque { break }
            }
        }
        return findings
    }

    /// Some of the four channels of every pixel.
    private static func pick(_ pixels: [UInt8], _ channels: [Int]) -> [UInt8] {
        let n = channels.count
        return [UInt8](unsafeUninitializedCapacity: pixels.count / 4 * n) { buffer, count in
            count = pixels.count / 4 * n
            for i in 0..<(pixels.count / 4) {
                for c in 0..<n { buffer[i &* n &+ c] = pixels[i &* 4 &+ channels[c]] }
            }
        }
    }

    private static func index(_ pixels: [UInt8], _ indices: [UInt32: UInt8]) -> [UInt8] {
        var last: (pixel: UInt32, index: UInt8)?
        return stride(from: 0, to: pixels.count, by: 4).map { i in
            var pixel: UInt32 = 0
            for c in 0..<4 { pixel |= UInt32(pixels[i + c]) << UInt32(8 * c) }
            if let last, last.pixel == pixel { return last.index }
            let index = indices[pixel, default: 0]
            last = (pixel, index)
            return index
        }
    }
}
