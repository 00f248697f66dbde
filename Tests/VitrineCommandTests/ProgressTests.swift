#if os(Linux)
import Foundation
import TestSupport
import Testing

/// The progress of long work on a terminal, and its absence elsewhere.
@Suite struct ProgressTests {
    private let scratch: Scratch
    private var home: URL { scratch.file("home") }

    init() throws { scratch = try Scratch() }

    private func words(_ words: [String]) -> [[UInt8]] { words.map { Array($0.utf8) } }

    private var inputs: [String] { ["lake.jpg", "leaf.png", "lake.webp"].map(Samples.path) }

    /// What stood in the line of the bar, one after the other.
    private static func lines(_ output: [UInt8]) -> [String] {
        String(decoding: output, as: UTF8.self).replacing("\r\n", with: "\n").split(separator: "\r\u{1B}[2K").map {
            String($0.prefix { $0 != "\n" })
        }.filter { $0.contains("█") || $0.contains("░") }
    }

    @Test(arguments: [
        ["thumbnail", "--size", "32"], ["contact-sheet", "--size", "32"], ["precache", "--size", "32"], ["inspect"],
    ])
    func batchesShowCountPercentageAndName(_ command: [String]) async throws {
        let output = ["thumbnail", "contact-sheet"].contains(command[0]) ? ["-o", scratch.file("out").path] : []
        let all = words(command + inputs + output)
        let shown = try await RawTool.run(all, home: home, onTerminal: true)
        #expect(shown.status == 0)
        let lines = Self.lines(shown.output)
        for part in ["  0/3  0 %  ", "  1/3  33 %  ", "  2/3  66 %  ", "  3/3  100 %  "] {
            #expect(lines.contains { $0.contains(part) }, "\(part): \(lines)")
        }
        for name in ["lake.jpg", "leaf.png", "lake.webp"] {
            #expect(lines.contains { $0.hasSuffix(name) }, "\(name): \(lines)")
        }
        #expect(lines.allSatisfy { $0.count < 80 })
        // The bar is gone at the end.
        let text = String(decoding: shown.output, as: UTF8.self)
        let bar = try #require(text.lastIndex(of: "█"))
        #expect(text[bar...].contains("\r\u{1B}[2K"))

        let quiet = try await RawTool.run(all + words(["--quiet"]), home: home, onTerminal: true)
        #expect(quiet.status == 0 && !quiet.output.contains(0x1B))
        #expect(quiet.output.isEmpty == (command[0] != "inspect"))
        let piped = try await RawTool.run(all, home: home)
        #expect(piped.status == 0 && piped.errors.isEmpty && !piped.output.contains(0x1B))
    }

    @Test func storesShowTheirTransfers() async throws {
        let tree = try scratch.tree(["lake.jpg", "leaf.png"])
        let all = words(["store", "import", tree.path, "--root", scratch.file("store").path, "--replace"])
        let shown = try await RawTool.run(all, home: home, onTerminal: true)
        #expect(shown.status == 0)
        #expect(Self.lines(shown.output).contains { $0.contains("  1/2  50 %  ") }, "\(Self.lines(shown.output))")
        let quiet = try await RawTool.run(all + words(["--quiet"]), home: home, onTerminal: true)
        #expect(quiet.status == 0 && quiet.output.isEmpty)
    }

    @Test func namesInTheBarAreEscaped() async throws {
        let hostile = "x\u{1B}]0;owned\u{07}\n\u{202E}.jpg"
        let path = scratch.file(hostile).path
        try FileManager.default.copyItem(atPath: Samples.path("lake.jpg"), toPath: path)
        let shown = try await RawTool.run(
            words(["inspect", path, Samples.path("leaf.png")]), home: home, onTerminal: true)
        let lines = Self.lines(shown.output)
        #expect(lines.contains { $0.contains(#"owned\u{7}\n\u{202E}.jpg"#) }, "\(lines)")
        #expect(!shown.output.contains(0x07))
    }

    @Test func fetchesShowEachTransferAndTheirNumber() async throws {
        let barrier = LoopbackServer.Barrier()
        let server = try LoopbackServer { request in
            [.text("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"), .wait(barrier), .text("world")]
        }
        let urls = ["/a.txt", "/b.txt"].map { server.url($0).absoluteString }
        let all = words(["fetch"] + urls + ["-o", scratch.file("out").path])
        let shown = try await RawTool.run(all, home: home, onTerminal: true) { output in
            let text = String(decoding: output, as: UTF8.self)
            if text.contains("50 %  5 B of 10 B"), text.contains("0/2  0 %") { barrier.open() }
        }
        #expect(shown.status == 0)
        #expect(String(decoding: shown.output, as: UTF8.self).contains("/a.txt"))
        let quiet = try await RawTool.run(all + words(["--quiet"]), home: home, onTerminal: true)
        #expect(quiet.status == 0 && quiet.output.isEmpty)
    }
}
#endif
