import VitrineCore
import VitrineImageCore

/// Reads the chunks of PNG and APNG, hopping over pixel data.
///
/// Source: PNG specification, third edition, §5.3 (chunks), §11.2.1 (IHDR), §11.3 (ancillary chunks). Chunks behind the
/// pixels count too: ImageMagick writes eXIf there. Checksums are the decoder's to judge.
package enum PNGHeaderReader: HeaderReading {
    /// Chunks looked at; the rest of the file is passed over. A 100 MB file in libpng's 8 KiB chunks has 12,800.
    private static let maximumChunks = 50_000

    /// The content of the chunks of an animation.
    private struct Animation {
        var declaredFrames = 0
        var plays = 0
        var frames = 0
        var seconds = 0.0
    }

    package static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        var header = try imageHeader(reader)
        var animation = Animation()
        var (seenPixels, seenProfile) = (false, false)
        var offset = 33
        var complete = false
        for _ in 0..<maximumChunks {
            // What follows IHDR may be cut off or damaged: the image is the decoder's to judge.
            guard let length = try? reader.u32(at: offset), let type = try? reader.fourCC(at: offset &+ 4) else {
                break
            }
            let data = Range(from: offset &+ 8, to: offset &+ 8 &+ length)
            if type == "IEND" { complete = true; break }
            guard data.upperBound <= reader.count else { break }
            switch type {
            case "IDAT": seenPixels = true
            case "tRNS": header.info.hasAlpha = true
            case "iCCP":
                // Of several, which break the rules, the first counts.
                if !seenProfile { takeProfile(reader, data: data, limits: limits, header: &header) }
                seenProfile = true
            case "cICP": if !seenPixels { takeCodePoints(reader, data: data, header: &header) }
            case "cLLI":
                guard data.count >= 8, let maximum = try? reader.u32(at: data.lowerBound),
                    let average = try? reader.u32(at: data.lowerBound &+ 4), maximum > 0, average > 0
                else { break }
                // In units of 0.0001 cd/m².
                header.info.contentLight = ContentLight(
                    maximum: Double(maximum) / 10_000, average: Double(average) / 10_000)
            case "eXIf": if header.exif == nil { header.exif = data }
            case "tEXt", "zTXt":
                if header.convertedExif == nil {
                    header.convertedExif = PNGRawProfile.exif(reader, data, isCompressed: type == "zTXt")
                }
            case "iTXt": if header.xmp == nil { header.xmp = xmp(reader, data) }
            case "acTL":
                guard !seenPixels, data.count >= 8 else { break }
                animation.declaredFrames = (try? reader.u32(at: data.lowerBound)) ?? 0
                animation.plays = (try? reader.u32(at: data.lowerBound &+ 4)) ?? 0
            case "fcTL":
                guard data.count >= 26, let numerator = try? reader.u16(at: data.lowerBound &+ 20),
                    let denominator = try? reader.u16(at: data.lowerBound &+ 22)
                else { break }
                let seconds = Double(numerator) / Double(denominator == 0 ? 100 : denominator)
                animation.frames += 1
                animation.seconds += FrameTiming.seconds(seconds)
                header.addFrame(seconds: seconds, limits)
            default: break
            }
            offset = data.upperBound &+ 4
        }
        if animation.declaredFrames > 0 {
            header.info.frameCount = max(1, complete ? animation.frames : animation.declaredFrames)
        }
        if header.info.frameCount > 1 {
            header.info.duration = animation.seconds
            header.info.loopCount = animation.plays
        }
        header.applyExif(reader, orientation: true)
        return header
    }

    private static func imageHeader(_ reader: ByteReader) throws(ImageError) -> ImageHeader {
        guard try reader.u32(at: 8) == 13, try reader.fourCC(at: 12) == "IHDR" else {
            throw reader.corrupt("no PNG header chunk")
        }
        let (width, height) = (try reader.u32(at: 16), try reader.u32(at: 20))
        let (depth, color) = (try reader.u8(at: 24), try reader.u8(at: 25))
        guard width > 0, height > 0, width <= 0x7FFF_FFFF, height <= 0x7FFF_FFFF else {
            throw reader.corrupt("a PNG with a side of \(width == 0 || height == 0 ? "zero" : "too many") pixels")
        }
        let depths = [0: [1, 2, 4, 8, 16], 2: [8, 16], 3: [1, 2, 4, 8], 4: [8, 16], 6: [8, 16]]
        guard depths[color]?.contains(depth) == true else {
            throw reader.corrupt("a PNG of colour type \(color) with \(depth) bits")
        }
        var header = ImageHeader(
            info: ImageInfo(format: .png, storedSize: PixelSize(width: width, height: height)))
        header.info.bitDepth = depth
        header.info.colorModel = color == 3 ? .palette : color & 2 == 0 ? .gray : .rgb
        header.info.hasAlpha = color & 4 != 0
        header.info.isProgressive = try reader.u8(at: 28) == 1
        return header
    }

    /// iCCP: a name of up to 79 bytes, a zero, a method, a zlib stream.
    private static func takeProfile(
        _ reader: ByteReader, data: Range<Int>, limits: ImageLimits, header: inout ImageHeader
    ) {
        guard data.count <= limits.maximumProfileBytes, let bytes = try? reader.bytes(data),
            let zero = bytes.prefix(80).firstIndex(of: 0), zero + 2 < bytes.count
        else { return }
        header.setProfile(
            PNGProfile.decompress([UInt8](bytes[(zero + 2)...]), limit: limits.maximumProfileBytes), limits)
    }

    /// cICP goes before iCCP (§4.3). Its matrix is that of red, green and blue: anything else is a mistake.
    private static func takeCodePoints(_ reader: ByteReader, data: Range<Int>, header: inout ImageHeader) {
        guard data.count == 4, let bytes = try? reader.bytes(data), bytes[2] == 0, bytes[3] <= 1 else { return }
        var colors = CodedColors(primaries: Int(bytes[0]), transfer: Int(bytes[1]))
        colors.precedesProfile = true
        header.info.codedColors = colors
    }

    /// iTXt with the keyword of XMP, not compressed (XMP specification part 3, §1.1.5).
    private static func xmp(_ reader: ByteReader, _ data: Range<Int>) -> Range<Int>? {
        let start = data.lowerBound &+ 22  // keyword, its zero, compression flag and method, two empty strings
        guard start < data.upperBound, reader.matches("XML:com.adobe.xmp\0\0", at: data.lowerBound) else {
            return nil
        }
        return Range(from: start, to: data.upperBound)
    }
}

/// Exif as ImageMagick and ExifTool wrote it before the format had a chunk for it.
///
/// Hexadecimal digits in a text with the keyword `Raw profile type exif` or `Raw profile type APP1`, behind a name and
/// a count.
///
/// Source: ExifTool, PNG tags (RawProfile); ImageMagick, coders/png.c (Magick_png_write_raw_profile).
private enum PNGRawProfile {
    private static let keywords: [StaticString] = ["Raw profile type exif\0", "Raw profile type APP1\0"]
    private static let mark = Array("Exif\0\0".utf8)

    /// The block of a text chunk, from its byte-order mark on; nil for any other text.
    static func exif(_ reader: ByteReader, _ data: Range<Int>, isCompressed: Bool) -> [UInt8]? {
        guard let keyword = keywords.first(where: { reader.matches($0, at: data.lowerBound) }) else { return nil }
        // Behind the keyword of a compressed text stands its method, of which there is one.
        let start = data.lowerBound + keyword.utf8CodeUnitCount + (isCompressed ? 1 : 0)
        // Two digits and some white space for each byte.
        let maximum = 3 * ImageMetadata.maximumBlockBytes
        guard start < data.upperBound, data.count <= maximum, var text = try? reader.bytes(start..<data.upperBound)
        else { return nil }
        if isCompressed {
            guard let inflated = PNGProfile.decompress(text, limit: maximum) else { return nil }
            text = inflated
        }
        let bytes = self.bytes(text)
        if let bytes, bytes.starts(with: mark) { return Array(bytes.dropFirst(mark.count)) }
        // The segment may hold XMP instead.
        return bytes.flatMap { $0.starts(with: [0x49, 0x49]) || $0.starts(with: [0x4D, 0x4D]) ? $0 : nil }
    }

    /// The bytes of `\nexif\n      26\n45786966…`.
    private static func bytes(_ text: [UInt8]) -> [UInt8]? {
        let lines = text.drop(while: ByteText.isSpace).split(
            separator: 0x0A, maxSplits: 2, omittingEmptySubsequences: false)
        guard lines.count == 3, let count = Int(String(decoding: lines[1].filter { $0 != 0x20 }, as: UTF8.self)),
            count > 0, count <= lines[2].count / 2
        else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        var high: UInt8?
        for letter in lines[2] where bytes.count < count {
            if ByteText.isSpace(letter) { continue }
            guard let digit = Hexadecimal.value(of: letter) else { return nil }
            if let first = high {
                bytes.append(first << 4 | digit)
                high = nil
            } else {
                high = digit
            }
        }
        return bytes.count == count ? bytes : nil
    }
}

/// Decompresses the ICC profile and compressed texts of a PNG file.
private enum PNGProfile {
    /// The zlib stream `compressed` unpacked; nil when it is damaged or longer than `limit` bytes.
    static func decompress(_ compressed: [UInt8], limit: Int) -> [UInt8]? {
        guard let bytes = try? Inflater.inflate(compressed, maximum: limit + 1), bytes.count <= limit else {
            return nil
        }
        return bytes
    }
}
