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

    /// Reads file bytes straight into `buffer` and moves payloads together over what stands between them.
    mutating func read(into buffer: UnsafeMutableRawBufferPointer) throws(ImageError) -> Int {
        var filled = 0
        while filled == 0 && !hasEnded {
            let room = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
            let end = try source.read(into: room, at: position)
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
