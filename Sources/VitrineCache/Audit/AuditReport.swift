public import VitrineCore

/// What an audit did, or with a dry run would have done.
public struct AuditReport: Sendable {
    /// Entries looked at.
    public internal(set) var examined = 0
    /// Entries removed.
    public internal(set) var removed = 0
    /// The bytes of the removed ones.
    public internal(set) var removedBytes: ByteCount = .zero
    /// Entries left.
    public internal(set) var kept = 0
    /// The bytes of those left.
    public internal(set) var keptBytes: ByteCount = .zero
    /// Among those left, how many only because they are in memory (R56).
    public internal(set) var spared = 0
    /// Files that no release of this cache has made or can read, which are removed unasked (R56).
    public internal(set) var foreignFiles: [String] = []
    /// The entries removed, in a dry run only: an audit of a large cache would hold very many.
    public internal(set) var entries: [AuditEntry] = []
}
