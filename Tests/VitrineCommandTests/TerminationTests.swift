#if os(Linux)
import Foundation
import TestSupport
import Testing

/// Signals that end a running command.
@Suite struct TerminationTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    /// Starts `vitrine` with the default actions of all signals, whatever the tests were started with.
    private static func start(_ arguments: [String], in scratch: Scratch) throws -> ChildProcess {
        let home = Tool.environment(home: scratch.file("home")).map { "\($0)=\($1)" }
        return try ChildProcess(
            executable: "vitrine", arguments,
            wrapper: ["env", "--default-signal", "TMPDIR=\(scratch.file("tmp").path)"] + home
                + ["sh", "-c", "exec \"$@\" 2> '\(scratch.file("errors").path)'", "sh"])
    }

    private static func names(_ directory: URL) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? []).sorted()
    }

    private static func makeDirectories(_ scratch: Scratch) throws {
        for name in ["out", "tmp"] {
            try FileManager.default.createDirectory(at: scratch.file(name), withIntermediateDirectories: true)
        }
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGHUP], [false, true])
    func aSignalLeavesFinishedOutputsOnly(_ signal: Int32, _ usesNoCache: Bool) async throws {
        let server = try LoopbackServer { request in
            request.target == "/whole.txt"
                ? [.text("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole")]
                : [.text("HTTP/1.1 200 OK\r\nContent-Length: 50000\r\nETag: \"1\"\r\n\r\npart"), .hang]
        }
        let scratch = try Scratch()
        try await offPool {
            try Self.makeDirectories(scratch)
            let urls = ["/whole.txt", "/part.txt"].map { server.url($0).absoluteString }
            let child = try Self.start(
                ["fetch"] + urls + ["-o", scratch.file("out").path] + (usesNoCache ? ["--no-cache"] : []), in: scratch)
            // The line of the first address: its output is there.
            #expect(child.line()?.contains("whole.txt") == true)
            try waitUntil("the second address is asked for") { server.requests.contains { $0.target == "/part.txt" } }
            if usesNoCache {
                try waitUntil("a part is there") { Self.names(scratch.file("out")).contains("part.txt.vitrine-part") }
            }
            kill(child.identifier, signal)
            #expect(child.wait() == .signal(signal))
            // What a later fetch resumes from stays.
            #expect(
                Self.names(scratch.file("out")).filter { !$0.hasPrefix("part.txt.vitrine-") } == ["whole.txt"])
            #expect(try String(contentsOf: scratch.file("out/whole.txt"), encoding: .utf8) == "whole")
            #expect(Self.names(scratch.file("tmp")) == [])
            #expect(try String(contentsOf: scratch.file("errors"), encoding: .utf8) == "")
        }
    }

    /// Stores 64 MiB, so that writing them takes a moment.
    private func storeEntry() async throws {
        let file = scratch.file("large")
        #expect(FileManager.default.createFile(atPath: file.path, contents: nil))
        #expect(truncate(file.path, Self.size) == 0)
        let stored = try await Tool.run(
            ["cache", "put", "-n", "c", "large", file.path], home: scratch.file("home"))
        #expect(stored.status == 0, "\(stored.errors)")
    }

    private static let size = 64 << 20

    @Test(arguments: [SIGINT, SIGTERM])
    func aSignalRemovesTheTemporaryFileOfAnOutput(_ signal: Int32) async throws {
        try await storeEntry()
        let scratch = scratch
        try await offPool {
            try Self.makeDirectories(scratch)
            let directory = scratch.file("out")
            var wasCaught = false
            // A write can be faster than the look at it.
            for _ in 0..<1000 where !wasCaught {
                let child = try Self.start(
                    ["cache", "get", "-n", "c", "large", "-o", directory.appending(path: "x").path], in: scratch)
                try waitUntil("the output begins") { !Self.names(directory).isEmpty }
                child.stop()
                let names = Self.names(directory)
                wasCaught = names.contains { $0.hasPrefix(".%tmp-") }
                if wasCaught { kill(child.identifier, signal) }
                child.resume()
                #expect(child.wait() == (wasCaught ? .signal(signal) : .exit(0)))
                // Between signal and end the write may still finish.
                let left = Self.names(directory)
                #expect(left == [] || left == ["x"])
                try? FileManager.default.removeItem(at: directory.appending(path: "x"))
            }
            #expect(wasCaught)
            #expect(try String(contentsOf: scratch.file("errors"), encoding: .utf8) == "")
        }
    }

    @Test func aClosedPipeEndsTheCommandSilently() async throws {
        try await storeEntry()
        let scratch = scratch
        try await offPool {
            let home = Tool.environment(home: scratch.file("home")).map { "\($0)=\($1)" }
            let child = try ChildProcess(
                executable: "vitrine", ["cache", "get", "-n", "c", "large"],
                wrapper: ["env", "--default-signal"] + home + [
                    "bash", "-c", "\"$@\" 2> '\(scratch.file("errors").path)' | true; echo ${PIPESTATUS[0]}", "bash",
                ])
            #expect(child.line() == "\(128 + SIGPIPE)")
            #expect(child.wait() == .exit(0))
            #expect(try String(contentsOf: scratch.file("errors"), encoding: .utf8) == "")
        }
    }
}
#endif
