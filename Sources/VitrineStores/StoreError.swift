public import VitrineCore
public import VitrineImaging

/// Why a store did not do what it was asked. Nothing was changed then, except after ``notDurable(name:error:)``.
public enum StoreError: Error, Sendable {
    /// The name cannot be one: `reason` says why.
    case invalidName(String, reason: String)
    /// There is nothing by this name.
    case notFound(name: String)
    /// There is something by this name, and it was not to be replaced.
    case alreadyExists(name: String)
    /// The bytes are no picture that can be read, or the picture cannot be written: `error` says why.
    case image(name: String, error: ImageError)
    /// The file system refused: no permission, no space, a file where a directory should be.
    case file(FileError)
    /// The change was made and every process sees it, but a power cut may take it back: `error` says why. Repeat the
    /// call once the medium works again.
    case notDurable(name: String, error: FileError)
    /// The work was cancelled.
    case cancelled(name: String)
    /// Changes in the store's directory are not noticed: `reason` says why.
    case notWatched(directory: String, reason: String)

    /// What a file operation on `name` failed with.
    init(_ error: FileError, name: String) {
        switch error {
        case .notFound: self = .notFound(name: name)
        case .alreadyExists: self = .alreadyExists(name: name)
        case .cancelled: self = .cancelled(name: name)
        case .notDurable: self = .notDurable(name: name, error: error)
        default: self = .file(error)
        }
    }

    /// What work on a picture failed with.
    init(_ error: ImageError, name: String) {
        if case .cancelled = error { self = .cancelled(name: name) } else { self = .image(name: name, error: error) }
    }
}

extension StoreError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .invalidName(let name, let reason): "\"\(name)\" is no name: \(reason)."
        case .notFound(let name): "There is nothing named \"\(name)\"."
        case .alreadyExists(let name): "\"\(name)\" exists already and was not to be replaced."
        case .image(let name, let error): "\"\(name)\": \(error.reason)."
        case .file(let error), .notDurable(_, let error): error.description
        case .cancelled(let name): "Work on \"\(name)\" was cancelled."
        case .notWatched(let directory, let reason): "Changes in \(directory) are not noticed: \(reason)."
        }
    }
}
