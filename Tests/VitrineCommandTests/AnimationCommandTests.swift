import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging

/// `vitrine thumbnail --animated`, and animations in the terminal.
struct AnimationCommandTests {
    private static let film = Samples.path("lake.mp4")
    private static let moon = Samples.path("moon.gif")

    private func animation(_ url: URL) throws -> AnimatedImage {
        try #require(try AnimatedImage(.file(url.path), isolation: .inProcess))
    }

    @Test func previewsOfFilmsAndAnimationsAreWritten() async throws {
        let scratch = try Scratch()
        let outcome = try await Tool.run(
            ["thumbnail", Self.film, Self.moon, "--animated", "--size", "96", "-o", "out", "--json"], in: scratch.url)
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(scratch.contents == ["out", "out/lake.webp", "out/moon.webp"])
        let film = try animation(scratch.file("out/lake.webp"))
        #expect(film.size.longestSide == 96 && abs(film.timing.duration - 3) < 0.11)
        let moon = try animation(scratch.file("out/moon.webp"))
        #expect(moon.size.longestSide == 96 && moon.timing.frameCount > 8)
        let report = try #require(outcome.objects.first { ($0["input"] as? String)?.hasSuffix("lake.mp4") == true })
        #expect(report["format"] as? String == "webp" && report["width"] as? Int == 96)
        #expect(report["bytes"] as? Int == (try Data(contentsOf: scratch.file("out/lake.webp")).count))
    }

    @Test func lengthRateAndFormatAreChosen() async throws {
        let scratch = try Scratch()
        let outcome = try await Tool.run(
            [
                "thumbnail", Self.film, "--animated", "--size", "64", "--duration", "1", "--fps", "5", "--spread",
                "--quality", "0.4", "-o", "short.avif",
            ], in: scratch.url)
        #expect(outcome.status == 0, "\(outcome.errors)")
        let short = try animation(scratch.file("short.avif"))
        #expect(short.info.format == .avif && short.timing.duration < 1.8 && short.timing.frameCount <= 12)
    }

    @Test func contentThatDoesNotMoveFails() async throws {
        let scratch = try Scratch()
        let outcome = try await Tool.run(
            ["thumbnail", Samples.path("lake.jpg"), Self.moon, "--animated", "-o", "out"], in: scratch.url)
        #expect(outcome.status == 1 && outcome.errors.contains("neither moves nor is a video"))
        #expect(scratch.contents == ["out", "out/moon.webp"])
    }

    @Test(arguments: [
        ["--fps", "0"], ["--duration", "-1"], ["--duration", "31"], ["--fps", "nan"], ["--progressive"], ["--page", "2"],
        ["--format", "gif"], ["--format", "png"], ["-o", "x.gif"], ["--round", "3"], ["--time", "1"], ["--desktop"],
    ])
    func impossibleOptionsAreRefused(_ options: [String]) async throws {
        #expect(try await Tool.run(["thumbnail", Self.moon, "--animated"] + options).status == 2)
    }

    @Test func stillPicturesAreShownWhereNoKeyboardIs() async throws {
        let outcome = try await Tool.run(["show", Self.moon, "--size", "30x20", "--protocol", "blocks"])
        #expect(outcome.status == 0 && outcome.output.split(separator: "\n").count == 10)
    }

    #if os(Linux)
    /// The number of times that the terminal's position was restored: once for each frame, and at the end.
    private static func restored(_ output: [UInt8]) -> Int {
        String(decoding: output, as: UTF8.self).components(separatedBy: "\u{1B}8").count - 1
    }

    @Test func animationsPlayUntilAKeyIsPressed() async throws {
        let scratch = try Scratch()
        let outcome = try await RawTool.runAtKeyboard(
            ["show", Self.moon, "--protocol", "blocks"], home: scratch.file("home")
        ) { output in
            // More than one loop of sixteen frames.
            Self.restored(output) > 20 ? [UInt8(ascii: "q")] : []
        }
        #expect(outcome.status == 0)
        #expect(Self.restored(outcome.output) > 20)
    }

    @Test func animationsEndBehindTheirLastLoop() async throws {
        let scratch = try Scratch()
        let encoder = try AnimationEncoder(as: .webp(), loopCount: 2)
        for red in [0, 90, 180] as [UInt8] {
            try encoder.add(PixelImage(size: PixelSize(8), color: PixelColor(red: red, green: 0, blue: 0)), seconds: 0.02)
        }
        let file = scratch.file("twice.webp")
        try Data(encoder.finish()).write(to: file)
        let outcome = try await RawTool.runAtKeyboard(
            ["show", file.path, "--protocol", "blocks", "--size", "8"], home: scratch.file("home")
        ) { _ in [] }
        #expect(outcome.status == 0 && Self.restored(outcome.output) == 7)
    }

    /// A terminal that answers the questions of `show`, and what is drawn then.
    @Test(arguments: [
        ("\u{1B}_Gi=31;OK\u{1B}\\\u{1B}[?62;c", "\u{1B}_Ga=T"), ("\u{1B}[?62;4c", "\u{1B}P0;1;0q"),
        ("\u{1B}[?62;22c", "\u{1B}[38;5;"),
    ])
    func theTerminalIsAskedWhatItDraws(_ answer: String, _ drawn: String) async throws {
        let scratch = try Scratch()
        let others = ["TMUX", "STY", "KITTY_WINDOW_ID", "TERM_PROGRAM", "LC_TERMINAL", "COLORTERM", "NO_COLOR"]
        let environment = Dictionary(uniqueKeysWithValues: others.map { ($0, "") }).merging(
            ["TERM": "xterm-256color"]) { $1 }
        let question = Array("\u{1B}[c".utf8)
        let hasAnswered = Locked(false)
        let outcome = try await RawTool.runAtKeyboard(
            ["show", Samples.path("lake.jpg"), "--size", "16"], home: scratch.file("home"), environment: environment
        ) { output in
            guard output.firstRange(of: question) != nil, !hasAnswered.withLock({ $0 }) else { return [] }
            hasAnswered.withLock { $0 = true }
            return Array(answer.utf8)
        }
        #expect(outcome.status == 0 && hasAnswered.withLock { $0 })
        let text = String(decoding: outcome.output, as: UTF8.self)
        #expect(text.contains("\u{1B}_Gi=31,s=1,v=1,a=q"))
        #expect(text.contains(drawn), "\(text.prefix(200))")
    }

    @Test func aTerminalThatDoesNotAnswerGetsBlocksAndADumbOneText() async throws {
        let scratch = try Scratch()
        let words = ["show", Samples.path("lake.jpg"), "--size", "16"]
        let silent = try await RawTool.runAtKeyboard(
            words, home: scratch.file("home"),
            environment: [
                "TERM": "vt220", "TMUX": "", "STY": "", "KITTY_WINDOW_ID": "", "TERM_PROGRAM": "", "LC_TERMINAL": "",
                "COLORTERM": "", "NO_COLOR": "",
            ]
        ) { _ in [] }
        #expect(silent.status == 0 && String(decoding: silent.output, as: UTF8.self).contains("▀"))
        let dumb = try await RawTool.runAtKeyboard(
            words, home: scratch.file("home"), environment: ["TERM": "dumb"]
        ) { _ in [] }
        #expect(dumb.status == 0 && !dumb.output.contains(0x1B))
    }

    @Test func stillPicturesAreShownIfAskedFor() async throws {
        let scratch = try Scratch()
        for option in [["--still"], ["--page", "3"]] {
            let outcome = try await RawTool.runAtKeyboard(
                ["show", Self.moon, "--protocol", "blocks"] + option, home: scratch.file("home")
            ) { _ in [] }
            #expect(outcome.status == 0 && Self.restored(outcome.output) == 0)
        }
    }
    #endif
}
