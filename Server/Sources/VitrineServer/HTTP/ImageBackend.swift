package import NIOCore
import Synchronization
package import VitrineImaging

/// The parser and the renderer of images, as the HTTP layer sees them.
///
/// Every error that is to reach a client is a ``RequestError``. Other errors are answered by 500 without their text.
package protocol ImageBackend: Sendable {
    /// Values that the backend derives from a URL once, for example its cache keys.
    associatedtype Plan: Sendable = ImageURL

    /// Verifies the signature of a request's target and parses it.
    ///
    /// The result depends on nothing but the target and the backend's configuration, because results of recent targets
    /// are kept. Call ``ImageService/forgetTargets()`` after a change of keys, presets or limits.
    ///
    /// - Throws: ``RequestError``, with the status 403 for a wrong signature and 400 for a malformed target.
    func parse(_ target: ImageTarget) throws(RequestError) -> ImageURL

    /// Prepares a parsed URL for the other functions. Results for recent targets are kept as well.
    func plan(for url: ImageURL) throws(RequestError) -> Plan

    /// Returns the result if it is in memory and fresh, without suspending. Called for every request.
    func resultInMemory(for plan: Plan, format: FormatChoice) -> ImageResult?

    /// Returns the result if it is on disk and fresh, and can be read without waiting, without suspending. Called for
    /// every request whose result is not in memory.
    ///
    /// - Returns: The result without its bytes, and the bytes. The same object as long as the result is unchanged.
    func resultOnDisk(for plan: Plan, format: FormatChoice) -> (head: ImageResult, bytes: ByteBuffer)?

    /// Returns the result from a cache or makes it. Cancelled when all clients that wait have left.
    func result(for plan: Plan, format: FormatChoice, request: RequestInformation) async throws -> ImageAnswer

    /// Returns a JSON description of the source, also for URLs whose grammar asks for it. Cancelled like
    /// ``result(for:format:request:)``.
    func information(for plan: Plan, request: RequestInformation) async throws -> ImageAnswer

    /// Returns a document of IIIF. Cancelled like ``result(for:format:request:)``.
    func document(_ document: IIIFDocument, request: RequestInformation) async throws -> ImageAnswer
}

extension ImageBackend {
    package func document(_ document: IIIFDocument, request: RequestInformation) async throws -> ImageAnswer {
        throw RequestError(404, code: "not-found", reason: "There is nothing at this path.")
    }
}

extension ImageBackend where Plan == ImageURL {
    package func plan(for url: ImageURL) throws(RequestError) -> ImageURL { url }
}

extension ImageBackend {
    package func resultOnDisk(for plan: Plan, format: FormatChoice) -> (head: ImageResult, bytes: ByteBuffer)? { nil }
}

/// The part of a request's target that names an image, as the client sent it: percent-encoded, below the mount.
package struct ImageTarget: Sendable, Hashable {
    /// The grammar that the route stands for.
    package var grammar: ImageURL.Grammar
    /// The path after the prefix of the route, with its leading slash and the signature: `/SIGNATURE/rs:fit:200/…`.
    package var path: Substring
    /// The text after the first `?`. The native grammar has no query.
    package var query: Substring?

    package init(grammar: ImageURL.Grammar, path: Substring, query: Substring? = nil) {
        (self.grammar, self.path, self.query) = (grammar, path, query)
    }
}

/// Facts of a request beside its target.
package struct RequestInformation: Sendable {
    /// The client's `X-Request-ID` or one made for the request.
    package var id: String
    /// Whether others come first.
    package var isBackground: Bool

    package init(id: String, isBackground: Bool = false) { (self.id, self.isBackground) = (id, isBackground) }
}

/// The formats that a client accepts, if the URL leaves the choice open.
///
/// There are few different values for one configuration, so that they can be parts of cache keys.
package struct FormatChoice: Sendable, Hashable {
    /// The format to answer with; nil if the URL or the source decides.
    package var preferred: ImageFormat?
    /// All formats that the client accepts, the best one first; empty if the URL decides. An answer in another of
    /// these formats is allowed, for example while the preferred one is being encoded.
    package var acceptable: [ImageFormat]
    /// The place of ``preferred`` in the configuration, for tables.
    let slot: Int

    package init(preferred: ImageFormat? = nil, acceptable: [ImageFormat] = []) {
        self.init(preferred: preferred, acceptable: acceptable, slot: 0)
    }

    init(preferred: ImageFormat?, acceptable: [ImageFormat], slot: Int) {
        (self.preferred, self.acceptable, self.slot) = (preferred, acceptable, slot)
    }

    /// The URL decides.
    package static let byURL = FormatChoice()
}

/// A result that may be sent any number of times. Its bytes are shared, not copied.
package final class ImageResult: Sendable {
    /// The facts about the bytes that answers state.
    package struct Metadata: Sendable {
        /// For example `image/webp`.
        package let mediaType: String
        /// An identifier of the bytes, without quotes: equal bytes have equal tags, different bytes different ones.
        package let entityTag: String
        /// Seconds since 1970; nil if the source has no date.
        package var lastModified: Int64?
        /// When the source stops being fresh, in seconds since 1970; nil if it does not say.
        package var expires: Int64?
        /// The directives of the source's `Cache-Control`; nil if it has none.
        package var sourceCacheControl: String?
        /// Whether the bytes are the source's own, which the server neither decoded nor checked.
        package var isSource = false
        /// Whether a better format is being made, so that no cache is to keep this one for long.
        package var isProvisional = false
        /// The coding in which the bytes are of that type, for example `gzip`; nil for the bytes as they are.
        package var contentEncoding: String?
        /// The last four segments of its canonical path in the grammar of IIIF; nil in others.
        package var canonicalPath: String?

        /// Creates the metadata of bytes that the server made, of a source that says nothing.
        package init(mediaType: String, entityTag: String) {
            (self.mediaType, self.entityTag) = (mediaType, entityTag)
        }
    }

    package let bytes: ByteBuffer
    /// The number of the bytes, also if they are elsewhere.
    package let count: Int
    package let metadata: Metadata
    /// Differs from that of every other result of this process.
    let number: UInt64

    private static let counter = Atomic<UInt64>(0)

    /// - Parameter count: The number of the bytes, if they are elsewhere.
    package init(bytes: ByteBuffer, metadata: Metadata, count: Int? = nil) {
        self.bytes = bytes
        self.count = count ?? bytes.readableBytes
        self.metadata = metadata
        number = Self.counter.add(1, ordering: .relaxed).newValue
    }
}

/// A result and how it was found.
package struct ImageAnswer: Sendable {
    package enum Origin: String, Sendable, CaseIterable {
        case memory, disk
        /// Rendered for this request.
        case made
        /// Rendered for another request that ran already.
        case coalesced
        /// From a cache although no longer fresh.
        case stale
        /// Made by another node of the fleet, or found in the store of results.
        case shared, store
    }

    /// A part of the work: `queue`, `fetch`, `decode`, `process` or `encode`.
    package struct Stage: Sendable {
        /// A token of HTTP.
        package var name: String
        package var duration: Duration

        package init(_ name: String, _ duration: Duration) { (self.name, self.duration) = (name, duration) }
    }

    package var result: ImageResult
    package var origin: Origin
    package var stages: [Stage]

    package init(_ result: ImageResult, _ origin: Origin, stages: [Stage] = []) {
        (self.result, self.origin, self.stages) = (result, origin, stages)
    }
}
