import VitrineCore

/// What stands before the pixels of a PNG file.
struct PNGFile {
    var header: PNGHeader
    /// Red, green and blue of each entry.
    var palette: [UInt8] = []
    /// The payload of tRNS: alpha of palette entries, or the colour that is transparent.
    var transparency: [UInt8] = []
    /// The payload of gAMA: 100,000 times the encoding exponent.
    var gamma: UInt32?
    /// Whether an sRGB, iCCP or cICP chunk says what the samples mean, so that gAMA does not count.
    var hasColorSpace = false
    /// Frames of an APNG as acTL gives them; nil for a still picture.
    var frameCount: Int?
    /// The frame control of the default image, if it is the first frame of the animation.
    var firstFrame: PNGFrame?
    /// The first IDAT chunk.
    var data: PNGChunk

    private static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    /// Reads chunks up to the first IDAT.
    ///
    /// Checksums of critical chunks are checked, unless `isLenient`; ancillary chunks with a wrong one are ignored.
    init(_ source: ByteSource, cancellation: CancellationToken, isLenient: Bool) throws(ImageError) {
        let name = source.name
        let start = try source.bytes(at: 0, count: 8)
        guard !start.isEmpty else { throw .empty(input: name) }
        guard start == Self.signature else {
            if start == Array(Self.signature.prefix(start.count)) { throw .truncated(input: name) }
            throw .notAnImage(input: name)
        }
        var reader = PNGChunkReader(source, at: 8, cancellation: cancellation)
        guard let first = try reader.next() else { throw .truncated(input: name) }
        if first.type == PNGChunk.Kind.appleVariety {
            throw .unsupported(
                input: name, reason: "Apple's CgBI variety of PNG; pngcrush -revert-iphone-optimizations makes it a PNG"
            )
        }
        guard first.type == PNGChunk.Kind.header, first.count == PNGHeader.byteCount else {
            throw .corrupt(input: name, reason: "no header chunk")
        }
        guard let bytes = try Self.critical(first, reader, source, isLenient), let header = PNGHeader(bytes) else {
            throw .corrupt(input: name, reason: "bad header")
        }
        self.header = header
        data = first
        while true {
            guard let chunk = try reader.next() else { throw .truncated(input: name) }
            if chunk.type == PNGChunk.Kind.data {
                data = chunk
                break
            }
            try read(chunk, reader, source, isLenient)
        }
        guard header.colorType != .palette || !palette.isEmpty else {
            throw .corrupt(input: name, reason: "no palette")
        }
    }

    private mutating func read(
        _ chunk: PNGChunk, _ reader: PNGChunkReader, _ source: ByteSource, _ isLenient: Bool
    ) throws(ImageError) {
        switch chunk.type {
        case PNGChunk.Kind.palette:
            guard chunk.count % 3 == 0, (3...768).contains(chunk.count), palette.isEmpty else {
                throw .corrupt(input: source.name, reason: "bad palette")
            }
            palette = try Self.critical(chunk, reader, source, isLenient) ?? []
        case PNGChunk.Kind.transparency:
            if chunk.count <= 256 { transparency = (try? reader.payload(chunk)) ?? [] }
        case PNGChunk.Kind.gamma:
            if chunk.count == 4, let bytes = try? reader.payload(chunk) { gamma = bytes.bigEndian32(at: 0) }
        case PNGChunk.Kind.standardRGB, PNGChunk.Kind.profile, PNGChunk.Kind.codingPoints:
            hasColorSpace = true
        case PNGChunk.Kind.animation:
            if chunk.count == 8, let bytes = try? reader.payload(chunk) {
                let count = Int(bytes.bigEndian32(at: 0))
                frameCount = (1...0x7FFF_FFFF).contains(count) ? count : nil
            }
        case PNGChunk.Kind.frame:
            if chunk.count == PNGFrame.byteCount, let bytes = try? reader.payload(chunk) {
                firstFrame = PNGFrame(bytes)
            }
        case PNGChunk.Kind.end:
            throw .corrupt(input: source.name, reason: "no image data")
        case PNGChunk.Kind.header:
            throw .corrupt(input: source.name, reason: "two headers")
        default:
            guard !chunk.isCritical else {
                throw .unsupported(input: source.name, reason: "it has a critical chunk that no standard knows")
            }
        }
    }

    /// The payload of a chunk that must be right; a lenient reader takes it as it is.
    private static func critical(
        _ chunk: PNGChunk, _ reader: PNGChunkReader, _ source: ByteSource, _ isLenient: Bool
    ) throws(ImageError) -> [UInt8]? {
        do throws(ImageError) {
            return try reader.payload(chunk)
        } catch .corrupt(let input, let reason) {
            guard isLenient else { throw .corrupt(input: input, reason: reason) }
            return try source.bytes(at: chunk.offset, count: chunk.count)
        }
    }

    /// Channels of the 8-bit samples this decodes to: alpha where the file has any.
    var outputChannels: Int {
        switch header.colorType {
        case .gray: hasTransparency ? 2 : 1
        case .grayAlpha: 2
        case .rgb, .palette: hasTransparency ? 4 : 3
        case .rgbAlpha: 4
        }
    }

    /// Whether tRNS makes pixels of a type without alpha transparent.
    var hasTransparency: Bool {
        switch header.colorType {
        case .gray: transparency.count >= 2
        case .rgb: transparency.count >= 6
        case .palette: !transparency.isEmpty
        case .grayAlpha, .rgbAlpha: false
        }
    }
}
