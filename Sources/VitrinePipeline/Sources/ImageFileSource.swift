import VitrineCore
import VitrineImaging

/// A file, bytes, or pixels as a source of images.
///
/// The content decides how a file is read: as an image, as a PDF document or as a video. Name a page with ``page``; for
/// a moment of a video use ``VideoFrameSource``.
///
/// ```swift
/// let photo = ImageFileSource(path: "/photos/lake.jpg")
/// let image = try photo.image(RenderRequest(size: PixelSize(256)))
/// ```
///
/// A file is decoded at the size that is wanted, and once for several sizes. The result is upright and in sRGB; it is
/// never made from the small image a camera stored in the file unless ``options`` allow it. Calls block:
/// make them from a thread that may block.
package struct ImageFileSource: FileBackedSource, BlockingImageSource {
    /// The meaning of a request's size in the mode `fit`. Other modes are not affected.
    package enum Sizing: Sendable, Hashable {
        /// The image fits into the box. The default.
        case box
        /// The image's longer side is the box's longer side; the image may exceed the box in the other direction,
        /// and is never enlarged.
        case longestSide
    }

    private enum Content: Sendable {
        case input(ImageInput, InputIdentity)
        case image(PixelImage, CacheKey)
    }

    private let content: Content
    /// Identifies the image instead of its file, bytes or name.
    package var identifier: CacheKey?
    /// How an image is decoded.
    package var options = DecodeOptions()
    /// The meaning of a request's size. Default: ``Sizing/box``.
    package var sizing = Sizing.box
    /// Where decoders run. Default `Isolation.standard`.
    package var isolation = Isolation.standard

    /// A file or bytes. The identity of a file is its path, size, time of change and inode; that of bytes is their
    /// digest.
    package init(_ input: ImageInput) {
        content = .input(input, InputIdentity(input))
    }

    /// A file.
    package init(path: String) {
        self.init(.file(path))
    }

    /// Pixels. Their identity is `identifier`, which must change when they do.
    package init(_ image: PixelImage, identifier: CacheKey) {
        content = .image(image, identifier)
    }

    /// Page of a document, or frame of an animation, from 1. Default 1.
    package var page: Int {
        get { options.page &+ 1 }
        set { options.page = newValue &- 1 }
    }

    /// The name of the image in errors: its path, or the name it was given.
    package var name: String {
        switch content {
        case .input(let input, _): input.name
        case .image(_, let identifier): identifier.description
        }
    }

    /// The file or the bytes; nil for pixels.
    var input: ImageInput? {
        if case .input(let input, _) = content { input } else { nil }
    }

    /// The file; nil for bytes and pixels.
    var path: String? {
        if case .input(.file(let path), _) = content { path } else { nil }
    }

    /// Returns the identity of the file, the bytes or the image, with all options that change the result.
    package func identity(_ lookup: FileIdentity.Lookup) throws(ImagePipelineError) -> CacheKey {
        if let identifier { return identifier }
        var key: CacheKey
        switch content {
        case .image(_, let own): key = own
        case .input(_, let content):
            key = try content.key(lookup)
            for change in options.changes { key = key.appending(change) }
        }
        return sized(key)
    }

    /// ``identifier``, or the identity of an image in memory.
    package var knownIdentity: CacheKey? {
        guard case .image(_, let own) = content, identifier == nil else { return identifier }
        return sized(own)
    }

    private func sized(_ key: CacheKey) -> CacheKey {
        sizing == .longestSide ? key.appending("longest side") : key
    }

    /// Returns the preview that a camera embedded in the file, at most as large as the image; nil for none.
    package func preview(_ request: RenderRequest) throws -> PixelImage? {
        guard case .input(let input, _) = content, page == 1 else { return nil }
        do throws(ImageError) {
            return try decoder(request).embeddedPreview(
                of: input, at: resizer(request), cancellation: request.cancellation)
        } catch {
            throw failure(error)
        }
    }

    /// The image.
    ///
    /// - Throws: ``ImagePipelineError``: ``ImagePipelineError/unreadable(source:reason:)``,
    ///   ``ImagePipelineError/unsupported(source:reason:)`` for other content,
    ///   ``ImagePipelineError/damaged(source:reason:)``, ``ImagePipelineError/noSuchPage(source:page:count:)``,
    ///   ``ImagePipelineError/limitExceeded(source:limit:actual:allowed:)``, ``ImagePipelineError/timedOut(source:)``,
    ///   ``ImagePipelineError/cancelled(source:)``.
    package func image(_ request: RenderRequest) throws -> PixelImage { try images([request])[0] }

    /// The image at several sizes, decoded once for all. The first request's limits and token are used.
    package func images(_ requests: [RenderRequest]) throws -> [PixelImage] {
        do throws(ImagePipelineError) {
            return try decoded(requests)
        } catch {
            guard !error.isCancellation, let other = otherKind else { throw error }
            return try other.images(requests)
        }
    }

    /// The source for a document or a video; nil for other content.
    var otherKind: (any BlockingImageSource)? {
        guard case .input(let input, _) = content, let kind = try? FileKind(of: input) else { return nil }
        if case .image = kind { return nil }
        return SourceDetector.source(for: input, of: kind, .init(page: page))
    }

    private func decoded(_ requests: [RenderRequest]) throws(ImagePipelineError) -> [PixelImage] {
        guard let first = requests.first else { return [] }
        do throws(ImageError) {
            switch content {
            case .image(let image, _):
                var images: [PixelImage] = []
                for request in requests {
                    if request.cancellation.isCancelled { throw .cancelled(input: name) }
                    images.append(try resizer(request).resize(image))
                }
                return images
            case .input(let input, _):
                guard page > 0 else { throw .invalidRequest(reason: "pages count from 1, not \(page)") }
                return try decoder(first).decode(
                    input, at: requests.map(resizer), options: options, cancellation: first.cancellation)
            }
        } catch {
            throw failure(error)
        }
    }

    func decoder(_ request: RenderRequest) -> ImageDecoder {
        ImageDecoder(limits: request.limits, isolation: isolation)
    }

    func resizer(_ request: RenderRequest) -> ImageResizer {
        var resizer = request.resizer
        if sizing == .longestSide && request.mode == .fit {
            resizer.size = PixelSize(request.size.longestSide)
            resizer.allowsUpscaling = false
        }
        return resizer
    }

    /// The error, with the requested page if there is no such page.
    private func failure(_ error: ImageError) -> ImagePipelineError {
        let concernsPage =
            switch error {
            case .invalidRequest, .limitExceeded(_, .frames, _, _): true
            default: false
            }
        if concernsPage, page != 1, case .input(let input, _) = content, let info = try? ImageInfo(of: input) {
            let count = max(1, info.frameCount)
            if !(1...count).contains(page) { return .noSuchPage(source: name, page: page, count: count) }
        }
        return ImagePipelineError(error, source: name)
    }
}
