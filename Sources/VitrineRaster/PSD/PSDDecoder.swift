import VitrineCore
import VitrineImageCore

/// Decodes the merged image of Photoshop files (PSD, PSB), in Swift alone.
///
/// Raw and PackBits, of 1, 8, 16 and 32 bits: bitmap, grey, duotone (as grey), indexed, RGB, CMYK and Lab. Rows are
/// averaged while they are read. Transparency is that of the merged image, whose colours the file has laid over white;
/// other channels, and those of bitmaps, are not shown. Samples of 32 bits are linear light of which 1 is white.
///
/// A file without a merged image, or with one of another kind, shows its small preview if that has at least half the
/// size asked for.
package struct PSDDecoder: ImageDecoding {
    package let formats: Set<ImageFormat> = [.psd]
    private let previews: Codecs

    /// - Parameter previews: Read the small preview, a JPEG file.
    package init(previews: Codecs) {
        self.previews = previews
    }

    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        try request.requireFirstPage()
        let reader = ByteReader(source)
        let psd = try PSDHeader(reader)
        try request.limits.check(storedSize: psd.size, input: source.name)
        let reason: String
        if !psd.hasMergedImage {
            reason = "the file has no merged image: save it with “Maximize Compatibility”"
        } else if psd.mode == .multichannel {
            reason = "multichannel images have no decoder here"
        } else {
            switch try reader.u16(at: psd.imageOffset) {
            case 0, 1: return try PSDMergedImage(source, psd: psd, request: request).decode()
            default: reason = "a merged image of this compression has no decoder here"
            }
        }
        for preview in psd.previews {
            if let image = try? decode(preview, source: source, request: request) { return image }
            if request.cancellation.isCancelled { throw .cancelled(input: source.name) }
        }
        throw .unsupported(input: source.name, reason: reason)
    }

    private func decode(
        _ preview: PSDHeader.Preview, source: ByteSource, request: DecodeRequest
    ) throws(ImageError) -> DecodedImage {
        let target = request.target ?? request.info.storedSize
        guard preview.size.width * 2 >= target.width, preview.size.height * 2 >= target.height else {
            throw .unsupported(input: source.name, reason: "the preview is too small")
        }
        let bytes = try source.bytes(at: preview.range.lowerBound, count: preview.range.count)
        let inner = ByteSource(bytes: bytes, name: source.name)
        var part = request
        part.info = try previews.header(ofPictureIn: ByteReader(inner), request.limits).info
        (part.options.allowsPartial, part.region, part.resultBuffer, part.allowsScaling) = (false, nil, nil, false)
        try request.limits.check(part.info, source: inner)
        guard part.info.format == .jpeg, part.info.storedSize == preview.size else {
            throw .corrupt(input: source.name, reason: "the preview is no JPEG of its size")
        }
        let decoded = try previews.decode(inner, part)
        guard preview.isSwapped else { return decoded }
        let image = try DecodedImageRenderer.image(
            from: decoded, size: preview.size, orientation: .up, cancellation: request.cancellation,
            inputName: source.name)
        var rows = try RowCollector(source, part.whole, size: image.size, channels: 3)
        try image.withUnsafeBytes { (pixels) throws(ImageError) in
            for y in 0..<image.height {
                let row = rows.row
                for x in 0..<image.width {
                    for c in 0..<3 { row[3 * x + c] = pixels[y * image.bytesPerRow + 4 * x + 2 - c] }
                }
                try rows.advance()
            }
        }
        return try rows.finish()
    }
}

extension DecodeRequest {
    /// The request for every pixel.
    fileprivate var whole: DecodeRequest {
        var request = self
        request.target = nil
        return request
    }
}

/// The merged image: one plane after the other, row by row.
private struct PSDMergedImage {
    let source: ByteSource
    let psd: PSDHeader
    let request: DecodeRequest
    /// Bytes of a row of one plane.
    let rowBytes: Int
    /// Whether rows are in PackBits.
    let isPacked: Bool
    let start: Int
    /// Planes that are read.
    let planes: Int
    let hasAlpha: Bool

    init(_ source: ByteSource, psd: PSDHeader, request: DecodeRequest) throws(ImageError) {
        (self.source, self.psd, self.request) = (source, psd, request)
        rowBytes = (psd.size.width * psd.depth + 7) / 8
        isPacked = try ByteReader(source).u16(at: psd.imageOffset) == 1
        start = psd.imageOffset + 2
        hasAlpha = psd.hasTransparency
        planes = psd.colors + (hasAlpha ? 1 : 0)
    }

    func decode() throws(ImageError) -> DecodedImage {
        let height = psd.size.height
        let counts = isPacked ? psd.channels * height * (psd.isLarge ? 4 : 2) : 0
        try request.require(isPacked ? counts : planes * height * rowBytes, of: source, at: start)
        let isIndexed = psd.mode == .indexed
        let transparent = isIndexed ? psd.transparentIndex : nil
        let channels = isIndexed ? (transparent == nil ? 3 : 4) : planes
        let palette = isIndexed ? try source.bytes(at: psd.palette.lowerBound, count: psd.palette.count) : []
        if isIndexed, palette.count < 768 { throw .truncated(input: source.name) }
        var rows = try RowCollector(
            source, request, size: psd.size, channels: channels, maximum: psd.depth == 16 ? 65_535 : 255,
            alpha: hasAlpha ? .premultiplied : transparent != nil ? .straight : .none)
        var isPartial = false
        do throws(ImageError) {
            var lines = try openPlanes()
            let tones = ToneMap()
            for y in 0..<height {
                for i in lines.indices { try lines[i].read(y: y, isLarge: psd.isLarge, name: source.name) }
                switch psd.depth {
                case 1: expandBits(lines[0].row.bytes, into: rows.row)
                case 8 where isIndexed:
                    map(lines[0].row.bytes, palette: palette, transparent: transparent, into: rows.row)
                case 8:
                    interleave(lines, into: rows.row)
                case 16:
                    interleaveWords(lines, into: rows.wideRow)
                default:
                    interleaveFloats(lines, tones, into: rows.row)
                }
                try rows.advance()
            }
        } catch {
            guard rows.excuses(error, request) else { throw error }
            isPartial = true
        }
        let profile = psd.depth == 32 ? nil : request.info.colorProfile
        let model: DecodedImage.Model? = psd.mode == .cmyk ? .cmyk(inverted: true) : nil
        var image = try rows.finish(isPartial: isPartial, model: model, colorProfile: profile)
        if psd.mode == .lab {
            PSDLab.convert(image.planes[0])
            image.colorProfile = nil
        }
        // Inks and transparency are planes of their own.
        if psd.mode == .cmyk, hasAlpha { image.planes = image.planes[0].split(before: 4) }
        return image
    }

    /// Whether colours are stored as light over white, which is 255 in each channel. Of inks, 255 is none, so that over
    /// white they are already multiplied by the transparency; Lab has another white.
    private var isLight: Bool { psd.mode != .cmyk && psd.mode != .lab }

    private func openPlanes() throws(ImageError) -> [PSDPlane] {
        let height = psd.size.height
        guard isPacked else {
            return (0..<planes).map {
                PSDPlane(
                    stream: ByteStream(source, from: start + $0 * height * rowBytes), rowBytes: rowBytes, lengths: nil)
            }
        }
        let width = psd.isLarge ? 4 : 2
        let data = start + psd.channels * height * width
        var result: [PSDPlane] = []
        var offset = data
        for plane in 0..<planes {
            let table = try source.bytes(at: start + plane * height * width, count: height * width)
            guard table.count == height * width else { throw .truncated(input: source.name) }
            result.append(
                PSDPlane(stream: ByteStream(source, from: offset), rowBytes: rowBytes, lengths: table))
            for y in 0..<height { offset += PSDPlane.length(table, y: y, isLarge: psd.isLarge) }
        }
        return result
    }

    /// One bit a pixel, 1 for black.
    private func expandBits(_ from: UnsafeMutablePointer<UInt8>, into to: UnsafeMutablePointer<UInt8>) {
        for x in 0..<psd.size.width { to[x] = from[x >> 3] & (0x80 &>> UInt8(x & 7)) == 0 ? 255 : 0 }
    }

    private func map(
        _ from: UnsafeMutablePointer<UInt8>, palette: [UInt8], transparent: Int?,
        into target: UnsafeMutablePointer<UInt8>
    ) {
        var to = target
        for x in 0..<psd.size.width {
            let index = Int(from[x])
            for c in 0..<3 { to[c] = palette[256 &* c &+ index] }
            if let transparent { to[3] = index == transparent ? 0 : 255 }
            to += transparent == nil ? 3 : 4
        }
    }

    private func interleave(_ lines: [PSDPlane], into to: UnsafeMutablePointer<UInt8>) {
        let width = psd.size.width
        if lines.count == 3, !hasAlpha {
            let (a, b, c) = (lines[0].row.bytes, lines[1].row.bytes, lines[2].row.bytes)
            for x in 0..<width {
                to[3 &* x] = a[x]
                to[3 &* x &+ 1] = b[x]
                to[3 &* x &+ 2] = c[x]
            }
            return
        }
        let channels = lines.count
        for c in 0..<channels {
            let from = lines[c].row.bytes
            for x in 0..<width { to[x &* channels &+ c] = from[x] }
        }
        guard hasAlpha, isLight else { return }
        // Colours over white, less the white: c·a + 255·(1 − a) is stored, c·a is wanted.
        for x in 0..<width {
            let p = to + x &* channels
            let white = 255 &- p[channels &- 1]
            for c in 0..<(channels &- 1) { p[c] = p[c] > white ? p[c] &- white : 0 }
        }
    }

    private func interleaveWords(_ lines: [PSDPlane], into to: UnsafeMutablePointer<UInt16>) {
        let channels = lines.count
        let width = psd.size.width
        for c in 0..<channels {
            let from = UnsafeRawPointer(lines[c].row.bytes)
            for x in 0..<width {
                to[x &* channels &+ c] = UInt16(bigEndian: (from + 2 &* x).loadUnaligned(as: UInt16.self))
            }
        }
        guard hasAlpha, isLight else { return }
        for x in 0..<width {
            let p = to + x &* channels
            let white = 65_535 &- p[channels &- 1]
            for c in 0..<(channels &- 1) { p[c] = p[c] > white ? p[c] &- white : 0 }
        }
    }

    /// Light to levels; alpha stays as it is.
    private func interleaveFloats(_ lines: [PSDPlane], _ tones: ToneMap, into to: UnsafeMutablePointer<UInt8>) {
        let channels = lines.count
        func value(_ c: Int, _ x: Int) -> Float {
            let from = UnsafeRawPointer(lines[c].row.bytes) + 4 &* x
            return Float(bitPattern: UInt32(bigEndian: from.loadUnaligned(as: UInt32.self)))
        }
        let isColor = isLight && psd.colors == 3
        if isColor {
            for x in 0..<psd.size.width {
                tones.write(red: value(0, x), green: value(1, x), blue: value(2, x), to: to + x &* channels)
            }
        }
        for c in (isColor ? 3 : 0)..<channels {
            let isAlpha = hasAlpha && c == channels - 1
            for x in 0..<psd.size.width {
                let light = value(c, x)
                to[x &* channels &+ c] =
                    isAlpha || !isLight ? UInt8(light > 0 ? min(light, 1) * 255 + 0.5 : 0) : tones.level(light)
            }
        }
        guard hasAlpha, isLight else { return }
        for x in 0..<psd.size.width {
            let p = to + x &* channels
            for c in 0..<(channels &- 1) { p[c] = min(p[c], p[channels &- 1]) }
        }
    }
}

/// One plane of the merged image.
private struct PSDPlane {
    private var stream: ByteStream
    private let lengths: [UInt8]?
    private let packed: RowBuffer?
    /// The row that was read last.
    let row: RowBuffer

    init(stream: ByteStream, rowBytes: Int, lengths: [UInt8]?) {
        self.stream = stream
        self.lengths = lengths
        row = RowBuffer(rowBytes)
        packed = lengths == nil ? nil : RowBuffer(rowBytes * 2 + 1_024)
    }

    static func length(_ table: [UInt8], y: Int, isLarge: Bool) -> Int {
        if isLarge {
            return Int(table[4 * y]) << 24 | Int(table[4 * y + 1]) << 16 | Int(table[4 * y + 2]) << 8
                | Int(table[4 * y + 3])
        }
        return Int(table[2 * y]) << 8 | Int(table[2 * y + 1])
    }

    mutating func read(y: Int, isLarge: Bool, name: String) throws(ImageError) {
        guard let lengths, let packed else { return try stream.take(row.count, into: row.bytes) }
        let length = PSDPlane.length(lengths, y: y, isLarge: isLarge)
        // Codings that are twice as long as their row are nobody's.
        guard length <= packed.count else { throw .corrupt(input: name, reason: "a row of \(length) bytes") }
        try stream.take(length, into: packed.bytes)
        unpack(packed.bytes, length)
    }

    /// PackBits: 0…127 is followed by so many bytes and one more, −127…−1 by one that is repeated, −128 by nothing.
    private func unpack(_ from: UnsafeMutablePointer<UInt8>, _ length: Int) {
        let (to, count) = (row.bytes, row.count)
        var (at, x) = (0, 0)
        while at + 1 < length, x < count {
            let head = Int(Int8(bitPattern: from[at]))
            at += 1
            if head >= 0 {
                let n = min(head + 1, length - at, count - x)
                (to + x).update(from: from + at, count: n)
                at += head + 1
                x += n
            } else if head > -128 {
                let n = min(1 - head, count - x)
                (to + x).update(repeating: from[at], count: n)
                at += 1
                x += n
            }
        }
        if x < count { (to + x).update(repeating: 0, count: count - x) }
    }
}

/// CIE L*a*b* of D50 in bytes, as Photoshop has it.
private enum PSDLab {
    /// Converts three channels to sRGB in place. A fourth is alpha, by which the result is multiplied; the three are
    /// laid over the white of Lab, which is (255, 128, 128).
    static func convert(_ plane: PixelPlane) {
        guard let base = plane.storage.bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return }
        let hasAlpha = plane.channels == 4
        for y in 0..<plane.height {
            for x in 0..<plane.width {
                let p = base + y * plane.bytesPerRow + plane.channels * x
                let alpha: Float = hasAlpha ? Float(p[3]) / 255 : 1
                func channel(_ c: Int, white: Float) -> Float {
                    alpha > 0 ? min(max((Float(p[c]) - white) / alpha + white, 0), 255) : white
                }
                let level = (channel(0, white: 255) * (100.0 / 255) + 16) / 116
                // The white of the profile connection space, ICC.1:2022 §7.2.16.
                let xyz = (
                    0.9642 * light(level + (channel(1, white: 128) - 128) / 500), light(level),
                    0.8249 * light(level - (channel(2, white: 128) - 128) / 200)
                )
                let rgb = SRGB.columns.x * xyz.0 + SRGB.columns.y * xyz.1 + SRGB.columns.z * xyz.2
                for c in 0..<3 { p[c] = UInt8(Float(SRGB.level(rgb[c])) * alpha + 0.5) }
            }
        }
    }

    /// Source: CIE 15:2018 §8.2.1, inverted.
    private static func light(_ f: Float) -> Float {
        f > 6.0 / 29 ? f * f * f : 3 * (6.0 / 29) * (6.0 / 29) * (f - 4.0 / 29)
    }
}
