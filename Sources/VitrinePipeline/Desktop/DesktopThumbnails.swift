import VitrineCore
import VitrineImaging

/// Lets a ``ImagePipeline`` use the thumbnails of the desktop, and give it its own.
///
/// ```swift
/// var configuration = ImagePipeline.Configuration()
/// configuration.desktopThumbnails = DesktopThumbnails()
/// ```
///
/// Only images that a file manager shows are shared: whole images, first pages and posters, fitted into at most
/// 1024 pixels. Sources with a password, an identifier or a custom drawing are not shared.
public final class DesktopThumbnails: ExternalThumbnailCache {
    /// Files that are looked after at once, more than a service works on.
    private static let maximumPending = 1_000

    package let cache: DesktopThumbnailCache
    private let writes: Bool
    /// The files as they were when their thumbnails were asked for; nil for one that changed since.
    private let pending = Locked<[String: DesktopOriginal?]>([:])

    /// Creates a connection to the thumbnails of the user's desktop.
    ///
    /// - Parameter writes: Whether images of the pipeline become thumbnails of the desktop. Default: true.
    public convenience init(writes: Bool = true) { self.init(DesktopThumbnailCache(), writes: writes) }

    package init(_ cache: DesktopThumbnailCache, writes: Bool = true) {
        self.cache = cache
        self.writes = writes
    }

    /// The desktop's thumbnail, in the size of `request`.
    package func thumbnail(of source: any ImageSource, for request: RenderRequest) -> PixelImage? {
        guard request.mode == .fit, let path = (source as? any WholeFileSource)?.wholeFile else { return nil }
        if writes { remember(path) }
        guard let image = cache.thumbnail(of: path, size: request.size) else { return nil }
        return try? request.resizer.resize(image)
    }

    /// Gives the desktop the largest of its sizes that `image` has the pixels for.
    package func store(_ image: PixelImage, of source: any ImageSource, for request: RenderRequest) {
        guard writes, request.mode == .fit, let file = source as? any WholeFileSource,
            let path = file.wholeFile, let original = pending.withLock({ $0.removeValue(forKey: path) }) ?? nil
        else { return }
        let details = file.details
        // Enlarged images are for this request alone.
        if let own = details.size, own.longestSide < image.size.longestSide { return }
        // An image that is small itself is all there is for any size.
        let side = details.size == image.size ? request.size.longestSide : image.size.longestSide
        guard let size = DesktopThumbnailSize.allCases.last(where: { $0.side <= side }) else { return }
        _ = try? cache.store(image, of: original, size: size, details: details)
    }

    private func remember(_ path: String) {
        let found = cache.original(path)
        pending.withLock { pending in
            if let known = pending[path], known != found {
                pending[path] = .some(nil)
            } else if pending.count < Self.maximumPending {
                pending[path] = .some(found)
            }
        }
    }
}

/// A source that may stand for a whole file, as a file manager shows it.
protocol WholeFileSource: BlockingImageSource {
    /// The file; nil when the source is a part of one, or shows it in another way.
    var wholeFile: String? { get }
    /// Facts about the file that are cheap to read.
    var details: DesktopThumbnailCache.Details { get }
}

extension WholeFileSource {
    fileprivate var kind: FileKind? {
        guard let path = wholeFile else { return nil }
        return (try? FileKind(of: .file(path))) ?? nil
    }

    var details: DesktopThumbnailCache.Details { .init(mediaType: kind?.mediaType) }
}

extension ImageFileSource: WholeFileSource {
    var wholeFile: String? {
        identifier == nil && options == DecodeOptions() ? path : nil
    }

    var details: DesktopThumbnailCache.Details {
        guard let path = wholeFile, let info = try? ImageInfo(of: .file(path)) else { return .init() }
        return .init(mediaType: info.format.mediaType, size: info.format == .svg ? nil : info.size)
    }
}

extension PDFPageSource: WholeFileSource {
    var wholeFile: String? {
        identifier == nil && page == 1 && drawing == nil && backgroundColor == .white ? document.openFile : nil
    }
}

extension VideoFrameSource: WholeFileSource {
    var wholeFile: String? {
        guard identifier == nil, moment == .poster, case .file(let path) = input else { return nil }
        return path
    }
}

extension DrawnFileSource: WholeFileSource {
    var wholeFile: String? {
        guard identifier == nil, case .file(let path) = input else { return nil }
        return path
    }
}

extension DesktopThumbnailCache.Details {
    /// Facts about a source's file that are cheap to read; none for sources that show a part of a file.
    package init(of source: any ImageSource) {
        self = (source as? any WholeFileSource)?.details ?? .init()
    }
}

extension ImagePipelineError {
    /// Whether it would be the same again for this version of the file: nothing that is missing, busy or slow.
    package var isLasting: Bool {
        switch self {
        case .unsupported, .damaged, .limitExceeded, .encrypted, .wrongPassword, .noVideo: true
        default: false
        }
    }
}
