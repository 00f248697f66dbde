import VitrineImageCore

#if SystemCodecs
import CVitrinePNG
#endif

/// Writes PNG files in pure Swift, for builds without libpng: the same pixels in larger files.
///
/// Grey, palette and alpha are chosen as by the libpng encoder. Rows are filtered by the smallest sum of absolute
/// differences (PNG specification, third edition, §12.7). Adam7 is not written; ``EncodeOptions/isProgressive`` is
/// ignored.
package struct PNGEncoder: ImageEncoding {
    package init() {}

    package var format: ImageFormat { .png }

    package func encode(_ image: PixelImage, quality: Double, options: EncodeOptions) throws(ImageError) -> [UInt8] {
        guard image.width <= 0x7FFF_FFFF, image.height <= 0x7FFF_FFFF else {
            throw .encodingFailed(format: .png, reason: "the image is too large")
        }
        let pixels = PNGPixels(image, allChannels: options.writesAllChannels)
        let types: [UInt8] = [0, 4, 2, 6]
        var file: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        let type = pixels.palette == nil ? types[pixels.channels - 1] : 3
        Self.add("IHDR", Self.big(pixels.width) + Self.big(pixels.height) + [8, type, 0, 0, 0], to: &file)
        Self.add("sRGB", [0], to: &file)
        if let palette = pixels.palette {
            Self.add("PLTE", palette.indices.filter { $0 & 3 != 3 }.map { palette[$0] }, to: &file)
            let alphas = (0..<pixels.transparentCount).map { palette[$0 * 4 + 3] }
            if !alphas.isEmpty { Self.add("tRNS", alphas, to: &file) }
        }
        if let exif = options.metadata?.exif, !exif.isEmpty { Self.add("eXIf", exif, to: &file) }
        if let xmp = options.metadata?.xmp {
            Self.add("iTXt", Array("XML:com.adobe.xmp".utf8) + [0, 0, 0, 0, 0] + xmp, to: &file)
        }
        Self.add("IDAT", Deflater.zlib(Self.filtered(pixels)), to: &file)
        Self.add("IEND", [], to: &file)
        return file
    }

    private static func big(_ value: Int) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - $0 * 8)) }
    }

    private static func add(_ type: String, _ payload: [UInt8], to file: inout [UInt8]) {
        let body = Array(type.utf8) + payload
        file += big(payload.count) + body + big(Int(CRC32.checksum(body)))
    }

    /// Every row behind its filter byte. Palette indices are not filtered: their differences mean nothing.
    private static func filtered(_ pixels: PNGPixels) -> [UInt8] {
        let count = pixels.width * pixels.channels
        var result: [UInt8] = []
        result.reserveCapacity((count + 1) * pixels.height)
        var above = [UInt8](repeating: 0, count: count)
        for y in 0..<pixels.height {
            let row = Array(pixels.bytes[(y * count)..<((y + 1) * count)])
            if pixels.palette != nil {
                result.append(0)
                result += row
            } else {
                let best = (0..<5).map { filter($0, row: row, above: above, distance: pixels.channels) }
                    .enumerated().min { cost($0.element) < cost($1.element) }
                result.append(UInt8(best?.offset ?? 0))
                result += best?.element ?? row
            }
            above = row
        }
        return result
    }

    /// The sum of the bytes' distances from zero.
    private static func cost(_ row: [UInt8]) -> Int { row.reduce(0) { $0 + Int(min($1, 0 &- $1)) } }

    private static func filter(_ type: Int, row: [UInt8], above: [UInt8], distance: Int) -> [UInt8] {
        guard type > 0 else { return row }
        return row.indices.map { i in
            let a = i >= distance ? Int(row[i - distance]) : 0
            let b = Int(above[i])
            let c = i >= distance ? Int(above[i - distance]) : 0
            let prediction: Int =
                switch type {
                case 1: a
                case 2: b
                case 3: (a + b) / 2
                default: paeth(a: a, b: b, c: c)
                }
            return row[i] &- UInt8(truncatingIfNeeded: prediction)
        }
    }

    /// The predictor of the specification (§9.4).
    private static func paeth(a: Int, b: Int, c: Int) -> Int {
        let (pa, pb, pc) = (abs(b - c), abs(a - c), abs(a + b - 2 * c))
        return pa <= pb && pa <= pc ? a : pb <= pc ? b : c
    }
}

#if SystemCodecs
/// Writes PNG files by libpng: 8 bits a sample, grey or with a palette where that loses nothing, with an sRGB chunk.
///
/// Sample rows tell how the others are filtered and compressed: photos by one filter and without a search for repeated
/// bytes, which costs most of the time and gains 1 to 3 % of their size; drawings and text without a filter.
package struct LibPNGEncoder: ImageEncoding {
    package init() {}

    package var format: ImageFormat { .png }

    package func encode(_ image: PixelImage, quality: Double, options: EncodeOptions) throws(ImageError) -> [UInt8] {
        let pixels = PNGPixels(image, allChannels: options.writesAllChannels)
        let exif = options.metadata?.exif.flatMap { $0.isEmpty ? nil : $0 }
        // C strings end at a zero byte: without one libpng would read on.
        let xmp = options.metadata?.xmp.map { Array($0.prefix { $0 != 0 }) + [0] }
        var output = cpng_output()
        let status = pixels.bytes.withUnsafeBufferPointer { bytes in
            Self.with(pixels.palette) { palette in
                Self.with(exif) { exifBytes in
                    Self.with(xmp) { xmpBytes in
                        var input = cpng_input()
                        input.pixels = bytes.baseAddress
                        input.bytes_per_row = pixels.width * pixels.channels
                        input.width = UInt32(clamping: pixels.width)
                        input.height = UInt32(clamping: pixels.height)
                        input.channels = Int32(pixels.channels)
                        input.palette = palette?.baseAddress
                        input.palette_count = Int32((palette?.count ?? 0) / 4)
                        input.palette_transparent_count = Int32(pixels.transparentCount)
                        input.interlaced = options.isProgressive ? 1 : 0
                        input.exif = exifBytes?.baseAddress
                        input.exif_count = exifBytes?.count ?? 0
                        input.xmp = UnsafeRawPointer(xmpBytes?.baseAddress)?.assumingMemoryBound(to: CChar.self)
                        input.xmp_count = max(0, (xmpBytes?.count ?? 1) - 1)
                        return cpng_encode(&input, &output)
                    }
                }
            }
        }
        guard status == 0, let bytes = output.bytes else {
            let message = withUnsafeBytes(of: &output.message) { raw in
                String(decoding: raw.prefix { $0 != 0 }, as: UTF8.self)
            }
            throw .encodingFailed(format: .png, reason: message.isEmpty ? "out of memory" : message)
        }
        defer { cpng_free(bytes) }
        return [UInt8](UnsafeBufferPointer(start: bytes, count: output.count))
    }

    /// The memory of an optional array.
    private static func with<R>(_ bytes: [UInt8]?, _ body: (UnsafeBufferPointer<UInt8>?) -> R) -> R {
        guard let bytes else { return body(nil) }
        return bytes.withUnsafeBufferPointer { body($0) }
    }
}
#endif
