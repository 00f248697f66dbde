#if SystemCodecs
import CVitrineAVIF
import VitrineCore
import VitrineImageCore

/// The faults of the loaded version of libavif.
enum AVIFVersion {
    /// Whether the library is at least this version. A development version counts as the release before.
    private static func isAtLeast(major: Int, minor: Int, patch: Int) -> Bool {
        let parts = String(cString: cavif_version()).split(separator: ".").map { Int($0.prefix { $0.isNumber }) ?? 0 }
        return !parts.lexicographicallyPrecedes([major, minor, patch])
    }

    /// - Throws: ``ImageError/unsupported(input:reason:)`` for pictures that the library would put together wrong.
    static func check(_ container: HEIFContainer) throws(ImageError) {
        let name = container.reader.name
        if !container.listsTilesInOrder, !isAtLeast(major: 1, minor: 1, patch: 1) {
            throw .unsupported(
                input: name, reason: "tiles in another order than the file lists them need libavif 1.1.1")
        }
        if container.hasAlphaInTiles, !isAtLeast(major: 1, minor: 0, patch: 4) {
            throw .unsupported(input: name, reason: "tiles with alpha channels of their own need libavif 1.0.4")
        }
    }

    /// The auxiliary track that the library takes for alpha, which is the first one.
    static func auxiliary(of container: HEIFContainer?) throws(ImageError) -> HEIFContainer.AuxiliaryTrack? {
        guard let container, let first = container.auxiliaryTracks.first else { return nil }
        if first == .other, container.auxiliaryTracks.contains(.alpha) {
            throw .unsupported(
                input: container.reader.name,
                reason: "an alpha track behind another auxiliary track has no decoder here")
        }
        return first
    }
}

/// Owns one decoder of libavif, opened on a file in memory that outlives it.
struct AVIFSession: ~Copyable {
    private let decoder: OpaquePointer
    private let name: String
    /// The status of opening the file.
    private let status: Int
    private let size: PixelSize
    /// 1 for a still image.
    let frameCount: Int

    /// Reads the container and checks the size it states.
    static func open(
        _ data: UnsafePointer<UInt8>, count: Int, name: String, limits: ImageLimits, threads: Int
    ) throws(ImageError) -> AVIFSession {
        if let missing = cavif_missing() {
            throw .unsupported(input: name, reason: "AVIF needs libavif: \(String(cString: missing))")
        }
        let pixels = UInt32(clamping: limits.maximumWholeImagePixels)
        guard
            let decoder = cavif_decoder_create(
                data, count, pixels, UInt32(clamping: limits.maximumSide), Int32(clamping: threads))
        else {
            throw .limitExceeded(input: name, limit: .memory, actual: count, allowed: 0)
        }
        let session = AVIFSession(decoder, name: name)
        try session.check(session.status)
        try limits.checkWholeImage(session.size, input: name)
        return session
    }

    private init(_ decoder: OpaquePointer, name: String) {
        self.decoder = decoder
        self.name = name
        status = Int(cavif_decoder_open(decoder))
        var (width, height, frames): (UInt32, UInt32, UInt32) = (0, 0, 0)
        if status == CAVIF_OK { cavif_decoder_describe(decoder, &width, &height, &frames) }
        size = PixelSize(width: Int(width), height: Int(height))
        frameCount = Int(frames)
    }

    deinit { cavif_decoder_destroy(decoder) }

    /// Decodes one frame, from 0. Its samples live until the next is read or the session ends.
    func read(_ index: Int) throws(ImageError) -> cavif_frame {
        var frame = cavif_frame()
        try check(Int(cavif_decoder_read(decoder, UInt32(clamping: index), &frame)))
        guard frame.width > 0, frame.height > 0, [8, 10, 12].contains(frame.depth) else {
            throw .unsupported(input: name, reason: "\(frame.depth)-bit AVIF has no decoder here")
        }
        return frame
    }

    /// The frame read last, converted by the library: for matrices that ``DecodedImage/Matrix`` does not have.
    func converted(_ reader: AVIFFrameReader, name: String) throws(ImageError) -> DecodedImage {
        let hasAlpha = reader.frame.alpha != nil
        let channels = hasAlpha ? 4 : 3
        let (width, height) = (Int(reader.frame.width), Int(reader.frame.height))
        let isPremultiplied = hasAlpha && reader.factor > 1
        let pixels = PixelStorage(zeroedByteCount: width * height * channels)
        let base = pixels.bytes.baseAddress!.assumingMemoryBound(to: UInt8.self)
        try check(
            Int(cavif_decoder_convert(decoder, base, width * channels, Int32(channels), isPremultiplied ? 1 : 0)))
        var reducer = BoxReducer(width: width, height: height, channels: channels, factor: reader.factor)
        reducer.add(rows: UnsafePointer(base), count: height, bytesPerRow: width * channels)
        return DecodedImage(
            planes: [reducer.finish()], model: .rgb,
            alpha: !hasAlpha ? .none : isPremultiplied ? .premultiplied : .straight, samplesAreMeans: reader.factor > 1)
    }

    private func check(_ status: Int) throws(ImageError) {
        switch status {
        case CAVIF_OK: return
        case CAVIF_TRUNCATED: throw .truncated(input: name)
        case CAVIF_MEMORY: throw .limitExceeded(input: name, limit: .memory, actual: 0, allowed: 0)
        case CAVIF_REFUSED: throw .unknownKind(of: .avif, input: name)
        default: throw .undecodable(.avif, input: name)
        }
    }
}
#endif
