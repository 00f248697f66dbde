import HTTPTypes
import Testing
import VitrineImaging
import VitrineServer

@Suite struct HTTPNegotiationTests {
    private let negotiation = FormatNegotiation()

    @Test(arguments: [
        ("image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8", ImageFormat.avif),
        ("image/webp,image/avif,image/jxl,image/heic,video/*;q=0.8,image/png,image/*;q=0.8,*/*;q=0.5", .avif),
        ("image/jxl,image/webp", .jxl),
        ("image/webp,*/*;q=0.8", .webp),
        ("IMAGE/WEBP , */* ; Q=0.5", .webp),
        ("image/webp;q=0.9,image/avif;q=0.8", .webp),
        ("image/webp;q=0.9,image/avif;q=0.800,*/*;q=0.1", .webp),
        ("image/avif;q=0,image/webp", .webp),
        ("image/avif;q=0.000,image/webp;q=0.001", .webp),
        ("image/webp;level=\"1,2;q=0\";q=0.4,image/avif;q=0.3", .webp),
        ("image/jpeg", .jpeg),
        ("image/jpg;q=0.2", .jpeg),
        ("image/png", .png),
        ("image/*;q=0.5,image/jpeg;q=0", .png),
        ("*/*,image/png;q=0", .jpeg),
    ])
    func clientGetsTheFormatThatItPrefers(accept: String, format: ImageFormat) {
        #expect(negotiation.choice(for: accept).preferred == format)
    }

    @Test(arguments: [
        nil, "", "   ", ",,,", "*/*", "image/*", "text/html", "image/*,*/*;q=0.8", "image/png,image/jpeg;q=0.5",
        "image/png;q=0.5,image/webp;q=0.2,image/jpeg", "webp", "image/", "/webp", "image/webp;q=2",
        "image/webp;q=0.1234", "image/webp;q=", "image/webp;q=abc", "image/webp;q=1.5", "*/webp",
        "image/*;q=1,image/avif;q=0", "\u{0}", "image/svg+xml", "application/signed-exchange;v=b3;q=0.7,*/*;q=0.8",
    ])
    func sourceDecidesForClientsThatNameNoBetterFormat(accept: String?) {
        #expect(negotiation.choice(for: accept).preferred == nil)
    }

    @Test func wildcardsStandForFormatsThatEveryoneKnows() {
        #expect(negotiation.choice(for: "*/*").acceptable == [.jpeg, .png])
        #expect(negotiation.choice(for: nil).acceptable == [.jpeg, .png])
        #expect(negotiation.choice(for: "text/html").acceptable.isEmpty)
        #expect(negotiation.isUnacceptable(negotiation.choice(for: "text/html")))
        #expect(!negotiation.isUnacceptable(negotiation.choice(for: "rubbish")))
    }

    @Test func preferenceOrderAndEnabledFormatsAreConfigured() {
        let negotiation = FormatNegotiation(formats: [.webp, .avif, .webp, .gif, .jpeg])
        #expect(negotiation.formats == [.webp, .avif, .jpeg])
        #expect(negotiation.choice(for: "image/avif,image/webp,image/jxl").preferred == .webp)
        #expect(negotiation.choice(for: "image/avif,image/webp;q=0.5").acceptable == [.avif, .webp])
        #expect(negotiation.choice(for: "image/jxl").acceptable.isEmpty)
        #expect(FormatNegotiation(formats: []).choice(for: "image/avif") == FormatChoice(preferred: nil))
    }

    @Test func manyFieldsMakeFewChoices() {
        var choices: Set<FormatChoice> = []
        var generator = SystemRandomNumberGenerator()
        let parts = [
            "image/avif", "image/webp", "image/jxl", "image/png", "image/jpeg", "image/*", "*/*", "text/html", "x",
        ]
        for _ in 0..<5000 {
            let list = parts.shuffled(using: &generator).prefix(Int.random(in: 0...9)).map {
                $0 + ["", ";q=0", ";q=0.5", ";q=1"].randomElement(using: &generator)!
            }
            let choice = negotiation.choice(for: list.joined(separator: ","))
            choices.insert(choice)
            // Nothing is preferred that is not accepted by name, or by a range for the formats of everyone.
            if let preferred = choice.preferred { #expect(choice.acceptable.first == preferred) }
            for format in choice.acceptable where format != .jpeg && format != .png {
                #expect(list.contains { $0.hasPrefix("image/\(format.rawValue)") && !$0.hasSuffix("q=0") })
            }
        }
        #expect(Set(choices.map(\.preferred)).count == 6)
        #expect(choices.count <= 32 * 5)
    }

    @Test func hintsAreRoundedToFewValues() {
        let hints = ClientHints()
        func values(_ fields: HTTPFields) -> ClientHints.Values { hints.values(in: RequestFields(fields)) }
        let dpr = HTTPField.Name("Sec-CH-DPR")!, oldDPR = HTTPField.Name("DPR")!, width = HTTPField.Name("Width")!
        #expect(values([dpr: "1.3"]).pixelRatio == 1.5)
        #expect(values([oldDPR: "1", dpr: "2.0"]).pixelRatio == 2)
        #expect(values([dpr: "99"]).pixelRatio == 4)
        #expect(values([width: "321"]).width == 384)
        #expect(values([width: "1e300"]).width == 4096)
        #expect(values([HTTPField.Name("Save-Data")!: "on"]).savesData)
        for bad in ["", "nan", "inf", "-1", "0", "two", "1,5"] {
            #expect(values([dpr: bad, width: bad]).isEmpty)
        }
    }

    @Test func hintsChangeOnlyWhatTheURLLeavesOpen() {
        let hints = ClientHints()
        var url = ImageURL(grammar: .native, options: ProcessingOptions(), source: "a")
        let values = ClientHints.Values(pixelRatio: 2, width: 640, savesData: true)
        let changed = hints.apply(values, to: url).options
        #expect(changed.dpr == 2 && changed.width == 320 && changed.quality == 50)
        url.options.dpr = 3
        url.options.height = 10
        url.options.quality = 90
        #expect(hints.apply(values, to: url) == url)
    }
}
