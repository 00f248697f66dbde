#if SystemCodecs
import CVitrineAVIF
import VitrineCore
import VitrineImageCore

/// Decodes AVIF through libavif, with dav1d where the library has it. On Linux, the first file loads the library.
///
/// Planes are averaged as the AV1 decoder left them and reduced to 8 bits in the same step; colours are converted
/// afterwards, at the small size. Pixels are returned as stored, cut by `clap`: `irot` and `imir` are
/// ``ImageInfo/orientation``, and `pasp` is ignored. A gain map is used where it leads from a base of high dynamic
/// range to the picture of standard range. Grids and sequences are the library's.
/// Varieties that its version shows wrong are left to the next decoder.
///
/// A frame is one call that cannot be stopped, so the decoder belongs into a worker. A file that ends early gives no
/// partial image.
///
/// A file without an ICC profile gets one made from its colour primaries and transfer function (`nclx`, or the AV1
/// sequence header), PQ and HLG included.
package struct AVIFDecoder: ImageDecoding {
    package let formats: Set<ImageFormat> = [.avif]
    package var library: String? { "libavif" }

    package init() {}

    package func loadLibraries() { _ = cavif_missing() }

    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        try request.limits.checkFile(source, page: request.options.page)
        try request.limits.checkFrame(request.options.page, input: source.name)
        var bytes = try source.allBytes()
        HEIFContainer.closeLastBox(&bytes, source.name)
        let container = try? HEIFContainer(ByteReader(ByteSource(source, polling: request.cancellation)))
        if let container { try AVIFVersion.check(container) }
        let auxiliary = try AVIFVersion.auxiliary(of: container)
        let parts = Parts(
            shown: container?.cut, ignoresAlpha: auxiliary == .other,
            gain: request.options.page == 0 ? container.flatMap { Self.gain($0, request) } : nil)
        let result: Result<DecodedImage, ImageError> = bytes.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return .failure(.empty(input: source.name)) }
            do throws(ImageError) {
                return .success(
                    try decode(base, count: buffer.count, name: source.name, parts: parts, request: request))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// Facts of the container about the picture.
    private struct Parts {
        /// The shown part of the first frame; nil for all of it.
        let shown: PixelRect?
        /// Whether the samples that the library takes for alpha are something else.
        let ignoresAlpha: Bool
        /// The map by which a picture of high dynamic range is to be shown.
        let gain: GainSamples?
    }

    private func decode(
        _ data: UnsafePointer<UInt8>, count: Int, name: String, parts: Parts, request: DecodeRequest
    ) throws(ImageError) -> DecodedImage {
        let session = try AVIFSession.open(
            data, count: count, name: name, limits: request.limits, threads: request.threads)
        guard request.options.page < session.frameCount else {
            throw .invalidRequest(reason: "frame \(request.options.page) of an image of \(session.frameCount)")
        }
        if request.cancellation.isCancelled { throw .cancelled(input: name) }
        var frame = try session.read(request.options.page)
        if parts.ignoresAlpha { frame.alpha = nil }
        if request.cancellation.isCancelled { throw .cancelled(input: name) }
        return try Self.image(
            frame, of: session, name: name, shown: request.options.page == 0 ? parts.shown : nil, gain: parts.gain,
            request)
    }

    /// The map by which a picture of high dynamic range is to be shown; nil without one, or for one that is damaged.
    private static func gain(_ container: HEIFContainer, _ request: DecodeRequest) -> GainSamples? {
        guard let gain = HEIFGainMap(container), let bytes = container.bytes(withPrimary: gain.item) else { return nil }
        let (name, limits) = (container.reader.name, request.limits)
        return bytes.withUnsafeBufferPointer { buffer -> GainSamples? in
            guard let base = buffer.baseAddress else { return nil }
            do throws(ImageError) {
                let session = try AVIFSession.open(
                    base, count: buffer.count, name: name, limits: limits, threads: request.threads)
                let reader = AVIFFrameReader(frame: try session.read(0), factor: 1)
                return gain.map.applying(try session.converted(reader, name: name).planes[0])
            } catch {
                return nil
            }
        }
    }

    /// The samples of the frame read last.
    fileprivate static func image(
        _ frame: cavif_frame, of session: borrowing AVIFSession, name: String, shown: PixelRect?,
        gain: GainSamples? = nil, _ request: DecodeRequest
    ) throws(ImageError) -> DecodedImage {
        var frame = frame
        let isCut = frame.cut(to: shown)
        let size = PixelSize(width: Int(frame.width), height: Int(frame.height))
        let reader = AVIFFrameReader(frame: frame, factor: request.blockSide(for: size))
        let profile = request.info.samplesProfile
            ?? CodePointProfile(primaries: Int(frame.primaries), transfer: Int(frame.transfer))?.bytes
        if let image = reader.shown(in: profile, isCut ? nil : gain, request.cancellation) { return image }
        if request.cancellation.isCancelled { throw .cancelled(input: name) }
        var image: DecodedImage
        switch reader.colors {
        case .planes(let matrix): image = reader.yCbCr(matrix)
        case .gray: image = reader.gray()
        case .identity: image = reader.identity()
        case .lifted(let bits): image = reader.lifted(by: bits)
        case .unknown(let matrix):
            throw .unsupported(
                input: name, reason: "colours with the matrix \(matrix) of ITU-T H.273 have no decoder here")
        case .foreign:
            guard !isCut else { throw .unsupported(input: name, reason: "a cut image with another matrix of colours") }
            image = try session.converted(reader, name: name)
        }
        image.colorProfile = profile
        return image
    }

    package func frames(of source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> any FrameDecoding {
        try AVIFFrames(source, request)
    }
}

/// Decodes the frames of an AVIF sequence in order. Keeps a copy of the file.
private final class AVIFFrames: FrameDecoding {
    private let name: String
    private let request: DecodeRequest
    /// The file, which the session refers to.
    private let file: PixelStorage
    private let session: AVIFSession
    private let ignoresAlpha: Bool
    private var index = -1
    private var frame = cavif_frame()

    init(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) {
        try request.limits.checkFile(source, page: 0)
        name = source.name
        self.request = request
        ignoresAlpha = try AVIFVersion.auxiliary(of: try? HEIFContainer(ByteReader(source))) == .other
        var bytes = try source.allBytes()
        HEIFContainer.closeLastBox(&bytes, name)
        file = bytes.withUnsafeBytes { PixelStorage(copying: $0) }
        guard let base = file.bytes.baseAddress, file.count > 0 else { throw .empty(input: name) }
        session = try AVIFSession.open(
            base.assumingMemoryBound(to: UInt8.self), count: file.count, name: name, limits: request.limits,
            threads: request.threads)
        guard session.frameCount > 1 else { throw .unsupported(input: name, reason: "it has no frames") }
    }

    func advance(_ cancellation: CancellationToken) throws(ImageError) -> Bool {
        if cancellation.isCancelled { throw .cancelled(input: name) }
        guard index + 1 < session.frameCount else { return false }
        frame = try session.read(index + 1)
        if ignoresAlpha { frame.alpha = nil }
        index += 1
        return true
    }

    func samples(_ cancellation: CancellationToken) throws(ImageError) -> DecodedImage {
        try AVIFDecoder.image(frame, of: session, name: name, shown: nil, request)
    }
}
#endif
