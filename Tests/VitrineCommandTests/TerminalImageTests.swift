import Foundation
import Testing
import VitrineCommand
import VitrineImaging

struct TerminalImageTests {
    private struct TinyPNG: ImageEncoding {
        let format = ImageFormat.png

        func encode(_ image: PixelImage, quality: Double, options: EncodeOptions) throws(ImageError) -> [UInt8] {
            Array("PNG!".utf8)
        }
    }

    private let red = PixelColor(red: 255, green: 0, blue: 0), blue = PixelColor(red: 0, green: 0, blue: 255)

    /// What is drawn, with `^` for escape.
    private func text(
        _ image: PixelImage, _ mode: TerminalImage.Mode, background: PixelColor? = nil, png: Bool = false
    ) -> String {
        var codec = Codecs.standard[.png]
        codec?.encoders = png ? [TinyPNG()] : []
        let codecs = Codecs([codec].compactMap(\.self))
        let bytes = TerminalImage(mode: mode, background: background).render(image, codecs: codecs)
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

    // MARK: Streams that are decoded again

    @Test func kittyGetsThePixelsOfTheImage() throws {
        let image = picture(alpha: .straight)
        let stream = TerminalImage(mode: .kitty).render(image)
        let parts = String(decoding: stream, as: UTF8.self).components(separatedBy: "\u{1b}\\")
        #expect(parts.last == "\n")
        var payload = ""
        for (index, part) in parts.dropLast().enumerated() {
            let body = try #require(part.hasPrefix("\u{1b}_G") ? part.dropFirst(3) : nil)
            let mark = try #require(body.firstIndex(of: ";"))
            #expect(body[..<mark].hasSuffix(index == parts.count - 2 ? "m=0" : "m=1"))
            payload += body[body.index(after: mark)...]
        }
        #expect(try decoded(payload, alpha: image.alpha) == image)
    }

    @Test func iTermGetsThePixelsOfTheImage() throws {
        let image = picture()
        let stream = String(decoding: TerminalImage(mode: .iterm).render(image), as: UTF8.self)
        let start = "\u{1b}]1337;File=inline=1;size="
        #expect(stream.hasPrefix(start) && stream.hasSuffix("\u{7}\n"))
        let body = stream.dropFirst(start.count).dropLast(2)
        let mark = try #require(body.firstIndex(of: ":"))
        let payload = String(body[body.index(after: mark)...])
        let count = try #require(Data(base64Encoded: payload)).count
        #expect(body[..<mark] == "\(count);width=\(image.width)px;height=\(image.height)px")
        #expect(try decoded(payload, alpha: image.alpha) == image)
        // Without an encoder, something is shown nevertheless.
        #expect(text(image, .iterm) == text(image, .halfBlocks))
    }

    @Test func sixelsGiveThePixelsOfTheImage() throws {
        let image = picture(alpha: .straight)
        let drawn = try #require(SixelReader(TerminalImage(mode: .sixel).render(image)))
        #expect(drawn.width == image.width && drawn.height == image.height)
        for y in 0..<image.height {
            for x in 0..<image.width {
                let (color, pixel) = (image[x, y], drawn.pixels[y * image.width + x])
                guard color.alpha >= 128 else {
                    #expect(pixel == nil, "\(x), \(y)")
                    continue
                }
                // The colours of sixels are percentages, and there are 256 of them.
                let found = try #require(pixel, "\(x), \(y)")
                let wanted = [color.red, color.green, color.blue].map(Int.init)
                #expect(zip(found, wanted).allSatisfy { abs($0 - $1) <= 24 }, "\(x), \(y): \(found), \(wanted)")
            }
        }
    }

    // MARK: Few colours

    @Test(arguments: [TerminalImage.Mode.halfBlocks256, .shades8])
    func areasOfFewColorsKeepTheirMean(_ mode: TerminalImage.Mode) throws {
        // Between the colours that there are.
        let color = PixelColor(red: 110, green: 74, blue: 160)
        let drawn = text(PixelImage(size: PixelSize(32), color: color), mode)
        let pixels = try cells(drawn).flatMap(\.self)
        #expect(pixels.count == 32 * 32)
        #expect(Set(pixels).count > 1)
        for (channel, wanted) in zip(0..., [110.0, 74, 160]) {
            let mean = Double(pixels.map { $0[channel] }.reduce(0, +)) / Double(pixels.count)
            #expect(abs(mean - wanted) < 8, "\(channel): \(mean)")
        }
    }

    @Test func eightColorsAreThoseOfTheFirstTerminals() {
        let white = PixelColor(white: 229), black = PixelColor(white: 0)
        let green = PixelColor(red: 0, green: 205, blue: 0)
        #expect(text(image([[white, black], [green, green]]), .shades8) == "^[37;42m▀^[30m▀^[0m\n")
        #expect(text(image([[green], [green]]), .shades8) == "^[42m ^[0m\n")
    }

    @Test func eightColorsAreMixedInTheirCells() {
        // Halfway between black and white, a quarter of the way from black to red.
        let gray = PixelColor(white: 114), dark = PixelColor(red: 51, green: 0, blue: 0)
        #expect(text(image([[gray], [gray]]), .shades8) == "^[37;40m▒^[0m\n")
        #expect(text(image([[dark], [dark]]), .shades8) == "^[31;40m░^[0m\n")
        // The terminal shows through, and the visible half keeps its shape.
        #expect(text(image([[red], [.clear]], alpha: .straight), .shades8) == "^[31m▀^[0m\n")
        #expect(text(image([[.clear], [.clear]], alpha: .straight), .shades8) == " ^[0m\n")
    }

    @Test func plainTextHasNoEscapeSequences() {
        let rows = [[PixelColor(white: 255), PixelColor(white: 0)], [PixelColor(white: 255), PixelColor(white: 0)]]
        #expect(text(image(rows), .text) == "@ \n")
        #expect(text(picture(), .text).allSatisfy { " .:-=+*#%@\n".contains($0) })
        #expect(text(image([[.clear, .clear]], alpha: .straight), .text) == "  \n")
        // Lighter pixels cover more of their cells.
        let ramp = text(image([(0...255).map { PixelColor(white: $0) }]), .text)
        #expect(ramp.hasPrefix("   ") && ramp.hasSuffix("@\n"))
    }

    // MARK: The terminal

    @Test(arguments: [
        (["TERM": "xterm-kitty"], TerminalImage.Mode.kitty),
        (["TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"], .kitty),
        (["TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"], .kitty), (["TERM": "xterm-ghostty"], .kitty),
        (["TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"], .iterm),
        (["TERM": "xterm-256color", "LC_TERMINAL": "iTerm2"], .iterm),
        (["TERM": "tmux-256color", "LC_TERMINAL": "iTerm2"], .halfBlocks256),
        (["TERM": "xterm-256color", "COLORTERM": "truecolor"], .halfBlocks),
        (["TERM": "xterm-256color"], .halfBlocks256), (["TERM": "alacritty"], .halfBlocks256),
        (["TERM": "linux"], .shades8), (["TERM": "screen"], .shades8), (["TERM": "vt220"], .shades8),
        (["TERM": "tmux-256color", "KITTY_WINDOW_ID": "1", "COLORTERM": "truecolor"], .halfBlocks),
        (["TERM": "xterm-kitty", "TMUX": "/tmp/x"], .halfBlocks256),
        (["TERM": "dumb", "KITTY_WINDOW_ID": "1"], .text), ([:], .text),
        (["TERM": "xterm-256color", "NO_COLOR": "1"], .text),
        (["TERM": "xterm-256color", "NO_COLOR": ""], .halfBlocks256),
    ])
    func theEnvironmentTellsTheMode(environment: [String: String], expected: TerminalImage.Mode) {
        #expect(TerminalEnvironment(environment).mode() == expected)
    }

    @Test(arguments: [
        ("^_Gi=31;OK^\\^[?62;22c", ["TERM": "xterm-256color"], TerminalImage.Mode.kitty),
        ("^[?62;22c", ["TERM": "xterm-kitty"], .halfBlocks256),
        ("^[?62;4;22c", ["TERM": "xterm-256color"], .sixel),
        ("^[?62;14;22c", ["TERM": "xterm-256color"], .halfBlocks256),
        ("^[?1;2;4c", ["TERM": "tmux-256color", "TMUX": "/tmp/x"], .sixel),
        ("^_Gi=31;ENOTSUPPORTED^\\^[?62;4c", ["TERM": "xterm-256color"], .sixel),
        ("q^[A^[?64;1;4cq", ["TERM": "xterm", "COLORTERM": "truecolor"], .sixel),
        ("^[?62;4c", ["TERM": "xterm-256color", "LC_TERMINAL": "iTerm2"], .iterm),
        ("^[?62c", ["TERM": "xterm-256color", "NO_COLOR": "1"], .text),
    ])
    func theAnswerOfTheTerminalDecides(bytes: String, environment: [String: String], expected: TerminalImage.Mode) {
        let answer = TerminalAnswer(Array(bytes.replacing("^", with: "\u{1b}").utf8))
        #expect(answer.isComplete)
        #expect(TerminalEnvironment(environment).mode(answer: answer) == expected)
    }

    @Test(arguments: ["", "^", "^[?", "^[?62;4", "^[?25h", "^_Gi=31;OK^\\", "c", "^[62;4c"])
    func answersThatMissTheirEndAreNotComplete(_ bytes: String) {
        #expect(!TerminalAnswer(Array(bytes.replacing("^", with: "\u{1b}").utf8)).isComplete)
    }

    // MARK: Helpers

    /// Colours in all directions, and a transparent corner if there is alpha.
    private func picture(alpha: PixelImage.Alpha = .opaque) -> PixelImage {
        image(
            (0..<40).map { y in
                (0..<50).map { x in
                    let isClear = alpha == .straight && x + y < 20
                    return isClear
                        ? PixelColor.clear
                        : PixelColor(red: UInt8(x * 5), green: UInt8(y * 6), blue: UInt8(255 - (x + y) * 2))
                }
            }, alpha: alpha)
    }

    private func decoded(_ base64: String, alpha: PixelImage.Alpha) throws -> PixelImage {
        let data = try #require(Data(base64Encoded: base64))
        return try ImageDecoder().decode(.bytes(Array(data))).converted(to: alpha)
    }

    /// The colours of the upper and lower halves of cells, row by row, of `^[…m` and the characters ▀ and blank.
    private func cells(_ text: String) throws -> [[[Int]]] {
        var rows: [[[Int]]] = []
        for line in text.split(separator: "\n") {
            var upper: [[Int]] = [], lower: [[Int]] = []
            var ink = [0, 0, 0], paper = [0, 0, 0]
            var rest = line
            while let first = rest.first {
                rest = rest.dropFirst()
                guard first == "^" else {
                    if let quarters = [" ", "░", "▒", "▓"].firstIndex(of: first), quarters > 0 {
                        let mixed = zip(ink, paper).map { ($0 * quarters + $1 * (4 - quarters)) / 4 }
                        upper.append(mixed)
                        lower.append(mixed)
                        continue
                    }
                    upper.append(first == "▀" ? ink : paper)
                    lower.append(paper)
                    continue
                }
                let end = try #require(rest.firstIndex(of: "m"))
                var codes = rest[..<end].dropFirst().split(separator: ";").compactMap { Int($0) }[...]
                rest = rest[rest.index(after: end)...]
                while let code = codes.popFirst() {
                    switch code {
                    case 0: (ink, paper) = ([0, 0, 0], [0, 0, 0])
                    case 30...37: ink = basic(code - 30)
                    case 40...47: paper = basic(code - 40)
                    case 38, 48:
                        let number = codes.dropFirst().first
                        codes = codes.dropFirst(2)
                        let color = xterm(try #require(number))
                        if code == 38 { ink = color } else { paper = color }
                    default: Issue.record("code \(code)")
                    }
                }
            }
            rows += [upper, lower]
        }
        return rows
    }

    private func basic(_ number: Int) -> [Int] {
        number == 7 ? [229, 229, 229] : [0, 1, 2].map { number >> $0 & 1 == 1 ? 205 : 0 }
    }

    private func xterm(_ number: Int) -> [Int] {
        guard number < 232 else { return [Int](repeating: 8 + (number - 232) * 10, count: 3) }
        let levels = [0, 95, 135, 175, 215, 255]
        return [levels[(number - 16) / 36], levels[(number - 16) / 6 % 6], levels[(number - 16) % 6]]
    }

    /// Pixels from colours, row by row.
    private func image(_ rows: [[PixelColor]], alpha: PixelImage.Alpha = .opaque) -> PixelImage {
        let channels = rows.joined().flatMap { [$0.red, $0.green, $0.blue, $0.alpha] }
        return PixelImage(width: rows[0].count, height: rows.count, alpha: alpha) { $0.copyBytes(from: channels) }
    }
}

/// Decodes sixels: a raster, colours in percent, and runs of bits.
private struct SixelReader {
    private(set) var width = 0
    private(set) var height = 0
    /// Red, green and blue of 255; nil where nothing is drawn.
    private(set) var pixels: [[Int]?] = []

    init?(_ stream: [UInt8]) {
        let text = String(decoding: stream, as: UTF8.self)
        guard text.hasPrefix("\u{1b}P0;1;0q\"1;1;"), text.hasSuffix("\u{1b}\\\n") else { return nil }
        var rest = text.dropFirst(text.prefix { $0 != "\"" }.count + 1).dropLast(3)
        func numbers() -> [Int] {
            let part = rest.prefix { $0.isNumber || $0 == ";" }
            rest = rest.dropFirst(part.count)
            return part.split(separator: ";").compactMap { Int($0) }
        }
        let raster = numbers()
        guard raster.count == 4 else { return nil }
        (width, height) = (raster[2], raster[3])
        pixels = [[Int]?](repeating: nil, count: width * height)
        var palette: [Int: [Int]] = [:]
        var (color, x, top) = (0, 0, 0)
        while let next = rest.first {
            rest = rest.dropFirst()
            switch next {
            case "#":
                let values = numbers()
                guard let number = values.first else { return nil }
                if values.count == 5 { palette[number] = values[2...].map { ($0 * 255 + 50) / 100 } }
                color = number
            case "$": x = 0
            case "-": (x, top) = (0, top + 6)
            default:
                var (count, sixel) = (1, next)
                if next == "!" {
                    guard let run = numbers().first, let symbol = rest.first else { return nil }
                    (count, sixel) = (run, symbol)
                    rest = rest.dropFirst()
                }
                guard let value = sixel.asciiValue, (63...126).contains(value), x + count <= width else { return nil }
                for column in x..<x + count {
                    for row in 0..<6 where (value - 63) >> UInt8(row) & 1 == 1 {
                        guard top + row < height else { return nil }
                        pixels[(top + row) * width + column] = palette[color]
                    }
                }
                x += count
            }
        }
    }
}
