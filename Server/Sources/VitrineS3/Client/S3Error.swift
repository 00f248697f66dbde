public import Foundation
public import VitrineCore
public import VitrineNetwork

/// The reason why a call of an S3 client failed. The first value of most cases is the address, such as
/// `s3://bucket/key`. No error contains a secret key or a signature.
public enum S3Error: Error, Sendable {
    /// The endpoint or another setting cannot be used.
    case invalidConfiguration(reason: String)
    /// The bucket, key, name of a file or address is invalid.
    case invalidName(String, reason: String)
    /// There are no credentials, or they could not be read.
    case noCredentials(reason: String)
    /// There is no such object.
    case notFound(String)
    /// There is no such bucket.
    case noBucket(String)
    /// There is such an object, and it must not be replaced.
    case alreadyExists(String)
    /// The object was replaced or deleted during the call.
    case changed(String)
    /// The server refuses the credentials or the operation.
    case denied(String, code: String, message: String)
    /// The server does not implement a part of the request, for example conditional writes.
    case notSupported(String, reason: String)
    /// The server is overloaded or failed, and the retries are used up.
    case busy(String, status: Int, retryAfter: Duration?)
    /// The bucket is in another region or at another address. Requests are not redirected.
    case wrongRegion(String, region: String?)
    /// The object has more bytes than the limit.
    case tooLarge(String, limit: ByteCount)
    /// The object ends before the requested range.
    case invalidRange(String)
    /// The server answered with another error.
    case server(String, status: Int, code: String, message: String)
    /// The answer of the server is not one of S3.
    case invalidResponse(String, reason: String)
    /// The bytes of a stored result are not those that were stored under this key.
    case damaged(String, reason: String)
    /// The server could not be reached, or the transfer failed.
    case network(String, NetworkError)
    /// The task was cancelled.
    case cancelled(String)
}

extension S3Error {
    /// The address or name; an empty text if there is none.
    public var address: String {
        switch self {
        case .invalidConfiguration, .noCredentials: ""
        case .invalidName(let address, _), .notFound(let address), .noBucket(let address),
            .alreadyExists(let address), .changed(let address), .denied(let address, _, _),
            .notSupported(let address, _), .busy(let address, _, _), .wrongRegion(let address, _),
            .tooLarge(let address, _), .invalidRange(let address), .server(let address, _, _, _),
            .invalidResponse(let address, _), .damaged(let address, _), .network(let address, _),
            .cancelled(let address):
            address
        }
    }

    /// Whether the same call may succeed later.
    public var isRetryable: Bool {
        switch self {
        case .busy, .changed: true
        case .network(_, let error): error.isRetryable
        case .server(_, let status, _, _): status >= 500
        default: false
        }
    }

    /// The status to show to clients of a server that loads objects.
    var status: Int? {
        switch self {
        case .notFound, .noBucket: 404
        case .denied: 403
        case .busy: 503
        case .server(_, let status, _, _): status
        default: nil
        }
    }

    /// Returns a text of a server on one line of at most 200 characters.
    static func line(_ text: String) -> String {
        let visible = text.unicodeScalars.prefix(200).map { $0.value < 0x20 || $0.value == 0x7F ? " " : $0 }
        return String(String.UnicodeScalarView(visible))
    }
}

extension S3Error: FileStoringError {
    /// Whether it is ``notFound(_:)``.
    public var isMissingFile: Bool { if case .notFound = self { true } else { false } }
    /// Whether it is ``alreadyExists(_:)``.
    public var isExistingFile: Bool { if case .alreadyExists = self { true } else { false } }
}

extension S3Error: LocalizedError, CustomStringConvertible {
    /// The error as a sentence, with advice where there is any.
    public var description: String {
        switch self {
        case .invalidConfiguration(let reason): "The S3 client cannot be used: \(reason)."
        case .invalidName(let name, let reason): "\"\(name)\" is not valid: \(reason)."
        case .noCredentials(let reason): "There are no credentials for S3: \(reason)."
        case .notFound(let address): "There is no object \(address)."
        case .noBucket(let address): "There is no bucket for \(address). Create it, or correct the name."
        case .alreadyExists(let address): "\(address) already exists."
        case .changed(let address): "\(address) was changed during the call. Repeat the call."
        case .denied(let address, let code, let message):
            "The server refuses access to \(address) (\(code)): \(message). Check the keys and the permissions."
        case .notSupported(let address, let reason): "The server does not support a call for \(address): \(reason)."
        case .busy(let address, let status, _):
            "The server could not serve \(address) (status \(status)). Try again later."
        case .wrongRegion(let address, let region?):
            "The bucket of \(address) is in the region \(region). Configure this region."
        case .wrongRegion(let address, nil):
            "The server redirects \(address). Configure the endpoint and region of the bucket."
        case .tooLarge(let address, let limit): "\(address) is larger than the limit of \(limit)."
        case .invalidRange(let address): "\(address) ends before the requested range."
        case .server(let address, let status, let code, let message):
            "The server failed for \(address) with status \(status) (\(code)): \(message)."
        case .invalidResponse(let address, let reason): "The answer for \(address) is not valid: \(reason)."
        case .damaged(let address, let reason): "The result \(address) cannot be used: \(reason)."
        case .network(let address, let error): "\(address): \(error.description)"
        case .cancelled(let address): "The call for \(address) was cancelled."
        }
    }

    /// The ``description``.
    public var errorDescription: String? { description }
}
