extension NetworkError {
    /// What all errors of the network say their domain is, where one is wanted (R15).
    public static let domain = "vitrine.network"

    /// A number that stays the same in all releases, for logs and for other languages (R15). -400 to -402 are those of
    /// an earlier library.
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
        case .invalidResponse: -430
        case .headerTooLarge: -431
        case .bodyTooLarge: -432
        case .tooManyRedirects: -440
        case .redirectLoop: -441
        case .file: -450
        case .busy: -451
        case .cancelled: -460
        case .unavailable: -461
        }
    }

    /// The address concerned, without names and passwords.
    public var url: String {
        switch self {
        case .invalidURL(let url, _), .invalidRequest(let url, _), .refused(let url, _), .unsupportedScheme(let url, _),
            .handler(let url, _), .nameNotResolved(let url, _), .notConnected(let url, _), .insecure(let url, _),
            .timedOut(let url, _), .truncated(let url, _, _), .invalidResponse(let url, _), .headerTooLarge(let url),
            .bodyTooLarge(let url, _), .status(let url, _), .contentType(let url, _), .tooManyRedirects(let url, _),
            .redirectLoop(let url), .busy(let url, _), .cancelled(let url), .unavailable(let url, _):
            url
        case .file(let error): error.path
        }
    }

    /// Whether the same request may well succeed later: the server was busy, or the way to it broken.
    public var isRetryable: Bool {
        switch self {
        case .nameNotResolved, .notConnected, .timedOut, .truncated: true
        case .status(_, let head): RetryPolicy.transientStatuses.contains(head.status)
        default: false
        }
    }
}

extension NetworkError: CustomStringConvertible {
    /// What went wrong, without the address: the part of a sentence.
    public var reason: String {
        switch self {
        case .invalidURL(_, let reason), .notConnected(_, let reason), .unavailable(_, let reason): reason
        case .invalidRequest(_, let reason): "the request cannot be sent, as \(reason)"
        case .refused(_, let violation): violation.description
        case .unsupportedScheme(_, let scheme): "nobody is registered for the scheme \(scheme)"
        case .handler(_, let error): String(describing: error)
        case .nameNotResolved(_, let host): "there is no address for \(host)"
        case .insecure(_, let reason): "its encryption cannot be trusted: \(reason)"
        case .timedOut(_, let phase): phase.text
        case .truncated(_, let received, let reason): "it ended early, after \(received): \(reason)"
        case .invalidResponse(_, let reason): "the answer breaks the rules of HTTP: \(reason)"
        case .headerTooLarge: "the answer has more header than is accepted"
        case .bodyTooLarge(_, let limit): "it is larger than the \(limit) that are accepted"
        case .status(_, let head): "the server answers \(head.status)"
        case .contentType(_, let type): "it is \(type ?? "of no known type"), which is not accepted"
        case .tooManyRedirects(_, let limit): "it is redirected more than \(limit) times"
        case .redirectLoop: "it is redirected in a circle"
        case .file(let error): error.description
        case .busy(_, let path): "somebody else is loading to \(path)"
        case .cancelled: "cancelled"
        }
    }

    public var description: String {
        switch self {
        case .file(let error): error.description
        case .cancelled: "Loading \(url) was cancelled."
        case .invalidURL: "\(url) cannot be loaded: \(reason). Correct the address."
        case .refused: "\(url) is not loaded: \(reason)."
        case .nameNotResolved: "\(url) could not be loaded: \(reason). Check the name and the connection."
        case .timedOut: "\(url) could not be loaded: \(reason). Try again later."
        case .busy: "\(url) is not loaded: \(reason). Wait for them."
        default: "\(url) could not be loaded: \(reason)."
        }
    }
}

extension NetworkError.TimeoutPhase {
    fileprivate var text: String {
        switch self {
        case .connect: "connecting took longer than allowed"
        case .idle: "the server was silent for longer than allowed"
        case .total: "it took longer in all than allowed"
        }
    }
}

extension PolicyViolation: CustomStringConvertible {
    public var description: String {
        switch self {
        case .scheme(let scheme): "the scheme \(scheme) is not allowed"
        case .host(let host): "the host \(host) is not allowed"
        case .port(let port): "the port \(port) is not allowed"
        case .userInformation: "names and passwords are not allowed in it"
        case .address(let address): "the address \(address) is not public"
        case .redirectToPrivate(let address): "a public address redirects to \(address), which is not"
        case .redirectToInsecure: "an encrypted address redirects to one that is not"
        case .addressesUnknown: "it cannot be told which address would be connected to"
        }
    }
}
