import Foundation
import TestSupport
import Testing

/// The libraries that the helper for films loads.
@Suite struct VideoLibrariesTests {
    /// Runs the helper for its version, and returns what the dynamic linker says about the files it loads.
    private func linked(_ environment: [String: String]) throws -> (output: String, files: String) {
        let process = Process()
        process.executableURL = Tool.executable.deletingLastPathComponent().appending(path: "vitrine-video")
        process.arguments = ["--version"]
        process.environment = ProcessInfo.processInfo.environment.merging(["LD_DEBUG": "files"]) { $1 }
            .merging(environment) { $1 }
        // Files, not pipes: nothing has to be read while the helper runs.
        let scratch = try Scratch()
        let (out, err) = (scratch.file("out"), scratch.file("err"))
        for file in [out, err] { _ = FileManager.default.createFile(atPath: file.path, contents: nil) }
        process.standardOutput = try FileHandle(forWritingTo: out)
        process.standardError = try FileHandle(forWritingTo: err)
        try process.run()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
        return (try String(contentsOf: out, encoding: .utf8), try String(contentsOf: err, encoding: .utf8))
    }

    @Test func theHelperLoadsNoLibraryThatItsDecodersDoNotCall() async throws {
        let (all, alone) = try await offPool {
            (try linked(["VITRINE_VIDEO_LIBRARIES": "all"]), try linked([:]))
        }
        #expect(alone.output == all.output)
        #expect(alone.output.contains("FFmpeg "))
        #expect(all.files.contains("libavformat.so"))
        for name in ["libavformat.so", "libavcodec.so", "libx265", "libgnutls", "librsvg", "libX11"] {
            #expect(!alone.files.contains(name), "\(name)")
        }
    }

    @Test(arguments: ["lake.mp4", "lake.heic"])
    func picturesAreTheSameWithAllLibraries(_ name: String) async throws {
        let scratch = try Scratch()
        for (file, how) in [("alone.png", ""), ("all.png", "all")] {
            let outcome = try await Tool.run(
                ["thumbnail", Samples.path(name), "--no-cache", "--size", "160", "-o", scratch.file(file).path],
                environment: ["VITRINE_VIDEO_LIBRARIES": how])
            #expect(outcome.status == 0, "\(outcome.errors)")
        }
        #expect(try Data(contentsOf: scratch.file("alone.png")) == Data(contentsOf: scratch.file("all.png")))
    }
}
