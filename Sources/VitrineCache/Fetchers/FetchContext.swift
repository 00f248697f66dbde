public import VitrineCore

/// What a fetcher is told besides its key.
public struct FetchContext: Sendable {
    /// What is known of an entry without reading it.
    public struct Stored: Sendable {
        /// When it was stored, since 1970.
        public let created: Duration
        /// When it stops being fresh, since 1970; nil for never.
        public let expires: Duration?
        /// What the fetcher gave as ``FetchResult/tag`` then.
        public let tag: [UInt8]

        public init(created: Duration, expires: Duration?, tag: [UInt8]) {
            self.created = created
            self.expires = expires
            self.tag = tag
        }
    }

    /// How urgent the fetch is: the highest priority among those who wait. Changes while it runs (R92).
    public let priority: PrioritySource
    /// The original's entry that is on disk but expired or to be refreshed; a fetcher that finds it still valid answers
    /// with ``FetchResult/unchanged(timeToLive:tag:)``. nil if there is none, or the fetcher does not revalidate.
    public let stored: Stored?
    /// Whether what is stored is to be replaced, however fresh: the answer must not be ``FetchResult/stale(refreshing:)``.
    public let isRefresh: Bool
    /// With ``isRefresh``: whether nobody demanded it. The stored value has been given already, and this looks for a
    /// newer one behind it.
    public let isBackground: Bool

    public init(
        priority: PrioritySource = PrioritySource(), stored: Stored? = nil, isRefresh: Bool = false,
        isBackground: Bool = false
    ) {
        self.priority = priority
        self.stored = stored
        self.isRefresh = isRefresh
        self.isBackground = isBackground
    }
}
