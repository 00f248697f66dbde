import Testing
import VitrineImaging
import VitrinePipeline
import VitrineServer

/// Styles of the library as presets, and presets as styles.
@Suite struct GrammarStyleTests {
    /// Defines a preset of a style, and returns its text and the style that is read back.
    private func preset(
        _ style: ImageStyle, _ configuration: ServerConfiguration = ServerConfiguration()
    ) throws -> (text: String?, style: ImageStyle) {
        var configuration = configuration
        try configuration.addPreset(style)
        // The whole configuration is valid as well.
        _ = try configuration.grammar()
        return (configuration.presets[style.name], try configuration.style(ofPreset: style.name))
    }

    private func style(
        _ preset: String, _ change: (inout ServerConfiguration) -> Void = { _ in }
    ) throws -> ImageStyle {
        var configuration = ServerConfiguration()
        configuration.presets = ["a": preset]
        change(&configuration)
        return try configuration.style(ofPreset: "a")
    }

    @Test func stylesBecomePresetsAndPresetsStyles() throws {
        let cases: [(style: ImageStyle, text: String)] = [
            (ImageStyle("a"), "rs:fit:0:0"),
            (ImageStyle("a", resizing: .limit(width: 300, height: 0)), "rs:fit:300:0:0"),
            (ImageStyle("a", resizing: .fit(width: 300, height: 200)), "rs:fit:300:200:1"),
            (ImageStyle("a", resizing: .stretch(width: 300, height: 200)), "rs:force:300:200:1"),
            (ImageStyle("a", resizing: .crop(width: 300, height: 200)), "rs:fill:300:200:1/g:ce"),
            (
                ImageStyle("a", resizing: .crop(width: 300, height: 200, gravity: .topLeft)),
                "rs:fill:300:200:1/g:nowe"
            ),
            (
                ImageStyle("a", resizing: .crop(width: 300, height: 200, gravity: .focal(x: 0.25, y: 0.5))),
                "rs:fill:300:200:1/g:fp:0.25:0.5"
            ),
            (
                ImageStyle(
                    "a", resizing: .limit(width: 90, height: 90),
                    processors: [
                        .blur(radius: 2), .sharpen(amount: 1, radius: 0.5), .pixelate(block: 4), .background(.white),
                    ]),
                "rs:fit:90:90:0/bl:2.0/sh:0.5/pix:4/bg:ffffff"
            ),
            (ImageStyle("a", format: .webp(quality: 0.75)), "f:webp/q:75"),
            (ImageStyle("a", format: .jpeg(quality: 0.5)), "f:jpg/q:50"),
            (ImageStyle("a", format: .avif(quality: 0.6)), "f:avif/q:60"),
            (ImageStyle("a", format: .jxl(quality: 1)), "f:jxl/q:100"),
            (ImageStyle("a", format: .png), "f:png"),
            (ImageStyle("a", format: .gif), "f:gif"),
            (ImageStyle("a", format: .automatic(quality: 0.7)), "q:70"),
        ]
        for (style, text) in cases {
            let (definition, read) = try preset(style)
            #expect(definition == text)
            #expect(read == style, "\(text)")
        }
    }

    @Test func picturesThatMayNotGrowAreScaledAndThenCut() throws {
        let card = try style("rs:fill:300:200/g:sm")
        let size = PixelSize(width: 300, height: 200)
        #expect(card.resizing == ImageResizer(size: size, mode: .fill, allowsUpscaling: false))
        #expect(card.processors == [.crop(width: 300, height: 200, gravity: .attention)])
        #expect(try preset(card).text == "rs:fill:300:200:0/g:sm")
        // As the server's geometry has it.
        let small = PixelImage(size: PixelSize(width: 400, height: 150), color: .white)
        let result = try card.resizing.resize(small).processed(by: card.processors)
        var options = ProcessingOptions()
        (options.resizingType, options.width, options.height) = (.fill, 300, 200)
        let geometry = RenderGeometry(source: small.size, options)
        #expect(geometry.scaled == small.size && geometry.resultCrop == PixelSize(width: 300, height: 200))
        #expect(result.size == PixelSize(width: 300, height: 150))
    }

    @Test func aFormatWithoutAQualityHasThatOfTheConfiguration() throws {
        #expect(try style("f:jpg").format == .jpeg(quality: 0.8))
        #expect(try style("f:webp").format == .webp(quality: 0.79))
        #expect(try style("f:webp") { $0.formatQuality = [.webp: 60] }.format == .webp(quality: 0.6))
        #expect(try style("f:jpg") { $0.quality = 50 }.format == .jpeg(quality: 0.5))
        #expect(try style("f:png/q:60").format == .png)
        #expect(try style("rs:fit:9:9").format == nil)
    }

    @Test func presetsMayNameOthersAndHaveAnotherSeparator() throws {
        let named = try style("pr:b/bl:1") { $0.presets["b"] = "rs:fit:20:30" }
        #expect(named == ImageStyle("a", resizing: .limit(width: 20, height: 30), processors: [.blur(radius: 1)]))
        var configuration = ServerConfiguration()
        configuration.argumentsSeparator = ","
        let style = ImageStyle("a", resizing: .fit(width: 20, height: 30))
        let (text, read) = try preset(style, configuration)
        #expect(text == "rs,fit,20,30,1")
        #expect(read == style)
    }

    @Test(arguments: [
        "rs:fill-down:30:20", "rs:auto:30:20", "rs:force:30:20", "rs:fill:30:0", "rs:fit:30:0:1",
        "rs:fill:30:20/g:no:1", "w:30/dpr:2", "w:30/pd:1", "rot:90", "fl:1", "t:10", "c:10:10",
        "wm:0.5:ce", "mb:1000", "pg:2", "raw:1", "sm:1",
        "fq:webp:50", "w:30/mw:10", "fn:a", "cb:1",
    ])
    func presetsWithOptionsThatNoStyleHasAreRefused(_ preset: String) {
        let error = #expect(throws: RequestError.self) { try style(preset) }
        #expect(error?.code == "invalid-preset")
    }

    @Test func stylesThatNoOptionsExpressAreRefused() {
        let styles = [
            ImageStyle("a", resizing: .fill(width: 30, height: 20)),
            ImageStyle("a", resizing: ImageResizer(size: PixelSize(30), mode: .crop(.center), allowsUpscaling: false)),
            ImageStyle("a", resizing: ImageResizer(size: PixelSize(30), mode: .stretch, allowsUpscaling: false)),
            ImageStyle("a", resizing: .fit(width: 30, height: 0)),
            ImageStyle("a", processors: [.circle()]),
            ImageStyle("a", processors: [.grayscale]),
            ImageStyle("a", processors: [.sharpen(amount: 2, radius: 1)]),
            ImageStyle("a", processors: [.pixelate(block: 4), .blur(radius: 1)]),
            ImageStyle("a", processors: [.blur(radius: 1), .blur(radius: 1)]),
            ImageStyle("a", processors: [.background(.clear)]),
            ImageStyle("a", format: .jpeg(quality: .nan)),
            ImageStyle("a") { $0 },
        ]
        for style in styles {
            var configuration = ServerConfiguration()
            let error = #expect(throws: RequestError.self) { try configuration.addPreset(style) }
            #expect(error?.code == "invalid-preset", "\(style)")
            #expect(configuration.presets.isEmpty)
        }
    }

    @Test func numbersThatNoURLMayHaveAreRefused() {
        for style in [
            ImageStyle("a", resizing: .fit(100_000)), ImageStyle("a", processors: [.blur(radius: 501)]),
            ImageStyle("a", processors: [.blur(radius: 1e-9)]),
        ] {
            var configuration = ServerConfiguration()
            let error = #expect(throws: RequestError.self) { try configuration.addPreset(style) }
            #expect(error?.code == "invalid-argument", "\(style)")
            #expect(configuration.presets.isEmpty)
        }
    }

    @Test func anUnknownPresetHasNoStyle() {
        let error = #expect(throws: RequestError.self) { try ServerConfiguration().style(ofPreset: "a") }
        #expect(error?.code == "unknown-preset")
    }
}
