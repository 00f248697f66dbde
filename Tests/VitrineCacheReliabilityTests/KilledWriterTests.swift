import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore

/// A writing process is killed at instants by chance, over and over in one directory.
struct KilledWriterTests {
    /// What a key may hold: versions, or nothing.
    typealias State = [Int: Int]

    private static let keys = 120

    @Test func killedWriterLosesNothingItFlushedAndDamagesNothing() async throws {
        try await killedWriterLosesNothing(rounds: Rounds.kills / 2, keys: Self.keys)
    }

    /// Few keys, so that nearly every put replaces a body that is a file by another.
    @Test func killedWriterOfLargeBodiesLeavesEachKeyItsOlderOrItsNewerOne() async throws {
        try await killedWriterLosesNothing(rounds: Rounds.kills / 4, keys: 12, size: 90_000)
    }

    private func killedWriterLosesNothing(rounds: Int, keys: Int, size: Int? = nil) async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            let path = directory.file("cache")
            var state = State()
            var acknowledged = 0, entries = 0
            for round in 1...max(1, rounds) {
                let plan = WritePlan(seed: round, keys: keys, sizes: size.map { .fixed($0) } ?? .mixed)
                let last = try Self.runAndKill(plan, size: size, directory: path, capacity: .unlimited)
                acknowledged += last + 1
                let allowed = Self.allowed(from: state, plan: plan, acknowledged: last)
                let found = try Self.read(path, plan, capacity: .unlimited)
                for number in 0..<keys {
                    let values = allowed[number] ?? [nil]
                    #expect(values.contains(found[number]), "round \(round), entry \(number), acknowledged \(last)")
                }
                #expect(try CacheFiles.damage(in: path) == [], "round \(round)")
                state = found
                entries += found.count
            }
            // The rounds must have been about something.
            #expect(acknowledged > rounds)
            #expect(entries > rounds * min(10, keys / 2))
        }
    }

    @Test func killedWriterThatEvictsDamagesNothingAndStaysWithinItsCapacity() async throws {
        let rounds = Rounds.kills / 4, capacity = ByteCount(600_000)
        try await offPool {
            let directory = try TemporaryDirectory()
            let path = directory.file("cache")
            var state = State(), entries = 0
            for round in 1...max(1, rounds) {
                let plan = WritePlan(seed: round, keys: Self.keys)
                let last = try Self.runAndKill(plan, directory: path, capacity: capacity)
                let allowed = Self.allowed(from: state, plan: plan, acknowledged: last)
                let found = try Self.read(path, plan, capacity: capacity)
                for (number, version) in found {
                    #expect(allowed[number]?.contains(version) == true, "round \(round), entry \(number) is old")
                }
                #expect(try CacheFiles.damage(in: path) == [], "round \(round)")
                state = found
                entries += found.count
            }
            #expect(entries > rounds * 5)
        }
    }

    @Test func killedWriterOfSeveralFormatsLosesNothingItFlushedAndMixesNothingUp() async throws {
        let count = 3, rounds = Rounds.kills / 8
        try await offPool {
            let directory = try TemporaryDirectory()
            var state = State(), acknowledged = 0
            for round in 1...max(1, rounds) {
                let plan = WritePlan(seed: round, keys: Self.keys)
                let child = try ChildProcess([
                    "write-formats", directory.path, String(plan.seed), String(plan.keys), String(count),
                ])
                let last = Self.kill(child, plan)
                acknowledged += last + 1
                let allowed = Self.allowed(from: state, plan: plan, acknowledged: last, formats: count)
                state = [:]
                let cache = ValueCache<[UInt8]>(name: "formats", configuration: CacheConfiguration(root: directory.path))
                for format in 0..<count {
                    cache.register(CacheFormat(FormatName("f\(format)")))
                    let disk = try #require(cache.disk(for: FormatName("f\(format)"))).blocking
                    for number in 0..<Self.keys {
                        let bytes = try disk.bytes(forKey: SampleEntry.key(number))
                        let entry = bytes.flatMap { SampleEntry(intact: $0, plan.sizes) }
                        #expect((entry == nil) == (bytes == nil), "round \(round), entry \(number) is damaged")
                        #expect(entry == nil || entry?.number == number, "round \(round), entry \(number) is another")
                        guard number % count == format else {
                            #expect(bytes == nil, "round \(round), entry \(number) is in another format")
                            continue
                        }
                        state[number] = entry?.version
                        #expect(allowed[number]?.contains(entry?.version) == true, "round \(round), entry \(number)")
                    }
                    let report = try disk.verify(removingDamage: false)
                    #expect(report.damaged.isEmpty && report.database.isEmpty, "round \(round)")
                    #expect(try disk.count == report.entries, "round \(round)")
                }
            }
            #expect(acknowledged > rounds)
        }
    }

    /// Bodies of 30,000 bytes are in the database and its log, those of 90,000 are files.
    @Test(arguments: [(1, 30_000), (3, 30_000), (1, 90_000), (3, 90_000)])
    func killedWritersLeaveNoMoreOnDiskThanTheCapacityAndTheStatedOverhead(writers: Int, size: Int) async throws {
        let capacity = 2_000_000, rounds = Rounds.kills / 4
        try await offPool {
            let directory = try TemporaryDirectory()
            let path = directory.file("cache")
            var longest = 0
            for round in 1...max(1, rounds) {
                let children = try (0..<writers).map { writer in
                    let seed = String(round * 8 + writer)
                    return try ChildProcess(["write", path, seed, "100", String(capacity), String(size)])
                }
                var random = SeededGenerator(UInt64(round))
                // None lives until it has written what it would move out of the log by itself.
                for _ in 0..<Int.random(in: 1...3, using: &random) { _ = children[0].line() }
                usleep(UInt32.random(in: 0...20_000, using: &random))
                for child in children { child.kill() }
                for child in children { #expect(child.wait() == .signal(SIGKILL), "round \(round)") }
                longest = max(longest, CacheFiles.bytes(of: "cache.sqlite-wal", in: path))
            }
            // What three writers add to a log of its bound before they are killed.
            #expect(longest <= 8 << 20 + writers * 4_000_000)
            let configuration = DiskCache.Configuration(capacity: ByteCount(capacity))
            let cache = DiskCache(directory: path, configuration: configuration).blocking
            try cache.set([1], forKey: "last")
            try cache.flush()
            // Generations that are no longer in use are deleted behind the opening.
            try waitUntil("one generation left") { CacheFiles.generations(in: path).count == 1 }
            #expect(CacheFiles.bytes(in: path) <= capacity + DiskCache.diskOverhead.bytes)
            #expect(CacheFiles.bytes(of: "cache.sqlite-wal", in: path) <= 8 << 20)
            let bodies = try cache.entries(limit: .max).filter(\.isFile).count
            let files = CacheFiles.all(in: path).filter { !$0.contains("/cache.sqlite") && !$0.hasPrefix("v2/current") }
                .filter { $0.contains("/g-") }
            #expect(files.count == bodies, "\(files)")
            #expect(try cache.verify(removingDamage: false).isSound)
        }
    }

    /// Lets a child follow the plan, kills it, and returns the last batch it reported as flushed, or -1.
    private static func runAndKill(
        _ plan: WritePlan, size: Int? = nil, directory: String, capacity: ByteCount
    ) throws -> Int {
        kill(
            try ChildProcess([
                "write", directory, String(plan.seed), String(plan.keys), String(capacity.bytes), String(size ?? 0),
            ]), plan)
    }

    private static func kill(_ child: ChildProcess, _ plan: WritePlan) -> Int {
        // One in eight dies while it starts or opens; the others after so many batches, however long these take, and
        // within the next ones.
        var random = SeededGenerator(UInt64(plan.seed) &* 7)
        var lines = Findings()
        let batches = plan.seed % 8 == 0 ? 0 : Int.random(in: 1...5, using: &random)
        for _ in 0..<batches {
            guard let line = child.line() else { break }
            lines.add(line)
        }
        usleep(UInt32.random(in: 0...20_000, using: &random))
        child.kill()
        let end = child.wait()
        while let line = child.line() { lines.add(line) }
        #expect(end == .signal(SIGKILL), "the child ended by itself: \(lines)")
        #expect(lines["error"] == nil)
        return lines.number("batch")
    }

    /// What each key may hold when all batches up to `acknowledged` are stored and the next one may be in part: its
    /// older or its newer value, or another one of that batch's.
    ///
    /// - Parameter formats: How many formats the keys are in; what removes everything removes the first one's.
    private static func allowed(
        from state: State, plan: WritePlan, acknowledged: Int, formats: Int = 1
    ) -> [Int: Set<Int?>] {
        var state = state
        for batch in 0..<max(0, acknowledged + 1) {
            for operation in plan.operations(batch: batch) { apply(operation, to: &state, formats) }
        }
        var allowed: [Int: Set<Int?>] = [:]
        for number in 0..<plan.keys { allowed[number] = [state[number]] }
        for operation in plan.operations(batch: acknowledged + 1) {
            apply(operation, to: &state, formats)
            for number in 0..<plan.keys { allowed[number]?.insert(state[number]) }
        }
        return allowed
    }

    private static func apply(_ operation: WritePlan.Operation, to state: inout State, _ formats: Int) {
        switch operation {
        case .set(let entry): state[entry.number] = entry.version
        case .remove(let number): state[number] = nil
        case .removeAll: state = state.filter { $0.key % formats != 0 }
        }
    }

    /// Every entry of the cache, each compared with what it must be, and the accounts compared with the entries.
    private static func read(_ directory: String, _ plan: WritePlan, capacity: ByteCount) throws -> State {
        let round = plan.seed
        var configuration = DiskCache.Configuration()
        configuration.capacity = capacity
        let cache = DiskCache(directory: directory, configuration: configuration).blocking
        var state = State()
        for number in 0..<plan.keys {
            guard let bytes = try cache.bytes(forKey: SampleEntry.key(number)) else { continue }
            let entry = SampleEntry(intact: bytes, plan.sizes)
            #expect(entry?.number == number, "round \(round), entry \(number) is damaged")
            state[number] = entry?.version
        }
        let report = try cache.verify(removingDamage: false)
        #expect(report.damaged.isEmpty, "round \(round)")
        #expect(report.entries == state.count, "round \(round)")
        #expect(try cache.count == state.count, "round \(round)")
        #expect(try cache.size <= capacity + ByteCount(SampleEntry.largestAccountedSize), "round \(round)")
        return state
    }
}
