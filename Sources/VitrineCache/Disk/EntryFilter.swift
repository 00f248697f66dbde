import VitrineCore

/// Knows of most keys without an entry that they have none, so that a miss asks no database.
///
/// A Bloom filter over all identifiers (Bloom 1970; two bits an entry in at least 16 bits of table: at most 1.4 % of
/// the misses get past it). It holds for one state of the database, told by the header of the log's index, which every
/// commit of any process changes; this process's own commits carry it on. After another process's commit it is made
/// anew, at most once in a while; until then it excludes nothing.
package final class EntryFilter: Sendable {
    /// The header of the log's index (https://www.sqlite.org/walformat.html, 2.1): 48 bytes.
    package struct Version: Equatable {
        package var words: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0)

        package init(words: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64)) { self.words = words }

        package static func == (one: Version, other: Version) -> Bool {
            one.words.0 == other.words.0 && one.words.1 == other.words.1 && one.words.2 == other.words.2
                && one.words.3 == other.words.3 && one.words.4 == other.words.4 && one.words.5 == other.words.5
        }
    }

    /// Commits seen while the table is being made.
    private struct Making {
        var version: Version
        var added: [Int64] = []
    }

    private struct State {
        var bits: [UInt64] = []
        /// The state of the database that the table holds for; nil while there is none.
        var version: Version?
        /// How many more entries fit before too many misses get past.
        var room = 0
        var making: Making?
        /// When it was last tried to make one, in coarse nanoseconds.
        var tried = Int64.min / 2
    }

    /// More entries are not filtered: the table would take more than 16 MB.
    static let countLimit = 4_000_000
    /// Words of the smallest table, for 4,096 entries.
    private static let fewestWords = 1024
    /// A table is not made more often, in nanoseconds.
    private static let interval: Int64 = 250_000_000

    private let state = Locked(State())

    package init() {}

    /// Whether there is certainly no such entry in this state of the database.
    package func excludes(_ id: Int64, in version: Version) -> Bool {
        state.withLock { state in
            guard let known = state.version, known == version else { return false }
            let mask = UInt64(state.bits.count) &* 64 &- 1
            let hasFirst = Self.has(state.bits, UInt64(bitPattern: id) & mask)
            return !hasFirst || !Self.has(state.bits, Self.second(id) & mask)
        }
    }

    private static func has(_ bits: [UInt64], _ bit: UInt64) -> Bool {
        bits[Int(truncatingIfNeeded: bit >> 6)] & (1 << (bit & 63)) != 0
    }

    /// Identifiers are hashes but for the bits of their format. The second place depends on the bits above the first.
    private static func second(_ id: Int64) -> UInt64 { (UInt64(bitPattern: id) &* 0x9E37_79B9_7F4A_7C15) >> 24 }

    private static func insert(_ id: Int64, _ bits: inout [UInt64]) {
        let mask = UInt64(bits.count) &* 64 &- 1
        set(UInt64(bitPattern: id) & mask, &bits)
        set(second(id) & mask, &bits)
    }

    private static func set(_ bit: UInt64, _ bits: inout [UInt64]) {
        bits[Int(truncatingIfNeeded: bit >> 6)] |= 1 << (bit & 63)
    }

    /// A commit of this process, made under the process lock.
    ///
    /// - Parameter ids: At least those that were added.
    package func advance(from old: Version, to new: Version, adding ids: [Int64]) {
        state.withLock { state in
            if var making = state.making {
                state.making = nil
                // Else another process has written meanwhile, and the table that is being made is of no use.
                if making.version == old {
                    making.version = new
                    making.added += ids
                    state.making = making
                }
            }
            guard state.version == old, state.room >= ids.count else {
                state.version = nil
                return
            }
            for id in ids { Self.insert(id, &state.bits) }
            state.room -= ids.count
            state.version = new
        }
    }

    /// Whether the caller is to make a table, beginning with this state of the database.
    package func beginMaking(in version: Version, time: Int64) -> Bool {
        state.withLock { state in
            guard state.version != version, state.making == nil, time &- state.tried >= Self.interval else {
                return false
            }
            state.tried = time
            state.making = Making(version: version)
            return true
        }
    }

    /// Begins with no entries, in a state of the database that has none.
    package func begin(in version: Version) {
        state.withLock { state in
            state.bits = [UInt64](repeating: 0, count: Self.fewestWords)
            state.room = Self.fewestWords * 4
            state.version = version
        }
    }

    /// Uses the table that was read since making began. It holds for the state after the last commit that was carried
    /// on; one that is under way is carried on when it ends, and where another process has written, no version is equal.
    package func finishMaking(_ ids: [Int64]) {
        var words = Self.fewestWords
        while words &* 4 < ids.count &* 2 { words &*= 2 }
        var bits = [UInt64](repeating: 0, count: words)
        for id in ids { Self.insert(id, &bits) }
        state.withLock { state in
            guard let making = state.making else { return }
            state.making = nil
            for id in making.added { Self.insert(id, &bits) }
            state.bits = bits
            state.room = words * 4 - ids.count - making.added.count
            state.version = making.version
        }
    }

    /// Gives up making.
    func cancelMaking() { state.withLock { $0.making = nil } }
}
