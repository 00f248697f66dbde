import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrineStores

/// A process that saves, renames and deletes pictures is killed at instants by chance, over and over in one store.
@Suite struct KilledSaverTests {
    private static let rounds = 200
    private static let seed: UInt64 = 11

    @Test func neitherAPairIsHalfSavedNorAnAcknowledgedSaveLost() async throws {
        try await offPool { try Self.run() }
    }

    private static func run() throws {
        let directory = try TemporaryDirectory()
        var configuration = ImageStore.Configuration()
        configuration.thumbnailMaxSize = PixelSize(16)
        let store = ImageStore(.root(directory.path), path: [], configuration: configuration)
        var random = SeededGenerator(seed)
        // States after each step, as far as the plan has been followed.
        var plan = StorePlan(seed: seed)
        var states: [[String: Int]] = []
        var done = -1
        var pairs = 0
        for round in 0..<rounds {
            let last = try killedAfter(Int.random(in: 0..<12, using: &random), directory.path, from: done + 1, &random)
            done = max(done, last ?? done)
            while states.count <= done + 1 {
                var state = states.last ?? [:]
                StorePlan.apply(plan.next(), states.count, to: &state)
                states.append(state)
            }
            let before = done < 0 ? [:] : states[done]
            let found = try contents(of: store)
            // What was acknowledged is there; the step after it is, or is not.
            #expect(found == before || found == states[done + 1], "round \(round), step \(done)")
            if found == states[done + 1] { done += 1 }
            pairs += try checkPairs(store, found, round)
        }
        #expect(done > rounds && pairs > rounds)
        try store.blocking.removeTemporaryFiles(olderThan: .seconds(-5))
        let left = try FileManager.default.subpathsOfDirectory(atPath: directory.path)
        #expect(left.allSatisfy { !$0.contains(AtomicFile.temporaryPrefix) })
    }

    /// Lets a child work until it has reported so many steps, and a little on, and kills it.
    ///
    /// - Returns: The last step it reported.
    private static func killedAfter(
        _ steps: Int, _ directory: String, from first: Int, _ random: inout SeededGenerator
    ) throws -> Int? {
        let child = try ChildProcess(executable: "StoreChild", ["plan", directory, String(seed), String(first)])
        var last: Int?
        for _ in 0..<steps {
            guard let line = child.line(), let number = Int(line) else { break }
            last = number
        }
        // Within the next step, somewhere.
        usleep(UInt32.random(in: 0..<4000, using: &random))
        child.kill()
        while let line = child.line() {
            let number = try #require(Int(line), "the child failed: \(line)")
            last = number
        }
        #expect(child.wait() == .signal(SIGKILL))
        return last
    }

    /// The step that saved each picture, by its colour.
    private static func contents(of store: ImageStore) throws -> [String: Int] {
        var contents: [String: Int] = [:]
        for name in try store.blocking.names { contents[name] = try number(store.blocking.image(name)) }
        return contents
    }

    /// Every thumbnail that is taken for a picture's is that picture's, and there is one for each.
    private static func checkPairs(_ store: ImageStore, _ found: [String: Int], _ round: Int) throws -> Int {
        for (name, saved) in found {
            let small = try store.blocking.image(name, as: .thumbnail)
            #expect(small.size == PixelSize(width: 16, height: 12))
            #expect(number(small) == saved, "round \(round), \(name)")
        }
        return found.count
    }

    private static func number(_ image: PixelImage) -> Int {
        image.withUnsafeBytes { Int($0[0]) | Int($0[1]) << 8 }
    }
}
