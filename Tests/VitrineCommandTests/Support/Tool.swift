import Foundation
import Testing

/// Runs the `vitrine` command that stands beside the test bundle.
struct Tool {
    struct Outcome {
        var status: Int32
        var output: String
        var errors: String
        /// The objects of a `--json` run, one a line.
        var objects: [[String: Any]] {
            output.split(separator: "\n").compactMap {
                (try? JSONSerialization.jsonObject(with: Data($0.utf8))) as? [String: Any]
            }
        }
    }

    static let executable = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        .deletingLastPathComponent().appending(path: "vitrine")

    static func run(_ arguments: [String], in directory: URL? = nil, input: Data? = nil) throws -> Outcome {
        let process = Process()
        process.executableURL = executable
        process.arguments = arguments
        process.currentDirectoryURL = directory
        process.environment = ProcessInfo.processInfo.environment.merging(["TERM": "dumb"]) { $1 }
        // Files, not pipes: nothing has to be read while the command runs.
        let scratch = try Scratch()
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
            output: String(decoding: try Data(contentsOf: out), as: UTF8.self),
            errors: String(decoding: try Data(contentsOf: err), as: UTF8.self))
    }
}

/// A directory of its own for one test, removed with it.
final class Scratch {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appending(path: "vitrine-test-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    func file(_ name: String) -> URL { url.appending(path: name) }

    /// Names of everything in the directory, sorted.
    var contents: [String] {
        ((try? FileManager.default.subpathsOfDirectory(atPath: url.path)) ?? []).sorted()
    }
}
