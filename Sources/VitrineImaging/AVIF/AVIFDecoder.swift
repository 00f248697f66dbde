#if SystemCodecs
import CVitrineAVIF
import VitrineCore

/// Decodes AVIF through libavif, with dav1d where the library has it.
///
/// Planes are averaged as the AV1 decoder left them and reduced to 8 bits in the same step; colours are converted
/// afterwards, at the small size. Pixels are returned as stored: `irot` and `imir` are ``ImageInfo/orientation``, and
/// `clap`, `pasp` and gain maps are ignored. Grids and sequences are the library's.
///
/// A frame is one call that cannot be stopped, so the decoder belongs into a worker. A file that ends early gives no
/// partial picture.
///
/// Without an ICC profile the colour primaries and transfer function of the file (`nclx`, or the AV1 sequence header)
/// are turned into one, except for those no ICC curve describes (PQ, HLG): these are taken as sRGB.
package struct AVIFDecoder: ImageDecoding {
    package let formats: Set<ImageFormat> = [.avif]
    package let needsIsolation = true

    package init() {}

    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        try request.limits.checkFile(source, page: request.page)
        try request.limits.checkFrame(request.page, input: source.name)
        let bytes = try source.allBytes()
        let result: Result<DecodedImage, ImageError> = bytes.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return .failure(.empty(input: source.name)) }
            do throws(ImageError) {
                return .success(try decode(base, count: buffer.count, name: source.name, request))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    private func decode(
        _ data: UnsafePointer<UInt8>, count: Int, name: String, _ request: DecodeRequest
    ) throws(ImageError) -> DecodedImage {
        let session = try AVIFSession.open(data, count: count, name: name, limits: request.limits)
        guard request.page < session.frameCount else {
            throw .invalidRequest(reason: "frame \(request.page) of a picture of \(session.frameCount)")
        }
        if request.cancellation.isCancelled { throw .cancelled(input: name) }
        let frame = try session.read(request.page)
        if request.cancellation.isCancelled { throw .cancelled(input: name) }
        let size = PixelSize(width: Int(frame.width), height: Int(frame.height))
        let reader = AVIFFrameReader(frame: frame, factor: request.blockSide(for: size))
        var image: DecodedImage
        switch reader.colors {
        case .planes(let matrix): image = reader.yCbCr(matrix)
        case .gray: image = reader.gray()
        case .identity: image = reader.identity()
        case .foreign: image = try session.converted(reader, name: name)
        }
        image.colorProfile = request.info.colorProfile
            ?? CodePointProfile(primaries: Int(frame.primaries), transfer: Int(frame.transfer))?.bytes
        return image
    }
}
#endif
