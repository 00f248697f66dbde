import ArgumentParser
import Foundation
import VitrineCore
import VitrineStores

/// Measures storing and removing many values of a `KeyValueStore`.
struct GroupsBenchmark: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "groups", abstract: "Measures removing a group of a value store.")

    @Option(help: "The directory for the stores, which are removed again.") var directory = NSTemporaryDirectory()
    @Option(help: "How many values the group has.") var values = 200_000
    @Option(help: "How many stores are measured.") var rounds = 5

    func run() throws {
        print("| \(values) values of 100 bytes, ms | group beside another | only group | all |")
        print("|---|---:|---:|---:|")
        for round in 1...max(1, rounds) {
            let group = try measure(others: 1000) { $0.removeGroup("large") }
            let only = try measure(others: 0) { $0.removeGroup("large") }
            let all = try measure(others: 1000) { $0.removeAll() }
            print("| round \(round) | \(group) | \(only) | \(all) |")
        }
    }

    private func measure(others: Int, _ remove: (KeyValueStore) -> WriteTask) throws -> Int {
        let path = "\(directory)/values-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let store = try KeyValueStore(directory: path)
        let value = String(repeating: "x", count: 100)
        // In no order: the factor is a prime.
        for number in 0..<values { store.set(value, forKey: "key\(number &* 7_919 % values)", in: "large.inner") }
        for number in 0..<others { store.set(value, forKey: "key\(number)", in: "other") }
        try store.blocking.flush()
        let clock = ContinuousClock(), start = clock.now
        _ = remove(store)
        try store.blocking.flush()
        let (seconds, attoseconds) = (clock.now - start).components
        let left = try store.value(String.self, forKey: "key0", in: "large.inner")
        precondition(left == nil)
        return Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000)
    }
}
