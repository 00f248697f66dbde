import VitrineCore

/// The tags of an entry as hashes, and when the work on the entry began.
///
/// Only the equality of tags counts. The entries of two tags with the same hash are removed together, which is as
/// harmless as any eviction.
@usableFromInline
package struct EntryTags: Sendable, Equatable {
    /// The maximum number of tags of an entry.
    package static let countLimit = 16
    /// The maximum length of a tag in UTF-8 bytes.
    package static let lengthLimit = 256
    private static let seed: UInt64 = 0x7669_7472_7461_6773

    /// No tags.
    @inlinable package static var none: EntryTags { EntryTags(hashes: [], began: nil) }

    /// The hashes of the tags in ascending order, each once. None is 0.
    @usableFromInline package let hashes: [UInt64]
    /// The last purge in the directory when the work on the entry began; nil if that is unknown. An entry without tags
    /// does not need it.
    @usableFromInline package let began: PurgeMark?

    @inlinable
    init(hashes: [UInt64], began: PurgeMark?) {
        self.hashes = hashes
        self.began = began
    }

    /// Creates the tags of an entry.
    ///
    /// - Throws: ``CacheError/invalidTags(count:longest:)``.
    package init(_ tags: [String], began: PurgeMark?) throws(CacheError) {
        guard !tags.isEmpty else {
            self = .none
            return
        }
        // By their bytes: strings that look the same may differ in them.
        let hashes = Set(tags.map(Self.hash(ofValid:))), longest = tags.reduce(0) { max($0, $1.utf8.count) }
        guard hashes.count <= Self.countLimit, longest <= Self.lengthLimit else {
            throw .invalidTags(count: hashes.count, longest: longest)
        }
        self.init(hashes: hashes.sorted(), began: began)
    }

    /// Returns the hash of a tag.
    ///
    /// - Throws: ``CacheError/invalidTags(count:longest:)`` if no entry can have the tag.
    package static func hash(of tag: String) throws(CacheError) -> UInt64 {
        guard tag.utf8.count <= lengthLimit else { throw .invalidTags(count: 1, longest: tag.utf8.count) }
        return hash(ofValid: tag)
    }

    private static func hash(ofValid tag: String) -> UInt64 {
        let hash = StableHash.hash(tag, seed: seed)
        return hash == 0 ? 1 : hash
    }

    /// Whether there are none.
    @inlinable package var isEmpty: Bool { hashes.isEmpty }

    /// Whether both have the same tags.
    func hasSameTags(as other: EntryTags) -> Bool { hashes == other.hashes }

    // MARK: On disk

    /// The tags as they are in the row of an entry: the sequence number, then the hashes, eight bytes each, least
    /// significant first. Empty without tags.
    ///
    /// - Parameter generation: The generation of the row.
    func encoded(in generation: UInt64) -> [UInt8] {
        guard !isEmpty else { return [] }
        let words = [UInt64(bitPattern: sequence(in: generation))] + hashes
        return words.flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) } }
    }

    /// The tags in the row of an entry. Bytes that are no tags are none.
    init(encoded: UnsafeRawBufferPointer, generation: UInt64) {
        guard encoded.count > 8, encoded.count % 8 == 0, encoded.count / 8 - 1 <= Self.countLimit else {
            self = .none
            return
        }
        let words = stride(from: 0, to: encoded.count, by: 8).map {
            UInt64(littleEndian: encoded.loadUnaligned(fromByteOffset: $0, as: UInt64.self))
        }
        self.init(
            hashes: Array(words.dropFirst()),
            began: PurgeMark(generation: generation, sequence: Int64(bitPattern: words[0])))
    }

    /// The number of the last purge in a generation before the work began. 0 for an entry of another one: all purges of
    /// this one are later.
    func sequence(in generation: UInt64) -> Int64 {
        began.map { $0.generation == generation ? $0.sequence : 0 } ?? 0
    }
}

/// A point in the order of the purges of a directory. Work that began before a purge does not store entries with its
/// tag.
@usableFromInline
package struct PurgeMark: Sendable, Equatable {
    /// The generation of the disk level.
    let generation: UInt64
    /// The number of the last purge in it; 0 before the first one.
    let sequence: Int64
}

/// The last purges of a process or a directory by their tags. Their number is bounded: of older ones only the number of
/// the last is known, and they count as purges of every tag.
struct PurgeRecords {
    private let limit: Int
    /// The number of the last purge.
    private(set) var last = 0
    /// The number of the last purge that is not recorded.
    private var floor = 0
    private var sequences: [UInt64: Int] = [:]

    init(limit: Int = 4096) { self.limit = limit }

    /// Whether one of the tags may have been purged after a number.
    func contains(_ tags: EntryTags, after sequence: Int) -> Bool {
        guard last > sequence, !tags.isEmpty else { return false }
        return sequence < floor || tags.hashes.contains { (sequences[$0] ?? 0) > sequence }
    }

    /// Records a purge.
    mutating func add(_ tag: UInt64) {
        last += 1
        sequences[tag] = last
        guard sequences.count > limit else { return }
        let floor = last - limit / 2
        self.floor = floor
        sequences = sequences.filter { $0.value > floor }
    }
}
