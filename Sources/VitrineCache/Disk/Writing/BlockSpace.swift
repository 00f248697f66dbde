/// A run of blocks in the file of bodies.
package struct Extent: Equatable, Sendable {
    package var start: Int
    package var count: Int

    package init(start: Int, count: Int) {
        self.start = start
        self.count = count
    }

    package var end: Int { start + count }

    /// Encodes extents for a row: 48 bits of the start and 16 of the count each, little-endian.
    package static func encode(_ extents: [Extent]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(extents.count * 8)
        for extent in extents {
            let word = UInt64(truncatingIfNeeded: extent.start) << 16 | UInt64(extent.count & 0xFFFF)
            withUnsafeBytes(of: word.littleEndian) { bytes.append(contentsOf: $0) }
        }
        return bytes
    }

    /// Decodes the extents of a row. The bytes may be damaged: the result is empty if they are no extents.
    package static func decode(_ bytes: UnsafeRawBufferPointer) -> [Extent] {
        guard bytes.count % 8 == 0, bytes.count / 8 <= BlockSpace.largestBody else { return [] }
        var extents: [Extent] = []
        extents.reserveCapacity(bytes.count / 8)
        for place in stride(from: 0, to: bytes.count, by: 8) {
            let word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self))
            let extent = Extent(start: Int(word >> 16), count: Int(word & 0xFFFF))
            guard extent.count > 0, extent.end <= BlockSpace.blockLimit else { return [] }
            extents.append(extent)
        }
        return extents
    }
}

/// Tells which blocks of the file of bodies are in use.
///
/// The map is stored in the database in chunks and changed by the transactions that change the rows, so that it fits
/// the rows after every crash and for every process. Blocks that a transaction releases are not used again before it is
/// committed: a killed process leaves the bodies of all committed rows as they were.
package struct BlockSpace {
    /// The size of a block: a page of the system's file cache, so that no block is read before it is overwritten.
    package static let blockBytes = 4096
    /// The blocks in a chunk of the map: 4000 bytes, so that a chunk fits on a page of the database.
    package static let chunkBlocks = 32_000
    static let chunkWords = chunkBlocks / 64
    /// The most chunks: 16 TB, the largest file that ext4 has.
    static let chunkLimit = 1 << 17
    static let blockLimit = chunkBlocks * chunkLimit
    /// The most blocks of a body.
    package static let largestBody = 256
    /// The words that a search for a run looks at.
    private static let searchLimit = 512

    private var words: [UInt64] = []
    /// The blocks in use, including released ones.
    package private(set) var used = 0
    /// The end of the blocks that have been in use since the map was loaded or the end was cut. Those behind it are free.
    package private(set) var end = 0
    /// Blocks that the transaction has released.
    private var released: [Extent] = []
    /// The number of these blocks.
    private var releasedCount = 0
    /// The chunks that differ from the stored ones.
    package private(set) var changed: Set<Int> = []
    /// The block where the next search begins.
    private var cursor = 0
    /// All blocks before this one are in use.
    private var lowest = 0
    /// The number of blocks that fit the capacity of the cache.
    package var capacity = blockLimit

    package init() {}

    /// Adds a chunk that was loaded.
    ///
    /// - Returns: Whether it is a chunk of a map. Otherwise nothing was added.
    package mutating func load(_ number: Int, _ bytes: UnsafeRawBufferPointer) -> Bool {
        guard (0..<Self.chunkLimit).contains(number), bytes.count == Self.chunkWords * 8 else { return false }
        let first = number * Self.chunkWords
        grow(to: (first + Self.chunkWords) * 64)
        for index in 0..<Self.chunkWords {
            let word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self))
            guard word != 0 else { continue }
            words[first + index] = word
            used += word.nonzeroBitCount
            end = max(end, (first + index) * 64 + 64 - word.leadingZeroBitCount)
        }
        return true
    }

    /// The bytes of a chunk; nil if none of its blocks is in use.
    package func chunk(_ number: Int) -> [UInt8]? {
        let first = number * Self.chunkWords
        guard words[first..<first + Self.chunkWords].contains(where: { $0 != 0 }) else { return nil }
        return words[first..<first + Self.chunkWords].map { $0.littleEndian }.withUnsafeBytes { Array($0) }
    }

    /// Free blocks that are kept between those in use, so that bodies lie in one piece. Above this number the file does
    /// not grow.
    package static func reserve(used: Int) -> Int { used / 32 + 16 }

    /// The blocks that count towards the capacity: those in use, and free ones that the file needs between them.
    package var occupied: Int { used + min(end - used, spare) }

    /// The blocks that are left alone: those that fit the capacity, and some more, which are used again soon.
    package var growthLimit: Int { capacity + capacity / 64 }

    /// Whether the file is longer than the capacity allows. Then bodies go to its beginning, so that its end gets
    /// free.
    package var isCrowded: Bool { end > growthLimit }

    // MARK: Allocating

    /// Takes blocks for a body: in one piece where possible.
    ///
    /// - Returns: nil if the file may not grow any further.
    package mutating func allocate(_ count: Int) -> [Extent]? {
        let free = end - used
        if free < max(count, Self.reserve(used: used)) { return append(count).map { [$0] } }
        if isCrowded {
            lowest = next(from: lowest, isUsed: false) ?? end
            cursor = lowest
        }
        if let run = run(of: count) {
            take(run)
            cursor = run.end
            return [run]
        }
        return pieces(count)
    }

    private mutating func append(_ count: Int) -> Extent? {
        guard end + count <= Self.blockLimit else { return nil }
        let extent = Extent(start: end, count: count)
        grow(to: extent.end)
        take(extent)
        end = extent.end
        return extent
    }

    private mutating func grow(to blocks: Int) {
        let chunks = (blocks + Self.chunkBlocks - 1) / Self.chunkBlocks
        let missing = chunks * Self.chunkWords - words.count
        if missing > 0 { words.append(contentsOf: repeatElement(0, count: missing)) }
    }

    /// Searches a free run behind the cursor, and then from the beginning.
    private func run(of count: Int) -> Extent? {
        let start = min(cursor, end), limit = Self.searchLimit * 64
        if let found = run(of: count, from: start, to: min(end, start + limit)) { return found }
        return run(of: count, from: 0, to: min(start, limit))
    }

    private func run(of count: Int, from start: Int, to limit: Int) -> Extent? {
        var block = start
        while let free = nextRun(from: block, longest: count), free.end <= limit {
            if free.count == count { return free }
            block = free.end + 1
        }
        return nil
    }

    /// The next free run before the end, cut to a length.
    private func nextRun(from start: Int, longest: Int) -> Extent? {
        guard let first = next(from: start, isUsed: false), first < end else { return nil }
        let behind = min(next(from: first, isUsed: true) ?? end, end)
        return Extent(start: first, count: min(behind - first, longest))
    }

    /// The next block from one on that is in use or free.
    private func next(from block: Int, isUsed: Bool) -> Int? {
        var index = block >> 6
        var mask = UInt64.max << UInt64(block & 63)
        while index < words.count {
            let found = (isUsed ? words[index] : ~words[index]) & mask
            if found != 0 { return index << 6 + found.trailingZeroBitCount }
            mask = .max
            index += 1
        }
        return nil
    }

    /// Takes free blocks wherever they are. There are enough.
    private mutating func pieces(_ count: Int) -> [Extent]? {
        var found: [Extent] = [], left = count
        var block = min(cursor, end), isSecondPass = false
        while left > 0 {
            guard let free = nextRun(from: block, longest: left) else {
                if isSecondPass { break }
                (block, isSecondPass) = (0, true)
                continue
            }
            take(free)
            found.append(free)
            left -= free.count
            block = free.end
        }
        cursor = block
        if left == 0 { return found }
        // The number of used blocks was wrong, which no correct map is.
        for extent in found { free(extent) }
        return append(count).map { [$0] }
    }

    // MARK: Changing

    private mutating func take(_ extent: Extent) {
        forEachWord(extent) { word, mask in
            word |= mask
        }
        used += extent.count
    }

    private mutating func free(_ extent: Extent) {
        forEachWord(extent) { word, mask in
            word &= ~mask
        }
        used -= extent.count
        lowest = min(lowest, extent.start)
    }

    private mutating func forEachWord(_ extent: Extent, _ change: (inout UInt64, UInt64) -> Void) {
        var block = extent.start
        while block < extent.end {
            let bit = block & 63, count = min(64 - bit, extent.end - block)
            let mask = (count == 64 ? UInt64.max : (1 << UInt64(count)) - 1) << UInt64(bit)
            change(&words[block >> 6], mask)
            changed.insert(block / Self.chunkBlocks)
            block += count
        }
    }

    /// Whether all blocks of an extent are in use.
    private func isUsed(_ extent: Extent) -> Bool {
        extent.end <= end && (next(from: extent.start, isUsed: false) ?? end) >= extent.end
    }

    /// Gives the blocks of a removed body back when the transaction is committed. Extents of a damaged row whose blocks
    /// are not in use are ignored.
    package mutating func release(_ extents: [Extent]) {
        released += extents
        releasedCount += extents.reduce(0) { $0 + $1.count }
    }

    /// Whether the transaction has released so many blocks that it is to be committed, so that they can be used again
    /// instead of new ones.
    package var isReleaseDue: Bool { releasedCount > releaseLimit }

    private var releaseLimit: Int { used / 64 + 32 }

    /// The number of free blocks that stay on the disk in any case: the reserve, and the blocks that a transaction
    /// releases while it takes others.
    package var spare: Int { Self.reserve(used: used) + releaseLimit }

    /// The number of free blocks above which some are given back even if they fit the capacity. Evictions free
    /// many at once, and to write into blocks costs less than to give them back and take them again.
    package var mostSpare: Int { used / 4 + 64 }

    /// Ends the transaction's changes: released blocks are free in the stored map.
    ///
    /// - Returns: The blocks that have become free.
    @discardableResult
    package mutating func applyReleases() -> [Extent] {
        var freed: [Extent] = []
        for extent in released where isUsed(extent) {
            free(extent)
            freed.append(extent)
        }
        released = []
        releasedCount = 0
        return freed
    }

    /// Takes the free blocks at the end out of the file.
    package mutating func cutEnd() {
        var index = min((end + 63) >> 6, words.count) - 1
        while index >= 0, words[index] == 0 { index -= 1 }
        end = index < 0 ? 0 : index << 6 + 64 - words[index].leadingZeroBitCount
    }

    /// All runs of free blocks between those in use.
    package var freeRuns: [Extent] {
        var runs: [Extent] = [], block = 0
        while let run = nextRun(from: block, longest: end) {
            runs.append(run)
            block = run.end
        }
        return runs
    }

    /// All chunks are stored.
    package mutating func markStored() { changed = [] }

    /// Begins a map that is made anew from the rows. Blocks that the transaction has released stay in use until then.
    package mutating func beginRebuilding() {
        for index in words.indices where words[index] != 0 {
            words[index] = 0
            changed.insert(index / Self.chunkWords)
        }
        (used, lowest) = (0, 0)
        for extent in released { addUsed(extent) }
    }

    /// Marks the blocks of a row in a map that is made anew.
    package mutating func addUsed(_ extent: Extent) {
        guard extent.end <= Self.blockLimit, extent.start >= 0, extent.count > 0 else { return }
        grow(to: extent.end)
        for block in extent.start..<extent.end where words[block >> 6] & (1 << UInt64(block & 63)) == 0 {
            take(Extent(start: block, count: 1))
        }
        end = max(end, extent.end)
    }
}
