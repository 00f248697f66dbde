import VitrineCore

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
