public import VitrineCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The entries that an audit removes.
///
/// ```swift
/// try await cache.audit([.olderThan(.seconds(30 * 86_400)), .shrinking(to: .gigabytes(1))])
/// ```
///
/// In a list of policies, an entry is removed if any policy removes it. Shrinking comes last and applies to the rest.
public struct AuditPolicy: Sendable, ExpressibleByArrayLiteral {
    /// The conditions under which an entry is judged.
    struct Moment: Sendable {
        let now: Duration
    }

    let removes: @Sendable (AuditEntry, Moment) -> Bool
    let target: ByteCount?

    private init(target: ByteCount? = nil, removes: @escaping @Sendable (AuditEntry, Moment) -> Bool) {
        self.target = target
        self.removes = removes
    }

    /// All of several policies.
    package init(_ policies: [AuditPolicy]) {
        removes = { entry, moment in policies.contains { $0.removes(entry, moment) } }
        target = policies.compactMap(\.target).min()
    }

    /// Creates a policy that removes the entries that any of several policies removes.
    public init(arrayLiteral policies: AuditPolicy...) { self.init(policies) }

    /// Removes entries that were stored longer ago than this.
    public static func olderThan(_ age: Duration) -> AuditPolicy {
        AuditPolicy { entry, moment in entry.created < moment.now - age }
    }

    /// Removes entries that have not been accessed for this time.
    public static func notAccessed(for age: Duration) -> AuditPolicy {
        AuditPolicy { entry, moment in entry.lastAccess < moment.now - age }
    }

    /// Removes entries that have not been accessed since a date.
    public static func notAccessed(since date: Date) -> AuditPolicy {
        let seconds = date.timeIntervalSince1970
        // As numbers: a date may be beyond every duration.
        return AuditPolicy { entry, _ in entry.lastAccess / .seconds(1) < seconds }
    }

    /// Removes expired entries.
    public static let expired = AuditPolicy { entry, moment in entry.expires.map { $0 <= moment.now } ?? false }

    /// Removes all entries, of all formats, with other keys. Keys are compared exactly.
    package static func keepingOnly(_ keys: Set<CacheKey>) -> AuditPolicy {
        AuditPolicy { entry, _ in !keys.contains(entry.key) }
    }

    /// Removes the least recently accessed entries until the bytes of all formats together are at most this.
    ///
    /// The overhead of the disk level does not count.
    public static func shrinking(to size: ByteCount) -> AuditPolicy {
        AuditPolicy(target: size) { _, _ in false }
    }

    /// Removes the entries for which `keeps` returns false. It is called once for each entry, in any order, on the
    /// executor of the cache, where it may block.
    public static func custom(keeps: @escaping @Sendable (AuditEntry) -> Bool) -> AuditPolicy {
        AuditPolicy { entry, _ in !keeps(entry) }
    }

    /// Removes all entries.
    public static let everything = AuditPolicy { _, _ in true }
}

/// The properties of an entry in an audit.
public struct AuditEntry: Sendable, Equatable {
    /// The key of the entry.
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
    /// Whether the value is in memory, or alive elsewhere. Audits keep such entries by default.
    public let isInMemory: Bool
    /// The validator that the fetcher stored with the entry.
    package let validator: [UInt8]

    package init(_ info: DiskCache.EntryInfo, format: FormatName, isInMemory: Bool) {
        key = info.key
        self.format = format
        size = info.size
        created = info.created
        lastAccess = info.lastAccess
        expires = info.expires
        validator = info.validator
        self.isInMemory = isInMemory
    }
}

/// The result of an audit or of a dry run, or how far an audit is.
public struct AuditReport: Sendable {
    /// Entries looked at.
    public internal(set) var examined = 0
    /// Entries there are, as counted at the beginning.
    public internal(set) var total = 0
    /// Entries removed.
    public internal(set) var removed = 0
    /// The bytes of the removed ones.
    public internal(set) var removedBytes: ByteCount = .zero
    /// Entries left.
    public internal(set) var kept = 0
    /// The bytes of those left.
    public internal(set) var keptBytes: ByteCount = .zero
    /// The number of kept entries that were kept only because they are in memory.
    public internal(set) var spared = 0
    /// Removed files in the directory that no release of this cache writes or reads.
    public internal(set) var foreignFiles: [String] = []
    /// The entries removed, in a dry run only: an audit of a large cache would hold very many.
    public internal(set) var entries: [AuditEntry] = []
}
