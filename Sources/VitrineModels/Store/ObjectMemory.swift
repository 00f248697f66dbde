internal import VitrineCache
internal import VitrineCore

/// Values' bytes that were read lately, as far as they are known to be what the file holds.
final class ObjectMemory: Sendable {
    private struct State {
        /// Goes up with every change, whoever makes it: what was read before is not kept after.
        var moment = 0
        /// SQLite's number of changes by others, when it was last looked at.
        var changesOfOthers: Int64?
    }

    private let state = Locked(State())
    private let cache: MemoryCache<CacheKey, [UInt8]>

    /// What an entry occupies besides its bytes.
    private static let overhead = 200

    init(capacity: ByteCount) {
        cache = MemoryCache(.init(capacity: capacity), cost: { $0.count + Self.overhead })
    }

    private static func name(_ key: String, _ group: ObjectGroup) -> CacheKey { CacheKey(group.path, key) }

    /// The present moment, after which nothing has changed yet. Drops everything if others changed the file.
    func moment(changesOfOthers: Int64) -> Int {
        state.withLock { state in
            if state.changesOfOthers != changesOfOthers {
                state.changesOfOthers = changesOfOthers
                state.moment += 1
                cache.removeAll()
            }
            return state.moment
        }
    }

    /// How many reads it has answered.
    var hits: Int { cache.statistics.hits }

    func bytes(_ key: String, _ group: ObjectGroup) -> [UInt8]? { cache.value(forKey: Self.name(key, group)) }

    /// Keeps bytes that were read, unless something has changed since.
    func keep(_ bytes: [UInt8], _ key: String, _ group: ObjectGroup, readAfter moment: Int) {
        state.withLock { state in
            if state.moment == moment { cache.set(bytes, forKey: Self.name(key, group)) }
        }
    }

    /// Forgets what a commit has changed.
    func forget(_ changes: [ObjectChange]) {
        state.withLock { state in
            state.moment += 1
            for change in changes {
                switch change {
                case .put(let key, let group), .removed(let key, let group): cache.remove(Self.name(key, group))
                case .removedGroup, .elsewhere: cache.removeAll()
                }
            }
        }
    }
}
