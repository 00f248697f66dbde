import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCompatibility
import VitrineCore

struct AuditTests {
    /// Entries "0" to "9" of 100 bytes and more, an hour apart, on disk alone.
    private func fixture() async throws -> CacheFixture<String> {
        // Threads of its own: some policies below wait.
        let executor = BlockingExecutor(threads: 2, name: "audit")
        let fixture = try CacheFixture<String> { $0.executor = executor }
        for number in 0..<10 {
            let text = String(repeating: "\(number)", count: 100 + number)
            try await fixture.cache.set(text, forKey: CacheKey("\(number)"))
            fixture.clock.advance(by: .seconds(3600))
        }
        try await fixture.cache.flush()
        fixture.cache.clearMemory()
        return fixture
    }

    private func left(_ cache: ValueCache<String>, _ format: FormatName = .original) async throws -> String {
        try await cache.entries(of: format).map(\.key.identity).sorted().joined()
    }

    @Test func entriesTellWhatIsKnown() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        cache.register(CacheFormat("loud") { $0.uppercased() })
        let start = cache.configuration.clock.now
        try await cache.set("water", forKey: "lake", format: "loud", timeToLive: .seconds(60))
        try await cache.set("rock", forKey: "hill")
        try await cache.flush()
        fixture.clock.advance(by: .seconds(600))
        let entry = try #require(try await cache.entries(of: "loud").first)
        #expect(entry.key == "lake" && entry.format == "loud" && entry.size == 5)
        #expect(entry.created == start && entry.expires == start + .seconds(60))
        #expect(entry.lastAccess >= start && entry.lastAccess < start + .seconds(60))
        cache.clearMemory()
        #expect(try await cache.value(forKey: "hill") == "rock")
        let hill = try #require(try await cache.entries().first)
        #expect(hill.isInMemory && hill.lastAccess >= start + .seconds(540))
        #expect(await code { _ = try await cache.entries(of: "unknown") } == -101)
    }

    @Test func customPoliciesDecideEntryByEntry() async throws {
        let fixture = try await fixture()
        let seen = Recorder<String>()
        let report = try await fixture.cache.audit(
            .custom(keeps: { entry in
                seen.add(entry.key.identity)
                return entry.size.bytes % 2 == 0
            }))
        #expect(seen.all.sorted().joined() == "0123456789")
        #expect(try await left(fixture.cache) == "02468")
        #expect(report.examined == 10 && report.removed == 5 && report.kept == 5)
        #expect(report.removedBytes.bytes == 101 + 103 + 105 + 107 + 109)
        #expect(report.keptBytes.bytes == 100 + 102 + 104 + 106 + 108)
    }

    @Test func policiesByAge() async throws {
        let fixture = try await fixture()
        let cache = fixture.cache
        try await cache.audit(.olderThan(.seconds(8 * 3600)))
        #expect(try await left(cache) == "23456789")
        try await cache.audit(.olderThan(.seconds(6 * 3600)))
        #expect(try await left(cache) == "456789")
        // Used just now, through memory as well as from disk.
        #expect(try await cache.value(forKey: "4") != nil)
        try await cache.audit(.notAccessed(for: .seconds(4 * 3600)), sparesMemory: false)
        #expect(try await left(cache) == "46789")
        fixture.clock.advance(by: .seconds(3600))
        #expect(cache["4"] != nil)
        try await cache.audit(.notAccessed(for: .seconds(2 * 3600)), sparesMemory: false)
        #expect(try await left(cache) == "49")
    }

    @Test func entriesStoredTooLongAgoGoHoweverUsed() async throws {
        let fixture = try await fixture()
        let cache = fixture.cache
        for key in ["0", "1"] { #expect(try await cache.value(forKey: CacheKey(key)) != nil) }
        try await cache.set("stored again", forKey: "2")
        try await cache.flush()
        let report = try await cache.audit(.olderThan(.seconds(7 * 3600)), sparesMemory: false)
        #expect(try await left(cache) == "23456789")
        #expect(report.removed == 2 && report.examined == 10)
        // By default, what is in memory stays.
        #expect(try await cache.value(forKey: "3") != nil)
        #expect(try await cache.audit(.olderThan(.seconds(6 * 3600))).spared == 1)
        #expect(try await left(cache) == "23456789")
    }

    @Test func entriesNotAccessedSinceADateGo() async throws {
        let fixture = try await fixture()
        let cache = fixture.cache
        func date(hoursAgo hours: Double) -> Date {
            Date(timeIntervalSince1970: cache.configuration.clock.now / .seconds(1) - hours * 3600)
        }
        #expect(try await cache.value(forKey: "1") != nil)
        try await cache.audit(.notAccessed(since: date(hoursAgo: 6)), sparesMemory: false)
        #expect(try await left(cache) == "1456789")
        try await cache.audit(.notAccessed(since: .distantPast), sparesMemory: false)
        try await cache.audit(.notAccessed(since: Date(timeIntervalSince1970: .nan)), sparesMemory: false)
        #expect(try await left(cache) == "1456789")
        try await cache.audit(.notAccessed(since: Date(timeIntervalSince1970: .infinity)), sparesMemory: false)
        #expect(try await left(cache) == "")
    }

    @Test func expiredEntriesGo() async throws {
        let fixture = try await fixture()
        await fixture.cache.expire("3")
        try await fixture.cache.flush()
        fixture.clock.advance(by: .seconds(1))
        try await fixture.cache.audit(.expired)
        #expect(try await left(fixture.cache) == "012456789")
    }

    @Test func onlyListedKeysStay() async throws {
        let fixture = try await fixture()
        let cache = fixture.cache
        try await cache.audit(.keepingOnly(["1", "2", "3"]))
        #expect(try await left(cache) == "123")
        let list = RetainSet(of: cache)
        list.preserve("1")
        list.preserve("3")
        #expect(try await list.commit().removed == 1)
        #expect(try await left(cache) == "13")
        // The list is empty again.
        #expect(try await list.commit().removed == 2)
        #expect(try await left(cache) == "")
    }

    @Test func shrinkingTakesWhatWasUnusedLongest() async throws {
        let fixture = try await fixture()
        let cache = fixture.cache
        cache.register(CacheFormat("loud") { $0.uppercased() })
        try await cache.set(String(repeating: "x", count: 200), forKey: "new", format: "loud")
        #expect(try await cache.value(forKey: "0", levels: .readOnly) != nil)
        cache.clearMemory()
        let report = try await cache.audit(.shrinking(to: 520))
        #expect(try await left(cache) == "089")
        #expect(try await left(cache, "loud") == "new")
        #expect(report.keptBytes.bytes == 100 + 108 + 109 + 200)
        #expect(report.removed == 7 && report.kept == 4)
    }

    @Test func policiesAddUp() async throws {
        let fixture = try await fixture()
        try await fixture.cache.audit([.olderThan(.seconds(8 * 3600)), .keepingOnly(["0", "5", "6"])])
        #expect(try await left(fixture.cache) == "56")
        try await fixture.cache.audit([.custom(keeps: { _ in true }), .shrinking(to: 110)])
        #expect(try await left(fixture.cache) == "6")
    }

    @Test func dryRunsChangeNothing() async throws {
        let fixture = try await fixture()
        let report = try await fixture.cache.audit([.keepingOnly(["1", "2"]), .shrinking(to: 110)], dryRun: true)
        #expect(report.removed == 9 && report.kept == 1)
        #expect(report.entries.count == 9)
        #expect(try await left(fixture.cache) == "0123456789")
    }

    @Test func entriesInMemoryAreSparedUnlessAsked() async throws {
        let fixture = try await fixture()
        let cache = fixture.cache
        #expect(try await cache.value(forKey: "5") != nil)
        let report = try await cache.audit(.everything)
        #expect(try await left(cache) == "5")
        #expect(report.spared == 1)
        #expect(cache["5"] != nil)
        try await cache.audit(.everything, sparesMemory: false)
        #expect(try await left(cache) == "")
        // Gone from memory as well.
        #expect(cache["5"] == nil)
    }

    @Test func aliveElsewhereIsSpared() async throws {
        let fixture = try CacheFixture<Portrayed> { $0.memoryCapacity = 100 }
        let cache = fixture.cache
        let shown = try await cache.set(Portrayed("shown"), forKey: "shown")
        try await cache.set(Portrayed("gone"), forKey: "gone")
        try await cache.set(Portrayed("resident"), forKey: "resident")
        try await cache.flush()
        try await cache.audit(.everything)
        #expect(try await cache.entries().map(\.key.identity).sorted() == ["resident", "shown"])
        withExtendedLifetime(shown) {}
    }

    @Test func whatIsStoredMeanwhileStays() async throws {
        let fixture = try await fixture()
        let cache = fixture.cache
        let started = Gate()
        let semaphore = DispatchSemaphore(value: 0)
        let held = Recorder<String>()
        async let report = cache.audit(
            .custom(keeps: { entry in
                held.add(entry.key.identity)
                if held.all.count == 1 {
                    started.open()
                    semaphore.wait()
                }
                return false
            }), sparesMemory: false)
        await started.wait()
        try await cache.set("new", forKey: "3")
        try await cache.set("new", forKey: "never seen")
        semaphore.signal()
        #expect(try await report.removed == 9)
        #expect(try await left(cache) == "3never seen")
        #expect(try await cache.value(forKey: "3") == "new")
    }

    @Test func auditsFollowOneAnother() async throws {
        let fixture = try await fixture()
        let cache = fixture.cache
        let order = Recorder<String>()
        let started = Gate()
        let semaphore = DispatchSemaphore(value: 0)
        async let first = cache.audit(
            .custom(keeps: { entry in
                if entry.key == "1" {
                    started.open()
                    semaphore.wait()
                }
                return ["1", "2", "3"].contains(entry.key)
            }), progress: { _ in order.add("first") })
        await started.wait()
        async let second = cache.audit(.keepingOnly(["3", "4"]), progress: { _ in order.add("second") })
        while cache.waitingAudits == 0 { await Task.yield() }
        semaphore.signal()
        #expect(try await first.removed == 7)
        #expect(try await second.examined == 3)
        #expect(order.all == ["first", "second"])
        #expect(try await left(cache) == "3")
    }

    @Test func progressIsTold() async throws {
        let fixture = try await fixture()
        let told = Recorder<[Int]>()
        try await fixture.cache.audit(.keepingOnly([]), progress: { told.add([$0.examined, $0.total, $0.removed]) })
        #expect(told.all.last == [10, 10, 10])
    }

    @Test func cancelledAuditsStop() async throws {
        let fixture = try await fixture()
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await code { try await fixture.cache.audit(.everything) }
        }
        #expect(await task.value == -540)
        #expect(try await left(fixture.cache) == "0123456789")
    }

    @Test func foreignFilesAreRemovedUnasked() async throws {
        let fixture = try await fixture()
        let cache = fixture.cache
        try fixture.directory.write("old", to: "test/stray")
        try fixture.directory.write("old", to: "test/original/d41d8cd98f00b204e9800998ecf8427e")
        let dry = try await cache.audit(.custom(keeps: { _ in true }), dryRun: true)
        #expect(dry.foreignFiles.count == 2)
        #expect(fixture.directory.read("test/stray") == "old")
        let report = try await cache.audit(.custom(keeps: { _ in true }))
        #expect(report.foreignFiles == dry.foreignFiles)
        #expect(fixture.directory.read("test/stray") == nil)
        #expect(fixture.directory.read("test/original/d41d8cd98f00b204e9800998ecf8427e") == nil)
        #expect(try await left(cache) == "0123456789")
        #expect(try await cache.value(forKey: "3") != nil)
    }

    @Test func everythingOrOneEntryIsDumped() async throws {
        let fixture = try await fixture()
        let cache = fixture.cache
        await cache.remove("3")
        #expect(try await left(cache) == "012456789")
        #expect(try await cache.value(forKey: "4") != nil)
        cache.clearMemory()
        #expect(cache["4"] == nil)
        try await cache.removeAll(levels: .disk)
        #expect(try await left(cache) == "")
    }
}
