import VitrineCore

/// The tags of a memory cache's entries, and the keys of each tag.
///
/// It knows the tagged keys whose values are in the cache, or evicted but possibly alive elsewhere. Lookups do not use
/// it, so that hits cost the same with tags and without.
@usableFromInline
package struct TagIndex<Key: HashedKey>: Sendable {
    private typealias Identity = KeyIdentity<Key>

    private var tags: [Identity: EntryTags] = [:]
    private var keys: [UInt64: Set<Identity>] = [:]

    /// An empty index.
    package init() {}

    /// How many keys have tags.
    package var count: Int { tags.count }

    /// The bytes it occupies, about: a place in the table of tags, and one in the set of each tag.
    package var bytes: Int {
        let places = keys.values.reduce(0) { $0 + $1.capacity }
        return tags.capacity * (MemoryLayout<Identity>.stride + MemoryLayout<EntryTags>.stride)
            + places * MemoryLayout<Identity>.stride + keys.capacity * MemoryLayout<(UInt64, Set<Identity>)>.stride
    }

    /// The tags of a key.
    package func tags(of key: Key) -> EntryTags { tags[Identity(key: key)] ?? .none }

    /// The keys with a tag.
    package func keys(of tag: UInt64) -> [Key] { keys[tag]?.map(\.key) ?? [] }

    /// Sets the tags of a key in place of the earlier ones.
    package mutating func set(_ new: EntryTags, for key: Key) {
        remove(key)
        guard !new.isEmpty else { return }
        let identity = Identity(key: key)
        tags[identity] = new
        for tag in new.hashes { keys[tag, default: []].insert(identity) }
    }

    /// Forgets the tags of a key.
    package mutating func remove(_ key: Key) {
        let identity = Identity(key: key)
        guard let old = tags.removeValue(forKey: identity) else { return }
        for tag in old.hashes {
            keys[tag]?.remove(identity)
            if keys[tag]?.isEmpty == true { keys[tag] = nil }
        }
    }

    /// Forgets the tags of all keys but those that `isKept` picks.
    mutating func removeAll(except isKept: (Key) -> Bool) {
        for identity in tags.keys where !isKept(identity.key) { remove(identity.key) }
    }
}

/// A key in a table, found by the hash that it stores.
struct KeyIdentity<Key: HashedKey>: Hashable, Sendable {
    let key: Key

    func hash(into hasher: inout Hasher) { hasher.combine(key.hash64) }
}
