#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCore
public import VitrineImaging
public import VitrineNetwork

/// A source that Vitrine provides: a file, bytes, a URL, a page or a frame of a video. `VitrineWebPages` adds web pages.
///
/// A leading dot and a function make one:
///
/// ```swift
/// let photo = ImageRequest(.file("lake.jpg"), resizing: .fit(256))
/// let manual = ImageRequest(.url(url, page: 3), resizing: .fit(256))
/// let frame = BuiltInSource.video("beach.mov", at: .second(12.5)).identified(by: "beach")
/// ```
///
/// The content decides how a file, bytes or a URL are read, never the name: as an image, as a PDF document, as a
/// video, as a recording with a cover, or as a font. Pages of documents need the helper `vitrine-pdf`, frames of videos
/// `vitrine-video`, and fonts `vitrine-text`.
///
/// ## Topics
/// ### Files and bytes
/// - ``ImageSource/file(_:page:fitsLongestSide:allowsEmbeddedPreview:allowsPartial:)``
/// - ``ImageSource/bytes(_:name:page:)``
/// - ``ImageSource/bytes(identity:page:at:load:)``
/// - ``ImageSource/image(_:identity:)``
/// ### Documents and videos
/// - ``ImageSource/pdf(_:page:password:background:)``
/// - ``ImageSource/video(_:at:isExact:clampsToEnd:prefersCoverArt:)``
/// - ``ImageSource/recording(_:allowsSiblingCover:drawsWaveform:)``
/// - ``ImageSource/text(_:)``
/// ### URLs, fetchers and libraries
/// - ``ImageSource/url(_:page:at:id:options:progress:)``
/// - ``ImageSource/fetcher(_:page:at:)``
/// - ``ImageSource/fetcher(_:)``
/// - ``ImageSource/asset(_:at:)``
public struct BuiltInSource: ImageSource {
    /// The source itself.
    package let base: any IdentifiableSource

    package init(_ base: any IdentifiableSource) { self.base = base }

    /// Returns the same source under an identity of your choice, which must change with the content.
    ///
    /// Images of such a source are found in memory without a look at its file.
    public func identified(by identity: CacheKey) -> BuiltInSource {
        var base = base
        base.identifier = identity
        return BuiltInSource(base)
    }

    public func identity() async throws(ImagePipelineError) -> CacheKey {
        if let known = knownIdentity { return known }
        let known = try await BlockingExecutor.shared.run { () throws(ImagePipelineError) in
            try base.identityBlocking()
        }
        if let known { return known }
        return try await base.identity()
    }

    public var knownIdentity: CacheKey? { base.knownIdentity }

    public func preview(_ request: RenderRequest) async throws -> PixelImage? {
        guard let source = base as? any BlockingImageSource else { return try await base.preview(request) }
        return try await BlockingExecutor.shared.run { try source.preview(request) }
    }

    public func image(_ request: RenderRequest) async throws -> PixelImage {
        guard let source = base as? any BlockingImageSource else { return try await base.image(request) }
        return try await BlockingExecutor.shared.run { try source.image(request) }
    }

    public func images(_ requests: [RenderRequest]) async throws -> [PixelImage] {
        guard let source = base as? any BlockingImageSource else { return try await base.images(requests) }
        return try await BlockingExecutor.shared.run { try source.images(requests) }
    }
}

/// A source whose identity can be set.
package protocol IdentifiableSource: ImageSource {
    /// Identifies the source instead of its file, URL or content; nil, the default, for these.
    var identifier: CacheKey? { get set }
}

extension ImageSource {
    /// Whether its calls bound their own processor time, as those of all sources of this package do. Loading from
    /// elsewhere before that has other bounds.
    var boundsItsCalls: Bool {
        if let source = self as? BuiltInSource { return source.base.boundsItsCalls }
        return self is any IdentifiableSource && !(self is any RemoteImageSource)
    }
}

extension IdentifiableSource {
    package var knownIdentity: CacheKey? { identifier }
}

extension ImageSource where Self == BuiltInSource {
    /// A file: an image, a page of a PDF document, the poster of a video, or the cover of a recording, by its content.
    ///
    /// An image is decoded at the size that is wanted, upright and in sRGB. Its preview is the one that a
    /// camera embedded. The identity is the path, with the home directory as `~`, and the file's size, time of change
    /// and inode.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - page: The page of a document, or the frame of an animation, from 1.
    ///   - fitsLongestSide: Whether `fit` makes the image's longer side that of the box. The image may then
    ///     exceed the box in the other direction, and is never enlarged. Default: false, it fits into the box.
    ///   - allowsEmbeddedPreview: Whether the preview that a camera embedded may replace the image where it is large
    ///     enough: a hundredth of the cost, but soft, and perhaps older than an edit. Default: false.
    ///   - allowsPartial: Whether a file that ends early gives the part that is there instead of an error. Default:
    ///     false.
    public static func file(
        _ path: String, page: Int = 1, fitsLongestSide: Bool = false, allowsEmbeddedPreview: Bool = false,
        allowsPartial: Bool = false
    ) -> BuiltInSource {
        var source = ImageFileSource(path: path)
        source.options = DecodeOptions(allowsEmbeddedPreview: allowsEmbeddedPreview, allowsPartial: allowsPartial)
        source.page = page
        source.sizing = fitsLongestSide ? .longestSide : .box
        return BuiltInSource(source)
    }

    /// The bytes of a file. Their identity is their SHA-256 digest.
    ///
    /// - Parameters:
    ///   - bytes: The file's content.
    ///   - name: The name of the bytes in errors.
    ///   - page: The page of a document, or the frame of an animation, from 1.
    public static func bytes(_ bytes: [UInt8], name: String = "bytes", page: Int = 1) -> BuiltInSource {
        var source = ImageFileSource(.bytes(bytes, name: name))
        source.page = page
        return BuiltInSource(source)
    }

    /// The bytes of a file that a closure loads, for example from a database.
    ///
    /// ```swift
    /// let avatar = ImageRequest(.bytes(identity: "avatar 5") { try await database.avatar(of: 5) }, resizing: .fit(96))
    /// ```
    ///
    /// - Parameters:
    ///   - identity: Identifies the image. Must change with the content, the page and the moment.
    ///   - page: The page of a document, or the frame of an animation, from 1.
    ///   - moment: The moment of a video. Another page than the first goes before it.
    ///   - load: Returns the bytes. Called if no cache has the result, once for all requests that wait for it. Must not
    ///     block. Its task is cancelled when no request needs the image any more.
    public static func bytes(
        identity: CacheKey, page: Int = 1, at moment: VideoMoment = .poster,
        load: @escaping @Sendable () async throws -> [UInt8]
    ) -> BuiltInSource {
        BuiltInSource(
            LoadedBytesSource(identifier: identity, part: .init(page: page, moment: moment), bytes: load))
    }

    /// An image that is in memory already.
    ///
    /// - Parameters:
    ///   - image: The image.
    ///   - identity: Identifies the image. Must change with it.
    public static func image(_ image: PixelImage, identity: CacheKey) -> BuiltInSource {
        BuiltInSource(ImageFileSource(image, identifier: identity))
    }

    /// A page of a PDF document. For several pages of one document use ``PDFDocument``, which stays open.
    ///
    /// - Parameters:
    ///   - path: The document.
    ///   - page: The page, from 1.
    ///   - password: The user's or the owner's password.
    ///   - background: The color under the page; nil for transparent.
    public static func pdf(
        _ path: String, page: Int = 1, password: String? = nil, background: PixelColor? = .white
    ) -> BuiltInSource {
        PDFDocument(.file(path), password: password).page(page, background: background)
    }

    /// A frame of a video, upright, with square pixels, in sRGB.
    ///
    /// - Parameters:
    ///   - path: The video.
    ///   - moment: The moment of the frame.
    ///   - isExact: Whether the frame is the one seen at this second. Costs five to ten times as much as the nearest
    ///     key frame, the default, which may be seconds away. Posters know no other.
    ///   - clampsToEnd: Whether a second beyond the end gives the last frame instead of an error.
    ///   - prefersCoverArt: Whether an image attached to the file goes before its video.
    public static func video(
        _ path: String, at moment: VideoMoment = .poster, isExact: Bool = false, clampsToEnd: Bool = false,
        prefersCoverArt: Bool = false
    ) -> BuiltInSource {
        var source = VideoFrameSource(.file(path), at: moment)
        source.precision = isExact ? .exact : .nearestKeyFrame
        source.clampsToEnd = clampsToEnd
        source.prefersCoverArt = prefersCoverArt
        return BuiltInSource(source)
    }

    /// The cover of a recording, or an image in its place.
    ///
    /// - Parameters:
    ///   - path: The recording. Of a video without a cover, the poster is shown.
    ///   - allowsSiblingCover: Whether a file beside the recording may stand in: `cover`, `folder`, `front` or
    ///     `albumart*`, as JPEG, PNG or WebP. Links are no such files. Default: false, no other file is opened.
    ///   - drawsWaveform: Whether the loudness of the first ten minutes is drawn in place of a missing image, by the
    ///     helper `vitrine-video`. Default: false, a recording without an image is an error.
    public static func recording(
        _ path: String, allowsSiblingCover: Bool = false, drawsWaveform: Bool = false
    ) -> BuiltInSource {
        var source = VideoFrameSource(.file(path), at: .poster)
        source.prefersCoverArt = true
        source.allowsSiblingCover = allowsSiblingCover
        source.drawsWaveform = drawsWaveform
        return BuiltInSource(source)
    }

    /// The first page of a text: of source code with colors, of Markdown with headings and lists.
    ///
    /// Its first lines are drawn on a page of A4 by the helper `vitrine-text`. The extension of the file's name tells
    /// the language. Of other sources, text is an error rather than an image.
    ///
    /// - Parameter path: The text, in UTF-8, in UTF-16 with a byte-order mark, or in Latin-1.
    public static func text(_ path: String) -> BuiltInSource {
        BuiltInSource(DrawnFileSource(.file(path), as: .text))
    }

    /// The content of a URL: an image, a page of a PDF document, or a frame of a video.
    ///
    /// The original bytes are kept in the pipeline's cache under the rules of HTTP: all sizes are made from one
    /// transfer, and expired bytes are revalidated. Results are kept no longer than the original is fresh. `file:` URLs
    /// are read in place.
    ///
    /// Accepted are `image/*`, `video/*`, `audio/*`, `application/pdf`, the binary types, and the types of documents
    /// that are shown by an image in them and of registered codecs, unless the options name content types.
    ///
    /// - Parameters:
    ///   - url: `http`, `https`, `file`, `data`, or a scheme registered with the loader.
    ///   - page: The page of a document, or the frame of an animation, from 1.
    ///   - moment: The moment of a video. Another page than the first goes before it.
    ///   - id: Identifies the image instead of the URL, for URLs that are signed or change otherwise.
    ///   - options: How the bytes are loaded. Default: `FetchOptions.default`.
    ///   - progress: Receives the progress of the transfer, if there is one.
    public static func url(
        _ url: URL, page: Int = 1, at moment: VideoMoment = .poster, id: String? = nil,
        options: FetchOptions = .default, progress: TransferProgress? = nil
    ) -> BuiltInSource {
        let part: URLImageSource.Part = page != 1 ? .page(page) : moment != .poster ? .moment(moment) : .whole
        return BuiltInSource(URLImageSource(url, part: part, id: id, options: options, progress: progress))
    }

    /// The content of a URL that is asked for with header fields of its own, such as `Authorization`.
    ///
    /// ```swift
    /// let scan = ImageRequest(.url(url, headers: ["Authorization": "Bearer \(token)"]), resizing: .fit(200))
    /// ```
    ///
    /// The fields are a part of the image's identity: an image that was loaded with others is never shown. All else is
    /// as of ``url(_:page:at:id:options:progress:)``.
    ///
    /// - Parameters:
    ///   - url: `http` or `https`, or a scheme registered with the loader.
    ///   - headers: The fields, which go before those of the loader.
    ///   - page: The page of a document, or the frame of an animation, from 1.
    ///   - id: Identifies the image instead of the URL, for URLs that are signed or change otherwise.
    ///   - options: How the bytes are loaded. Default: `FetchOptions.default`.
    public static func url(
        _ url: URL, headers: HTTPHeaders, page: Int = 1, id: String? = nil, options: FetchOptions = .default
    ) -> BuiltInSource {
        BuiltInSource(
            URLImageSource(url, headers: headers, part: page == 1 ? .whole : .page(page), id: id, options: options))
    }

    /// A photo of a ``MediaLibrary``, or a frame of a video of it.
    ///
    /// - Parameters:
    ///   - asset: The photo or video.
    ///   - moment: The moment of a video.
    public static func asset(_ asset: MediaAsset, at moment: VideoMoment = .poster) -> BuiltInSource {
        var source = MediaLibrarySource(asset)
        if case .second(let second) = moment { source.second = second }
        return BuiltInSource(source)
    }
}
