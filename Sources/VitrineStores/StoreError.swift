public import VitrineCore
public import VitrineImaging

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An error of a store. The store is unchanged, except after ``notDurable(name:error:)``.
public enum StoreError: Error, Sendable {
    /// The name is invalid for the given reason.
    case invalidName(String, reason: String)
    /// There is no entry with this name.
    case notFound(name: String)
    /// An entry with this name exists and must not be overwritten.
    case alreadyExists(name: String)
    /// The image cannot be decoded or encoded.
    case image(name: String, error: ImageError)
    /// A file operation failed, for example because of permissions or a full disk.
    case file(FileError)
    /// The change is visible to all processes, but a power failure may undo it. Repeat the call when the medium works
    /// again.
    case notDurable(name: String, error: FileError)
    /// The operation was cancelled.
    case cancelled(name: String)
    /// Changes in the directory cannot be observed for the given reason.
    case notWatched(directory: String, reason: String)
    /// The stored value of a ``KeyValueStore`` cannot be decoded as the requested type.
    case invalidData(name: String, underlying: any Error)
    /// The value cannot be encoded.
    case notEncodable(name: String, underlying: any Error)
    /// The database of a ``KeyValueStore`` cannot be used, for example because the disk is full.
    case database(DatabaseError)

    /// Wraps the error of a file operation on an entry.
    package init(_ error: FileError, name: String) {
        switch error {
        case .notFound: self = .notFound(name: name)
        case .alreadyExists: self = .alreadyExists(name: name)
        case .cancelled: self = .cancelled(name: name)
        case .notDurable: self = .notDurable(name: name, error: error)
        default: self = .file(error)
        }
    }

    /// Wraps an error of decoding or encoding an image.
    package init(_ error: ImageError, name: String) {
        if case .cancelled = error { self = .cancelled(name: name) } else { self = .image(name: name, error: error) }
    }
}

extension StoreError: LocalizedError, CustomStringConvertible {
    /// A sentence that names the entry and the reason, and one with advice where there is any.
    public var description: String {
        switch self {
        case .invalidName(let name, let reason): ErrorText.sentence("\"\(name)\" is not a valid name: \(reason)")
        case .notFound(let name): "There is no entry named \"\(name)\"."
        case .alreadyExists(let name): "\"\(name)\" already exists."
        case .image(let name, let error): ErrorText.sentence("\"\(name)\": \(error.textWithoutInput)")
        case .file(let error), .notDurable(_, let error): error.description
        case .cancelled(let name): "The operation on \"\(name)\" was cancelled."
        case .notWatched(let directory, let reason):
            ErrorText.sentence("Cannot observe changes in \(directory): \(reason)")
        case .invalidData(let name, let error):
            ErrorText.sentence("Cannot decode the value for \"\(name)\": \(ErrorText.nested(error, about: name))")
        case .notEncodable(let name, let error):
            ErrorText.sentence("Cannot encode the value for \"\(name)\": \(ErrorText.nested(error, about: name))")
        case .database(let error): error.description
        }
    }

    /// The ``description``.
    public var errorDescription: String? { description }
}

extension BlockingExecutor {
    /// Runs blocking work on a thread of the executor, with a token that is cancelled with the task.
    ///
    /// - Parameter name: The name to report if the task is cancelled before the start.
    package func run<R: Sendable>(
        _ name: String, _ body: @escaping @Sendable (CancellationToken) throws(StoreError) -> R
    ) async throws(StoreError) -> R {
        let token = CancellationToken()
        let result = await withTaskCancellationHandler {
            await run { () -> Result<R, StoreError> in
                Result { () throws(StoreError) in
                    if token.isCancelled { throw .cancelled(name: name) }
                    return try body(token)
                }
            }
        } onCancel: {
            token.cancel()
        }
        return try result.get()
    }
}
