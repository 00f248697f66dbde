#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrineNetwork

/// An image by its URL: an image, a page of a PDF document, or a frame of a video.
///
/// ```swift
/// let avatar = try await ImagePipeline.shared.image(for: ImageRequest(url, resizing: .fit(96)))
/// let manual = URLImageSource(url, part: .page(3))
/// let video = URLImageSource(url, part: .moment(.second(12)))
/// ```
///
/// The original bytes are kept in the pipeline's cache under the rules of HTTP: all sizes are made from one transfer,
/// and expired bytes are revalidated. Results are kept no longer than the original is fresh. The format follows from
/// the content, not from the URL's extension. `file:` URLs are read in place.
package struct URLImageSource: RemoteImageSource, FileBackedSource {
    /// Which part of the content is wanted.
    package enum Part: Sendable, Hashable {
        /// The image, the first page, or the poster. The default.
        case whole
        /// A page of a document, or a frame of an animation, from 1.
        case page(Int)
        /// A frame of a video.
        case moment(VideoMoment)
    }

    /// The URL.
    package let url: URL
    /// Which part of the content is wanted.
    package let part: Part
    /// How the bytes are loaded. Accepted are `image/*`, `video/*`, `audio/*`, `application/pdf`, the binary types, and
    /// the types of documents that are shown by an image in them and of registered codecs
    /// (`ImageDecoder.register(_:)`), unless the options name content types. Types that say nothing are accepted as well.
    package let options: FetchOptions
    /// Told how far the transfer is, if there is one.
    package let progress: TransferProgress?
    private let fetcher: NetworkFetcher<Data>
    /// Identifies the image instead of its URL and part.
    package var identifier: CacheKey?
    /// The URL's, or the id's, and the part's; nil for a file, whose identity takes a look at it.
    private let remoteIdentity: CacheKey?
    package var knownIdentity: CacheKey? { identifier ?? remoteIdentity }

    /// - Parameters:
    ///   - url: `http`, `https`, `file`, `data`, or a scheme registered with the loader.
    ///   - headers: Header fields of the request. They are a part of the identity.
    ///   - part: Which part of the content is wanted.
    ///   - id: Identifies the image instead of the URL, for URLs that are signed or change otherwise.
    ///   - options: How the bytes are loaded.
    ///   - progress: Told how far the transfer is, if there is one.
    package init(
        _ url: URL, headers: HTTPHeaders = HTTPHeaders(), part: Part = .whole, id: String? = nil,
        options: FetchOptions = .default, progress: TransferProgress? = nil
    ) {
        self.url = url
        self.part = part
        var options = options
        if options.contentTypes.isEmpty {
            options.contentTypes = Self.registeredTypes + Self.contentTypes
            options.sniffsContent = true
        }
        self.options = options
        self.progress = progress
        var request = HTTPRequest(url: url)
        request.headers = headers
        fetcher = NetworkFetcher(request: request, id: id, options: options, progress: progress)
        // Made once: it is asked for whenever memory is looked at.
        let isFile = url.isFileURL && id == nil
        remoteIdentity = isFile ? nil : Self.identity(CacheKey(parts: ["url"] + fetcher.key.parts), part)
    }

    private static let contentTypes = [
        "image/*", "video/*", "audio/*", "application/pdf", "application/octet-stream", "binary/octet-stream",
    ] + holdingTypes

    /// Media types of files that are shown by an image in them, such as books and documents.
    private static let holdingTypes = Codecs.standard.holdingFormats.flatMap(\.mediaTypes).filter { type in
        !["image/", "video/", "audio/"].contains { type.hasPrefix($0) }
    }

    /// Media types of registered codecs that the patterns do not cover.
    private static var registeredTypes: [String] {
        ImageDecoder.registeredFormats.flatMap(\.mediaTypes).filter { !$0.hasPrefix("image/") }
    }

    package var bounds: String { fetcher.bounds }

    package func identity() throws(ImagePipelineError) -> CacheKey { try identity(.verified) }

    package func identity(_ lookup: FileIdentity.Lookup) throws(ImagePipelineError) -> CacheKey {
        if let known = knownIdentity { return known }
        return Self.identity(try FileIdentity.key(of: url.path(percentEncoded: false), lookup), part)
    }

    private static func identity(_ key: CacheKey, _ part: Part) -> CacheKey {
        switch part {
        case .whole: key
        case .page(let number): key.appending("page \(number)")
        case .moment(.poster): key.appending("poster")
        case .moment(.second(let second)): key.appending("second \(second)")
        }
    }

    /// The name of the source in errors: the URL without credentials.
    private var name: String { ErrorText.shortened(SourceURL.withoutCredentials(url.absoluteString)) }

    /// Loads the bytes, from the context's cache if it has fresh ones.
    ///
    /// - Throws: ``ImagePipelineError/unreadable(source:reason:)`` if they cannot be loaded,
    ///   ``ImagePipelineError/unsupported(source:reason:)`` if they are neither an image nor a document nor a video.
    package func load(_ context: SourceLoadContext) async throws -> LoadedSource {
        if url.isFileURL { return LoadedSource(try await source(for: .file(url.path(percentEncoded: false)))) }
        var fetcher = fetcher
        if let excerpt { fetcher = fetcher.fetching(excerpt) }
        // Previews are images of the first page.
        if part == .whole { fetcher.arriving = context.arriving }
        let chosen = fetcher
        guard let originals = context.originals else {
            let fetched = try await ImagePipelineError.naming(name) {
                try await chosen.fetch(FetchContext(priority: context.priority, isRefresh: context.isRefresh))
            }
            guard case .bytes(let bytes) = fetched.content else {
                throw ImagePipelineError.unreadable(source: name, reason: "no content")
            }
            return LoadedSource(try await source(for: .bytes(bytes, name: name)))
        }
        let original = try await ImagePipelineError.naming(name) {
            try await originals.originalBytes(
                from: chosen, following: context.priority, isRefresh: context.isRefresh)
        }
        let discard: @Sendable () async -> Void = { [key = chosen.key] in await originals.remove(key) }
        do {
            let source = try await source(for: .bytes(original.bytes, name: name))
            return LoadedSource(
                source, expires: original.expires, levels: original.isStale ? [] : original.levels, discard: discard)
        } catch {
            await discard()
            throw error
        }
    }

    /// The local source for the stored bytes of the URL, or for its file; nil if there are none, or none are fresh.
    func storedSource(in originals: ValueCache<Data>) async -> (any BlockingImageSource)? {
        if url.isFileURL { return try? await source(for: .file(url.path(percentEncoded: false))) }
        guard part == .whole, let bytes = try? await originals.bytes(forKey: fetcher.key) else { return nil }
        return try? await source(for: .bytes(bytes, name: name))
    }

    /// The preview of a camera's raw file, which is a small part of it; nil for other names.
    private var excerpt: BodyExcerpt? {
        guard part == .whole, ["http", "https"].contains(url.scheme?.lowercased()),
            RawExcerpt.fileExtensions.contains(url.pathExtension.lowercased())
        else { return nil }
        return BodyExcerpt(name: "preview") { beginning, total in
            RawExcerpt(beginning: beginning, total: total).map { excerpt in
                BodyExcerpt.Part(range: excerpt.range) { excerpt.picture($0) }
            }
        }
    }

    /// The local source for the bytes' kind.
    private func source(for input: ImageInput) async throws -> any BlockingImageSource {
        var options = SourceDetector.Options()
        switch part {
        case .whole: break
        case .page(let number): options.page = number
        case .moment(let moment): options.moment = moment
        }
        let chosen = options
        return try await ImagePipeline.lookupExecutor.run { try SourceDetector.source(for: input, chosen) }
    }
}
