#if os(Linux)
import Foundation
import TestSupport
import Testing

/// Web pages on the command line.
@Suite struct WebPageCommandTests {
    @Test(arguments: ["thumbnail", "contact-sheet"])
    func publicOnlyRefusesPrivateAddresses(_ command: String) async throws {
        let scratch = try Scratch()
        let words = [
            command, "http://127.0.0.1/", "--web-page", "--no-browser-sandbox", "--no-cache", "--public-only", "-o",
            scratch.file("x.png").path,
        ]
        let outcome = try await Tool.run(words)
        #expect(outcome.status == 1)
        #expect((outcome.errors + outcome.output).contains("the address 127.0.0.1 is not public"))
    }

    /// A browser that hangs, drawing a page for a command that anybody runs.
    private struct Drawing {
        let directory: TemporaryDirectory
        let temporary: String

        init() throws {
            directory = try TemporaryDirectory()
            temporary = directory.file("tmp")
            try FileManager.default.createDirectory(atPath: temporary, withIntermediateDirectories: false)
            // Root has no sandbox for browsers: the command runs as nobody.
            for path in [directory.path, temporary] { chmod(path, 0o777) }
            try directory.write("#!/bin/sh\necho $$ > '\(directory.path)/started'\nexec sleep 100000\n", to: "script")
            let copy = Process()
            copy.executableURL = URL(filePath: "/usr/bin/install")
            copy.arguments = ["-m", "755", directory.file("script"), directory.file("browser")]
            try copy.run()
            copy.waitUntilExit()
        }

        func start() throws -> ChildProcess {
            try? FileManager.default.removeItem(atPath: directory.file("started"))
            let variables = [
                "TMPDIR=\(temporary)", "VITRINE_BROWSER=\(directory.file("browser"))", "HOME=\(temporary)",
            ]
            return try ChildProcess(
                executable: "vitrine",
                ["thumbnail", "http://127.0.0.1:9/", "--web-page", "--no-cache", "-o", directory.file("x.jpg")],
                wrapper: ["env"] + variables + (Namespace.isRoot ? Namespace.asNobody : []))
        }

        func browser() throws -> pid_t {
            var number: pid_t = 0
            try waitUntil("the browser has started") {
                guard let text = directory.read("started"), text.hasSuffix("\n") else { return false }
                number = pid_t(text.dropLast()) ?? 0
                return number > 0
            }
            return number
        }

        var profiles: [String] {
            ((try? FileManager.default.contentsOfDirectory(atPath: temporary)) ?? []).filter {
                $0.hasPrefix("vitrine-web-")
            }
        }
    }

    @Test(
        .enabled(
            if: !Namespace.isRoot || Namespace.letsNobodyRun("vitrine"), "needs a checkout that everybody may read"))
    func aSignalLeavesNoProfile() async throws {
        try await offPool {
            let drawing = try Drawing()
            let child = try drawing.start()
            let browser = try drawing.browser()
            #expect(drawing.profiles.count == 1)
            // A shell may have had SIGINT and SIGHUP ignored, which the command respects.
            Foundation.kill(child.identifier, SIGTERM)
            #expect(child.wait() == .signal(SIGTERM))
            #expect(drawing.profiles == [])
            // Where nobody reaps orphans, it stays as a zombie.
            try waitUntil("the browser has ended") {
                let status = try? String(contentsOfFile: "/proc/\(browser)/stat", encoding: .utf8)
                return status?.contains(") Z ") != false
            }
        }
    }

    @Test(
        .enabled(
            if: !Namespace.isRoot || Namespace.letsNobodyRun("vitrine"), "needs a checkout that everybody may read"))
    func theNextPageSweepsTheProfilesOfKilledProcesses() async throws {
        try await offPool {
            let drawing = try Drawing()
            let first = try drawing.start()
            let orphan = try drawing.browser()
            first.kill()
            first.wait()
            let left = drawing.profiles
            #expect(left.count == 1)
            // This browser does not see that its user has gone.
            Foundation.kill(orphan, SIGKILL)
            let second = try drawing.start()
            _ = try drawing.browser()
            #expect(drawing.profiles.count == 1 && drawing.profiles != left)
            Foundation.kill(second.identifier, SIGTERM)
            second.wait()
            #expect(drawing.profiles == [])
        }
    }
}
#endif
