import Foundation
import TestSupport
import Testing
import VitrineImaging

/// `--isolate`, and what becomes of helpers when the command ends.
@Suite struct IsolationCommandTests {
    @Test func everySampleIsDecodedInAWorker() async throws {
        let scratch = try Scratch()
        let inputs = ["lake.jpg", "leaf.png", "moon.gif", "lake.bmp", "lake.webp", "lake.avif"].map(Samples.path)
        let outcome = try await Tool.run(
            ["thumbnail"] + inputs + ["--isolate", "--no-cache", "--size", "60", "-o", scratch.url.path])
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(scratch.contents.count == inputs.count)
    }

    @Test(arguments: [
        ["thumbnail", "--no-cache", "--size", "50"], ["show", "--protocol", "blocks"], ["contact-sheet", "--no-cache"],
    ])
    func withoutAWorkerTheErrorSaysWhatToDo(_ words: [String]) async throws {
        let scratch = try Scratch()
        let output = words[0] == "show" ? [] : ["-o", scratch.file("out.png").path]
        let picture = [Samples.path("lake.jpg")]
        // The variable names the program to run; there is none of that name.
        let command = ["VITRINE_WORKER=/nowhere/vitrine-worker", Tool.executable.path] + words + picture + output
        func run(_ more: [String]) async throws -> (Int32, String) {
            try await offPool {
                let process = Process()
                process.executableURL = URL(filePath: "/usr/bin/env")
                process.arguments = command + more
                let told = Pipe()
                (process.standardOutput, process.standardError) = (told, told)
                try process.run()
                let text = String(decoding: told.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
                process.waitUntilExit()
                return (process.terminationStatus, text)
            }
        }
        #expect(try await run([]).0 == 0)
        let (status, text) = try await run(["--isolate"])
        #expect(status == 1)
        #expect(text.contains("vitrine-worker was not found") && text.contains("VITRINE_WORKER"), "\(text)")
    }

    /// What process 1 found that reaps no orphans, after some runs of the command.
    private func processOne(_ signal: Int32, _ words: [String]) async throws -> String? {
        try await offPool {
            try ChildProcess(
                executable: "WorkerTestHost", ["init", "3", "\(signal)", Tool.executable.path] + words,
                wrapper: Namespace.asProcessOne
            ).line()
        }
    }

    @Test(.enabled(if: Namespace.hasProcesses, "needs process namespaces"))
    func theCommandLeavesNoZombies() async throws {
        let scratch = try Scratch()
        let words = ["thumbnail", Samples.path("lake.tif"), "--no-cache", "-o", scratch.file("out.png").path]
        // What the command prints comes before the line of process 1.
        let line = try await processOne(0, words + ["--json"])
        #expect(line == "zombies 0")
    }

    @Test(.enabled(if: Namespace.hasProcesses, "needs process namespaces"), arguments: [SIGINT, SIGTERM])
    func theCommandLeavesNoZombiesWhenASignalEndsIt(_ signal: Int32) async throws {
        let scratch = try Scratch()
        // Takes librsvg many seconds.
        let slow = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "VitrineImagingTests/Fixtures/worker/slow.svg").path
        let words = ["thumbnail", slow, "--no-cache", "-o", scratch.file("out.png").path]
        #expect(try await processOne(-signal, words) == "zombies 0")
    }
}
