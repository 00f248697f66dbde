/// Why a picture could not be read, changed or written. Each case names the input it concerns.
public enum ImageError: Error, Sendable, Hashable {
    /// The bytes cannot be had: absent, not permitted, a directory, a read error. `reason` is the system's.
    case unreadable(input: String, reason: String)
    /// The input has no bytes.
    case empty(input: String)
    /// The first bytes belong to no format this library knows.
    case notAnImage(input: String)
    /// The format, or this variety of it, has no decoder here. `reason` says what would help.
    case unsupported(input: String, reason: String)
    /// The bytes break the rules of their format.
    case corrupt(input: String, reason: String)
    /// The bytes end early. With `allowPartial` the part that is there is delivered instead.
    case truncated(input: String)
    /// The input asks for more than ``ImageLimits`` allows; nothing was decoded.
    case limitExceeded(input: String, limit: ImageLimits.Kind, actual: Int, allowed: Int)
    /// The request cannot be met for any input: a size of zero, a page that does not exist. `reason` says what is
    /// wrong.
    case invalidRequest(reason: String)
    /// Decoding took longer than ``ImageLimits/deadline``.
    case timedOut(input: String)
    /// The work was cancelled. Asynchronous calls throw `CancellationError` in its place.
    case cancelled(input: String)
    /// The helper process is missing, could not be started, or died while decoding `input`.
    case workerFailed(input: String, reason: String)
    /// The encoder refused.
    case encodingFailed(format: ImageFormat, reason: String)
}

extension ImageError: CustomStringConvertible {
    /// The input the error concerns, if it concerns one: a path, or the name given with the bytes.
    public var input: String? {
        switch self {
        case .unreadable(let input, _), .empty(let input), .notAnImage(let input), .unsupported(let input, _),
            .corrupt(let input, _), .truncated(let input), .limitExceeded(let input, _, _, _), .timedOut(let input),
            .cancelled(let input), .workerFailed(let input, _):
            input
        case .invalidRequest, .encodingFailed:
            nil
        }
    }

    /// What is wrong, in words, without the input's name.
    public var reason: String {
        switch self {
        case .unreadable(_, let reason): reason
        case .empty: "the file is empty"
        case .notAnImage: "not an image of a known format"
        case .unsupported(_, let reason): reason
        case .corrupt(_, let reason): "the file is damaged: \(reason)"
        case .truncated: "the file ends early"
        case .limitExceeded(_, let limit, let actual, let allowed):
            "\(limit.words): \(actual), of which \(allowed) are allowed"
        case .invalidRequest(let reason): reason
        case .timedOut: "took longer than the deadline"
        case .cancelled: "cancelled"
        case .workerFailed(_, let reason): reason
        case .encodingFailed(let format, let reason): "cannot write \(format.rawValue): \(reason)"
        }
    }

    /// `input: reason`.
    public var description: String { input.map { "\($0): \(reason)" } ?? reason }
}

extension ImageLimits.Kind {
    /// The quantity in words.
    var words: String {
        switch self {
        case .inputBytes: "too many bytes"
        case .pixels: "too many pixels"
        case .side: "a side with too many pixels"
        case .frames: "too many frames"
        case .profileBytes: "too large a colour profile"
        case .documentBytes: "too large a document"
        case .outputSide: "a side of the result with too many pixels"
        case .memory: "too many bytes of memory needed"
        }
    }
}
