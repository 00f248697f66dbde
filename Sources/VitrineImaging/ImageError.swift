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
    /// A decoder given to ``ImageDecoder/register(_:)`` threw an error of its own, or delivered an image that its header
    /// does not announce.
    case decoderFailed(input: String, format: ImageFormat, reason: String)
    /// The encoder refused.
    case encodingFailed(format: ImageFormat, reason: String)
}
