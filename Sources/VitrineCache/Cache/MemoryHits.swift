/// What a memory hit does to the entry on disk (R37).
public enum MemoryHits: Sendable, Hashable {
    /// Nothing. Eviction and audits on disk then see uses only that memory did not serve.
    case leaveDisk
    /// Its last access is refreshed, in batches of up to 256 uses. The default: an audit by last access must not
    /// remove what is used most.
    case refreshLastAccess
    /// The last access is refreshed, and an entry that is missing on disk is written again, one check per batch.
    case restoreMissing
}
