import Synchronization
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrineNetwork
import VitrinePipeline

/// The errors of sources and renders, as clients see them. No reason names the address of the source or a file.
extension RequestError {
    /// The client has gone. 499, the status by which proxies log this.
    static let cancelled = RequestError(499, code: "cancelled", reason: "the request was cancelled")
    /// The time of the request is up.
    static let deadlineExceeded = RequestError(504, code: "deadline-exceeded", reason: "the image was not made in time")
    /// The server ends.
    static let shuttingDown = RequestError(
        503, code: "shutting-down", reason: "the server is shutting down", retryAfter: 1)
    static let sourceNotFound = RequestError(404, code: "source-not-found", reason: "the source does not exist")
    static let notAnImage = RequestError(
        422, code: "not-an-image", reason: "the source is not an image, a document or a video")

    static func overloaded(retryAfter: Int) -> RequestError {
        RequestError(503, code: "overloaded", reason: "too many requests are waiting", retryAfter: retryAfter)
    }

    static func badSource(_ reason: String) -> RequestError {
        RequestError(400, code: "invalid-source", reason: reason)
    }

    static func forbiddenSource(_ reason: String) -> RequestError {
        RequestError(403, code: "source-not-allowed", reason: reason)
    }

    static func sourceTooLarge(_ limit: ByteCount) -> RequestError {
        RequestError(413, code: "source-too-large", reason: "the source has more bytes than the limit of \(limit)")
    }

    /// The error of a load.
    init(loading error: any Error) {
        switch error {
        case let error as RequestError: self = error
        case let error as NetworkError: self.init(error)
        case let error as CacheError:
            switch error {
            case .cancelled: self = .cancelled
            case .source(_, let underlying), .invalidData(_, let underlying), .transform(_, _, let underlying):
                self.init(loading: underlying)
            default: self.init(502, code: "source-failed", reason: "the source could not be loaded")
            }
        case is CancellationError: self = .cancelled
        default: self.init(502, code: "source-failed", reason: "the source could not be loaded")
        }
    }

    /// The error of a transfer.
    init(_ error: NetworkError) {
        switch error {
        case .invalidURL, .invalidRequest: self = .badSource("the address of the source is not valid")
        case .unsupportedScheme: self = .badSource("sources of this scheme are not loaded")
        case .refused: self = .forbiddenSource("the address of the source, or one it leads to, is not allowed")
        case .nameNotResolved:
            self.init(502, code: "source-unreachable", reason: "the host of the source has no address")
        case .notConnected:
            self.init(502, code: "source-unreachable", reason: "the host of the source cannot be connected to")
        case .insecure:
            self.init(502, code: "source-insecure", reason: "the host of the source has no acceptable certificate")
        case .timedOut, .tookTooLong: self.init(504, code: "source-timeout", reason: "the source took too long")
        case .truncated: self.init(502, code: "source-truncated", reason: "the source ended early")
        case .invalidResponse, .headerTooLarge:
            self.init(502, code: "source-invalid", reason: "the answer of the source is not valid")
        case .bodyTooLarge(_, let limit): self = .sourceTooLarge(limit)
        case .status(_, let head): self.init(sourceStatus: head.status)
        case .contentType: self = .notAnImage
        case .tooManyRedirects: self.init(502, code: "source-redirects", reason: "the source redirects too often")
        case .cancelled: self = .cancelled
        case .unavailable:
            self.init(503, code: "unavailable", reason: "no source can be loaded at the moment", retryAfter: 5)
        case .handler, .file, .busy: self.init(502, code: "source-failed", reason: "the source could not be loaded")
        }
    }

    private init(sourceStatus status: Int) {
        switch status {
        case 404: self = .sourceNotFound
        case 410: self.init(410, code: "source-gone", reason: "the source does not exist any more")
        case 401, 403, 407: self.init(502, code: "source-denied", reason: "the host of the source denies access to it")
        case 408, 504: self.init(504, code: "source-timeout", reason: "the source took too long")
        default: self.init(502, code: "source-failed", reason: "the host of the source answered with status \(status)")
        }
    }

    /// The error of a render.
    init(rendering error: any Error) {
        switch error {
        case let error as RequestError: self = error
        case let error as ImagePipelineError: self.init(error)
        case let error as ImageError: self.init(error)
        case is CancellationError: self = .cancelled
        default: self.init(422, code: "undecodable", reason: "the image cannot be decoded")
        }
    }

    private init(_ error: ImagePipelineError) {
        switch error {
        case .unreadable: self.init(422, code: "undecodable", reason: "the image cannot be decoded")
        case .unsupported: self.init(422, code: "unsupported-image", reason: "images of this kind cannot be decoded")
        case .damaged: self.init(422, code: "damaged-image", reason: "the image is damaged")
        case .limitExceeded(_, let limit, let actual, let allowed): self.init(limit, actual: actual, allowed: allowed)
        case .encrypted, .wrongPassword: self.init(422, code: "encrypted", reason: "the document needs a password")
        case .noSuchPage(_, let page, let count):
            self.init(422, code: "no-such-page", reason: "there is no page \(page): the last one is \(count)")
        case .noVideo: self.init(422, code: "no-video", reason: "there is no video")
        case .beyondEnd(_, _, let duration):
            self.init(422, code: "beyond-end", reason: "the video ends after \(duration) seconds")
        case .timedOut: self.init(504, code: "render-timeout", reason: "the image took too long to decode")
        case .cancelled: self = .cancelled
        case .tooManyAbandonedThreads:
            self.init(503, code: "unavailable", reason: "no image can be decoded at the moment", retryAfter: 5)
        case .toolMissing:
            self.init(501, code: "helper-missing", reason: "this server lacks the program for content of this kind")
        case .underlying(_, let error):
            self.init(rendering: error)
        }
    }

    private init(_ error: ImageError) {
        switch error {
        case .unreadable, .workerFailed, .decoderFailed:
            self.init(422, code: "undecodable", reason: "the image cannot be decoded")
        case .empty, .notAnImage: self = .notAnImage
        case .unsupported: self.init(422, code: "unsupported-image", reason: "images of this kind cannot be decoded")
        case .corrupt: self.init(422, code: "damaged-image", reason: "the image is damaged")
        case .truncated: self.init(422, code: "damaged-image", reason: "the image ends early")
        case .limitExceeded(_, let limit, let actual, let allowed): self.init(limit, actual: actual, allowed: allowed)
        case .invalidRequest: self.init(422, code: "impossible-request", reason: "the options do not suit this image")
        case .timedOut: self.init(504, code: "render-timeout", reason: "the image took too long to decode")
        case .cancelled: self = .cancelled
        case .encodingFailed(let format, _):
            self.init(422, code: "not-encodable", reason: "the result cannot be written as \(format)")
        }
    }

    private init(_ limit: ImageLimits.Kind, actual: Int, allowed: Int) {
        let status = limit == .inputBytes || limit == .documentBytes ? 413 : 422
        let unit =
            switch limit {
            case .inputBytes, .documentBytes: "bytes of the source"
            case .pixels: "pixels of the source"
            case .side: "pixels on a side of the source"
            case .frames: "frames"
            case .profileBytes: "bytes of the colour profile"
            case .outputSide: "pixels on a side of the result"
            case .memory: "bytes of memory"
            }
        // The options are the reason, not the source.
        let code = limit == .outputSide ? "result-too-large" : "limit-exceeded"
        self.init(status, code: code, reason: "\(actual) \(unit) are more than the limit of \(allowed)")
    }

    /// Whether the content of the source is the reason, so that every result of it has the same error.
    var isDamage: Bool {
        [
            "not-an-image", "undecodable", "damaged-image", "unsupported-image", "limit-exceeded", "encrypted",
            "no-video",
        ].contains(code)
    }
}

/// The errors of the last seconds, so that a source that fails is not asked again for each request.
final class RecentFailures: Sendable {
    private struct Entry {
        let failure: Failure
        let end: Duration
        let format: ImageFormat?
    }

    struct Failure: Sendable {
        let error: RequestError
        /// The version of the source that has it; nil if none was read.
        let version: String?
    }

    private let entries = Mutex<[CacheKey: Entry]>([:])
    private let lifetimes: Renderer.FailureLifetimes
    private let clock: WallClock
    private static let capacity = 10_000

    init(_ lifetimes: Renderer.FailureLifetimes, clock: WallClock) {
        self.lifetimes = lifetimes
        self.clock = clock
    }

    /// The error of a key, if its time is not up.
    subscript(key: CacheKey) -> RequestError? { failure(for: key)?.error }

    /// The failure of a key, if its time is not up and the source is of no format that is answered as it is.
    func failure(for key: CacheKey, excluding passed: [ImageFormat] = []) -> Failure? {
        let now = clock.now
        return entries.withLock { entries in
            guard let entry = entries[key] else { return nil }
            if entry.end > now { return entry.format.map(passed.contains) == true ? nil : entry.failure }
            entries[key] = nil
            return nil
        }
    }

    /// Keeps an error for the time that the lifetimes say, which may be none.
    ///
    /// - Parameters:
    ///   - error: The error.
    ///   - key: The source or the result that has it.
    ///   - format: The format of the source; nil if it is unknown.
    ///   - version: The version of the source; nil if none was read.
    func add(_ error: RequestError, for key: CacheKey, format: ImageFormat? = nil, version: String? = nil) {
        guard let lifetime = lifetimes.lifetime(of: error), lifetime > .zero else { return }
        let now = clock.now
        entries.withLock { entries in
            if entries.count >= Self.capacity { entries = entries.filter { $0.value.end > now } }
            if entries.count >= Self.capacity { entries.removeAll(keepingCapacity: true) }
            entries[key] = Entry(
                failure: Failure(error: error, version: version), end: now + lifetime, format: format)
        }
    }

    func remove(_ key: CacheKey) { entries.withLock { _ = $0.removeValue(forKey: key) } }

    func removeAll() { entries.withLock { $0 = [:] } }
}
