#if SystemCodecs
import CVitrineWebP
import VitrineCore

/// Decodes WebP through libwebp.
///
/// The file is fed to the library in pieces of about a million pixels, and rows are averaged as they appear: memory
/// is given back while a lossy picture is decoded, and cancellation takes effect between pieces. (A lossless picture
/// costs the library four bytes a pixel of its own.) As it can be stopped it does not ask for isolation. It is a C
/// library all the same, and its lossless decoder has had a heap overflow (CVE-2023-4863): keep it patched.
///
/// - An opaque lossy picture comes as its Y′CbCr planes (BT.601, limited range: RFC 9649 §2.5), reduced before any
///   conversion.
/// - A lossless one, or one with alpha, comes as one RGB or RGBA plane, premultiplied whenever pixels are averaged.
/// - A frame of an animation comes composed onto the canvas, starting from the nearest frame before it that does not
///   depend on others. Transparent parts of the canvas stay transparent: the background colour of the file is a hint
///   that no viewer follows.
package struct WebPDecoder: ImageDecoding {
    package let formats: Set<ImageFormat> = [.webp]
    package let needsIsolation = false

    package init() {}

    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        try request.limits.checkFile(source, page: request.page)
        let bytes = try source.allBytes()
        let context = Context(name: source.name, request: request)
        let result: Result<DecodedImage, ImageError> = bytes.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return .failure(.empty(input: source.name)) }
            let file = WebPChunk(data: base, count: buffer.count)
            do throws(ImageError) {
                let features = try context.features(of: file)
                let image = try features.has_animation != 0
                    ? context.animationFrame(of: file) : context.still(file, features)
                return .success(image)
            } catch {
                return .failure(error)
            }
        }
        var image = try result.get()
        image.colorProfile = request.info.colorProfile
        return image
    }
}

/// A still WebP file in memory that somebody else keeps alive.
struct WebPChunk {
    let data: UnsafePointer<UInt8>
    let count: Int
}

extension WebPDecoder {
    /// One decode: the request and what errors call the input.
    struct Context {
        let name: String
        let request: DecodeRequest

        /// The header of a file or frame, found within the limits.
        func features(of chunk: WebPChunk) throws(ImageError) -> cwebp_features {
            var features = cwebp_features()
            switch Int(cwebp_read_features(chunk.data, chunk.count, &features)) {
            case CWEBP_OK: break
            case CWEBP_MORE: throw .truncated(input: name)
            default: throw .corrupt(input: name, reason: "the WebP header is broken")
            }
            try request.limits.checkWholeImage(
                PixelSize(width: Int(features.width), height: Int(features.height)), input: name)
            return features
        }

        func checkCancellation() throws(ImageError) {
            if request.cancellation.isCancelled { throw .cancelled(input: name) }
        }

        /// Whether the deblocking filter can be left out: averages of at least 2 × 2 that are then scaled by another
        /// two hide what it would have changed. On a 12-megapixel photo the result stays above 50 dB against Lanczos3
        /// of the full decode (200, 400 and 900 pixels), for 0.8 of the time.
        func isDraft(_ size: PixelSize) -> Bool { request.reduction(of: size) >= Self.draftReduction }

        static let draftReduction = 4.0
    }
}
#endif
