#if os(Linux)
import Foundation
import TestSupport
import Testing

/// Text of files and servers that would act on a terminal arrives there as text (see `Output`).
@Suite struct HostileTextTests {
    /// Sets a title, colours, goes to the beginning of the line, and reorders: by C0, C1 and bidirectional controls.
    private static let hostile = "x\u{1B}]0;owned\u{07}\u{1B}[31m\u{9B}2J\r\u{202E}gpj\u{2066}\u{200B}\u{E0041}"

    private let scratch: Scratch
    private var home: URL { scratch.file("home") }

    init() throws { scratch = try Scratch() }

    /// What a test must not find: control, format and separator characters but the ends of lines, and what is no UTF-8.
    private static func faults(_ bytes: [UInt8]) -> [String] {
        guard let text = String(validating: bytes, as: UTF8.self) else { return ["no UTF-8"] }
        return text.unicodeScalars.compactMap { scalar in
            switch scalar.properties.generalCategory {
            case .control where scalar == "\n": nil
            case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse:
                String(scalar.value, radix: 16)
            default: nil
            }
        }
    }

    /// Runs a command into files and on a terminal.
    private func check(_ words: [String], names: Bool = false, _ place: SourceLocation = #_sourceLocation) async throws {
        let bytes = words.map { Array($0.utf8) }
        let piped = try await RawTool.run(bytes, home: home)
        #expect(Self.faults(piped.errors) == [], "\(words[0]), errors", sourceLocation: place)
        if !names { #expect(Self.faults(piped.output) == [], "\(words[0]), output", sourceLocation: place) }
        let shown = try await RawTool.run(bytes, home: home, onTerminal: true)
        // The terminal's ends of lines, and the bars that the command draws.
        var text = String(decoding: shown.output, as: UTF8.self).replacing("\r\n", with: "\n")
        text = text.replacing("\r\u{1B}[2K", with: "")
            .replacing(/\u{1B}\[\d+A\r\u{1B}\[0J/, with: "")
        #expect(Self.faults(Array(text.utf8)) == [], "\(words[0]), terminal: \(text.debugDescription)", sourceLocation: place)
        #expect(shown.status == piped.status && !text.isEmpty, sourceLocation: place)
    }

    /// A JPEG whose colour profile has a hostile name (ICC.1:2001-04 §6.5.17, Annex B.4).
    private func picture() throws -> [UInt8] {
        func u32(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }
        let name = Array(Self.hostile.utf8) + [0x9B, 0xFF, 0]
        let tag = Array("desc".utf8) + u32(0) + u32(name.count) + name
        var profile = [UInt8](repeating: 0, count: 128) + u32(1) + Array("desc".utf8) + u32(144) + u32(tag.count) + tag
        profile.replaceSubrange(0..<4, with: u32(profile.count))
        profile.replaceSubrange(12..<24, with: Array("mntrRGB XYZ ".utf8))
        profile.replaceSubrange(36..<40, with: Array("acsp".utf8))
        let body = Array("ICC_PROFILE\0".utf8) + [1, 1] + profile
        let segment = [0xFF, 0xE2] + u32(body.count + 2)[2...] + body
        let picture = try Samples.bytes("lake.jpg")
        return Array(picture[..<2]) + segment + picture[2...]
    }

    /// A document with a hostile title.
    private func document() -> [UInt8] {
        let title = ([0xFEFF] + Array(Self.hostile.utf16)).map { unit in
            let digits = String(unit, radix: 16)
            return String(repeating: "0", count: 4 - digits.count) + digits
        }.joined()
        let objects = [
            "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 100 100] >>", "<< /Title <\(title)> >>",
        ]
        var text = "%PDF-1.4\n", offsets: [Int] = []
        for (index, object) in objects.enumerated() {
            offsets.append(text.utf8.count)
            text += "\(index + 1) 0 obj\n\(object)\nendobj\n"
        }
        let start = text.utf8.count
        text += "xref\n0 5\n0000000000 65535 f \n"
        for offset in offsets {
            text += String(repeating: "0", count: 10 - "\(offset)".count) + "\(offset) 00000 n \n"
        }
        return Array((text + "trailer\n<< /Size 5 /Root 1 0 R /Info 4 0 R >>\nstartxref\n\(start)\n%%EOF\n").utf8)
    }

    private func write(_ bytes: [UInt8], _ name: String) throws -> String {
        let path = scratch.url.path + "/" + name
        #expect(FileManager.default.createFile(atPath: path, contents: Data(bytes)))
        return path
    }

    @Test func namesAndWhatFilesSayOfThemselvesAreEscaped() async throws {
        let good = try write(picture(), Self.hostile + "\n.jpg")
        let broken = try write([0xFF, 0xD8, 0xFF, 0xE0, 1], Self.hostile + "-2.jpg")
        let pdf = try write(document(), Self.hostile + ".pdf")
        let inspected = try await Tool.run(["inspect", good, pdf])
        #expect(inspected.output.contains(#"profile x\u{1B}]0;owned"#), "\(inspected)")
        #expect(inspected.output.contains(#"“x\u{1B}]0;owned\u{7}\u{1B}[31m\u{9B}2J\r\u{202E}gpj"#), "\(inspected)")
        #expect(inspected.output.split(separator: "\n").count == 2)

        let out = scratch.file("out" + Self.hostile).path
        let inputs = [good, broken, pdf, good + "absent"]
        for json in [[], ["--json"]] {
            try await check(["inspect"] + inputs + json)
            try await check(["thumbnail"] + inputs + ["--size", "32", "-o", out] + json)
            try await check(["precache"] + inputs + ["--size", "32"] + json)
        }
        try await check(["contact-sheet"] + inputs + ["-o", scratch.file("absent" + Self.hostile + "/sheet.png").path])
        try await check(["show", broken])
        try await check(["thumbnail", "--recursive", scratch.url.path, "--size", "16", "-o", out])
        let objects = try await Tool.run(["inspect", good, pdf, "--json"]).objects
        #expect(objects.map { $0["input"] as? String } == [good, pdf])
        #expect((objects[1]["title"] as? String) == Self.hostile)
    }

    @Test func storesAndCachesTellNamesEscaped() async throws {
        let file = try write(Samples.bytes("lake.jpg"), Self.hostile + ".jpg")
        let root = ["--root", scratch.file("store" + Self.hostile).path]
        try await check(["store", "save", file, "--replace"] + root, names: true)
        try await check(["store", "save", file, "--json"] + root)  // refused: it is there
        try await check(["store", "list"] + root, names: true)
        try await check(["store", "list", "--json"] + root)
        try await check(["store", "path", Self.hostile] + root, names: true)
        try await check(["store", "load", Self.hostile] + root)
        try await check(["store", "export", scratch.file("exported").path, "--replace"] + root, names: true)
        try await check(["store", "import", Self.hostile] + root)
        #expect(try await Tool.run(["store", "list"] + root).output == Self.hostile + ".jpg\n")

        let cache = ["--root", scratch.file("caches").path, "--name", Self.hostile]
        _ = try await Tool.run(["cache", "put", Self.hostile, file, "--format", Self.hostile] + cache)
        for command in ["stats", "list", "verify"] {
            for json in [[], ["--json"]] { try await check(["cache", command] + cache + json) }
        }
        try await check(["cache", "get", Self.hostile + "2"] + cache)
        try await check(["cache", "get", "a", "--name", Self.hostile + "2"])
        try await check(["cache", "put", "a", Self.hostile] + cache)
        try await check(["objects", "list", Self.hostile])
        try await check(["objects", "list", file])
    }

    @Test func whatServersSayIsEscaped() async throws {
        let server = try LoopbackServer { request in
            switch request.target {
            case "/redirect": [.text("HTTP/1.1 302 x\u{9B}31m\r\nLocation: ftp://\u{9B}x\u{202E}\r\nContent-Length: 0\r\n\r\n"), .close]
            case "/broken": [.text("HTTP/1.1 200\u{1B}[31m \u{9B}\r\nContent-Length: x\u{202E}\r\n\r\n"), .close]
            default:
                [.text("HTTP/1.1 200 \u{9B}31m\r\nContent-Type: text/x\u{9B}31m\u{202E}y\r\nContent-Length: 2\r\n\r\nok"), .close]
            }
        }
        let addresses = ["/", "/redirect", "/broken"].map { server.url($0).absoluteString }
        for json in [[], ["--json"]] {
            try await check(["fetch"] + addresses + ["http://\(Self.hostile)/", Self.hostile, "-o", scratch.file("out").path] + json)
        }
        try await check(["download", "add", Self.hostile])
        try await check(["thumbnail", "https://\(Self.hostile)", "--size", "32"])
    }

    @Test func wrongCommandLinesAreTold() async throws {
        for words in [
            [Self.hostile], ["inspect", "--\(Self.hostile)"], ["thumbnail", "a", "--size", Self.hostile],
            ["thumbnail", "a", "--format=\(Self.hostile)"], ["cache", "list", "--limit", Self.hostile],
            ["fetch", Self.hostile, "a", "-o", "-", "--id", Self.hostile], ["store", Self.hostile + "\nusage"],
        ] { try await check(words) }
        let forged = try await Tool.run(["thumbnail", "a", "--page", "1\nError: forged"])
        #expect(forged.status == 2 && !forged.errors.contains("\nError: forged"), "\(forged.errors)")
    }

    @Test func aFullDiskIsToldByTheStatus() async throws {
        let full = open("/dev/full", O_WRONLY | O_CLOEXEC)
        defer { close(full) }
        let process = Process()
        process.executableURL = Tool.executable
        process.arguments = ["inspect", Samples.path("lake.jpg"), Samples.path("leaf.png")]
        let errors = scratch.file("errors")
        #expect(FileManager.default.createFile(atPath: errors.path, contents: nil))
        process.standardOutput = FileHandle(fileDescriptor: full)
        process.standardError = try FileHandle(forWritingTo: errors)
        let running = process
        try running.run()
        running.waitUntilExit()
        #expect(running.terminationReason == .exit && running.terminationStatus == 1)
        #expect(try String(contentsOf: errors, encoding: .utf8) == "standard output: No space left on device\n")
    }
}
#endif
