#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Why a file or directory could not be read, written or made. Every case names the path.
public enum FileError: Error, Sendable, Equatable {
    /// There is no such file, or a directory on the way to it is missing.
    case notFound(path: String)
    /// There is something at the path already, and it was not to be replaced.
    case alreadyExists(path: String)
    /// The process may not do this. Check the owner and mode of the path and of its directory.
    case notPermitted(path: String, code: Int32)
    /// The file system or the user's quota is full. Caches answer this by evicting.
    case noSpace(path: String)
    /// The file is larger than the caller accepts, in bytes.
    case tooLarge(path: String, limit: Int)
    /// The work was cancelled; nothing was left behind.
    case cancelled(path: String)
    /// The thing at the path must not be trusted, for example a directory another user owns.
    case untrusted(path: String, reason: String)
    /// The change was made and every process sees it, but a power cut may take it back: the directory could not be
    /// synchronized, with this `errno`. Repeat the call once the medium works again.
    case notDurable(path: String, code: Int32)
    /// Anything else: the failed call and its `errno`.
    case system(operation: String, path: String, code: Int32)

    /// The error for a failed call.
    ///
    /// - Parameters:
    ///   - operation: The call, for example `rename`.
    ///   - path: The file it concerns.
    ///   - code: The `errno` of the call, read directly after it.
    public init(operation: String, path: String, code: Int32) {
        switch code {
        case ENOENT: self = .notFound(path: path)
        case EEXIST: self = .alreadyExists(path: path)
        case EACCES, EPERM, EROFS: self = .notPermitted(path: path, code: code)
        case ENOSPC, EDQUOT: self = .noSpace(path: path)
        default: self = .system(operation: operation, path: path, code: code)
        }
    }

    /// The path concerned.
    public var path: String {
        switch self {
        case .notFound(let path), .alreadyExists(let path), .notPermitted(let path, _), .noSpace(let path),
            .tooLarge(let path, _), .cancelled(let path), .untrusted(let path, _), .notDurable(let path, _),
            .system(_, let path, _):
            path
        }
    }

    /// The same error about another path: the one that the caller knows.
    package func about(_ path: String) -> FileError {
        switch self {
        case .notFound: .notFound(path: path)
        case .alreadyExists: .alreadyExists(path: path)
        case .notPermitted(_, let code): .notPermitted(path: path, code: code)
        case .noSpace: .noSpace(path: path)
        case .tooLarge(_, let limit): .tooLarge(path: path, limit: limit)
        case .cancelled: .cancelled(path: path)
        case .untrusted(_, let reason): .untrusted(path: path, reason: reason)
        case .notDurable(_, let code): .notDurable(path: path, code: code)
        case .system(let operation, _, let code): .system(operation: operation, path: path, code: code)
        }
    }

    /// The system's text for an `errno` value.
    static func text(for code: Int32) -> String {
        strerror(code).map { String(cString: $0) } ?? "error \(code)"
    }
}

extension FileError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .notFound(let path): "There is no \(path)."
        case .alreadyExists(let path): "\(path) exists already and was not to be replaced."
        case .notPermitted(let path, let code): "No permission for \(path): \(Self.text(for: code))."
        case .noSpace(let path): "No space left for \(path)."
        case .tooLarge(let path, let limit): "\(path) has more than the \(limit) bytes that are accepted."
        case .cancelled(let path): "Work on \(path) was cancelled."
        case .untrusted(let path, let reason): "\(path) is not used: \(reason)."
        case .notDurable(let path, let code):
            "\(path) was changed, but a power cut may undo the change: \(Self.text(for: code)) (errno \(code))."
        case .system(let operation, let path, let code):
            "\(operation) failed for \(path): \(Self.text(for: code)) (errno \(code))."
        }
    }
}
