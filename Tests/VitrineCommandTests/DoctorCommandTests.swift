#if os(Linux)
import Foundation
import TestSupport
import Testing

/// `vitrine doctor`, and the libraries that are loaded when first needed.
@Suite struct DoctorCommandTests {
    /// Runs the command with more variables in its environment.
    private func run(_ variables: [String], _ words: [String], home: URL) async throws -> Tool.Outcome {
        try await offPool {
            let process = Process()
            let (output, errors) = (Pipe(), FileManager.default.temporaryDirectory.appending(path: UUID().uuidString))
            _ = FileManager.default.createFile(atPath: errors.path, contents: nil)
            defer { try? FileManager.default.removeItem(at: errors) }
            process.executableURL = URL(filePath: "/usr/bin/env")
            let directories = Tool.environment(home: home).map { "\($0)=\($1)" }
            process.arguments = directories + variables + [Tool.executable.path] + words
            process.standardOutput = output
            process.standardError = try FileHandle(forWritingTo: errors)
            process.standardInput = FileHandle.nullDevice
            try process.run()
            let bytes = output.fileHandleForReading.readDataToEndOfFile()
            process.waitUntilExit()
            return Tool.Outcome(
                status: process.terminationStatus, bytes: Array(bytes),
                errors: String(decoding: try Data(contentsOf: errors), as: UTF8.self))
        }
    }

    @Test func reportsWhatIsInstalled() async throws {
        let scratch = try Scratch()
        let outcome = try await Tool.run(["doctor", "--json"], home: scratch.url)
        #expect(outcome.status == 0, "\(outcome.errors)\(outcome.output)")
        let report = try #require(outcome.objects.first)
        let version = try await Tool.run(["--version"]).output.trimmingCharacters(in: .newlines)
        #expect(report["version"] as? String == version)
        #expect(report["program"] as? String == Tool.executable.path)
        let libraries = try #require(report["libraries"] as? [[String: Any]])
        for name in ["SQLite", "libjpeg-turbo", "libpng", "libwebp", "libavif", "libcurl"] {
            let version = libraries.first { $0["name"] as? String == name }?["version"] as? String
            #expect(version?.first?.isNumber == true, "\(name)")
        }
        let helpers = try #require(report["helpers"] as? [[String: Any]])
        #expect(helpers.count == 5)
        for (helper, library) in zip(helpers, ["libvips", "poppler", "FFmpeg", "pango"]) {
            #expect(helper["works"] as? Bool == true, "\(helper)")
            #expect((helper["sandbox"] as? [String: Bool])?["seccomp"] == true)
            let names = (helper["libraries"] as? [[String: Any]])?.compactMap { $0["name"] as? String }
            #expect(names?.contains(library) == true, "\(helper)")
        }
        #expect((report["formats"] as? [String])?.contains("heic") == true)
        #expect((report["problems"] as? [String])?.isEmpty == true)
        let caches = (report["directories"] as? [[String: Any]])?.first { $0["name"] as? String == "caches" }
        #expect(caches?["path"] as? String == scratch.file("cache").path)
        #expect(caches?["isWritable"] as? Bool == true)
    }

    @Test func textHasTheSameFindings() async throws {
        let outcome = try await Tool.run(["doctor", "--require", "worker", "--require", "network", "--require", "avif"])
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.output.contains("\nAll works"), "\(outcome.output)")
        for word in ["SQLite", "vitrine-worker", "seccomp on", "Directories", "Limits", "libcurl"] {
            #expect(outcome.output.contains(word), "\(word): \(outcome.output)")
        }
    }

    @Test(arguments: [
        ("VITRINE_PDF=/nowhere/vitrine-pdf", [], "vitrine-pdf is not installed"),
        ("VITRINE_TEXT=/nowhere/vitrine-text", ["--require", "text"], "vitrine-text is not installed"),
        ("VITRINE_AGENT=/nowhere/vitrine-agent", ["--require", "agent"], "vitrine-agent is not installed"),
        ("VITRINE_BROWSER=/nowhere/chromium", [], "no browser was found"),
        ("VITRINE_VIDEO=/bin/false", [], "vitrine-video does not work"),
        ("VITRINE_TEXT=/bin/false", [], "vitrine-text does not work"),
        ("PATH=/nowhere", ["--require", "browser"], "no browser was found"),
    ])
    func somethingAskedForIsMissing(_ variable: String, _ words: [String], _ problem: String) async throws {
        let scratch = try Scratch()
        let outcome = try await run([variable], ["doctor"] + words, home: scratch.url)
        #expect(outcome.status == 1)
        #expect(outcome.errors.contains(problem), "\(outcome.errors)")
        let json = try await run([variable], ["doctor", "--json"] + words, home: scratch.url)
        #expect(json.status == 1)
        #expect((json.objects.first?["problems"] as? [String])?.contains { $0.contains(problem) } == true)
    }

    @Test func aMissingPartThatNobodyAskedForIsNoProblem() async throws {
        let scratch = try Scratch()
        let outcome = try await run(["PATH=/nowhere"], ["doctor"], home: scratch.url)
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.output.contains("not installed"))
    }

    @Test(arguments: [
        ("landlock", "Landlock"), ("seccomp", "seccomp"), ("landlock-without-seccomp", "seccomp and Landlock"),
    ])
    func incompleteSandboxesAreReportedAndRefused(_ part: String, _ name: String) async throws {
        let scratch = try Scratch()
        // A worker that tells in its greeting what its sandbox lacks.
        let worker = scratch.file("without-\(part)-liar").path
        let host = Tool.executable.deletingLastPathComponent().appending(path: "WorkerTestHost").path
        try FileManager.default.createSymbolicLink(atPath: worker, withDestinationPath: host)
        let variable = "VITRINE_WORKER=\(worker)"
        let free = try await run([variable, "VITRINE_LOG=info"], ["doctor", "--json"], home: scratch.url)
        #expect(free.status == 0, "\(free.errors)\(free.output)")
        #expect(free.errors.contains("runs without \(name)"), "\(free.errors)")
        let helper = (free.objects.first?["helpers"] as? [[String: Any]])?.first
        let sandbox = helper?["sandbox"] as? [String: Bool]
        #expect(sandbox?["landlock"] == !part.contains("landlock") && sandbox?["seccomp"] == !part.contains("seccomp"))
        #expect(free.objects.first?["sandboxIsRequired"] as? Bool == false)
        let strict = try await run(
            [variable, "VITRINE_WORKER_SANDBOX=required"], ["doctor", "--json"], home: scratch.url)
        #expect(strict.status == 1)
        let problems = strict.objects.first?["problems"] as? [String]
        #expect(problems?.contains { $0.contains("runs without \(name)") } == true, "\(strict.output)")
        let asked = try await run([variable], ["doctor", "--require", "sandbox"], home: scratch.url)
        #expect(asked.status == 1 && asked.errors.contains("incomplete sandbox"), "\(asked.errors)")
        let decode = try await run(
            [variable, "VITRINE_WORKER_SANDBOX=required"],
            ["thumbnail", Samples.path("lake.jpg"), "--isolate", "--no-cache", "-o", scratch.file("a.png").path],
            home: scratch.url)
        #expect(decode.status == 1)
        #expect(decode.errors.contains("runs without \(name), and a complete sandbox is required"), "\(decode.errors)")
    }

    @Test func forbiddenSeccompIsToldOnceAndEachDecodeFails() async throws {
        let scratch = try Scratch()
        let worker = scratch.file("forbidden-liar").path
        let host = Tool.executable.deletingLastPathComponent().appending(path: "WorkerTestHost").path
        try FileManager.default.createSymbolicLink(atPath: worker, withDestinationPath: host)
        let pictures = ["lake.jpg", "leaf.png", "moon.gif"].map { Samples.path($0) }
        let outcome = try await run(
            ["VITRINE_WORKER=\(worker)", "VITRINE_LOG=info"],
            ["thumbnail", "--isolate", "--no-cache", "-o", scratch.file("out").path] + pictures, home: scratch.url)
        #expect(outcome.status == 1)
        func count(_ text: String) -> Int { outcome.errors.components(separatedBy: text).count - 1 }
        #expect(count("\(worker) ends, as the kernel or the container forbids seccomp") == 1, "\(outcome.errors)")
        #expect(count("could not enter its sandbox") == 3, "\(outcome.errors)")
        let doctor = try await run(["VITRINE_WORKER=\(worker)"], ["doctor"], home: scratch.url)
        #expect(doctor.status == 1)
        #expect(doctor.errors.contains("vitrine-worker does not work"), "\(doctor.errors)")
    }

    @Test func unknownPartsAreUsageErrors() async throws {
        #expect(try await Tool.run(["doctor", "--require", "nothing"]).status == 2)
    }

    // MARK: Libraries that are loaded when first needed

    /// A directory with files by the names of libraries that are none.
    private func brokenLibraries(_ scratch: Scratch) throws -> String {
        let directory = scratch.file("lib")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        for name in ["libcurl.so.4", "libavif.so.15", "libavif.so.16"] {
            try Data(repeating: 0x20, count: 4096).write(to: directory.appending(path: name))
        }
        return "LD_LIBRARY_PATH=" + directory.path
    }

    @Test func commandsThatNeedNeitherRunWithoutThem() async throws {
        let scratch = try Scratch()
        let broken = try brokenLibraries(scratch)
        let picture = scratch.file("lake.png").path
        let words = ["thumbnail", Samples.path("lake.jpg"), "--no-cache", "--size", "40", "-o", picture]
        let outcome = try await run([broken], words, home: scratch.url)
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(FileManager.default.fileExists(atPath: picture))
        #expect(try await run([broken], ["--version"], home: scratch.url).status == 0)
    }

    @Test func absentLibrariesAreNamedWithThePackageToInstall() async throws {
        let scratch = try Scratch()
        let broken = try brokenLibraries(scratch)
        let fetch = try await run(
            [broken], ["fetch", "http://127.0.0.1:9/a.jpg", "-o", scratch.file("a.jpg").path], home: scratch.url)
        #expect(fetch.status == 1)
        #expect(fetch.errors.contains("libcurl.so.4") && fetch.errors.contains("install libcurl4"), "\(fetch.errors)")
        let words = ["thumbnail", Samples.path("lake.jpg"), "--no-cache", "-o", scratch.file("lake.avif").path]
        let encode = try await run([broken], words, home: scratch.url)
        #expect(encode.status == 1)
        #expect(encode.errors.contains("cannot write avif"), "\(encode.errors)")
        #expect(encode.errors.contains("install libavif"), "\(encode.errors)")
        let doctor = try await run(
            [broken], ["doctor", "--require", "network", "--require", "avif"], home: scratch.url)
        #expect(doctor.status == 1)
        #expect(doctor.errors.contains("libcurl is missing") && doctor.errors.contains("libavif is missing"))
    }

    /// The libraries that the loader reports for a command.
    private func loaded(_ words: [String]) async throws -> String {
        let scratch = try Scratch()
        let outcome = try await run(["LD_DEBUG=files"], words, home: scratch.url)
        return outcome.errors
    }

    @Test func librariesAreLoadedByTheFirstUse() async throws {
        let scratch = try Scratch()
        let output = scratch.file("out.png").path
        let plain = try await loaded(["thumbnail", Samples.path("lake.jpg"), "--no-cache", "-o", output])
        #expect(plain.contains("libjpeg.so") && !plain.contains("libcurl.so") && !plain.contains("libavif.so"))
        let fetch = try await loaded(["fetch", "http://127.0.0.1:9/a.jpg", "-o", output])
        #expect(fetch.contains("libcurl.so.4") && !fetch.contains("libavif.so"))
        let avif = try await loaded(
            ["thumbnail", Samples.path("lake.jpg"), "--no-cache", "-o", scratch.file("out.avif").path])
        #expect(avif.contains("libavif.so") && !avif.contains("libcurl.so"))
    }
}
#endif
