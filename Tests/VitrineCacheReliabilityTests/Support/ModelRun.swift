import TestSupport
import VitrineCache
import VitrineCore

/// A cache and a dictionary that get the same operations by chance. With an eviction policy the capacity is small and
/// changes, and entries may be missing; without, every entry must be there.
struct ModelRun {
    private struct Entry {
        var version: Int
        /// Even milliseconds; the clock stands at odd ones, so that nothing expires in the very moment of a look.
        var expires: Int?
    }

    private(set) var mistakes: [String] = []
    private(set) var hits = 0
    private let directory: TemporaryDirectory
    private let clock = ManualClock()
    private let eviction: DiskCache.Eviction?
    private let keys: Int
    private var random: SeededGenerator
    private var capacity: Int
    private var cache: DiskCache.Blocking
    private var model: [Int: Entry] = [:]
    private var version = 0
    /// Milliseconds of the clock.
    private var now = 1

    init(seed: UInt64, keys: Int, eviction: DiskCache.Eviction? = nil) throws {
        directory = try TemporaryDirectory()
        random = SeededGenerator(seed)
        self.keys = keys
        self.eviction = eviction
        capacity = eviction == nil ? .max : 40_000
        clock.advance(by: .milliseconds(now))
        cache = Self.open(directory, clock, capacity, eviction)
    }

    private static func open(
        _ directory: TemporaryDirectory, _ clock: ManualClock, _ capacity: Int, _ eviction: DiskCache.Eviction?
    ) -> DiskCache.Blocking {
        var configuration = DiskCache.Configuration()
        configuration.capacity = ByteCount(capacity)
        configuration.eviction = eviction ?? .sizeAndFrequency
        configuration.clock = .following(clock, from: .seconds(1_800_000_000))
        return DiskCache(directory: directory.file("cache"), configuration: configuration).blocking
    }

    mutating func perform(_ operations: Int) throws {
        for step in 0..<operations {
            guard mistakes.count < 10 else { return }
            let number = Int.random(in: 0..<keys, using: &random)
            switch Int.random(in: 0..<10_000, using: &random) {
            case 0..<6000: try get(number, step)
            case 6000..<8800: try set(number)
            case 8800..<9300: try remove(number)
            case 9300..<9500: try expire(number)
            case 9500..<9700: try look(number, step)
            case 9700..<9900: wait()
            case 9900..<9980: try cache.flush()
            case 9980..<9989: try compareAccounts(step)
            case 9989..<9992: try changeCapacity()
            case 9992..<9996: try removeAll()
            default: try reopen()
            }
        }
        try compareAccounts(operations)
    }

    private func isFresh(_ entry: Entry) -> Bool { entry.expires.map { $0 > now } ?? true }

    private mutating func fail(_ text: String, _ step: Int) { mistakes.append("step \(step): \(text)") }

    private mutating func get(_ number: Int, _ step: Int) throws {
        let bytes = try cache.bytes(forKey: SampleEntry.key(number))
        let expected = model[number].flatMap { isFresh($0) ? $0 : nil }
        guard let bytes else {
            if expected != nil, eviction == nil { fail("entry \(number) is missing", step) }
            return
        }
        guard let expected else { return fail("entry \(number) should not be there", step) }
        hits += 1
        if bytes != SampleEntry(number: number, version: expected.version).bytes(.tiny) {
            fail("entry \(number) is not version \(expected.version)", step)
        }
    }

    private mutating func set(_ number: Int) throws {
        version += 1
        let lifetime = Int.random(in: 0..<4, using: &random) == 0 ? Int.random(in: 1...500, using: &random) : nil
        // The clock is odd: an odd time to live ends at an even instant.
        let duration = lifetime.map { $0 * 2 + 1 }
        let entry = SampleEntry(number: number, version: version)
        try cache.set(
            entry.bytes(.tiny), forKey: entry.key, timeToLive: duration.map { .milliseconds($0) })
        model[number] = Entry(version: version, expires: duration.map { now + $0 })
    }

    private mutating func wait() {
        let step = 2 * Int.random(in: 1...200, using: &random)
        clock.advance(by: .milliseconds(step))
        now += step
    }

    private mutating func remove(_ number: Int) throws {
        cache.remove(SampleEntry.key(number))
        model[number] = nil
    }

    private mutating func expire(_ number: Int) throws {
        cache.expire(SampleEntry.key(number))
        let moment = now - 1
        if let entry = model[number], isFresh(entry) { model[number]?.expires = moment }
    }

    /// The other ways to ask for an entry.
    private mutating func look(_ number: Int, _ step: Int) throws {
        let key = SampleEntry.key(number), entry = model[number]
        let isExpected = entry.map(isFresh) ?? false
        let isThere = try cache.contains(key)
        if isThere != isExpected, isThere || eviction == nil { fail("contains \(number) is \(isThere)", step) }
        guard let stale = try cache.entry(forKey: key, includingExpired: true) else { return }
        guard let entry else { return fail("entry \(number) should not even be stale", step) }
        if stale.bytes != SampleEntry(number: number, version: entry.version).bytes(.tiny) {
            fail("stale entry \(number) is not version \(entry.version)", step)
        }
        if stale.isExpired == isFresh(entry) { fail("entry \(number) is expired: \(stale.isExpired)", step) }
    }

    private mutating func compareAccounts(_ step: Int) throws {
        try cache.flush()
        let size = try cache.size.bytes, count = try cache.count
        if size > capacity { fail("size \(size) is above \(capacity)", step) }
        let fresh = model.values.count(where: isFresh)
        if count > model.count || (eviction == nil && count < fresh) {
            fail("count \(count), the model has \(fresh) fresh of \(model.count)", step)
        }
        if (count == 0) != (size == 0) { fail("count \(count) but size \(size)", step) }
    }

    private mutating func changeCapacity() throws {
        guard eviction != nil else { return }
        capacity = [0, 10_000, 40_000, 80_000, 40_000].randomElement(using: &random) ?? 0
        try cache.setCapacity(ByteCount(capacity))
    }

    private mutating func removeAll() throws {
        try cache.removeAll()
        model = [:]
    }

    /// A new object for the same directory, as the next process has.
    private mutating func reopen() throws {
        try cache.flush()
        cache = Self.open(directory, clock, capacity, eviction)
    }
}
