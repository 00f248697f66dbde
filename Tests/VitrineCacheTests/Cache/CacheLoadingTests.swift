import TestSupport
import Testing
import VitrineCache
import VitrineCore

struct CacheLoadingTests {
    @Test func loadsOnlyWhatNoLevelHas() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        let loads = Counter()
        let load: @Sendable () async throws -> String = { "load \(loads.add(1))" }
        #expect(try await cache.value(forKey: "lake", orLoad: load) == "load 1")
        #expect(try await cache.value(forKey: "lake", orLoad: load) == "load 1")
        cache.clearMemory()
        #expect(try await cache.value(forKey: "lake", orLoad: load) == "load 1")
        #expect(cache["lake"] == "load 1")
        try await cache.removeAll()
        #expect(try await cache.value(forKey: "lake", orLoad: load) == "load 2")
    }

    @Test func oneLoadServesAllWhoAsk() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        let gate = Gate(), loads = Counter(), started = Gate()
        let values = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    try await cache.value(forKey: "lake") {
                        loads.add(1)
                        started.open()
                        await gate.wait()
                        return "water"
                    }
                }
            }
            await started.wait()
            gate.open()
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(values == Array(repeating: "water", count: 20))
        #expect(loads.value == 1)
    }

    @Test func lookupsEndWhileALoadOfTheKeyRuns() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        let gate = Gate(), started = Gate()
        async let loaded = cache.value(forKey: "lake") {
            started.open()
            await gate.wait()
            return "water"
        }
        await started.wait()
        // A request that goes no deeper than the disk does not wait for the source.
        #expect(try await cache.value(forKey: "lake", depth: .disk) == nil)
        gate.open()
        #expect(try await loaded == "water")
    }

    @Test func theLastToLeaveCancelsTheLoad() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        let started = Gate(), cancelled = Gate()
        let load: @Sendable () async throws -> String = {
            started.open()
            await withTaskCancellationHandler { await cancelled.wait() } onCancel: { cancelled.open() }
            try Task.checkCancellation()
            return "water"
        }
        let first = Task { await code { _ = try await cache.value(forKey: "lake", orLoad: load) } }
        await started.wait()
        first.cancel()
        await cancelled.wait()
        #expect(await first.value == -540)
        #expect(cache["lake"] == nil)
    }

    @Test func othersKeepALoadAliveThatOneLeaves() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        let started = Gate(), gate = Gate()
        let load: @Sendable () async throws -> String = {
            started.open()
            await gate.wait()
            try Task.checkCancellation()
            return "water"
        }
        let fetcher = ValueFetcher(key: "lake", load: load)
        let first = Task { await code { _ = try await cache.value(from: fetcher) } }
        await started.wait()
        async let second = cache.value(from: fetcher)
        while cache.waiters(for: "lake") < 2 { await Task.yield() }
        first.cancel()
        gate.open()
        #expect(try await second == "water")
        #expect(await first.value == -540)
    }

    @Test func failuresAreTypedAndNotStored() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        do throws(CacheError) {
            _ = try await cache.value(forKey: "lake") { throw SourceFailure() }
            Issue.record("did not throw")
        } catch {
            #expect(error.code == -530 && error.underlying is SourceFailure && error.key == "lake")
        }
        // A cancellation of the source's own is a failure as well, while someone waits.
        #expect(await code { _ = try await cache.value(forKey: "lake") { throw CancellationError() } } == -530)
        #expect(try await cache.value(forKey: "lake") { "water" } == "water")
    }

    @Test func valueClosureRunsOnlyIfNeeded() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        let runs = Counter()
        @Sendable func make() -> String { "run \(runs.add(1))" }
        #expect(try await cache.value(from: ValueFetcher(key: "lake") { make() }) == "run 1")
        #expect(try await cache.value(from: ValueFetcher(key: "lake") { make() }) == "run 1")
        #expect(try await cache.value(forKey: "lake") { make() } == "run 1")
        #expect(runs.value == 1)
    }

    @Test func encodingIsLeftToTheDisk() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        let callers = Recorder<Bool>()
        var format = CacheFormat<String>("coded")
        // A task-local value is seen by the caller's task alone.
        format.encode = { value in
            callers.add(TaskFlag.isCaller)
            return Array(value.reversed().description.utf8)
        }
        cache.register(format)
        try await TaskFlag.$isCaller.withValue(true) { try await cache.set("abc", forKey: "k", format: "coded") }
        try await cache.flush()
        // Once, and not in the caller's task.
        #expect(callers.all == [false])
    }

    @Test func lateLoadsDoNotUndoChanges() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        let changes: [(String, @Sendable () async throws -> Void, String?)] = [
            ("purge", { try await cache.removeAll() }, nil),
            ("remove", { await cache.remove("lake") }, nil),
            ("set", { try await cache.set("set", forKey: "lake") }, "set"),
            ("subscript", { cache["lake"] = "memory" }, "memory"),
            ("format", { try await cache.removeAll(format: .original) }, nil),
        ]
        for (name, change, expected) in changes {
            try await cache.removeAll()
            let started = Gate(), gate = Gate()
            async let loaded = cache.value(forKey: "lake") {
                started.open()
                await gate.wait()
                return "late"
            }
            await started.wait()
            try await change()
            gate.open()
            // Who waited gets what was loaded, but it is not kept.
            #expect(try await loaded == "late", "\(name)")
            try await cache.flush()
            #expect(cache["lake"] == expected, "\(name)")
            if name != "subscript" {
                cache.clearMemory()
                #expect(try await cache.value(forKey: "lake") == expected, "\(name)")
            }
        }
        while cache.runningLoads > 0 { await Task.yield() }
    }

    @Test func requestsAfterARemovalDoNotJoinTheOldLoad() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        let started = Gate(), gate = Gate()
        async let old = cache.value(forKey: "lake") {
            started.open()
            await gate.wait()
            return "old"
        }
        await started.wait()
        await cache.remove("lake")
        #expect(try await cache.value(forKey: "lake") { "new" } == "new")
        gate.open()
        #expect(try await old == "old")
        #expect(cache["lake"] == "new")
    }

    @Test func expiredValuesServeWhenTheSourceFails() async throws {
        let fixture = try CacheFixture<String> { $0.servesStale = true }
        let cache = fixture.cache
        try await cache.set("old", forKey: "lake", timeToLive: .seconds(10))
        try await cache.flush()
        fixture.clock.advance(by: .seconds(11))
        #expect(try await cache.value(forKey: "lake") { throw SourceFailure() } == "old")
        cache.clearMemory()
        #expect(try await cache.value(forKey: "lake") { throw SourceFailure() } == "old")
        #expect(try await cache.value(forKey: "lake") { "new" } == "new")
        try await cache.flush()
        let strict = fixture.another { $0.servesStale = false }
        await strict.expire("lake")
        #expect(await code { _ = try await strict.value(forKey: "lake") { throw SourceFailure() } } == -530)
    }

    /// The clock was set back after the entries were stored: their age is unknown.
    @Test(arguments: [false, true]) func entriesOfTheFutureAreLoadedAgain(withWrites: Bool) async throws {
        let fixture = try CacheFixture<String>()
        try await fixture.cache.set("old", forKey: "lake", timeToLive: .seconds(100))
        try await fixture.cache.set("kept", forKey: "sea")
        try await fixture.cache.flush()
        fixture.clock.advance(by: .seconds(-3600))
        let cache = fixture.another()
        if withWrites {
            try await cache.set("other", forKey: "pond")
            try await cache.flush()
        }
        #expect(try await cache.value(forKey: "lake") { "new" } == "new")
        #expect(try await cache.value(forKey: "sea") { "lost" } == "kept")
        try await cache.flush()
        // A difference that clocks of processes may have is none.
        fixture.clock.advance(by: .milliseconds(-500))
        #expect(try await fixture.another().value(forKey: "lake") { "newer" } == "new")
    }

    @Test func manyTasksAtOnceAgree() async throws {
        let fixture = try CacheFixture<String> { $0.memoryCapacity = 500 }
        let cache = fixture.cache
        cache.register(CacheFormat("loud") { $0.uppercased() })
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask {
                    for step in 0..<200 {
                        let name = "k\((task * 7 + step * 13) % 40)"
                        let key = CacheKey(name)
                        switch step % 8 {
                        case 0: try await cache.set(name, forKey: key)
                        case 1: await cache.remove(key)
                        case 2: cache[key] = name
                        case 3:
                            let loud = try await cache.value(forKey: key, format: "loud") { name }
                            #expect(loud == name.uppercased())
                        case 4 where step % 64 == 4: try await cache.removeAll()
                        default: #expect(try await cache.value(forKey: key) { name } == name)
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        while cache.runningLoads > 0 { await Task.yield() }
    }
}

/// Marks the task of a caller.
enum TaskFlag {
    @TaskLocal static var isCaller = false
}
