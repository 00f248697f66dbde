#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrineStores

/// The power goes away while a process saves into new stores, in directories that it makes.
@Suite struct PowerLossTests {
    private static let saves = 16

    @Test(.enabled(if: FileTrace.isAvailable, "needs strace"))
    func newStoresKeepEveryAcknowledgedSave() async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            let recorded = directory.file("recorded"), log = directory.file("log")
            try FileManager.default.createDirectory(atPath: recorded, withIntermediateDirectories: false)
            let child = try ChildProcess(
                executable: "StoreChild", ["record", recorded, String(Self.saves)], wrapper: FileTrace.command(log: log))
            let findings = child.findings()
            try #require(child.wait() == .exit(0) && findings.lines.allSatisfy { $0.value == "done" }, "\(findings)")
            let operations = try FileTrace.operations(log: log, below: recorded)
            try #require(operations.count > 100)
            var random = SeededGenerator(3)
            var checked = 0
            for cutNumber in 0..<60 * Rounds.factor {
                let moment = Int.random(in: 0...operations.count, using: &random)
                let chance = [0.05, 0.5, 0.95, 1.0].randomElement(using: &random) ?? 0.5
                let scratch = directory.file("cut-\(cutNumber)")
                defer { try? FileManager.default.removeItem(atPath: scratch) }
                try PowerCut(operations, moment: moment, chance: chance, order: .eachDirectory, random: &random)
                    .write(from: recorded, to: scratch)
                let done = operations[..<moment].count { operation in
                    if case .write(let path, _, _) = operation { path.hasSuffix("/acknowledged") } else { false }
                }
                let lost = (0..<done).filter { !Self.isKept($0, scratch) }
                #expect(lost.isEmpty, "\(moment) of \(operations.count) operations, \(done) saves, chance \(chance)")
                checked += done
            }
            #expect(checked > 100)
        }
    }

    /// Whether a save of the child is there, whole.
    private static func isKept(_ number: Int, _ root: String) -> Bool {
        guard number % 2 != 0 else {
            let store = FileStore(.root(root), path: ["a", "b", "files"]).blocking
            return (try? store.load("\(number)")) == [UInt8(truncatingIfNeeded: number)]
        }
        let pictures = ImageStore(.root(root), path: ["c", "pictures"]).blocking
        guard let image = try? pictures.image("\(number).png") else { return false }
        return image.withUnsafeBytes { Int($0[0]) } == number
    }
}
#endif
