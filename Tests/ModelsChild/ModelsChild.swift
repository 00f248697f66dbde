// A process that uses a store of objects, for tests that watch it from outside. It prints what it did; the test judges.
import TestSupport
import VitrineCore
import VitrineModels

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

@main
enum ModelsChild {
    static func main() async {
        let words = CommandLine.arguments
        let numbers = words.dropFirst(3).compactMap { Int($0) }
        do {
            switch (words.dropFirst().first, numbers.count) {
            case ("plan", 2): try await Following(words[2], seed: numbers[0]).run(from: numbers[1])
            case ("record", 2): try await Following(words[2], seed: numbers[0]).record(steps: numbers[1])
            case ("share", 2): try await share(words[2], seed: numbers[0], steps: numbers[1])
            case ("old", 1): try await Migrating.fill(words[2], count: numbers[0])
            case ("migrate", 0): try await Migrating.run(words[2])
            case ("one", 0):
                try await ObjectStore(at: words[2]).put(Filled(7), for: "k")
                try DatabaseFiles.waitUntilClosed(words[2])
                report("done 1")
            case ("read", 0): try await Reading(words[2]).run()
            case ("crash", 0):
                let store = try ObjectStore(at: words[2])
                try await store.put(Filled(8), for: "late")
                report("done 1")
                // Until it is killed, with the store open.
                while !store.path.isEmpty { pause() }
            case ("new", 1): try await recordNew(words[2], steps: numbers[0])
            case ("fill", 0): try await Filling(words[2]).run()
            case ("attempt", 0): await Attempts(words[2]).run()
            case ("fuzz", 1): try Fuzzing(seed: numbers[0]).run(rounds: Int(words[2]) ?? 0)
            default: exit(64)
            }
        } catch {
            report("error \(error)")
            exit(1)
        }
    }

    /// Puts objects into a store in which others do as well: by a plan into groups of its own, and into one of all.
    private static func share(_ path: String, seed: Int, steps: Int) async throws {
        let following = try Following(path, seed: seed)
        for number in 0..<steps {
            try await following.step(number, below: "own\(seed)/")
            try await following.store.put(Filled(seed << 20 | number), for: "s\(number % 7)", in: "all")
        }
        report("done \(steps)")
    }

    /// Puts objects into a new store in a new directory, and tells each in a file beside them.
    private static func recordNew(_ root: String, steps: Int) async throws {
        let file = open(root + "/acknowledged", O_WRONLY | O_CREAT | O_APPEND, 0o600)
        let directory = try Directories(root: root + "/home").dataDirectory(for: "objects")
        let store = try ObjectStore(at: directory + "/a.sqlite")
        for number in 0..<steps {
            try await store.put(Filled(number), for: "\(number)")
            report("\(number)", to: file)
        }
        close(file)
        report("done \(steps)")
    }

    /// Writes one line with a single call, so that a reader never sees half of one.
    static func report(_ line: String, to file: Int32 = 1) {
        let bytes = Array((line + "\n").utf8)
        _ = bytes.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
    }

    /// What an error is called in reports.
    static func kind(_ error: any Error) -> String {
        guard let error = error as? PersistenceError else { return "\(error)" }
        return switch error {
        case .database(let error): "\(error.reason)"
        case .file(let error): "file:\(error)"
        default: error.code
        }
    }
}
