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
            let data = (offset &+ 8)..<(offset &+ 8 &+ length)
            if type == "IEND" { complete = true; break }
            guard data.upperBound <= reader.count else { break }
            switch type {
            case "IDAT": seenPixels = true
            case "tRNS": header.info.hasAlpha = true
            case "iCCP":
                // Of several, which break the rules, the first counts.
                if !seenProfile { takeProfile(reader, data, limits, &header) }
                seenProfile = true
            case "eXIf": if header.exif == nil { header.exif = data }
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
        _ reader: ByteReader, _ data: Range<Int>, _ limits: ImageLimits, _ header: inout ImageHeader
    ) {
        guard data.count <= limits.maximumProfileBytes, let bytes = try? reader.bytes(data),
            let zero = bytes.prefix(80).firstIndex(of: 0), zero + 2 < bytes.count
        else { return }
        header.setProfile(
            PNGProfile.decompress([UInt8](bytes[(zero + 2)...]), limit: limits.maximumProfileBytes), limits)
    }

    /// iTXt with the keyword of XMP, not compressed (XMP specification part 3, §1.1.5).
    private static func xmp(_ reader: ByteReader, _ data: Range<Int>) -> Range<Int>? {
        let start = data.lowerBound &+ 22  // keyword, its zero, compression flag and method, two empty strings
        guard start < data.upperBound, reader.matches("XML:com.adobe.xmp\0\0", at: data.lowerBound) else {
            return nil
        }
        return start..<data.upperBound
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
