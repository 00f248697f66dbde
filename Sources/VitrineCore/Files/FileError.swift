#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An error of reading, writing or creating a file or directory. Every case names the path.
public enum FileError: Error, Sendable, Equatable {
    /// The file does not exist, or a directory on the path is missing.
    case notFound(path: String)
    /// Something exists at the path and was not to be replaced.
    case alreadyExists(path: String)
    /// The process lacks permission. Check the owner and mode of the path and of its directory.
    case notPermitted(path: String, code: Int32)
    /// The file system or the quota of the user is full. Caches react by evicting entries.
    case noSpace(path: String)
    /// The file is larger than the limit of the caller, in bytes.
    case tooLarge(path: String, limit: Int)
    /// The work was cancelled. It left no files behind.
    case cancelled(path: String)
    /// The item at the path must not be trusted, for example a directory of another user.
    case untrusted(path: String, reason: String)
    /// The change was made and is visible to every process, but a power cut may undo it.
    ///
    /// The directory could not be synchronized, with this `errno`. Repeat the call once the medium works again.
    case notDurable(path: String, code: Int32)
    /// Any other failed system call, with its `errno`.
    case system(operation: String, path: String, code: Int32)

    /// Creates the error of a failed system call.
    ///
    /// - Parameters:
    ///   - operation: The call, for example `rename`.
    ///   - path: The file it concerns.
    ///   - code: The `errno`, read directly after the call.
    package init(operation: String, path: String, code: Int32) {
        switch code {
        case ENOENT: self = .notFound(path: path)
        case EEXIST: self = .alreadyExists(path: path)
        case EACCES, EPERM, EROFS: self = .notPermitted(path: path, code: code)
        case ENOSPC, EDQUOT: self = .noSpace(path: path)
        default: self = .system(operation: operation, path: path, code: code)
        }
    }

    /// The path of the file or directory.
    package var path: String {
        switch self {
        case .notFound(let path), .alreadyExists(let path), .notPermitted(let path, _), .noSpace(let path),
            .tooLarge(let path, _), .cancelled(let path), .untrusted(let path, _), .notDurable(let path, _),
            .system(_, let path, _):
            path
        }
    }

    /// Returns the same error about another path, the one that the caller knows.
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

    /// Returns the text of the system for an `errno`.
    private static func text(for code: Int32) -> String {
        strerror(code).map { String(cString: $0) } ?? "error \(code)"
    }
}

extension FileError: LocalizedError, CustomStringConvertible {
    /// The ``description``.
    public var errorDescription: String? { description }

    /// A sentence that names the path and the reason, and one with advice where there is any.
    public var description: String {
        let text =
            switch self {
            case .notFound(let path): "\(path) does not exist"
            case .alreadyExists(let path): "\(path) already exists and was not to be replaced"
            case .notPermitted(let path, let code): "No permission for \(path): \(Self.text(for: code))"
            case .noSpace(let path): "No space left for \(path)"
            case .tooLarge(let path, let limit): "\(path) exceeds the limit of \(limit) bytes"
            case .cancelled(let path): "Work on \(path) was cancelled"
            case .untrusted(let path, let reason): "\(path) is not trusted: \(reason)"
            case .notDurable(let path, let code):
                "\(path) was changed, but a power cut may undo the change: \(Self.text(for: code)) (errno \(code))"
            case .system(let operation, let path, let code):
                "\(operation) failed for \(path): \(Self.text(for: code)) (errno \(code))"
            }
        return ErrorText.sentence(text, advice: advice)
    }

    private var advice: String? {
        switch self {
        case .notPermitted(_, EROFS): "choose a place that can be written"
        case .notPermitted: "check the owner and the mode of the file and of its directory"
        case .noSpace: "free some space, or choose another disk"
        default: nil
        }
    }
}

extension FileError: ErrorWithInput {
    package var namedInput: String? { path }

    package var textWithoutInput: String {
        let text =
            switch self {
            case .notFound: "it does not exist"
            case .alreadyExists: "it already exists and was not to be replaced"
            case .notPermitted(_, let code): Self.text(for: code)
            case .noSpace: "no space is left on its disk"
            case .tooLarge(_, let limit): "it exceeds the limit of \(limit) bytes"
            case .cancelled: "the work on it was cancelled"
            case .untrusted(_, let reason): "it is not trusted: \(reason)"
            case .notDurable(_, let code):
                "it was changed, but a power cut may undo the change: \(Self.text(for: code)) (errno \(code))"
            case .system(let operation, _, let code):
                "\(operation) failed: \(Self.text(for: code)) (errno \(code))"
            }
        return ErrorText.line(text, advice: advice)
    }
}
