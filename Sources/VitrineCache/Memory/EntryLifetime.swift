import VitrineCore

/// From when until when an entry counts, both since 1970.
@usableFromInline
package struct EntryLifetime: Sendable, Equatable {
    /// When it was stored.
    package private(set) var created: Duration
    /// From when on it no longer counts.
    package private(set) var expires: Duration

    /// A lifetime.
    package init(created: Duration, expires: Duration) {
        self.created = created
        self.expires = expires
    }

    /// Whether it is over, or the clock stands before it.
    package func needsCare(at now: Duration) -> Bool { now < created || now >= expires }

    /// Whether it is over.
    ///
    /// When the clock has been set back behind the creation, the entry counts as created now: it lives as long as it
    /// was meant to, not longer by what the clock jumped.
    package mutating func isOver(at now: Duration) -> Bool {
        if now < created {
            expires -= created - now
            created = now
        }
        return now >= expires
    }
}
