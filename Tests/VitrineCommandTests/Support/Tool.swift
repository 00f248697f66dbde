import Foundation
import TestSupport
import Testing

/// Runs the `vitrine` command that stands beside the test bundle.
struct Tool {
    struct Outcome: Sendable {
        var status: Int32
        var bytes: [UInt8]
        var errors: String
        var output: String { String(decoding: bytes, as: UTF8.self) }
        /// The objects of a `--json` run, one a line.
        var objects: [[String: Any]] {
            output.split(separator: "\n").compactMap {
                (try? JSONSerialization.jsonObject(with: Data($0.utf8))) as? [String: Any]
            }
        }
    }

    static let executable = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        .deletingLastPathComponent().appending(path: "vitrine")

    /// - Parameters:
    ///   - home: Where the user's directories are; nil for new ones.
    ///   - environment: Variables in addition to those of the test.
    static func run(
        _ arguments: [String], in directory: URL? = nil, input: Data? = nil, home: URL? = nil,
        environment: [String: String] = [:]
    ) async throws -> Outcome {
        try await offPool {
            try runHere(arguments, in: directory, input: input, home: home, environment: environment)
        }
    }

    /// Blocks the calling thread, which must not be one that other tests await.
    static func runHere(
        _ arguments: [String], in directory: URL? = nil, input: Data? = nil, home: URL? = nil,
        environment: [String: String] = [:]
    ) throws -> Outcome {
        let process = Process()
        process.executableURL = executable
        process.arguments = arguments
        process.currentDirectoryURL = directory
        // Files, not pipes: nothing has to be read while the command runs.
        let scratch = try Scratch()
        let home = home ?? scratch.file("home")
        process.environment = ProcessInfo.processInfo.environment.merging(Self.environment(home: home)) { $1 }
            .merging(environment) { $1 }
        let (out, err, stdin) = (scratch.file("out"), scratch.file("err"), scratch.file("in"))
        for file in [out, err] { _ = FileManager.default.createFile(atPath: file.path, contents: nil) }
        try (input ?? Data()).write(to: stdin)
        process.standardOutput = try FileHandle(forWritingTo: out)
        process.standardError = try FileHandle(forWritingTo: err)
        process.standardInput = try FileHandle(forReadingFrom: stdin)
        try process.run()
        process.waitUntilExit()
        return Outcome(
            status: process.terminationStatus,
            bytes: Array(try Data(contentsOf: out)),
            errors: String(decoding: try Data(contentsOf: err), as: UTF8.self))
    }
}

extension Tool {
    /// What makes a directory the user's home.
    static func environment(home: URL) -> [String: String] {
        [
            "TERM": "dumb", "XDG_CACHE_HOME": home.appending(path: "cache").path,
            "XDG_DATA_HOME": home.appending(path: "data").path,
            "XDG_CONFIG_HOME": home.appending(path: "config").path,
            "XDG_RUNTIME_DIR": home.appending(path: "run").path,
        ]
    }
}

/// A directory of its own for one test, removed with it.
final class Scratch: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appending(path: "vitrine-test-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    /// A directory `tree` with copies of samples, each by its own name in the directories it is given.
    func tree(_ paths: [String]) throws -> URL {
        let tree = file("tree")
        try FileManager.default.createDirectory(at: tree, withIntermediateDirectories: true)
        for path in paths {
            let target = tree.appending(path: path)
            try FileManager.default.createDirectory(
                at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
            try FileManager.default.copyItem(
                at: Samples.directory.appending(path: target.lastPathComponent), to: target)
        }
        return tree
    }

    func file(_ name: String) -> URL { url.appending(path: name) }

    /// Names of everything in the directory, sorted.
    var contents: [String] {
        ((try? FileManager.default.subpathsOfDirectory(atPath: url.path)) ?? []).sorted()
    }
}
