public import VitrineCore

/// Why a cache did not do what it was asked. Every case carries what it concerns, and has a stable ``code`` (R15).
///
/// A damaged entry is no error: it counts as missing, is removed and logged (R50).
public enum CacheError: Error, Sendable {
    /// There is no value for the key as far as the lookup was allowed to go. Code -100.
    case notFound(key: CacheKey)
    /// No format of this name has been registered with the cache: register it first. Code -101.
    case formatNotFound(FormatName)
    /// The bytes, from a source or stored under another type, are no such value. Code -500.
    case invalidData(key: CacheKey, underlying: any Error)
    /// The value could not be turned into bytes. It may still be in memory. Code -510.
    case notEncodable(key: CacheKey, underlying: any Error)
    /// The entry alone is larger than the capacity and was not kept. Raise the capacity or store less. Code -511.
    case tooLarge(key: CacheKey, size: ByteCount, capacity: ByteCount)
    /// The key's identity has more UTF-8 bytes than are accepted. Use a digest of it. Code -512.
    case keyTooLong(length: Int, limit: Int)
    /// A file or directory could not be used. Code -520.
    case file(FileError)
    /// The database could not be used. Code -521.
    case database(DatabaseError)
    /// The fetcher or closure that was to make the value failed. Code -530.
    case source(key: CacheKey, underlying: any Error)
    /// The format's transform failed. Nothing was stored in that format. Code -531.
    case transform(key: CacheKey, format: FormatName, underlying: any Error)
    /// Nobody waits for the value any more. Code -540.
    case cancelled(key: CacheKey)

    /// What all errors of caches say their domain is, where one is wanted (R15).
    public static let domain = "vitrine.cache"

    /// A number that stays the same in all releases, for logs and for other languages (R15).
    ///
    /// Those of an earlier library are kept: -100, -101 and -500. -400 to -402 belong to the network's errors.
    public var code: Int {
        switch self {
        case .notFound: -100
        case .formatNotFound: -101
        case .invalidData: -500
        case .notEncodable: -510
        case .tooLarge: -511
        case .keyTooLong: -512
        case .file: -520
        case .database: -521
        case .source: -530
        case .transform: -531
        case .cancelled: -540
        }
    }

    /// The key concerned; nil where the failure concerns the cache as a whole.
    public var key: CacheKey? {
        switch self {
        case .notFound(let key), .invalidData(let key, _), .notEncodable(let key, _), .tooLarge(let key, _, _),
            .source(let key, _), .transform(let key, _, _), .cancelled(let key):
            key
        case .formatNotFound, .keyTooLong, .file, .database: nil
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
        case .notFound, .formatNotFound, .tooLarge, .keyTooLong, .cancelled: nil
        }
    }
}

extension CacheError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .notFound(let key): "There is no value for \(Self.text(key))."
        case .formatNotFound(let format): "The format \"\(format)\" is not registered with this cache."
        case .invalidData(let key, let error): "The bytes for \(Self.text(key)) are no such value: \(error)"
        case .notEncodable(let key, let error):
            "The value for \(Self.text(key)) could not be turned into bytes: \(error)"
        case .tooLarge(let key, let size, let capacity):
            "The value for \(Self.text(key)) has \(size), more than the capacity of \(capacity)."
        case .keyTooLong(let length, let limit): "A key has \(length) bytes; \(limit) are accepted."
        case .file(let error): error.description
        case .database(let error): error.description
        case .source(let key, let error): "The source of \(Self.text(key)) failed: \(error)"
        case .transform(let key, let format, let error):
            "The format \"\(format)\" could not transform the value for \(Self.text(key)): \(error)"
        case .cancelled(let key): "The fetch of \(Self.text(key)) was cancelled."
        }
    }

    /// Keys may be 10 KB long; messages are for reading.
    private static func text(_ key: CacheKey) -> String {
        let text = key.description
        return text.utf8.count <= 200 ? "\"\(text)\"" : "\"\(text.prefix(100))…\""
    }
}
