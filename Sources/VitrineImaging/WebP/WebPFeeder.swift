#if SystemCodecs
import CVitrineWebP

/// Owns one incremental decoder of libwebp and feeds it a file piece by piece.
struct WebPFeeder: ~Copyable {
    private let decoder: OpaquePointer
    private let chunk: WebPChunk
    private let pieceBytes: Int
    private var fed = 0
    /// Whether the whole picture has been decoded.
    private(set) var isComplete = false

    /// Pixels a piece: some milliseconds of work, and few enough pieces that resuming costs nothing measurable.
    private static let pixelsAPiece = 1 << 20

    /// Takes over `decoder`, which writes into memory that outlives the feeder.
    init?(_ decoder: OpaquePointer?, chunk: WebPChunk, size: PixelSize) {
        guard let decoder else { return nil }
        self.decoder = decoder
        self.chunk = chunk
        pieceBytes = chunk.count / (size.pixelCount / WebPFeeder.pixelsAPiece + 1) + 1
    }

    deinit { cwebp_decoder_destroy(decoder) }

    /// Decodes the next piece.
    ///
    /// - Returns: How many rows from the top are final now, or nil when the file has no more bytes.
    mutating func next(input: String) throws(ImageError) -> Int? {
        guard fed < chunk.count, !isComplete else { return nil }
        fed = min(chunk.count, fed + pieceBytes)
        switch Int(cwebp_decoder_update(decoder, chunk.data, fed)) {
        case CWEBP_OK: isComplete = true
        case CWEBP_MORE: break
        case CWEBP_MEMORY: throw .limitExceeded(input: input, limit: .memory, actual: chunk.count, allowed: 0)
        case CWEBP_REFUSED: throw .unsupported(input: input, reason: "libwebp does not read this variety of WebP")
        default: throw .corrupt(input: input, reason: "the WebP data is broken")
        }
        return Int(cwebp_decoder_rows(decoder))
    }
}
#endif
