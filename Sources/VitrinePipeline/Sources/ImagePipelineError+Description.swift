import VitrineImaging

extension ImagePipelineError: CustomStringConvertible {
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

    /// What is wrong, in words, without the source's name.
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
        case .noVideo: "it has no moving pictures"
        case .beyondEnd(_, let second, let duration): "it ends after \(duration) s, before second \(second)"
        case .timedOut: "it took longer than the deadline"
        case .cancelled: "cancelled"
        case .tooManyAbandonedThreads(_, let count): "\(count) calls of sources have not come back; no further one is made"
        case .toolMissing(_, let name, let remedy): "\(name) is missing: \(remedy)"
        case .underlying(_, let error as ImageError): error.reason
        case .underlying(_, let error): "\(error)"
        }
    }

    /// `source: reason`.
    public var description: String { "\(source): \(reason)" }

    /// An error of the image engine about `source`.
    public init(_ error: ImageError, source: String) {
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
