/// How far a lookup may go, and where a value is (R22, R83): each level includes those before it.
public enum CacheLevel: Int, Sendable, Hashable, Comparable, CaseIterable, Codable {
    /// Memory only. Answers at once.
    case memory
    /// Memory, then disk.
    case disk
    /// Memory, disk, then the source: a fetcher, a closure, the network.
    case source

    public static func < (one: CacheLevel, other: CacheLevel) -> Bool { one.rawValue < other.rawValue }
}
