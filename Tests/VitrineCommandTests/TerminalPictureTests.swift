import Testing
import VitrineCommand
import VitrineImaging

struct TerminalPictureTests {
    private struct TinyPNG: ImageEncoding {
        let format = ImageFormat.png

        func encode(_ image: PixelImage, quality: Double, options: EncodeOptions) throws(ImageError) -> [UInt8] {
            Array("PNG!".utf8)
        }
    }

    private let red = PixelColor(red: 255, green: 0, blue: 0), blue = PixelColor(red: 0, green: 0, blue: 255)

    /// What is drawn, with `^` for escape.
    private func text(
        _ image: PixelImage, _ mode: TerminalPicture.Mode, background: PixelColor? = nil, png: Bool = false
    ) -> String {
        var codec = Codecs.standard[.png]
        codec?.encoders = png ? [TinyPNG()] : []
        let codecs = Codecs([codec].compactMap(\.self))
        let bytes = TerminalPicture(mode: mode, background: background).render(image, codecs: codecs)
        return String(decoding: bytes, as: UTF8.self).replacing("\u{1b}", with: "^")
    }

    @Test func kittyGetsPixelsOrPNG() {
        let image = image([[red, blue]])
        #expect(text(image, .kitty) == "^_Ga=T,q=2,f=32,s=2,v=1,m=0;/wAA/wAA//8=^\\\n")
        #expect(text(image, .kitty, png: true) == "^_Ga=T,q=2,f=100,m=0;UE5HIQ==^\\\n")
    }

    @Test func kittyPayloadComesInChunks() {
        // 40 × 40 × 4 bytes are 8,536 characters: two full chunks and a rest.
        let parts = text(PixelImage(size: PixelSize(40), color: .white), .kitty).split(separator: "^\\")
        #expect(parts.count == 4)
        #expect(parts[0].hasPrefix("^_Ga=T,q=2,f=32,s=40,v=40,m=1;") && parts[0].count == 30 + 4_096)
        #expect(parts[1].hasPrefix("^_Gm=1;") && parts[1].count == 7 + 4_096)
        #expect(parts[2].hasPrefix("^_Gm=0;") && parts[2].count == 7 + 344)
        #expect(parts[3] == "\n")
    }

    @Test func sixelsRunAlongBands() {
        // Eight columns, red above blue: bit 0 is "@", bit 1 is "A", in runs.
        let image = image([[PixelColor](repeating: red, count: 8), [PixelColor](repeating: blue, count: 8)])
        let drawn = text(image, .sixel)
        let either = [
            "^P0;1;0q\"1;1;8;2#0;2;100;0;0#1;2;0;0;100#0!8@$#1!8A^\\\n",
            "^P0;1;0q\"1;1;8;2#0;2;0;0;100#1;2;100;0;0#0!8A$#1!8@^\\\n",
        ]
        #expect(either.contains(drawn))
    }

    @Test func sixelsLeaveOutWhatIsTransparent() {
        let image = image(
            (0..<7).map { y in [.clear, y == 6 ? PixelColor.clear : red, .clear] }, alpha: .straight)
        #expect(text(image, .sixel) == "^P0;1;0q\"1;1;3;7#0;2;100;0;0#0?~-^\\\n")
        #expect(text(image, .sixel, background: .white).contains("#1;2;"))
        #expect(text(PixelImage(size: PixelSize(2)), .sixel) == "^P0;1;0q\"1;1;2;2^\\\n")
    }

    @Test func halfBlocksWriteOnlyChanges() {
        let image = image([[red, red, blue], [blue, blue, blue], [red, red, red]])
        #expect(text(image, .halfBlocks) == "^[38;2;255;0;0;48;2;0;0;255m▀▀ ^[0m\n^[38;2;255;0;0m▀▀▀^[0m\n")
        #expect(text(image, .halfBlocks256) == "^[38;5;196;48;5;21m▀▀ ^[0m\n^[38;5;196m▀▀▀^[0m\n")
    }

    @Test func halfBlocksShowTheTerminalThroughTransparentPixels() {
        let image = image([[.clear, red, .clear, red], [.clear, .clear, blue, red]], alpha: .straight)
        #expect(text(image, .halfBlocks) == " ^[38;2;255;0;0m▀^[38;2;0;0;255m▄^[48;2;255;0;0m ^[0m\n")
        let white = text(image, .halfBlocks, background: .white)
        #expect(white.hasPrefix("^[48;2;255;255;255m ^[38;2;255;0;0m▀"))
    }

    @Test(arguments: [
        (["TERM": "xterm-kitty"], TerminalPicture.Mode.kitty),
        (["TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"], .kitty),
        (["TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"], .kitty), (["TERM": "xterm-ghostty"], .kitty),
        (["TERM": "xterm-256color", "COLORTERM": "truecolor"], .halfBlocks),
        (["TERM": "xterm-256color"], .halfBlocks256),
        (["TERM": "tmux-256color", "KITTY_WINDOW_ID": "1", "COLORTERM": "truecolor"], .halfBlocks),
        (["TERM": "xterm-kitty", "TMUX": "/tmp/x"], .halfBlocks256),
        (["TERM": "dumb", "KITTY_WINDOW_ID": "1"], nil), ([:], nil),
    ])
    func findsTheBestMode(environment: [String: String], expected: TerminalPicture.Mode?) {
        #expect(TerminalPicture.Mode.detected(environment: environment) == expected)
    }

    /// Pixels from colours, row by row.
    private func image(_ rows: [[PixelColor]], alpha: PixelImage.Alpha = .opaque) -> PixelImage {
        let channels = rows.joined().flatMap { [$0.red, $0.green, $0.blue, $0.alpha] }
        return PixelImage(width: rows[0].count, height: rows.count, alpha: alpha) { $0.copyBytes(from: channels) }
    }
}
