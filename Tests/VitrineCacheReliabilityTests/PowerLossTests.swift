import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore

/// The power goes away while a process writes.
struct PowerLossTests {
    private static let keys = 60

    @Test(.enabled(if: FileTrace.isAvailable, "needs strace"))
    func whatTheDiskMayHoldAfterAPowerCutOpensAndIsIntact() async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            let plan = WritePlan(seed: 77, keys: Self.keys)
            let recorded = directory.file("cache"), log = directory.file("log")
            let child = try ChildProcess(
                ["write", recorded, String(plan.seed), String(plan.keys), String(Int.max), "0", "40"],
                wrapper: FileTrace.command(log: log))
            let findings = child.findings()
            #expect(child.wait() == .exit(0), "\(findings)")
            let operations = try FileTrace.operations(log: log, below: recorded)
            try #require(operations.count > 500)
            var random = SeededGenerator(5), entries = 0, databases = 0
            for state in 0..<40 * Rounds.factor {
                let moment = Int.random(in: 0...operations.count, using: &random)
                let chance = [0.05, 0.5, 0.95, 1.0].randomElement(using: &random) ?? 0.5
                let cut = PowerCut(operations, moment: moment, chance: chance, random: &random)
                let scratch = directory.file("state-\(state)")
                defer { try? FileManager.default.removeItem(atPath: scratch) }
                try cut.write(from: recorded, to: scratch)
                let label = "state \(state): \(moment) of \(operations.count) operations, chance \(chance)"
                if CacheFiles.database(in: scratch) != nil { databases += 1 }
                #expect(try CacheFiles.damage(in: scratch) == [], "\(label)")
                entries += try Self.check(scratch, plan, label)
                #expect(Inspection(scratch, count: 0).isHarmless, "\(label)")
            }
            #expect(databases > 10)
            #expect(entries > 50)
        }
    }

    /// Compares every entry; what was not on the disk yet may be missing. Returns how many there are.
    private static func check(_ directory: String, _ plan: WritePlan, _ label: String) throws -> Int {
        let cache = DiskCache(directory: directory).blocking
        var entries = 0
        for number in 0..<keys {
            guard let bytes = try cache.bytes(forKey: SampleEntry.key(number)) else { continue }
            entries += 1
            let entry = SampleEntry(intact: bytes, .mixed)
            #expect(entry?.number == number, "\(label): entry \(number) is damaged")
            #expect(entry.map(plan.contains) == true, "\(label): entry \(number) was never written")
        }
        return entries
    }

    /// What lies on the disk while a process writes: copies, the log cut anywhere.
    @Test func copiesOfALivingCacheWithACutLogAreIntact() async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            let path = directory.file("cache")
            let plan = WritePlan(seed: 78, keys: Self.keys)
            let child = try ChildProcess(["write", path, String(plan.seed), String(plan.keys), String(Int.max), "0"])
            var random = SeededGenerator(6), entries = 0
            for state in 0..<40 * Rounds.factor {
                for _ in 0..<3 { try #require(child.line() != nil) }
                let scratch = directory.file("state-\(state)")
                defer { try? FileManager.default.removeItem(atPath: scratch) }
                // Stopped, the files are as the power finds them but for what the disk has not got yet.
                child.stop()
                try FileManager.default.copyItem(atPath: path, toPath: scratch)
                child.resume()
                for file in CacheFiles.all(in: scratch) where file.hasSuffix("-wal") || file.contains("/files/") {
                    guard file.hasSuffix("-wal") || Bool.random(using: &random) else { continue }
                    let size = CacheFiles.size("\(scratch)/\(file)")
                    truncate("\(scratch)/\(file)", off_t(Int.random(in: 0...size, using: &random)))
                }
                entries += try Self.check(scratch, plan, "state \(state)")
                #expect(Inspection(scratch, count: 0).isHarmless, "state \(state)")
            }
            #expect(entries > 50)
        }
    }
}
