/// How urgent work is, relative to other work on the same queue.
public enum Priority: Int, Sendable, Hashable, Codable, CaseIterable, Comparable {
    /// Nobody may ever look at it: warming a cache.
    case veryLow
    /// Not visible yet: prefetching what is about to scroll in.
    case low
    /// The default.
    case normal
    /// On the screen.
    case high
    /// Someone waits for exactly this.
    case veryHigh

    public static func < (one: Priority, other: Priority) -> Bool { one.rawValue < other.rawValue }
}
