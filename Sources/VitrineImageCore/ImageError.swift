import VitrineCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The reason why an image was not read, changed or written. Most cases name their input.
public enum ImageError: Error, Sendable, Hashable {
    /// The bytes cannot be read: the file is absent, not permitted or a directory, or a read fails. `reason` is the
    /// system's message.
    case unreadable(input: String, reason: String)
    /// The input has no bytes.
    case empty(input: String)
    /// The first bytes belong to no known format.
    case notAnImage(input: String)
    /// No decoder reads the format, or this variety of it. `reason` names a remedy.
    case unsupported(input: String, reason: String)
    /// The bytes violate their format.
    case corrupt(input: String, reason: String)
    /// The bytes end early. ``DecodeOptions/allowsPartial`` delivers the part before the end instead.
    case truncated(input: String)
    /// The input exceeds a limit of ``ImageLimits``; nothing was decoded.
    case limitExceeded(input: String, limit: ImageLimits.Kind, actual: Int, allowed: Int)
    /// The request is invalid, for example with a size of zero or a page that does not exist.
    case invalidRequest(reason: String)
    /// Decoding took longer than ``ImageLimits/deadline`` allows.
    case timedOut(input: String)
    /// The work was cancelled. Asynchronous calls throw `CancellationError` in its place.
    case cancelled(input: String)
    /// The helper process is missing, could not be started, or died while decoding `input`.
    case workerFailed(input: String, reason: String)
    /// A codec given to ``ImageDecoder/register(_:)`` threw an error of its own, or delivered an image that its header
    /// does not announce.
    case decoderFailed(input: String, format: ImageFormat, reason: String)
    /// The encoder failed.
    case encodingFailed(format: ImageFormat, reason: String)
}

extension ImageError: LocalizedError, CustomStringConvertible {
    /// The ``description``.
    public var errorDescription: String? { description }

    /// The path of the input, or the name given with its bytes; nil for errors without an input.
    public var input: String? {
        switch self {
        case .unreadable(let input, _), .empty(let input), .notAnImage(let input), .unsupported(let input, _),
            .corrupt(let input, _), .truncated(let input), .limitExceeded(let input, _, _, _), .timedOut(let input),
            .cancelled(let input), .workerFailed(let input, _), .decoderFailed(let input, _, _):
            input
        case .invalidRequest, .encodingFailed:
            nil
        }
    }

    /// A description of the error, without the input's name and without advice.
    public var reason: String {
        switch self {
        case .unreadable(_, let reason): reason
        case .empty: "the file is empty"
        case .notAnImage: "not an image of a known format"
        case .unsupported(_, let reason): reason
        case .corrupt(_, let reason): "the file is damaged: \(reason)"
        case .truncated: "the file ends early"
        // A library that found no more memory does not say how much it needs.
        case .limitExceeded(_, .memory, _, 0): "decoding needs more memory than is allowed"
        case .limitExceeded(_, let limit, let actual, let allowed):
            "\(limit.words): \(actual), and the limit is \(allowed)"
        case .invalidRequest(let reason): reason
        case .timedOut: "decoding took longer than the deadline"
        case .cancelled: "cancelled"
        case .workerFailed(_, let reason): reason
        case .decoderFailed(_, let format, let reason): "the decoder of \(format) failed: \(reason)"
        case .encodingFailed(let format, let reason): "cannot write \(format.rawValue): \(reason)"
        }
    }

    /// The beginning of the reason of ``noPicture(input:format:)``.
    private static let noPreview = "no preview: "

    /// The error for a file of a format that is shown by an image in it, without such an image.
    package static func noPicture(input: String, format: ImageFormat) -> ImageError {
        .unsupported(input: input, reason: "\(noPreview)the \(format) file holds no usable image")
    }

    /// The error for data that a library does not decode. Its own words are about its functions, not about the input.
    package static func undecodable(_ format: ImageFormat, input: String) -> ImageError {
        .corrupt(input: input, reason: "its \(format) data cannot be decoded")
    }

    /// The error for a kind of file that a library says it does not read.
    package static func unknownKind(of format: ImageFormat, input: String) -> ImageError {
        .unsupported(input: input, reason: "this kind of \(format) is not read; convert it to another format")
    }

    /// Whether the file is readable and holds no image to show. It is ``noPicture(input:format:)``, also of a worker.
    package var concernsMissingPicture: Bool {
        if case .unsupported(_, let reason) = self { reason.hasPrefix(ImageError.noPreview) } else { false }
    }

    /// Whether the bytes are at fault, so that another image in the same file may be sound.
    package var concernsBytes: Bool {
        switch self {
        case .empty, .notAnImage, .unsupported, .corrupt, .truncated: true
        default: false
        }
    }

    /// The advice about an exceeded limit; nil for other errors.
    package var advice: String? {
        guard case .limitExceeded(_, let limit, _, let allowed) = self else { return nil }
        return limit.advice(allowed: allowed)
    }

    /// The input's name, the reason, and advice where there is any: `photo.jpg: the file is empty`.
    public var description: String { input.map { "\($0): \(textWithoutInput)" } ?? textWithoutInput }
}

extension ImageError: ErrorWithInput {
    package var namedInput: String? { input }
    package var textWithoutInput: String { ErrorText.line(reason, advice: advice) }
}

extension ImageLimits.Kind {
    /// The exceeded quantity in words.
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

    /// The advice about the limit, whose value is 0 if the system has no more memory.
    fileprivate func advice(allowed: Int) -> String? {
        switch self {
        case .inputBytes: "raise maximumInputBytes of ImageLimits"
        case .pixels: "raise maximumPixels, maximumResultPixels or maximumWholeImagePixels of ImageLimits"
        case .side: "raise maximumSide of ImageLimits"
        case .frames: "raise maximumFrames of ImageLimits"
        case .profileBytes, .documentBytes: "make the file smaller, as this limit is fixed"
        case .outputSide: "choose a smaller size, or raise maximumOutputSide of ImageLimits"
        case .memory where allowed == 0: "choose a smaller size"
        case .memory: "choose a smaller size, or raise maximumWorkerMemory of ImageLimits"
        }
    }
}
