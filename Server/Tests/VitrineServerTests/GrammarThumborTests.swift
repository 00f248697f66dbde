import Testing
import VitrineImaging

import VitrineServer

@Suite struct GrammarThumborTests {
    private let image = "example.com/a.jpg"

    private func parse(_ path: String) throws(RequestError) -> ImageURL { try ThumborGrammar().parse(path[...]) }

    /// Checks that the parts before a source mean exactly the changes of `change`.
    private func check(
        _ parts: String, ignored: [String] = [], at location: SourceLocation = #_sourceLocation,
        _ change: (inout ProcessingOptions) -> Void
    ) {
        var expected = ProcessingOptions()
        (expected.resizingType, expected.enlarge) = (.fill, true)
        change(&expected)
        do {
            let url = try parse("\(parts)/\(image)")
            #expect(url.options == expected, "\(parts)", sourceLocation: location)
            #expect(url.source == "http://\(image)" && url.grammar == .thumbor, sourceLocation: location)
            #expect(url.ignored == ignored, sourceLocation: location)
        } catch {
            Issue.record("\(parts): \(error)", sourceLocation: location)
        }
    }

    private func refuse(
        _ path: String, _ code: String, _ text: String = "", status: Int = 400,
        at location: SourceLocation = #_sourceLocation
    ) {
        do {
            let url = try parse(path)
            Issue.record("\(path) is accepted: \(url)", sourceLocation: location)
        } catch {
            #expect(error.status == status && error.code == code, "\(path): \(error)", sourceLocation: location)
            #expect(text.isEmpty || error.reason.contains(text), "\(error.reason)", sourceLocation: location)
            #expect(!error.reason.contains("example.com"), sourceLocation: location)
        }
    }

    private func filter(
        _ filters: String, ignored: [String] = [], at location: SourceLocation = #_sourceLocation,
        _ change: (inout ProcessingOptions) -> Void
    ) {
        check("filters:\(filters)", ignored: ignored, at: location, change)
    }

    // MARK: Parts

    @Test func sizesFillTheBox() {
        check("300x200") { ($0.width, $0.height) = (300, 200) }
        check("300x") { $0.width = 300 }
        check("x200") { $0.height = 200 }
        check("0x0") { _ in }
        check("-300x-200") {
            ($0.width, $0.height, $0.flipHorizontal, $0.flipVertical) = (300, 200, true, true)
        }
        check("-x-") { ($0.flipHorizontal, $0.flipVertical) = (true, true) }
        check("origx200") { ($0.height, $0.sourceRules) = (200, .init(usesSourceWidth: true)) }
        check("300xorig") { ($0.width, $0.sourceRules) = (300, .init(usesSourceHeight: true)) }
        refuse("65536x1/\(image)", "invalid-argument", "size")
        refuse("99999999999999999999x1/\(image)", "invalid-argument", "size")
    }

    @Test func fitsStayWithinTheBox() {
        check("fit-in/300x200") {
            ($0.width, $0.height, $0.resizingType, $0.enlarge) = (300, 200, .fit, false)
        }
        check("adaptive-fit-in/300x200") {
            ($0.width, $0.height, $0.resizingType, $0.enlarge) = (300, 200, .fit, false)
            $0.sourceRules = .init(adaptsOrientation: true)
        }
        check("full-fit-in/300x200") {
            ($0.width, $0.height, $0.resizingType) = (300, 200, .fit)
            $0.sourceRules = .init(coversBox: true)
        }
        check("adaptive-full-fit-in/300x200") {
            ($0.width, $0.height, $0.resizingType) = (300, 200, .fit)
            $0.sourceRules = .init(adaptsOrientation: true, coversBox: true)
        }
    }

    @Test func alignmentsAreGravities() {
        for (parts, anchor) in [
            ("left/top", ProcessingOptions.Gravity.Anchor.northWest), ("top", .north), ("right/top", .northEast),
            ("left", .west), ("center/middle", .center), ("right/middle", .east), ("left/bottom", .southWest),
            ("bottom", .south), ("right/bottom", .southEast), ("smart", .smart), ("left/top/smart", .smart),
        ] {
            check("300x200/\(parts)") { ($0.width, $0.height, $0.gravity.anchor) = (300, 200, anchor) }
        }
    }

    @Test func cropAndTrimComeFirst() {
        check("10x20:110x220") {
            $0.crop = .init(
                width: 100, height: 200, gravity: ProcessingOptions.Gravity(anchor: .northWest, x: 10, y: 20))
            $0.sourceRules = .init(region: .init(left: 10, top: 20, right: 110, bottom: 220))
        }
        check("10x20:10x30") { $0.sourceRules = .init(region: .init(left: 10, top: 20, right: 10, bottom: 30)) }
        check("0x0:0x0") { _ in }
        check("trim") { $0.trim = .init(threshold: 0) }
        check("trim:10") { $0.trim = .init(threshold: 10) }
        check("trim:top-left:442") { $0.trim = .init(threshold: 255) }
        refuse("trim:443/\(image)", "invalid-argument", "trim")
        refuse("trim:99999999999999999999/\(image)", "invalid-argument", "trim")
        refuse("trim:bottom-right/\(image)", "unsupported-option", "trim:bottom-right")
        refuse("0x0:1000001x1/\(image)", "invalid-argument", "crop")
    }

    @Test func metaAsksForInformation() throws {
        let url = try parse("meta/300x200/\(image)")
        #expect(url.wantsInfo && url.options.width == 300)
        #expect(try !parse("300x200/\(image)").wantsInfo)
        refuse("debug/300x200/\(image)", "unsupported-option", "debug")
    }

    @Test func partsOutOfOrderBelongToTheSource() throws {
        #expect(try parse("smart/300x200/a.jpg").source == "http://300x200/a.jpg")
        #expect(try parse("top/left/a.jpg").source == "http://left/a.jpg")
        #expect(try parse("300x200/fit-in/a.jpg").source == "http://fit-in/a.jpg")
        #expect(try parse("filters:quality(1)/smart/a.jpg").source == "http://smart/a.jpg")
        #expect(try parse("smart/").source == "http://smart/")
        #expect(try parse("10x20/").source == "http://10x20/")
        #expect(try parse("trim:left/a.jpg").source == "http://trim:left/a.jpg")
        #expect(try parse("filters:quality(1)").source == "http://filters:quality(1)")
    }

    @Test func sourcesAreCompleted() throws {
        #expect(try parse("/1x1/http://a/x%20y.jpg?w=1&h=2").source == "http://a/x y.jpg?w=1&h=2")
        #expect(try parse("1x1/https%3A%2F%2Fa.example%2Fx.png").source == "https://a.example/x.png")
        #expect(try parse("1x1/http:/a.example/x.png").source == "http://a.example/x.png")
        #expect(try parse("1x1/a b.jpg").source == "http://a b.jpg")
        #expect(try ThumborGrammar(defaultScheme: nil).parse("1x1/a/b.jpg").source == "a/b.jpg")
        for path in ["", "/"] { refuse(path, "missing-source") }
        for escaped in ["%00", "%", "%C0%AF"] { refuse("1x1/a\(escaped)", "invalid-source") }
        refuse("1x1/a\u{0}", "malformed-path")
        refuse("1x1/" + String(repeating: "a", count: 8_189), "path-too-long", status: 414)
    }

    // MARK: Filters

    @Test func filtersAreOptions() {
        filter("quality(80)") { $0.quality = 80 }
        filter("quality(0)") { _ in }
        filter("format(WebP)") { $0.format = .webp }
        filter("format('png')") { $0.format = .png }
        filter("blur(7)") { $0.blur = 7 }
        filter("blur( 7 , 2.5 )") { $0.blur = 2.5 }
        filter("sharpen(2,1.0,true)", ignored: ["sharpen.amount"]) { $0.sharpen = 1 }
        filter("grayscale()") { $0.grayscale = true }
        filter("background_color(red)") { $0.background = PixelColor(red: 255, green: 0, blue: 0) }
        filter("background_color(0f0)") { $0.background = PixelColor(red: 0, green: 255, blue: 0) }
        filter("max_bytes(9000)") { $0.maximumBytes = 9_000 }
        filter("no_upscale()") { $0.enlarge = false }
        filter("stretch()") { $0.resizingType = .force }
        filter("strip_exif():strip_icc()") { $0.stripMetadata = true }
        filter("proportion(0.5)") { ($0.zoomX, $0.zoomY) = (0.5, 0.5) }
        for (angle, rotation) in [(0, 0), (90, 270), (180, 180), (270, 90), (-90, 90), (450, 270)] {
            filter("rotate(\(angle))") { $0.rotation = rotation }
        }
        filter("fill(ff0000,true)") {
            ($0.extend, $0.background) = (ProcessingOptions.Gravity(), PixelColor(red: 255, green: 0, blue: 0))
        }
        filter("fill(transparent)") { $0.extend = ProcessingOptions.Gravity() }
        filter("focal(10x20:30x40)") {
            $0.sourceRules = .init(focusRegions: [.init(left: 10, top: 20, right: 30, bottom: 40)])
        }
        check("fit-in/30x20/filters:upscale():stretch()") {
            ($0.width, $0.height, $0.resizingType, $0.enlarge) = (30, 20, .fit, true)
        }
        filter("max_age(60):quality(10):autojpg():cover()", ignored: ["max_age", "autojpg", "cover"]) {
            $0.quality = 10
        }
        refuse("filters:quality%2810%29)/\(image)", "invalid-argument", "quality")
    }

    @Test func filtersEndAtTheFirstParenthesisWithASlash() throws {
        #expect(try parse("filters:quality(10)/http://a/b(1)/c.png").source == "http://a/b(1)/c.png")
        refuse("filters:watermark(http://a/b(1).png,10,10,50):quality(10)/\(image)", "unsupported-option", "watermark")
    }

    @Test func unsupportedFiltersAreNamed() {
        for name in ThumborFilter.unsupported {
            refuse("filters:quality(10):\(name)(1,2)/\(image)", "unsupported-option", " \(name) ")
            #expect(ThumborFilter(rawValue: name) == nil && !ThumborFilter.ignored.contains(name))
        }
        refuse("filters:sparkle()/\(image)", "unknown-option", "sparkle")
        refuse("filters:Quality(1)/\(image)", "unknown-option", "Quality")
        refuse("filters:fill(auto)/\(image)", "unsupported-option", "fill(auto)")
        refuse("filters:format(heic)/\(image)", "unsupported-option", "format")
    }

    @Test(arguments: [
        "quality()", "quality(101)", "quality(-1)", "quality(1e1)", "quality(1,2)", "format(x)", "blur()", "blur(x)",
        "blur(501)", "blur(nan)", "sharpen(1)", "sharpen(11,1,true)", "grayscale(1)", "background_color()",
        "background_color(nocolour)", "background_color(%23ff0000)", "max_bytes(-1)", "proportion(0)",
        "proportion(1.1)",
        "rotate(45)", "fill(ff0000,maybe)", "focal(1x2:1x4)", "focal(1x2)", "focal(-1x2:3x4)", "focal(01x2:3x4)",
        "focal(1x2:3x1000001)",
    ])
    func argumentsOfFiltersAreChecked(_ filter: String) {
        refuse("filters:\(filter)/\(image)", "invalid-argument", String(filter.prefix { $0 != "(" }))
    }

    // MARK: Rules of the source

    private func resolved(_ path: String, _ width: Int, _ height: Int) throws -> ProcessingOptions {
        let options = try parse("\(path)/\(image)").options.resolved(forSource: PixelSize(width: width, height: height))
        #expect(options.sourceRules == nil)
        return options
    }

    @Test func originalSidesAreThoseOfTheSource() throws {
        let options = try resolved("origx200", 640, 480)
        #expect(options.width == 640 && options.height == 200)
        let cropped = try resolved("10x10:110x60/origxorig", 640, 480)
        #expect(cropped.width == 100 && cropped.height == 50)
    }

    @Test func adaptiveBoxesTurnWithTheSource() throws {
        for (path, size, expected) in [
            ("adaptive-fit-in/300x200", (100, 400), (200, 300)), ("adaptive-fit-in/200x300", (400, 100), (300, 200)),
            ("adaptive-fit-in/300x200", (400, 100), (300, 200)), ("adaptive-fit-in/300x200", (100, 100), (300, 200)),
            ("adaptive-fit-in/300x", (100, 400), (300, 0)), ("fit-in/300x200", (100, 400), (300, 200)),
        ] {
            let options = try parse("\(path)/\(image)").options
                .resolved(forSource: PixelSize(width: size.0, height: size.1))
            #expect(options.width == expected.0 && options.height == expected.1, "\(path) \(size)")
        }
    }

    @Test func fullFitCoversTheBox() throws {
        for (path, size, expected) in [
            ("full-fit-in/300x200", (600, 200), (600, 200)), ("full-fit-in/300x200", (1_000, 1_000), (300, 300)),
            ("full-fit-in/300x200", (30, 10), (600, 200)), ("full-fit-in/300x", (600, 100), (300, 50)),
            ("adaptive-full-fit-in/300x200", (100, 200), (200, 400)),
            ("full-fit-in/300x200/filters:no_upscale()", (30, 10), (30, 10)),
        ] {
            let options = try resolved(path, size.0, size.1)
            #expect(options.resizingType == .force && options.enlarge)
            // Adaptive: 300 × 200 becomes 200 × 300, which 100 × 200 covers at 200 × 400.
            #expect(options.width == expected.0 && options.height == expected.1, "\(path) \(size)")
        }
        // Limits of the result judge what an extreme picture asks for.
        #expect(try resolved("full-fit-in/65535x1", 1, .max).height == 1_000_000_000)
    }

    @Test func regionsAreClippedToTheSource() throws {
        let clipped = try resolved("50x0:300x100", 100, 80)
        #expect(clipped.crop == .pixels(x: 50, y: 0, size: PixelSize(width: 50, height: 80)))
        #expect(try resolved("100x0:300x100", 100, 80).crop == nil)
        #expect(try resolved("30x0:20x100", 100, 80).crop == nil)
    }

    @Test func focusIsTheMeanOfTheRegionsInside() throws {
        let one = try resolved("100x100/filters:focal(10x20:30x40)", 100, 200)
        #expect(one.gravity == ProcessingOptions.Gravity(anchor: .focusPoint, x: 0.2, y: 0.15))
        // Areas of 100 and 300.
        let two = try resolved("100x100/filters:focal(0x0:10x10):focal(80x0:90x30)", 100, 100)
        #expect(two.gravity == ProcessingOptions.Gravity(anchor: .focusPoint, x: 0.65, y: 0.12))
        let cropped = try resolved("10x20:60x70/9x9/filters:focal(20x30:40x50):focal(90x90:99x99)", 100, 100)
        #expect(cropped.gravity == ProcessingOptions.Gravity(anchor: .focusPoint, x: 0.4, y: 0.4))
        let outside = try resolved("0x0:50x50/9x9/left/filters:focal(90x90:99x99)", 100, 100)
        #expect(outside.gravity.anchor == .west)
    }

    @Test func nativeOptionsNeedNoSource() throws {
        let options = try NativeGrammar().parse("/rs:fill:300:200/c:10:10/plain/a").options
        #expect(options.resolved(forSource: PixelSize(width: 1, height: 1)) == options)
    }

    // MARK: Fuzz

    @Test func mutatedPathsNeverTrap() {
        var random = TestGenerator(seed: 23)
        let seed = Array(
            "meta/trim:10/1x2:3x4/full-fit-in/-30x20/left/top/filters:focal(1x2:3x4):blur(1,2)/a/b(1)/c".utf8)
        let inserts = Array("/:(),x-%0919e'\u{0}ä".utf8)
        for _ in 0..<20_000 {
            var bytes = seed
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                let index = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[index] = inserts.randomElement(using: &random) ?? 0
                case 1: bytes.insert(inserts.randomElement(using: &random) ?? 0, at: index)
                default: bytes.remove(at: index)
                }
            }
            let path = String(decoding: bytes, as: UTF8.self)
            do {
                let options = try ThumborGrammar().parse(path[...]).options
                let size = PixelSize(width: Int.random(in: 0...9, using: &random), height: .max)
                #expect(options.resolved(forSource: size).width >= 0)
            } catch {
                #expect((400..<500).contains(error.status), "\(path)")
            }
        }
    }
}
