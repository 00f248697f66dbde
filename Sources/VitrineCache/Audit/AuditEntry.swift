public import VitrineCore

/// What an audit knows about an entry (R51, R52).
public struct AuditEntry: Sendable, Equatable {
    /// What it is stored under.
    public let key: CacheKey
    /// In which form.
    public let format: FormatName
    /// The length of its bytes on disk.
    public let size: ByteCount
    /// When it was stored, since 1970.
    public let created: Duration
    /// When it was last used, from disk or memory, since 1970; exact to a minute.
    public let lastAccess: Duration
    /// When it stops being fresh, since 1970; nil for never.
    public let expires: Duration?
    /// Whether it is in memory, or alive elsewhere. Such entries are spared unless the audit says otherwise (R56).
    public let isInMemory: Bool
    /// What its fetcher stored with it.
    public let tag: [UInt8]

    package init(_ info: DiskCache.EntryInfo, format: FormatName, isInMemory: Bool) {
        key = info.key
        self.format = format
        size = info.size
        created = info.created
        lastAccess = info.lastAccess
        expires = info.expires
        tag = info.tag
        self.isInMemory = isInMemory
    }
}
