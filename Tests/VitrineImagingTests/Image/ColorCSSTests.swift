import Testing
import VitrineImaging

struct ColorCSSTests {
    private static let valid: [(String, PixelColor)] = [
        ("#f80", PixelColor(red: 255, green: 136, blue: 0)), ("#F80c", PixelColor(red: 255, green: 136, blue: 0, alpha: 204)),
        ("#12abEF", PixelColor(red: 0x12, green: 0xab, blue: 0xef)),
        ("#12abef80", PixelColor(red: 0x12, green: 0xab, blue: 0xef, alpha: 128)),
        ("rgb(1,2,3)", PixelColor(red: 1, green: 2, blue: 3)), ("rgb( 1 2 3 )", PixelColor(red: 1, green: 2, blue: 3)),
        ("RGBA(1, 2, 3, .5)", PixelColor(red: 1, green: 2, blue: 3, alpha: 128)),
        ("rgb(1 2 3 / 50%)", PixelColor(red: 1, green: 2, blue: 3, alpha: 128)),
        ("rgb(100%,0%,50%)", PixelColor(red: 255, green: 0, blue: 128)),
        ("rgb(300,-5,3e1)", PixelColor(red: 255, green: 0, blue: 30)),
        ("hsl(120,100%,25%)", PixelColor(red: 0, green: 128, blue: 0)),
        ("hsl(240 100% 50%)", PixelColor(red: 0, green: 0, blue: 255)),
        ("hsl(-120deg,100%,50%)", PixelColor(red: 0, green: 0, blue: 255)),
        ("hsl(0.5turn 100% 50%)", PixelColor(red: 0, green: 255, blue: 255)),
        ("hsl(200grad 100% 50%)", PixelColor(red: 0, green: 255, blue: 255)),
        ("hsl(3.14159265rad 100% 50%)", PixelColor(red: 0, green: 255, blue: 255)),
        ("hsla(0,0%,50%,0)", PixelColor(white: 128, alpha: 0)), (" Transparent\n", .clear),
        ("rebeccapurple", PixelColor(red: 0x66, green: 0x33, blue: 0x99)),
        ("DarkSlateGrey", PixelColor(red: 47, green: 79, blue: 79)),
        ("darkslategray", PixelColor(red: 47, green: 79, blue: 79)),
        ("lightgoldenrodyellow", PixelColor(red: 250, green: 250, blue: 210)),
        ("black", .black), ("white", .white), ("lime", PixelColor(red: 0, green: 255, blue: 0)),
        ("green", PixelColor(red: 0, green: 128, blue: 0)),
    ]

    @Test func readsEveryNotation() {
        for (text, color) in Self.valid { #expect(PixelColor(css: text) == color, "\(text)") }
    }

    @Test(arguments: [
        "", " ", "#", "#12", "#12345", "#1234567", "#123456789", "#ggg", "#１２３", "12abef", "rgb", "rgb()", "rgb(1,2)",
        "rgb(1,2,3,4,5)", "rgb(1,,3)", "rgb(1 2 3 4)", "rgb(1,2,3/4)", "rgb(1 2 3 / )", "rgb(nan,0,0)", "rgb(inf,0,0)",
        "rgb(0x10,0,0)", "rgb(1e999,0,0)", "hsl(1foo,2%,3%)", "cmyk(1,2,3)", "rgb(1,2,3", "blu", "url(x)", "rgb(e,1,1)",
        String(repeating: "#", count: 100_000),
    ])
    func refusesWhatIsNoColor(text: String) {
        #expect(PixelColor(css: text) == nil)
    }

    @Test func everyNameIsThere() {
        #expect(PixelColor.named.count == 148)
        for (name, value) in PixelColor.named {
            let color = PixelColor(css: name)
            #expect(color.map { UInt32($0.red) << 16 | UInt32($0.green) << 8 | UInt32($0.blue) } == value)
        }
        // All values at once, so that no slip in the table goes unseen: the sum of Pillow's table.
        let sum = PixelColor.named.values.reduce(UInt64(0)) { $0 + UInt64($1) }
        #expect(sum == 1579864000)
    }

    @Test func writesWhatItReads() {
        #expect(PixelColor(red: 1, green: 2, blue: 255).cssString == "#0102ff")
        #expect(PixelColor(red: 1, green: 2, blue: 255, alpha: 10).cssString == "#0102ff0a")
        for (_, color) in Self.valid { #expect(PixelColor(css: color.cssString) == color) }
    }
}
