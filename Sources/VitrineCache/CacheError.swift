public import VitrineCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An error of a cache. Each case carries its subject and has a stable ``code``.
///
/// A damaged entry is not an error: it counts as a miss, is removed and logged.
public enum CacheError: Error, Sendable {
    /// The allowed levels have no value for the key. Code -100.
    case notFound(key: CacheKey)
    /// No format with this name is registered with the cache. Code -101.
    case formatNotFound(FormatName)
    /// The bytes cannot be decoded as the type of the cache. Code -500.
    case invalidData(key: CacheKey, underlying: any Error)
    /// The value cannot be encoded. It may still be in memory. Code -510.
    case notEncodable(key: CacheKey, underlying: any Error)
    /// The entry is larger than the capacity and was not stored. Code -511.
    case tooLarge(key: CacheKey, size: ByteCount, capacity: ByteCount)
    /// The key has too many UTF-8 bytes. Use a digest of it. Code -512.
    case keyTooLong(length: Int, limit: Int)
    /// An entry has more than 16 tags, or a tag of more than 256 UTF-8 bytes. `longest` is the length of the longest
    /// tag. Use a digest of a longer one. Code -513.
    case invalidTags(count: Int, longest: Int)
    /// A file operation failed. Code -520.
    case file(FileError)
    /// The database cannot be used. Code -521.
    case database(DatabaseError)
    /// The fetcher or closure that makes the value failed. Code -530.
    case source(key: CacheKey, underlying: any Error)
    /// The format's transform failed. Nothing was stored in that format. Code -531.
    case transform(key: CacheKey, format: FormatName, underlying: any Error)
    /// The request was cancelled. Code -540.
    case cancelled(key: CacheKey)

    /// The domain of all errors of caches.
    public static let domain = "vitrine.cache"

    /// A number for logs and other languages, which is the same in all releases.
    ///
    /// The codes -400 to -402 belong to errors of the network.
    public var code: Int {
        switch self {
        case .notFound: -100
        case .formatNotFound: -101
        case .invalidData: -500
        case .notEncodable: -510
        case .tooLarge: -511
        case .keyTooLong: -512
        case .invalidTags: -513
        case .file: -520
        case .database: -521
        case .source: -530
        case .transform: -531
        case .cancelled: -540
        }
    }

    /// The key concerned; nil where the failure concerns the cache as a whole.
    package var key: CacheKey? {
        switch self {
        case .notFound(let key), .invalidData(let key, _), .notEncodable(let key, _), .tooLarge(let key, _, _),
            .source(let key, _), .transform(let key, _, _), .cancelled(let key):
            key
        case .formatNotFound, .keyTooLong, .invalidTags, .file, .database: nil
        }
    }

    /// The error below this one; nil where there is none.
    public var underlying: (any Error)? {
        switch self {
        case .invalidData(_, let error), .notEncodable(_, let error), .source(_, let error),
            .transform(_, _, let error):
            error
        case .file(let error): error
        case .database(let error): error
        case .notFound, .formatNotFound, .tooLarge, .keyTooLong, .invalidTags, .cancelled: nil
        }
    }
}

extension CacheError: LocalizedError, CustomStringConvertible {
    /// The ``description``.
    public var errorDescription: String? { description }

    /// A sentence that names the key and the reason, and one with advice where there is any.
    public var description: String {
        switch self {
        case .notFound(let key): "There is no value for \(Self.text(key))."
        case .formatNotFound(let format): "The format \"\(format)\" is not registered with this cache."
        case .invalidData(let key, let error):
            Self.sentence("Cannot decode the value for \(Self.text(key))", reason: error, key: key)
        case .notEncodable(let key, let error):
            Self.sentence("Cannot encode the value for \(Self.text(key))", reason: error, key: key)
        case .tooLarge(let key, let size, let capacity):
            "The value for \(Self.text(key)) has \(size), more than the capacity of \(capacity). Raise diskCapacity of "
                + "the cache or of the format."
        case .keyTooLong(let length, let limit): "The key has \(length) bytes; the limit is \(limit)."
        case .invalidTags(let count, let longest):
            "An entry may have \(EntryTags.countLimit) tags of \(EntryTags.lengthLimit) bytes each, not \(count) tags of "
                + "up to \(longest) bytes."
        case .file(let error): error.description
        case .database(let error): error.description
        case .source(let key, let error):
            Self.sentence("The source of \(Self.text(key)) failed", reason: error, key: key)
        case .transform(let key, let format, let error):
            Self.sentence(
                "The format \"\(format)\" could not transform the value for \(Self.text(key))", reason: error, key: key)
        case .cancelled(let key): "The fetch of \(Self.text(key)) was cancelled."
        }
    }

    private static func sentence(_ text: String, reason: any Error, key: CacheKey) -> String {
        ErrorText.sentence("\(text): \(ErrorText.nested(reason, about: key.description))")
    }

    private static func text(_ key: CacheKey) -> String { "\"\(ErrorText.shortened(key.description))\"" }
}

extension CacheError {
    /// An error of any kind as one of a cache: itself, a cancellation, or one of the source.
    package init(_ error: any Error, key: CacheKey) {
        switch error {
        case let error as CacheError: self = error
        case is CancellationError: self = .cancelled(key: key)
        case let error as FileError: self = .file(error)
        default: self = .source(key: key, underlying: error)
        }
    }

    /// Whether the request was cancelled.
    package var isCancellation: Bool { if case .cancelled = self { true } else { false } }
}
