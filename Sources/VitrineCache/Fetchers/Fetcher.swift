public import VitrineCore

/// A source for the value of one key, such as the network, a file or a computation.
///
/// ```swift
/// struct WeatherFetcher: Fetcher {
///     let city: String
///     var key: CacheKey { CacheKey("weather", city) }
///     func fetch(_ context: FetchContext) async throws -> FetchResult<String> {
///         FetchResult(value: try await weather.report(city), timeToLive: .seconds(600))
///     }
/// }
/// let report = try await cache.value(from: WeatherFetcher(city: "Bremen"))
/// ```
///
/// A cache runs one fetch per key and ``bounds`` at a time, shared by all requests and formats. The fetch is a task of its
/// own and is cancelled with the last request.
public protocol Fetcher<Value>: Sendable {
    /// The type of the value.
    associatedtype Value: CacheableValue

    /// The key of the value in every format.
    var key: CacheKey { get }

    /// Whether an original that was fetched for the sake of another format is worth keeping: false where asking again
    /// is as cheap as reading the cache. Default: true.
    var storesOriginal: Bool { get }

    /// Where values of the fetcher may be looked for and kept, in any format; the request may narrow this further.
    /// Default: everywhere.
    var levels: CacheLevels { get }

    /// Whether the fetcher can validate the stored original. It then receives ``FetchContext/storedValidator``, which
    /// costs a lookup on disk. Default: false.
    var revalidates: Bool { get }

    /// The conditions that can end a fetch early without changing the value, such as a limit of time. A request does
    /// not join a fetch with other bounds, so that it never fails by those of another. Default: empty.
    var bounds: String { get }

    /// Fetches the value.
    ///
    /// Must not block the calling thread; run blocking work on `BlockingExecutor`. Should end soon after the task is
    /// cancelled.
    ///
    /// - Throws: Any error. Callers receive it as ``CacheError/source(key:underlying:)``; a ``CacheError`` stays as it
    ///   is.
    func fetch(_ context: FetchContext) async throws -> FetchResult<Value>
}

extension Fetcher {
    /// True.
    public var storesOriginal: Bool { true }
    /// All levels.
    public var levels: CacheLevels { .all }
    /// False.
    public var revalidates: Bool { false }
    /// Empty.
    public var bounds: String { "" }
}

/// The circumstances of a fetch.
public struct FetchContext: Sendable {
    /// The properties of a stored entry.
    package struct Stored: Sendable {
        /// When it was stored, since 1970.
        package let created: Duration
        /// When it stops being fresh, since 1970; nil for never.
        package let expires: Duration?
        /// The validator that the fetcher returned with the entry.
        package let validator: [UInt8]

        package init(created: Duration, expires: Duration?, validator: [UInt8]) {
            self.created = created
            self.expires = expires
            self.validator = validator
        }
    }

    /// The highest priority of the waiting requests. It can change during the fetch.
    public var priority: RequestPriority { prioritySource.value }
    /// The source of the ``priority``, which reports its changes.
    package let prioritySource: PrioritySource
    /// The properties of the entry of ``storedValidator``.
    package let stored: Stored?
    /// The validator of the original's entry that is on disk but expired or to be refreshed. A fetcher that finds the
    /// entry still valid returns ``FetchResult/unchanged(timeToLive:validator:)``. nil if there is no entry, or the
    /// fetcher does not revalidate.
    public var storedValidator: [UInt8]? { stored?.validator }
    /// Whether the stored value is to be replaced even if it is fresh. The result must not be
    /// ``FetchResult/stale(refreshing:)``.
    public let isRefresh: Bool
    /// With ``isRefresh``: whether this is a background refresh, after the stored value was returned.
    package let isBackground: Bool

    package init(
        priority: PrioritySource = PrioritySource(), stored: Stored? = nil, isRefresh: Bool = false,
        isBackground: Bool = false
    ) {
        prioritySource = priority
        self.stored = stored
        self.isRefresh = isRefresh
        self.isBackground = isBackground
    }
}

/// The result of a fetch.
public struct FetchResult<Value: CacheableValue>: Sendable {
    /// In which form it was found.
    package enum Content: Sendable {
        /// The value.
        case value(Value)
        /// The bytes of the original. They are decoded once and stored unchanged.
        case bytes([UInt8])
        /// Both, where the fetcher had to decode anyway. The bytes are stored.
        case both(Value, bytes: [UInt8])
        /// The stored entry is still valid.
        case unchanged
        /// The stored entry is to be given although its time has passed.
        case stale(refreshing: Bool)
        /// The source has no value any more.
        case gone(any Error)
    }

    /// The value or its bytes.
    package var content: Content
    /// How long it is fresh; nil for the format's or cache's default.
    package var timeToLive: Duration?
    /// Anything small the fetcher wants to see again in ``FetchContext/storedValidator``, for example an entity tag.
    public package(set) var validator: [UInt8]
    /// The tags of the entry, and of the entries that are made from it. A fetcher that calls another one may add some.
    public var tags: [String]
    /// Where it may be kept; the request may narrow this further. Default: everywhere.
    package var levels: CacheLevels
    /// The keys of other values that the fetch has outdated. Their entries are removed.
    package var outdated: [CacheKey] = []

    package init(
        _ content: Content, timeToLive: Duration? = nil, validator: [UInt8] = [], tags: [String] = [],
        levels: CacheLevels = .all
    ) {
        self.content = content
        self.timeToLive = timeToLive
        self.validator = validator
        self.tags = tags
        self.levels = levels
    }

    /// A value.
    ///
    /// - Parameters:
    ///   - value: The original value.
    ///   - timeToLive: How long it is fresh. Default nil: the time of the format or the cache.
    ///   - validator: Anything small the fetcher wants to see again in ``FetchContext/storedValidator``, for example an
    ///     entity tag.
    ///   - tags: Up to 16 tags for ``ValueCache/removeAll(tag:levels:)``, each of up to 256 UTF-8 bytes. Entries of other
    ///     formats that are made from the value have them as well. More fail the load with
    ///     ``CacheError/invalidTags(count:longest:)``.
    ///   - levels: Where it may be kept; the request may narrow this further.
    public init(
        value: Value, timeToLive: Duration? = nil, validator: [UInt8] = [], tags: [String] = [],
        levels: CacheLevels = .all
    ) {
        self.init(.value(value), timeToLive: timeToLive, validator: validator, tags: tags, levels: levels)
    }

    /// Original bytes. The other parameters are those of ``init(value:timeToLive:validator:tags:levels:)``.
    public init(
        bytes: [UInt8], timeToLive: Duration? = nil, validator: [UInt8] = [], tags: [String] = [],
        levels: CacheLevels = .all
    ) {
        self.init(.bytes(bytes), timeToLive: timeToLive, validator: validator, tags: tags, levels: levels)
    }

    /// The stored entry, which is fresh again from now on and keeps its tags. Only as the answer to a context with
    /// ``FetchContext/storedValidator``; without one it counts as ``CacheError/notFound(key:)``.
    ///
    /// - Parameters:
    ///   - timeToLive: How long it is fresh; nil for as long as the cache says.
    ///   - validator: Replaces the stored validator; nil keeps it.
    public static func unchanged(timeToLive: Duration? = nil, validator: [UInt8]? = nil) -> FetchResult {
        var fetched = FetchResult(.unchanged, timeToLive: timeToLive, validator: validator ?? [])
        fetched.keepsValidator = validator == nil
        return fetched
    }

    /// The stored entry, although it has expired, for sources that allow it during revalidation or cannot be reached.
    /// It stays expired. Only valid for a context with ``FetchContext/storedValidator`` that is not a refresh. It counts
    /// as ``CacheError/notFound(key:)`` otherwise.
    ///
    /// - Parameter refreshing: Whether the cache then fetches again in the background, as a
    ///   refresh.
    public static func stale(refreshing: Bool) -> FetchResult { FetchResult(.stale(refreshing: refreshing)) }

    /// No value, because the source says that there is none any more. The stored entries of the key are removed in all
    /// formats, and the load fails with ``CacheError/source(key:underlying:)``. A fetcher that throws keeps them.
    ///
    /// - Parameter reason: The error of the load.
    public static func gone(_ reason: any Error) -> FetchResult { FetchResult(.gone(reason)) }

    package private(set) var keepsValidator = false

    /// Whether the result is the stored entry.
    var isStored: Bool {
        switch content {
        case .unchanged, .stale: true
        case .value, .bytes, .both, .gone: false
        }
    }
}
