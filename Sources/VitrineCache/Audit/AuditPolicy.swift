public import VitrineCore

/// Which entries an audit removes.
///
/// ```swift
/// try await cache.audit([.olderThan(.seconds(30 * 86_400)), .shrinking(to: .gigabytes(1))])
/// ```
///
/// Policies add up: an entry goes if one of them says so. Shrinking comes last, over what the others leave.
public struct AuditPolicy: Sendable, ExpressibleByArrayLiteral {
    /// What is known when an entry is judged.
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
    public init(_ policies: [AuditPolicy]) {
        removes = { entry, moment in policies.contains { $0.removes(entry, moment) } }
        target = policies.compactMap(\.target).min()
    }

    public init(arrayLiteral policies: AuditPolicy...) { self.init(policies) }

    /// This policy and another.
    public func and(_ other: AuditPolicy) -> AuditPolicy { AuditPolicy([self, other]) }

    /// Removes what was stored longer ago than this.
    public static func olderThan(_ age: Duration) -> AuditPolicy {
        AuditPolicy { entry, moment in entry.created < moment.now - age }
    }

    /// Removes what was stored before a time since 1970 (R53).
    public static func createdBefore(_ time: Duration) -> AuditPolicy {
        AuditPolicy { entry, _ in entry.created < time }
    }

    /// Removes what was last used before a time since 1970 (R54).
    public static func lastAccessedBefore(_ time: Duration) -> AuditPolicy {
        AuditPolicy { entry, _ in entry.lastAccess < time }
    }

    /// Removes what has not been used for so long.
    public static func notAccessed(for age: Duration) -> AuditPolicy {
        AuditPolicy { entry, moment in entry.lastAccess < moment.now - age }
    }

    /// Removes what is not fresh any more.
    public static let expired = AuditPolicy { entry, moment in entry.expires.map { $0 <= moment.now } ?? false }

    /// Removes everything whose key is not among these, in all formats (R55). Membership is exact.
    public static func keepingOnly(_ keys: Set<CacheKey>) -> AuditPolicy {
        AuditPolicy { entry, _ in !keys.contains(entry.key) }
    }

    /// Removes what was not used for the longest time until all formats together have at most this.
    ///
    /// Counts the entries' bytes, not what the disk level adds to each.
    public static func shrinking(to size: ByteCount) -> AuditPolicy {
        AuditPolicy(target: size) { _, _ in false }
    }

    /// Removes what `keeps` says no to (R51). Called once for each entry, in no order, on the cache's executor,
    /// where it may block.
    public static func custom(keeps: @escaping @Sendable (AuditEntry) -> Bool) -> AuditPolicy {
        AuditPolicy { entry, _ in !keeps(entry) }
    }

    /// Removes everything (R57).
    public static let everything = AuditPolicy { _, _ in true }
}
