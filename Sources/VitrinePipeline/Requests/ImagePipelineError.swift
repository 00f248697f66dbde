import VitrineCache
import VitrineCore
import VitrineImaging
import VitrineNetwork

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An error of an ``ImagePipeline`` or a source. Each case names its source: a path, a URL, or a given name.
public enum ImagePipelineError: Error, Sendable {
    /// The source cannot be had: absent, not permitted, a read error, a closure that threw. `reason` says which.
    case unreadable(source: String, reason: String)
    /// The content cannot be read by this kind of source, for example an unknown codec. `reason` says why.
    case unsupported(source: String, reason: String)
    /// Its bytes break the rules of their format, or end early.
    case damaged(source: String, reason: String)
    /// It asks for more than `ImageLimits` allow.
    case limitExceeded(source: String, limit: ImageLimits.Kind, actual: Int, allowed: Int)
    /// It opens with a password only, and none was given.
    case encrypted(source: String)
    /// It does not open with the password that was given.
    case wrongPassword(source: String)
    /// It has no such page. Pages count from 1 to `count`.
    case noSuchPage(source: String, page: Int, count: Int)
    /// It has no video, for example a recording without a cover.
    case noVideo(source: String)
    /// It ends before the second asked for. Both in seconds.
    case beyondEnd(source: String, second: Double, duration: Double)
    /// It took longer than its deadline.
    case timedOut(source: String)
    /// The work was cancelled. Asynchronous calls throw `CancellationError` in its place.
    case cancelled(source: String)
    /// So many calls of sources never came back that no further one is made until one does.
    case tooManyAbandonedThreads(source: String, count: Int)
    /// A helper program is not installed. `remedy` says how to get it.
    case toolMissing(source: String, name: String, remedy: String)
    /// Anything else: a source's own error, a request that cannot be met, a helper that died.
    case underlying(source: String, error: any Error)
}

extension ImagePipelineError: LocalizedError, CustomStringConvertible {
    /// The ``description``.
    public var errorDescription: String? { description }

    /// The source the error concerns.
    public var source: String {
        switch self {
        case .unreadable(let source, _), .unsupported(let source, _), .damaged(let source, _),
            .limitExceeded(let source, _, _, _), .encrypted(let source), .wrongPassword(let source),
            .noSuchPage(let source, _, _), .noVideo(let source), .beyondEnd(let source, _, _), .timedOut(let source),
            .cancelled(let source), .tooManyAbandonedThreads(let source, _), .toolMissing(let source, _, _),
            .underlying(let source, _):
            source
        }
    }

    /// A description without the name of the source and without advice.
    public var reason: String {
        switch self {
        case .unreadable(_, let reason), .unsupported(_, let reason): reason
        case .damaged(_, let reason): "it is damaged: \(reason)"
        case .limitExceeded(let source, let limit, let actual, let allowed):
            ImageError.limitExceeded(input: source, limit: limit, actual: actual, allowed: allowed).reason
        case .encrypted: "it is encrypted and needs a password"
        case .wrongPassword: "it does not open with this password"
        case .noSuchPage(_, let page, let count):
            count == 1 ? "there is no page \(page), only page 1" : "there is no page \(page), only pages 1 to \(count)"
        case .noVideo: "it has no video"
        case .beyondEnd(_, let second, let duration): "it ends after \(duration) s, before second \(second)"
        case .timedOut: "it took longer than the deadline"
        case .cancelled: "cancelled"
        case .tooManyAbandonedThreads(_, let count): "\(count) calls of sources have not come back; no further one is made"
        case .toolMissing(_, let name, let remedy): "\(name) is missing: \(remedy)"
        case .underlying(_, let error as ImageError): error.reason
        case .underlying(_, let error as NetworkError): error.reason
        case .underlying(let source, let error): ErrorText.nested(error, about: source)
        }
    }

    /// Whether the file is readable and has nothing to show: a document without a preview, a recording without a cover.
    package var concernsMissingPicture: Bool {
        switch self {
        case .noVideo: true
        case .unsupported(let source, let reason):
            ImageError.unsupported(input: source, reason: reason).concernsMissingPicture
        default: false
        }
    }

    /// The advice about the error, as a part of a sentence; nil if there is none.
    private var advice: String? {
        switch self {
        case .limitExceeded(let source, let limit, let actual, let allowed):
            ImageError.limitExceeded(input: source, limit: limit, actual: actual, allowed: allowed).advice
        case .encrypted: "pass it as password: to PDFDocument or ImageSource.pdf"
        case .wrongPassword: "pass the user's or the owner's password"
        default: nil
        }
    }

    /// `source: reason`, with advice where there is any.
    public var description: String { "\(source): \(textWithoutInput)" }

    /// An error of the image engine about `source`.
    package init(_ error: ImageError, source: String) {
        switch error {
        case .unreadable(_, let reason): self = .unreadable(source: source, reason: reason)
        case .empty: self = .damaged(source: source, reason: "the file is empty")
        case .notAnImage: self = .unsupported(source: source, reason: error.reason)
        case .unsupported(_, let reason): self = .unsupported(source: source, reason: reason)
        case .corrupt(_, let reason): self = .damaged(source: source, reason: reason)
        case .truncated: self = .damaged(source: source, reason: "the file ends early")
        case .limitExceeded(_, let limit, let actual, let allowed):
            self = .limitExceeded(source: source, limit: limit, actual: actual, allowed: allowed)
        case .timedOut: self = .timedOut(source: source)
        case .cancelled: self = .cancelled(source: source)
        case .invalidRequest, .workerFailed, .decoderFailed, .encodingFailed:
            self = .underlying(source: source, error: error)
        }
    }
}

extension ImagePipelineError: ErrorWithInput {
    package var namedInput: String? { source }

    package var textWithoutInput: String {
        switch self {
        case .underlying(_, let error as ImageError): error.textWithoutInput
        case .underlying(_, let error as NetworkError): error.textWithoutInput
        default: ErrorText.line(reason, advice: advice)
        }
    }
}

extension ImagePipelineError {
    /// Runs a load, and names its source in the errors of fetchers, caches and transfers.
    static func naming<T: Sendable>(_ source: String, _ body: () async throws -> T) async throws -> T {
        do {
            return try await body()
        } catch let error as CacheError {
            if error.isCancellation { throw CancellationError() }
            guard case .source(_, let underlying) = error else { throw error }
            throw ImagePipelineError.underlying(source: source, error: underlying)
        } catch let error as CancellationError {
            throw error
        } catch let error as ImagePipelineError {
            throw error
        } catch {
            throw ImagePipelineError.underlying(source: source, error: error)
        }
    }

    /// A helper program is not there.
    package static func helperMissing(_ program: String, source: String) -> ImagePipelineError {
        .toolMissing(source: source, name: program, remedy: HelperProgram.advice(for: program))
    }

    /// The answer of a helper about a document cannot be read.
    static func malformedDescription(source: String) -> ImagePipelineError {
        .underlying(
            source: source, error: ImageError.workerFailed(input: source, reason: "its description is malformed"))
    }
}
