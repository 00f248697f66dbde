#if canImport(Glibc)
import VitrineImageCore
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The smallest lossless form in which an image's pixels can be written to a PNG file.
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

    /// The properties of all pixels.
    private struct Findings {
        var isGray = true
        var isOpaque = true
        /// Colours in order of appearance, with alpha; nil when there are more than 256.
        var colors: [UInt32: UInt8]? = [:]
    }

    /// Converts an image. Grey images become grey, images of at most 256 colours get a palette.
    ///
    /// - Parameter allChannels: Whether it stays RGBA for any colours.
    init(_ image: PixelImage, allChannels: Bool = false) {
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
    private static func straight(_ image: PixelImage) -> [UInt8] {
        let rowBytes = image.width * PixelImage.bytesPerPixel
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

/// Correction of samples for a gAMA chunk that says something other than sRGB.
enum PNGGamma {
    /// The samples an encoder for a display of gamma 2.2 would have written for each sample of the file, or nil if that
    /// makes no visible difference.
    ///
    /// - Parameter gamma: 100,000 times the encoding exponent, 45,455 being 1/2.2 (PNG specification, third edition,
    ///   §11.3.2.2 and §13.13). Differences of less than a twentieth are left alone, as by libpng.
    static func table(_ gamma: UInt32) -> [UInt8]? {
        guard gamma >= 16, gamma <= 625_000_000 else { return nil }
        let exponent = 100_000 / (Double(gamma) * 2.2)
        guard abs(exponent - 1) >= 0.05 else { return nil }
        return (0..<256).map { UInt8(min(255, max(0, pow(Double($0) / 255, exponent) * 255 + 0.5))) }
    }

    /// Corrects all colour samples of a plane that is not shared yet.
    static func apply(_ table: [UInt8], to plane: PixelPlane, isPremultiplied: Bool) {
        let hasAlpha = plane.channels & 1 == 0
        let colors = hasAlpha ? plane.channels - 1 : plane.channels
        table.withUnsafeBufferPointer { table in
            for y in 0..<plane.height {
                let start = y * plane.bytesPerRow
                let row = UnsafeMutableRawBufferPointer(
                    rebasing: plane.storage.bytes[start..<(start + plane.width * plane.channels)])
                for x in 0..<plane.width {
                    let at = x &* plane.channels
                    let alpha = hasAlpha && isPremultiplied ? Int(row[at &+ colors]) : 255
                    guard alpha > 0 else { continue }
                    for c in at..<(at &+ colors) {
                        let straight = alpha == 255 ? Int(row[c]) : min(255, (Int(row[c]) &* 255 &+ alpha / 2) / alpha)
                        let corrected = Int(table[straight])
                        row[c] = UInt8(truncatingIfNeeded: alpha == 255 ? corrected : (corrected &* alpha &+ 127) / 255)
                    }
                }
            }
        }
    }
}

/// Multiplying rows of 8-bit samples by their alpha.
enum Premultiplication {
    /// Multiplies colour by alpha, rounded, in `target`, which may not be `source`.
    ///
    /// - Parameter channels: 2 or 4, alpha last.
    /// - Returns: False, with nothing written, if every pixel is opaque.
    static func apply(
        _ source: UnsafeRawPointer, _ target: UnsafeMutableRawPointer, width: Int, channels: Int
    ) -> Bool {
        channels == 4
            ? applyRGBA(source, target: target, width: width) : applyGray(source, target: target, width: width)
    }

    private static func applyGray(_ source: UnsafeRawPointer, target: UnsafeMutableRawPointer, width: Int) -> Bool {
        let from = source.assumingMemoryBound(to: UInt8.self)
        let to = target.assumingMemoryBound(to: UInt8.self)
        for x in 0..<width {
            let a = UInt32(from[x &* 2 &+ 1])
            to[x &* 2] = UInt8(truncatingIfNeeded: AlphaMath.multiply(UInt32(from[x &* 2]), a))
            to[x &* 2 &+ 1] = UInt8(truncatingIfNeeded: a)
        }
        return true
    }

    private static func applyRGBA(_ source: UnsafeRawPointer, target: UnsafeMutableRawPointer, width: Int) -> Bool {
        var all = SIMD4<UInt32>(repeating: .max)
        var x = 0
        while x &+ 4 <= width {
            all &= (source + x &* 4).loadUnaligned(as: SIMD4<UInt32>.self)
            x &+= 4
        }
        var opaque = (all[0] & all[1] & all[2] & all[3]).littleEndian >> 24 == 255
        while x < width {
            if (source + x &* 4 + 3).load(as: UInt8.self) != 255 { opaque = false }
            x &+= 1
        }
        if opaque { return false }
        AlphaMath.premultiply(source, into: target, count: width)
        return true
    }
}
