import Foundation
import TestSupport
import Testing
import VitrineModels

/// A process that brings a group up to date is killed at instants by chance, and another goes on.
@Suite struct KilledMigrationTests {
    private static let count = 4000

    @Test func everyObjectIsOldOrNewAndTheNextProcessContinues() async throws {
        try await offPool { try Self.run(rounds: Rounds.kills / 2) }
    }

    private static func run(rounds: Int) throws {
        let directory = try TemporaryDirectory()
        let seed = directory.file("old.sqlite"), path = directory.file("a.sqlite")
        #expect(try ModelsChildRun.findings(["old", seed, String(count)])["done"] == String(count))
        var random = SeededGenerator(31)
        var new = count, finished = 0, between = 0
        for round in 0..<rounds {
            if new == count {
                // With the log, if the process ended before it was done away with.
                for file in ["", "-wal", "-shm"] {
                    try? FileManager.default.removeItem(atPath: path + file)
                }
                for file in ["", "-wal"] where FileManager.default.fileExists(atPath: seed + file) {
                    try FileManager.default.copyItem(atPath: seed + file, toPath: path + file)
                }
                new = 0
            }
            let child = try ChildProcess(executable: "ModelsChild", ["migrate", path])
            var lines = Findings()
            for _ in 0..<Int.random(in: 0..<3, using: &random) {
                guard let line = child.line() else { break }
                lines.add(line)
            }
            usleep(UInt32.random(in: 0..<20_000, using: &random))
            child.kill()
            while let line = child.line() { lines.add(line) }
            _ = child.wait()
            #expect(lines["failed"] == nil && lines["error"] == nil, "round \(round): \(lines)")
            let now = try migrated(path, "round \(round)")
            // What was reported stays done, and a transaction is a thousand objects or none.
            let reported = lines["progress"].flatMap { Int($0.split(separator: " ")[0]) } ?? 0
            #expect(now >= new + reported && now % 1000 == 0, "round \(round): \(new), \(reported), \(now)")
            if now == count { finished += 1 } else if now > 0 { between += 1 }
            new = now
            #expect(try StoreContents.damage(path) == [], "round \(round)")
        }
        #expect(finished > 0)
        #expect(between > 0)
    }

    /// How many objects are up to date; all others must be as they were.
    private static func migrated(_ path: String, _ label: String) throws -> Int {
        let store = try StoreContents.open(path)
        var new = 0
        for number in 0..<count {
            guard case .record(let data)? = try store.tree(for: "\(number)", in: "g") else {
                Issue.record("\(label): \(number) is lost")
                return new
            }
            if data.version == "2" {
                new += 1
                #expect(data.names == ["sum"] && data.tree("sum") == .int(Int64(number + 1)), "\(label): \(number)")
            } else {
                #expect(data.tree("a") == .int(Int64(number)) && data.tree("b") == .int(1), "\(label): \(number)")
            }
        }
        return new
    }
}
