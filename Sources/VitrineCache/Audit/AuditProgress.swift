/// How far an audit is.
public struct AuditProgress: Sendable, Equatable {
    /// Entries looked at.
    public let examined: Int
    /// Entries there are, as counted at the beginning.
    public let total: Int
    /// Entries removed.
    public let removed: Int

    public init(examined: Int, total: Int, removed: Int) {
        self.examined = examined
        self.total = total
        self.removed = removed
    }
}
