public import VitrineCore

/// What a fetcher found.
public struct FetchResult<Value: CacheableValue>: Sendable {
    /// In which form it was found.
    public enum Content: Sendable {
        /// The value.
        case value(Value)
        /// The original bytes. They are decoded once, and stored as they are (R77) if they are a value.
        case bytes([UInt8])
        /// Both, where the fetcher had to decode anyway. The bytes are stored.
        case both(Value, bytes: [UInt8])
        /// The stored entry is still valid.
        case unchanged
        /// The stored entry is to be given although its time has passed.
        case stale(refreshing: Bool)
    }

    /// The value or its bytes.
    public var content: Content
    /// How long it is fresh; nil for the format's or cache's default.
    public var timeToLive: Duration?
    /// Anything small the fetcher wants to see again in ``FetchContext/Stored/tag``, for example validators.
    public var tag: [UInt8]
    /// Where it may be kept; the request may narrow this further. Default: everywhere.
    public var levels: CacheLevels

    public init(_ content: Content, timeToLive: Duration? = nil, tag: [UInt8] = [], levels: CacheLevels = .all) {
        self.content = content
        self.timeToLive = timeToLive
        self.tag = tag
        self.levels = levels
    }

    /// A value.
    public init(value: Value, timeToLive: Duration? = nil, tag: [UInt8] = [], levels: CacheLevels = .all) {
        self.init(.value(value), timeToLive: timeToLive, tag: tag, levels: levels)
    }

    /// Original bytes.
    public init(bytes: [UInt8], timeToLive: Duration? = nil, tag: [UInt8] = [], levels: CacheLevels = .all) {
        self.init(.bytes(bytes), timeToLive: timeToLive, tag: tag, levels: levels)
    }

    /// The stored entry, which is fresh again from now on. Only as the answer to a context with
    /// ``FetchContext/stored``; without one it counts as ``CacheError/notFound(key:)``.
    ///
    /// - Parameters:
    ///   - timeToLive: How long it is fresh; nil for as long as the cache says.
    ///   - tag: Replaces the stored tag; nil keeps it.
    public static func unchanged(timeToLive: Duration? = nil, tag: [UInt8]? = nil) -> FetchResult {
        var fetched = FetchResult(.unchanged, timeToLive: timeToLive, tag: tag ?? [])
        fetched.keepsTag = tag == nil
        return fetched
    }

    /// The stored entry although its time has passed, which it stays: a source that allows it to be used while it is
    /// asked again, or that could not be reached. Only as the answer to a context with ``FetchContext/stored`` that is
    /// no refresh; otherwise it counts as ``CacheError/notFound(key:)``.
    ///
    /// - Parameter refreshing: Whether the cache asks again behind it, once for all who get it: with
    ///   ``FetchContext/isBackground``. Who asks after that has ended gets the newer value.
    public static func stale(refreshing: Bool) -> FetchResult { FetchResult(.stale(refreshing: refreshing)) }

    package private(set) var keepsTag = false

    /// Whether the answer is what is stored.
    var isStored: Bool {
        switch content {
        case .unchanged, .stale: true
        case .value, .bytes, .both: false
        }
    }
}
