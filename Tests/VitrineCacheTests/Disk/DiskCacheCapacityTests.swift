import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineDatabase

@Suite struct DiskCacheCapacityTests {
    private static let unit = DiskFixture.charge(1000, "k0")

    private func fill(_ cache: DiskCache.Blocking, _ range: Range<Int>) throws {
        for i in range { try cache.set(DiskFixture.bytes(1000, seed: i), forKey: CacheKey("k\(i)")) }
        try cache.flush()
    }

    @Test func leastRecentlyUsedGoesFirst() throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache {
            $0.capacity = ByteCount(Self.unit * 4)
            $0.eviction = .leastRecentlyUsed
        }
        try fill(cache.blocking, 0..<4)
        _ = try cache.blocking.bytes(forKey: "k0")
        cache.touch("k1")
        try fill(cache.blocking, 4..<6)
        let left = try cache.blocking.entries().map(\.key.identity).sorted()
        #expect(left == ["k0", "k1", "k4", "k5"])
        #expect(cache.statistics.evictions == 2)
    }

    @Test func usedAndSmallStayBySizeAndFrequency() throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache { $0.capacity = .kilobytes(60) }
        let disk = cache.blocking
        try disk.set(DiskFixture.bytes(20_000), forKey: "used")
        try disk.set(DiskFixture.bytes(100), forKey: "small")
        try disk.flush()
        for i in 0..<60 {
            for _ in 0..<3 { #expect(try disk.bytes(forKey: "used") != nil) }
            try disk.set(DiskFixture.bytes(5000, seed: i), forKey: CacheKey("new\(i)"))
            try disk.flush()
        }
        #expect(try disk.contains("used"))
        #expect(try disk.contains("small"))
        #expect(try disk.size.bytes <= 60_000)
        #expect(cache.statistics.evictions > 45)
    }

    @Test(arguments: DiskCache.Eviction.allCases, [50, 5000])
    func neverExceedsTheCapacityInAWriteStorm(eviction: DiskCache.Eviction, inlineLimit: Int) async throws {
        let fixture = try DiskFixture()
        let capacity = 200_000
        let cache = fixture.cache {
            $0.capacity = ByteCount(capacity)
            $0.eviction = eviction
            $0.inlineLimit = ByteCount(inlineLimit)
        }
        let disk = cache.blocking
        try disk.set([], forKey: "first")
        try disk.flush()
        let stop = Counter(), samples = Counter(), largest = Counter()
        let path = fixture.database
        // A thread of its own: the cache's asynchronous calls need the shared ones.
        let executor = BlockingExecutor(threads: 1, name: "sampler")
        async let sampler: Void = executor.run {
            var options = Database.Options()
            options.isReadOnly = true
            guard let database = try? Database(path: path, options: options) else { return }
            while stop.value == 0 || samples.value == 0 {
                // Counted anew from the rows, not from the cache's own total.
                let charge = "size+length(key)+length(validator)+\(DiskCache.entryOverhead)"
                let sum = "SELECT coalesce(sum(\(charge)),0) FROM entry"
                guard let size = try? database.integer(sum) else { continue }
                largest.raise(to: Int(size))
                samples.add(1)
            }
        }
        for i in 0..<300 { try await cache.set(DiskFixture.bytes(i * 37 % 6000, seed: i), forKey: CacheKey("k\(i)")) }
        try await cache.flush()
        stop.add(1)
        await sampler
        #expect(samples.value > 0)
        #expect(largest.value <= capacity)
        #expect(try await cache.size.bytes > capacity - 7000)
        #expect(try await cache.verify(removingDamage: false).isSound)
    }

    @Test func sizeIsExactAgainstARecount() throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache { $0.capacity = .kilobytes(300); $0.inlineLimit = 4000 }.blocking
        for i in 0..<500 {
            let key = CacheKey("k\(i * 31 % 97)")
            switch i % 9 {
            case 0: cache.remove(key)
            case 1: cache.setValidator(DiskFixture.bytes(i % 50), forKey: key)
            case 2: cache.expire(key)
            default: try cache.set(DiskFixture.bytes(i * 53 % 9000, seed: i), forKey: key, validator: [1])
            }
            if i % 100 == 99 {
                let entries = try cache.entries(limit: 1000)
                let recount = entries.reduce(0) { $0 + DiskFixture.charge($1.size.bytes, $1.key) + $1.validator.count }
                #expect(try cache.size.bytes == recount)
                #expect(try cache.count == entries.count)
                #expect(recount <= 300_000)
            }
        }
    }

    @Test func capacityZeroKeepsNothing() throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache { $0.capacity = 0 }
        try cache.blocking.set([], forKey: "a")
        try cache.blocking.flush()
        #expect(try cache.blocking.bytes(forKey: "a") == nil)
        #expect(try cache.blocking.size == .zero)
        #expect(cache.statistics.refusals == 1)
    }

    @Test func refusesWhatIsLargerThanTheCapacityAndRemovesTheOlderValue() throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache { $0.capacity = .kilobytes(10) }
        let disk = cache.blocking
        try disk.set([1], forKey: "a")
        try disk.set([2], forKey: "b")
        try disk.flush()
        try disk.set(DiskFixture.bytes(10_000), forKey: "a")
        try disk.flush()
        #expect(try disk.bytes(forKey: "a") == nil)
        #expect(try disk.bytes(forKey: "b") == [2])
        #expect(cache.statistics.refusals == 1)
    }

    @Test func loweringTheCapacityEvictsAtOnce() async throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache()
        try fill(cache.blocking, 0..<10)
        try await cache.setCapacity(ByteCount(Self.unit * 3))
        #expect(cache.capacity.bytes == Self.unit * 3)
        #expect(try await cache.count == 3)
        #expect(try await cache.size.bytes <= Self.unit * 3)
        try fill(cache.blocking, 10..<20)
        #expect(try await cache.size.bytes <= Self.unit * 3 + 20)
        try await cache.setCapacity(.zero)
        #expect(try await cache.size == .zero)
    }

    @Test func openingWithLessCapacityEvicts() throws {
        let fixture = try DiskFixture()
        try fill(fixture.cache().blocking, 0..<10)
        let cache = fixture.cache { $0.capacity = ByteCount(Self.unit * 3) }.blocking
        #expect(try cache.size.bytes <= Self.unit * 3)
        #expect(try cache.count > 0)
    }
}
