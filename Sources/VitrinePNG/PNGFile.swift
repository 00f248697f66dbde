import VitrineCore
import VitrineImageCore

/// The chunks before the pixels of a PNG file.
struct PNGFile {
    var header: PNGHeader
    /// Red, green and blue of each entry.
    var palette: [UInt8] = []
    /// The payload of tRNS: alpha of palette entries, or the colour that is transparent.
    var transparency: [UInt8] = []
    /// The payload of gAMA: 100,000 times the encoding exponent.
    var gamma: UInt32?
    /// Whether an sRGB, iCCP or cICP chunk defines the colours, so that gAMA is ignored.
    var hasColorSpace = false
    /// Whether cICP says that colours have the narrow range of videos, in which black is 16 of 255 and white is 235.
    var hasNarrowRange = false
    /// Frames of an APNG as acTL gives them; nil for a still image.
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
        guard let bytes = try Self.critical(first, reader: reader, source: source, isLenient: isLenient),
            let header = PNGHeader(bytes)
        else {
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
            try read(chunk, reader: reader, source: source, isLenient: isLenient)
        }
        guard header.colorType != .palette || !palette.isEmpty else {
            throw .corrupt(input: name, reason: "no palette")
        }
    }

    private mutating func read(
        _ chunk: PNGChunk, reader: PNGChunkReader, source: ByteSource, isLenient: Bool
    ) throws(ImageError) {
        switch chunk.type {
        case PNGChunk.Kind.palette:
            guard chunk.count % 3 == 0, (3...768).contains(chunk.count), palette.isEmpty else {
                throw .corrupt(input: source.name, reason: "bad palette")
            }
            palette = try Self.critical(chunk, reader: reader, source: source, isLenient: isLenient) ?? []
        case PNGChunk.Kind.transparency:
            if chunk.count <= 256 { transparency = (try? reader.payload(chunk)) ?? [] }
        case PNGChunk.Kind.gamma:
            if chunk.count == 4, let bytes = try? reader.payload(chunk) { gamma = bytes.bigEndian32(at: 0) }
        case PNGChunk.Kind.standardRGB, PNGChunk.Kind.profile:
            hasColorSpace = true
        case PNGChunk.Kind.codingPoints:
            hasColorSpace = true
            // As ``PNGHeaderReader`` takes them; the fourth byte is the flag of the full range (§11.3.2.6).
            if chunk.count == 4, let bytes = try? reader.payload(chunk), bytes[2] == 0,
                CodePointProfile.knows(primaries: Int(bytes[0]), transfer: Int(bytes[1]))
            {
                hasNarrowRange = bytes[3] == 0
            }
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
        _ chunk: PNGChunk, reader: PNGChunkReader, source: ByteSource, isLenient: Bool
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

/// The IHDR chunk of a PNG file (PNG specification, third edition, §11.2.1).
struct PNGHeader: Sendable, Hashable {
    /// The samples of a pixel, with the values of the file.
    enum ColorType: UInt8, Sendable {
        case gray = 0
        case rgb = 2
        case palette = 3
        case grayAlpha = 4
        case rgbAlpha = 6

        /// Samples a pixel as stored.
        var channels: Int {
            switch self {
            case .gray, .palette: 1
            case .grayAlpha: 2
            case .rgb: 3
            case .rgbAlpha: 4
            }
        }
    }

    /// The length of the chunk's payload.
    static let byteCount = 13

    var width: Int
    var height: Int
    /// Bits a sample: 1, 2, 4, 8 or 16.
    let depth: Int
    let colorType: ColorType
    let isInterlaced: Bool

    /// Reads the payload; nil if it breaks a rule.
    init?(_ bytes: [UInt8]) {
        guard bytes.count == Self.byteCount, let colorType = ColorType(rawValue: bytes[9]) else { return nil }
        width = Int(bytes.bigEndian32(at: 0))
        height = Int(bytes.bigEndian32(at: 4))
        depth = Int(bytes[8])
        self.colorType = colorType
        isInterlaced = bytes[12] == 1
        let depths: [Int] =
            switch colorType {
            case .gray: [1, 2, 4, 8, 16]
            case .palette: [1, 2, 4, 8]
            default: [8, 16]
            }
        guard depths.contains(depth), bytes[10] == 0, bytes[11] == 0, bytes[12] <= 1 else { return nil }
        guard (1...0x7FFF_FFFF).contains(width), (1...0x7FFF_FFFF).contains(height) else { return nil }
    }

    /// Bits a pixel, at most 64.
    var bitsPerPixel: Int { depth * colorType.channels }
    /// How far back filters look, in bytes.
    var filterDistance: Int { max(1, bitsPerPixel / 8) }

    /// Bytes of a row of `width` pixels, without its filter byte. Widths have 31 bits, so this cannot overflow.
    func rowBytes(width: Int) -> Int { (width * bitsPerPixel + 7) / 8 }
}

/// One chunk: its type and where its payload stands. The payload may reach behind the end of the file.
struct PNGChunk: Sendable {
    /// Chunk types as the four letters they are.
    enum Kind {
        static let header: UInt32 = 0x4948_4452  // IHDR
        static let palette: UInt32 = 0x504C_5445  // PLTE
        static let data: UInt32 = 0x4944_4154  // IDAT
        static let end: UInt32 = 0x4945_4E44  // IEND
        static let transparency: UInt32 = 0x7452_4E53  // tRNS
        static let gamma: UInt32 = 0x6741_4D41  // gAMA
        static let standardRGB: UInt32 = 0x7352_4742  // sRGB
        static let profile: UInt32 = 0x6943_4350  // iCCP
        static let codingPoints: UInt32 = 0x6349_4350  // cICP
        static let animation: UInt32 = 0x6163_544C  // acTL
        static let frame: UInt32 = 0x6663_544C  // fcTL
        static let frameData: UInt32 = 0x6664_4154  // fdAT
        static let appleVariety: UInt32 = 0x4367_4249  // CgBI
    }

    let type: UInt32
    /// Where the payload starts in the file.
    let offset: Int
    /// Bytes of payload, at most 2³¹ − 1.
    let count: Int

    /// Whether a decoder that does not know the chunk must give up (bit 5 of the first letter is clear).
    var isCritical: Bool { type & 0x2000_0000 == 0 }
}

/// Walks the chunks of a PNG file without reading their payloads.
struct PNGChunkReader {
    private let source: ByteSource
    private let cancellation: CancellationToken
    /// Where the next chunk starts.
    private(set) var offset: Int
    private var steps = 0
    private var buffer: [UInt8] = []
    private var bufferStart = 0

    init(_ source: ByteSource, at offset: Int, cancellation: CancellationToken) {
        self.source = source
        self.offset = offset
        self.cancellation = cancellation
    }

    /// The next chunk; nil where the file ends before its header does.
    ///
    /// - Throws: ``ImageError/corrupt(input:reason:)`` for a length of 2³¹ or more.
    mutating func next() throws(ImageError) -> PNGChunk? {
        steps &+= 1
        if steps & 1023 == 0 && cancellation.isCancelled { throw .cancelled(input: source.name) }
        if offset < bufferStart || offset - bufferStart > buffer.count - 8 {
            buffer = try source.bytes(at: offset, count: 4_096)
            bufferStart = offset
            guard buffer.count >= 8 else { return nil }
        }
        let length = buffer.bigEndian32(at: offset - bufferStart)
        guard length < 0x8000_0000 else { throw .corrupt(input: source.name, reason: "a chunk is too long") }
        let type = buffer.bigEndian32(at: offset - bufferStart + 4)
        let chunk = PNGChunk(type: type, offset: offset + 8, count: Int(length))
        offset += 12 + chunk.count
        return chunk
    }

    /// The payload of a chunk.
    ///
    /// - Throws: ``ImageError/truncated(input:)`` if the file ends before the payload and its checksum do, and
    ///   ``ImageError/corrupt(input:reason:)`` if the checksum is wrong.
    func payload(_ chunk: PNGChunk) throws(ImageError) -> [UInt8] {
        guard chunk.offset <= source.count, chunk.count + 4 <= source.count - chunk.offset else {
            throw .truncated(input: source.name)
        }
        // The type belongs to what the checksum covers.
        let bytes = try source.bytes(at: chunk.offset - 4, count: chunk.count + 8)
        guard bytes.count == chunk.count + 8 else { throw .truncated(input: source.name) }
        guard CRC32.checksum(Array(bytes[..<(chunk.count + 4)])) == bytes.bigEndian32(at: chunk.count + 4) else {
            throw .corrupt(input: source.name, reason: "the checksum of a chunk is wrong")
        }
        return Array(bytes[4..<(chunk.count + 4)])
    }
}

/// The compressed bytes of consecutive IDAT (or fdAT) chunks as one stream.
///
/// Checksums of these chunks are not computed: the zlib stream inside carries its own, Adler-32 over every decoded
/// byte, which the ``Inflater`` checks.
struct PNGDataSource: InflaterSource {
    private let source: ByteSource
    private let type: UInt32
    /// CRC of one chunk, length and type of the next, and for fdAT its sequence number.
    private let gap: Int
    private var position: Int
    private var left: Int
    private var hasEnded = false
    /// Whether the file ended where more was due.
    private(set) var isTruncated = false

    /// A stream that starts with `chunk`.
    init(_ source: ByteSource, first chunk: PNGChunk) {
        self.source = source
        type = chunk.type
        let skip = chunk.type == PNGChunk.Kind.frameData ? 4 : 0
        gap = 12 + skip
        position = chunk.offset + min(skip, chunk.count)
        left = max(0, chunk.count - skip)
    }

    /// Reads file bytes straight into `buffer` and moves payloads together over the bytes between them.
    mutating func read(into buffer: UnsafeMutableRawBufferPointer) throws(ImageError) -> Int {
        var filled = 0
        while filled == 0 && !hasEnded {
            let available = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
            let end = try source.read(into: available, at: position)
            var at = 0
            while at < end && !hasEnded {
                if left > 0 {
                    let n = min(left, end - at)
                    if at != filled {
                        UnsafeMutableRawBufferPointer(rebasing: buffer[filled..<(filled + n)])
                            .copyMemory(from: UnsafeRawBufferPointer(rebasing: buffer[at..<(at + n)]))
                    }
                    filled += n
                    at += n
                    position += n
                    left -= n
                } else if end - at >= gap {
                    startChunk(UnsafeRawBufferPointer(rebasing: buffer[at..<(at + gap)]))
                    at += gap
                } else {
                    break
                }
            }
            if filled == 0 && at == 0 && !hasEnded {
                isTruncated = true
                hasEnded = true
            }
        }
        return filled
    }

    private mutating func startChunk(_ gapBytes: UnsafeRawBufferPointer) {
        let length = UInt32(bigEndian: gapBytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self))
        let next = UInt32(bigEndian: gapBytes.loadUnaligned(fromByteOffset: 8, as: UInt32.self))
        guard next == type, length < 0x8000_0000, Int(length) >= gap - 12 else {
            hasEnded = true
            return
        }
        position += gap
        left = Int(length) - (gap - 12)
    }
}
