import Foundation
import TestSupport
import Testing
import VitrineModels

/// A process that puts, removes and makes several changes at once is killed at instants by chance, over and over in one
/// store.
@Suite struct KilledWriterTests {
    @Test func noAcknowledgedChangeIsLostOrIncomplete() async throws {
        try await offPool { try Self.run(rounds: Rounds.kills / 2, seed: 21) }
    }

    private static func run(rounds: Int, seed: Int) throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("a.sqlite")
        var random = SeededGenerator(UInt64(seed))
        var history = ObjectHistory(seed: UInt64(seed))
        var steps = 0, objects = 0
        for round in 0..<rounds {
            let reported = try killedAfter(Int.random(in: 0..<12, using: &random), path, seed, from: steps, &random)
            steps = max(steps, reported ?? 0)
            let found = try StoreContents.state(of: StoreContents.open(path))
            let next = history.state(after: steps + 1)
            // What was acknowledged is there; the step after it is, or is not.
            #expect(found == history.state(after: steps) || found == next, "round \(round), step \(steps)")
            if found == next, found != history.state(after: steps) { steps += 1 }
            #expect(try StoreContents.damage(path) == [], "round \(round)")
            objects += found.count
        }
        #expect(steps > rounds)
        #expect(objects > rounds)
    }

    /// Lets a child work until it has reported so many steps, and a little on, and kills it.
    ///
    /// - Returns: How many steps are done, as far as it reported any.
    private static func killedAfter(
        _ count: Int, _ path: String, _ seed: Int, from first: Int, _ random: inout SeededGenerator
    ) throws -> Int? {
        let child = try ChildProcess(executable: "ModelsChild", ["plan", path, String(seed), String(first)])
        var lines: [String] = []
        for _ in 0..<count {
            guard let line = child.line() else { break }
            lines.append(line)
        }
        // Within the next steps, somewhere.
        usleep(UInt32.random(in: 0..<4000, using: &random))
        child.kill()
        while let line = child.line() { lines.append(line) }
        #expect(child.wait() == .signal(SIGKILL), "\(lines)")
        return try lines.last.map { try #require(Int($0), "the child failed: \($0)") + 1 }
    }
}
