import Foundation
import TestSupport
import Testing

/// The programs in Examples print what stands beside them (R147).
struct ExamplesTests {
    private static let directory = Samples.directory.deletingLastPathComponent().appending(path: "Examples")

    /// Every program of this package there. Those with a package of their own have a script that runs them.
    private static let names: [String] =
        ((try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? [])
        .filter { FileManager.default.fileExists(atPath: directory.appending(path: $0 + "/main.swift").path) }.sorted()

    @Test func thereAreExamples() { #expect(Self.names.count > 10) }

    @Test(arguments: names)
    func printsWhatItSays(_ name: String) async throws { try await offPool { try Self.check(name) } }

    private static func check(_ name: String) throws {
        let home = try TemporaryDirectory()
        // Nobody's caches, and no proxy between the program and its own server.
        let proxies = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"].flatMap { ["-u", $0] }
        let child = try ChildProcess(
            executable: name, [Samples.directory.path],
            wrapper: ["env"] + proxies + ["HOME=" + home.path, "XDG_CACHE_HOME=" + home.path, "TMPDIR=" + home.path])
        var output = ""
        while let line = child.line() { output += line + "\n" }
        #expect(child.wait() == .exit(0))
        let expected = try String(contentsOf: directory.appending(path: name + "/output.txt"), encoding: .utf8)
        #expect(output == expected)
    }
}
