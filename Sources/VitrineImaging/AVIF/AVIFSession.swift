#if SystemCodecs
import CVitrineAVIF

/// Owns one decoder of libavif, opened on a file in memory that outlives it.
struct AVIFSession: ~Copyable {
    private let decoder: OpaquePointer
    private let name: String
    /// What opening came to.
    private let status: Int
    private let size: PixelSize
    /// 1 for a still picture.
    let frameCount: Int

    /// Reads the container and checks the size it states.
    static func open(
        _ data: UnsafePointer<UInt8>, count: Int, name: String, limits: ImageLimits
    ) throws(ImageError) -> AVIFSession {
        let pixels = UInt32(clamping: limits.maximumWholeImagePixels)
        guard let decoder = cavif_decoder_create(data, count, pixels, UInt32(clamping: limits.maximumSide)) else {
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
        let pixels = PixelStorage(uninitializedByteCount: width * height * channels)
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
        case CAVIF_REFUSED: throw .unsupported(input: name, reason: String(cString: cavif_decoder_reason(decoder)))
        default: throw .corrupt(input: name, reason: String(cString: cavif_decoder_reason(decoder)))
        }
    }
}
#endif
