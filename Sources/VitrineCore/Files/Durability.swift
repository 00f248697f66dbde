/// Whether a completed write survives a power failure.
///
/// A killed process loses no completed write in either case, and files are never left incomplete.
public enum Durability: Sendable, Hashable {
    /// A write completes when its data is on the medium. This takes up to several milliseconds.
    case full
    /// A write completes without waiting for the medium. A power failure may undo the most recent writes.
    case relaxed
}
