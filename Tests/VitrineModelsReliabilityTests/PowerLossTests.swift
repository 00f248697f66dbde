import Foundation
import TestSupport
import Testing
import VitrineModels

/// The power goes away while a process puts objects, at durability `full`.
@Suite struct PowerLossTests {
    private static let seed = 41

    @Test(.enabled(if: FileTrace.isAvailable, "needs strace"))
    func powerLossLosesNoAcknowledgedChange() async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            let recorded = directory.file("store"), log = directory.file("log")
            try FileManager.default.createDirectory(atPath: recorded, withIntermediateDirectories: false)
            _ = try ModelsChildRun.findings(
                ["record", recorded + "/a.sqlite", String(Self.seed), "150"], wrapper: FileTrace.command(log: log))
            let operations = try FileTrace.operations(log: log, below: recorded)
            try #require(operations.count > 300)
            var random = SeededGenerator(6), history = ObjectHistory(seed: UInt64(Self.seed))
            var objects = 0
            for cutNumber in 0..<60 * Rounds.factor {
                let moment = Int.random(in: 0...operations.count, using: &random)
                let chance = [0.05, 0.5, 0.95, 1.0].randomElement(using: &random) ?? 0.5
                let scratch = directory.file("cut-\(cutNumber)")
                defer { try? FileManager.default.removeItem(atPath: scratch) }
                try PowerCut(operations, moment: moment, chance: chance, random: &random)
                    .write(from: recorded, to: scratch)
                let steps = Self.acknowledged(operations[..<moment])
                let path = scratch + "/a.sqlite"
                let found = try StoreContents.state(of: StoreContents.open(path))
                #expect(
                    found == history.state(after: steps) || found == history.state(after: steps + 1),
                    "\(moment) of \(operations.count) operations, chance \(chance), \(steps) steps")
                #expect(try StoreContents.damage(path) == [])
                objects += found.count
            }
            #expect(objects > 60)
        }
    }

    @Test(.enabled(if: FileTrace.isAvailable, "needs strace"))
    func aNewStoreInANewDirectoryKeepsEveryAcknowledgedObject() async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            let recorded = directory.file("recorded"), log = directory.file("log")
            try FileManager.default.createDirectory(atPath: recorded, withIntermediateDirectories: false)
            _ = try ModelsChildRun.findings(["new", recorded, "8"], wrapper: FileTrace.command(log: log))
            let operations = try FileTrace.operations(log: log, below: recorded)
            try #require(operations.count > 30)
            var random = SeededGenerator(8), checked = 0
            for cutNumber in 0..<40 * Rounds.factor {
                let moment = Int.random(in: 0...operations.count, using: &random)
                let scratch = directory.file("cut-\(cutNumber)")
                defer { try? FileManager.default.removeItem(atPath: scratch) }
                try PowerCut(operations, moment: moment, chance: 0.5, order: .eachDirectory, random: &random)
                    .write(from: recorded, to: scratch)
                let done = operations[..<moment].count { operation in
                    if case .write(let path, _, _) = operation { path.hasSuffix("/acknowledged") } else { false }
                }
                guard done > 0 else { continue }
                let store = try? StoreContents.open(scratch + "/home/data/objects/a.sqlite")
                let kept = try (0..<done).count { number in
                    guard let store, try store.tree(for: "\(number)") != nil else { return false }
                    return try StoreContents.number(of: store, "\(number)", .standard) == number
                }
                #expect(kept == done, "\(moment) of \(operations.count) operations")
                checked += done
            }
            #expect(checked > 40)
        }
    }

    /// How many steps the process has told to be done: a line each in a file beside the store.
    private static func acknowledged(_ operations: ArraySlice<FileOperation>) -> Int {
        operations.count { operation in
            if case .write(let path, _, _) = operation { path.hasSuffix(".done") } else { false }
        }
    }
}
