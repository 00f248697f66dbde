#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCore

/// The reason why a load failed. Every case holds the URL without user names and passwords, and has a stable ``code``.
public enum NetworkError: Error, Sendable {
    /// The text is not a URL that can be loaded. Code -410.
    case invalidURL(url: String, reason: String)
    /// The request has a method or a header field that cannot be sent. Code -411.
    case invalidRequest(url: String, reason: String)
    /// The ``URLAccessPolicy`` refuses the URL or the address. Code -412.
    case refused(url: String, reason: String)
    /// No transport is registered for the scheme. Code -413.
    case unsupportedScheme(url: String, scheme: String)
    /// A request modifier, an authentication handler or the transport of a scheme failed. Code -414.
    case handler(url: String, underlying: any Error)
    /// The host name could not be resolved. Code -420.
    case nameNotResolved(url: String, host: String)
    /// The connection failed. Code -421.
    case notConnected(url: String, reason: String)
    /// The certificate or the TLS connection is not acceptable. Code -422.
    case insecure(url: String, reason: String)
    /// The connection attempt, or the wait for the next byte, exceeded its time limit. Code -423.
    case timedOut(url: String, reason: String)
    /// The whole transfer exceeded its time limit. It is not retried. Code -424.
    case tookTooLong(url: String)
    /// The connection ended before the end of the response. Code -401.
    case truncated(url: String, received: ByteCount, reason: String)
    /// The response violates the rules of HTTP. Code -430.
    case invalidResponse(url: String, reason: String)
    /// The header has more fields or bytes than the limit. Code -431.
    case headerTooLarge(url: String)
    /// The body has more bytes than the limit of the request. Code -432.
    case bodyTooLarge(url: String, limit: ByteCount)
    /// The status code is an error. Code -402.
    case status(url: String, HTTPResponseHead)
    /// The media type is not accepted. Code -400.
    case contentType(url: String, type: String?)
    /// There are more redirects than the limit, or they form a loop. Code -440.
    case tooManyRedirects(url: String, reason: String)
    /// A file could not be read or written. Code -450.
    case file(FileError)
    /// Another task or process is downloading to the same file. Code -451.
    case busy(url: String, path: String)
    /// The task was cancelled, or the body was released. Code -460.
    case cancelled(url: String)
    /// The transport has been shut down or could not be set up. Code -461.
    case unavailable(url: String, reason: String)
}

extension NetworkError {
    /// A number that stays the same in all releases, for logs and other languages.
    public var code: Int {
        switch self {
        case .contentType: -400
        case .truncated: -401
        case .status: -402
        case .invalidURL: -410
        case .invalidRequest: -411
        case .refused: -412
        case .unsupportedScheme: -413
        case .handler: -414
        case .nameNotResolved: -420
        case .notConnected: -421
        case .insecure: -422
        case .timedOut: -423
        case .tookTooLong: -424
        case .invalidResponse: -430
        case .headerTooLarge: -431
        case .bodyTooLarge: -432
        case .tooManyRedirects: -440
        case .file: -450
        case .busy: -451
        case .cancelled: -460
        case .unavailable: -461
        }
    }

    /// The URL without user names and passwords. For a ``file(_:)`` error it is the path.
    public var url: String {
        switch self {
        case .invalidURL(let url, _), .invalidRequest(let url, _), .refused(let url, _), .unsupportedScheme(let url, _),
            .handler(let url, _), .nameNotResolved(let url, _), .notConnected(let url, _), .insecure(let url, _),
            .timedOut(let url, _), .tookTooLong(let url), .truncated(let url, _, _), .invalidResponse(let url, _),
            .headerTooLarge(let url), .bodyTooLarge(let url, _), .status(let url, _), .contentType(let url, _),
            .tooManyRedirects(let url, _), .busy(let url, _), .cancelled(let url), .unavailable(let url, _):
            url
        case .file(let error): error.path
        }
    }

    /// Whether the same request may succeed later, because the server was busy or the connection failed.
    public var isRetryable: Bool {
        switch self {
        case .nameNotResolved, .notConnected, .timedOut, .tookTooLong, .truncated: true
        case .status(_, let head): RetryPolicy.transientStatuses.contains(head.status)
        default: false
        }
    }

    /// Whether an interrupted transfer may be resumed.
    var isWorthResuming: Bool {
        if case .tookTooLong = self { return false }
        return isRetryable
    }
}

extension NetworkError: LocalizedError, CustomStringConvertible {
    /// The ``description``.
    public var errorDescription: String? { description }

    /// The reason without the URL and without advice, as a part of a sentence.
    package var reason: String {
        let text =
            switch self {
            case .invalidURL(_, let reason), .refused(_, let reason), .notConnected(_, let reason),
                .timedOut(_, let reason), .tooManyRedirects(_, let reason), .unavailable(_, let reason):
                reason
            case .invalidRequest(_, let reason): "the request cannot be sent: \(reason)"
            case .unsupportedScheme(_, let scheme): "no loader is registered for the scheme “\(scheme)”"
            case .handler(let url, let error): ErrorText.nested(error, about: url)
            case .nameNotResolved(_, let host): "the host \(host) could not be resolved"
            case .insecure(_, let reason): "TLS verification failed: \(reason)"
            case .tookTooLong: "the transfer exceeded its time limit"
            case .truncated(_, let received, let reason): "the transfer ended early after \(received): \(reason)"
            case .invalidResponse(_, let reason): "the response violates the rules of HTTP: \(reason)"
            case .headerTooLarge: "the header of the response is too large"
            case .bodyTooLarge(_, let limit): "the body is larger than the limit of \(limit)"
            case .status(_, let head): "the server answers \(head.status)"
            case .contentType(_, let type?): "the media type \(type) is not accepted"
            case .contentType: "the response has no media type"
            case .file(let error): error.textWithoutInput
            case .busy(_, let path): "another task is downloading to \(path)"
            case .cancelled: "cancelled"
            }
        return ErrorText.withoutStop(text)
    }

    /// The advice about the error, as a part of a sentence; nil if there is none.
    private var advice: String? {
        switch self {
        case .invalidURL: "correct the URL"
        case .nameNotResolved: "check the name and the connection"
        case .timedOut, .tookTooLong: "try again later"
        case .headerTooLarge: "the server must send fewer or shorter fields, as this limit is fixed"
        case .bodyTooLarge: "raise maximumBodySize of the request or of the fetch options"
        case .busy: "wait until it has ended"
        default: nil
        }
    }

    /// The error as a sentence, with advice where there is any. It names at most 200 characters of the URL.
    public var description: String {
        let url = ErrorText.shortened(url)
        let text: String
        switch self {
        case .file(let error): return error.description
        case .cancelled: text = "Loading \(url) was cancelled"
        case .invalidURL: text = "\(url) cannot be loaded: \(reason)"
        case .refused: text = "\(url) was refused: \(reason)"
        case .busy: text = "\(url) was not downloaded: \(reason)"
        default: text = "\(url) could not be loaded: \(reason)"
        }
        return ErrorText.sentence(text, advice: advice)
    }
}

extension NetworkError: ErrorWithInput {
    package var namedInput: String? { url }
    package var textWithoutInput: String { ErrorText.line(reason, advice: advice) }
}

extension NetworkError {
    /// The error of a URL that an access policy refuses.
    package static func refused(url: String, _ violation: PolicyViolation) -> NetworkError {
        .refused(url: url, reason: violation.description)
    }

    /// A phase of a transfer with a time limit.
    package enum TimeoutPhase: Sendable, Hashable {
        /// Name resolution, connection and TLS handshake.
        case connect
        /// The wait for the next byte.
        case idle
        /// The whole transfer.
        case total
    }

    /// The reason of ``timedOut(url:reason:)`` for a connection attempt.
    package static let connectTimeout = "the connection attempt timed out"
    /// The reason of ``timedOut(url:reason:)`` for a silent server.
    package static let idleTimeout = "the server sent nothing for too long"

    /// The error of a phase that exceeded its time limit.
    package static func timedOut(url: String, _ phase: TimeoutPhase) -> NetworkError {
        switch phase {
        case .connect: .timedOut(url: url, reason: connectTimeout)
        case .idle: .timedOut(url: url, reason: idleTimeout)
        case .total: .tookTooLong(url: url)
        }
    }
}
