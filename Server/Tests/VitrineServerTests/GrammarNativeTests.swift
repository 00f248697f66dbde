import Foundation
import Testing
import VitrineImaging

import VitrineServer

@Suite struct GrammarNativeTests {
    private let source = "https://example.com/a.jpg"

    /// Options of imgproxy 4, among them those of its commercial edition.
    @Test(arguments: [
        "blur_areas", "ba", "bypass_cache", "bc", "cache_tags", "ct", "color_profile", "cp", "icc", "crop_objects",
        "preserve_hdr", "ph", "progressive_blur", "pbl", "objects_position", "crop_aspect_ratio", "unsharp_masking",
    ])
    func optionsOfImgproxyAreUnsupportedAndNotUnknown(_ name: String) {
        let error = #expect(throws: RequestError.self) { try parse("/\(name):1/plain/http://a.example/b.jpg") }
        #expect(error?.code == "unsupported-option")
    }

    private func parse(_ path: String, _ grammar: NativeGrammar = NativeGrammar()) throws(RequestError) -> ImageURL {
        try grammar.parse(path[...])
    }

    /// Checks that options before a plain source mean exactly the changes of `change`.
    private func check(
        _ options: String, in grammar: NativeGrammar = NativeGrammar(), at location: SourceLocation = #_sourceLocation,
        _ change: (inout ProcessingOptions) -> Void
    ) {
        var expected = ProcessingOptions()
        change(&expected)
        do {
            let url = try parse("/\(options)/plain/\(source)", grammar)
            #expect(url.options == expected, "\(options)", sourceLocation: location)
            #expect(url.source == source && url.grammar == .native && url.ignored.isEmpty, sourceLocation: location)
        } catch {
            Issue.record("\(options): \(error)", sourceLocation: location)
        }
    }

    /// Checks that a path is refused with a status and code, and a reason with `text`.
    private func refuse(
        _ path: String, _ code: String, _ text: String = "", status: Int = 400, in grammar: NativeGrammar = .init(),
        at location: SourceLocation = #_sourceLocation
    ) {
        do {
            let url = try parse(path, grammar)
            Issue.record("\(path) is accepted: \(url)", sourceLocation: location)
        } catch {
            #expect(error.status == status && error.code == code, "\(path): \(error)", sourceLocation: location)
            #expect(text.isEmpty || error.reason.contains(text), "\(error.reason)", sourceLocation: location)
            #expect(!error.reason.contains("example.com"), sourceLocation: location)
        }
    }

    private func gravity(
        _ anchor: ProcessingOptions.Gravity.Anchor, _ x: Double = 0, _ y: Double = 0
    ) -> ProcessingOptions.Gravity {
        ProcessingOptions.Gravity(anchor: anchor, x: x, y: y)
    }

    // MARK: Options

    @Test func sizesHaveLongAndShortNames() {
        for name in ["resize", "rs"] {
            check("\(name):fill:300:400") { ($0.resizingType, $0.width, $0.height) = (.fill, 300, 400) }
        }
        for name in ["size", "s"] {
            check("\(name):300:400:1:t") {
                ($0.width, $0.height, $0.enlarge, $0.extend) = (300, 400, true, self.gravity(.center))
            }
        }
        for (name, type) in [
            ("fit", ProcessingOptions.ResizingType.fit), ("fill", .fill), ("fill-down", .fillDown), ("force", .force),
            ("auto", .auto),
        ] {
            check("resizing_type:\(name)") { $0.resizingType = type }
            check("rt:\(name)") { $0.resizingType = type }
        }
        for name in ["width", "w"] { check("\(name):300") { $0.width = 300 } }
        for name in ["height", "h"] { check("\(name):300") { $0.height = 300 } }
        for name in ["min-width", "mw", "min_width"] { check("\(name):300") { $0.minimumWidth = 300 } }
        for name in ["min-height", "mh", "min_height"] { check("\(name):300") { $0.minimumHeight = 300 } }
        for name in ["zoom", "z"] {
            check("\(name):1.5") { ($0.zoomX, $0.zoomY) = (1.5, 1.5) }
            check("\(name):1.5:.5") { ($0.zoomX, $0.zoomY) = (1.5, 0.5) }
        }
        check("dpr:2") { $0.dpr = 2 }
        for name in ["enlarge", "el"] {
            for yes in ["1", "t", "true"] { check("\(name):\(yes)") { $0.enlarge = true } }
            for no in ["0", "f", "false"] { check("el:1/\(name):\(no)") { $0.enlarge = false } }
        }
    }

    @Test func emptyArgumentsOfSizesKeepTheDefaults() {
        check("rs::300") { $0.width = 300 }
        check("rs:fill::400") { ($0.resizingType, $0.height) = (.fill, 400) }
        check("rs:fit:::1") { $0.enlarge = true }
        check("rs:") { _ in }
        check("s::") { _ in }
        check("rs:fill:1:2:0:1:no:0:10") {
            ($0.resizingType, $0.width, $0.height) = (.fill, 1, 2)
            $0.extend = self.gravity(.north, 0, 10)
        }
    }

    @Test func sidesOfZeroFollowFromTheOther() {
        check("rs:fit:0:0") { _ in }
        check("w:0/h:0/mw:0/mh:0") { _ in }
        check("w:300/w:0") { _ in }
        check("crop:0:0") { _ in }
        check("pd:0") { _ in }
        check("bl:0/sh:0/pix:0/q:0/mb:0/exp:0/wm:0") { _ in }
    }

    @Test func extensionsHaveAPlace() {
        for name in ["extend", "ex"] {
            check("\(name):1") { $0.extend = self.gravity(.center) }
            check("\(name):1:soea:10:-20") { $0.extend = self.gravity(.southEast, 10, -20) }
            check("\(name):1:fp:0.25:1") { $0.extend = self.gravity(.focusPoint, 0.25, 1) }
            check("ex:1/\(name):0:no") { _ in }
        }
        for name in ["extend_aspect_ratio", "extend_ar", "exar"] {
            check("\(name):1:we") { $0.extendAspectRatio = self.gravity(.west) }
        }
        refuse("/ex:1:sm/plain/\(source)", "invalid-argument", "extend")
        refuse("/ex:1:no:1:2:3/plain/\(source)", "invalid-argument", "extend")
    }

    @Test func gravitiesAreReadWithOffsets() {
        for name in ["gravity", "g"] {
            for anchor in ProcessingOptions.Gravity.Anchor.allCases where anchor != .focusPoint {
                check("\(name):\(anchor.rawValue)") { $0.gravity = self.gravity(anchor) }
            }
            check("\(name):no:0.5:-10.25") { $0.gravity = self.gravity(.north, 0.5, -10.25) }
            check("\(name):fp:0:0.75") { $0.gravity = self.gravity(.focusPoint, 0, 0.75) }
        }
        for wrong in ["fp", "fp:0.5", "fp:0.5:1.1", "fp:-0.1:0", "fp:0:0:0", "sm:1", "sm:1:1", "no:1:2:3", "xx", ""] {
            refuse("/g:\(wrong)/plain/\(source)", "invalid-argument", "gravity")
        }
        refuse("/g:obj:face/plain/\(source)", "unsupported-option", "gravity:obj")
    }

    @Test func cropAndTrimComeBeforeTheSize() {
        for name in ["crop", "c"] {
            check("\(name):100:0.5") { $0.crop = .init(width: 100, height: 0.5) }
            check("\(name):100") { $0.crop = .init(width: 100, height: 0) }
            check("\(name):100:200:nowe:10:20") {
                $0.crop = .init(width: 100, height: 200, gravity: self.gravity(.northWest, 10, 20))
            }
            check("\(name):0:200:sm") { $0.crop = .init(width: 0, height: 200, gravity: self.gravity(.smart)) }
        }
        for name in ["trim", "t"] {
            check("\(name):10") { $0.trim = .init() }
            check("\(name):12.5:ff00FF:1:t") {
                $0.trim = .init(
                    threshold: 12.5, color: PixelColor(red: 255, green: 0, blue: 255), equalHorizontal: true,
                    equalVertical: true)
            }
            check("\(name):0::0:1") { $0.trim = .init(threshold: 0, equalVertical: true) }
            check("t:10/\(name):") { _ in }
        }
        for wrong in ["trim:-1", "trim:256", "trim:1:red", "trim:1:ffff", "crop:-1", "crop:1:2:3", "crop:1:nan"] {
            refuse("/\(wrong)/plain/\(source)", "invalid-argument", String(wrong.prefix(4)))
        }
    }

    @Test func paddingsFollowTheOrderOfCSS() {
        for name in ["padding", "pd"] {
            check("\(name):1") { $0.padding = .init(top: 1, right: 1, bottom: 1, left: 1) }
            check("\(name):1:2") { $0.padding = .init(top: 1, right: 2, bottom: 1, left: 2) }
            check("\(name):1:2:3") { $0.padding = .init(top: 1, right: 2, bottom: 3, left: 2) }
            check("\(name):1:2:3:4") { $0.padding = .init(top: 1, right: 2, bottom: 3, left: 4) }
            check("\(name)::2::") { $0.padding = .init(top: 0, right: 2, bottom: 0, left: 2) }
        }
        refuse("/pd:1:2:3:4:5/plain/\(source)", "invalid-argument", "padding")
    }

    @Test func drawingOptionsHaveLongAndShortNames() {
        for name in ["auto_rotate", "ar"] { check("\(name):0") { $0.autoRotate = false } }
        for name in ["rotate", "rot"] {
            for (angle, rotation) in [("90", 90), ("-90", 270), ("450", 90), ("180", 180), ("0", 0), ("-360", 0)] {
                check("\(name):\(angle)") { $0.rotation = rotation }
            }
        }
        for name in ["flip", "fl"] {
            check("\(name):1") { $0.flipHorizontal = true }
            check("\(name)::1") { $0.flipVertical = true }
            check("\(name):1:1/fl:0") { $0.flipVertical = true }
        }
        for name in ["background", "bg"] {
            check("\(name):128:129:0") { $0.background = PixelColor(red: 128, green: 129, blue: 0) }
            check("\(name):FFddee") { $0.background = PixelColor(red: 255, green: 221, blue: 238) }
            check("\(name):fde") { $0.background = PixelColor(red: 255, green: 221, blue: 238) }
            check("bg:fff/\(name):") { _ in }
        }
        for name in ["blur", "bl"] { check("\(name):0.2") { $0.blur = 0.2 } }
        for name in ["sharpen", "sh"] { check("\(name):1.5") { $0.sharpen = 1.5 } }
        for name in ["pixelate", "pix"] { check("\(name):8") { $0.pixelate = 8 } }
        for wrong in [
            "rot:45", "rot:90.0", "fl:x", "bg:256:0:0", "bg:1:2", "bg:red", "bl:-1", "bl:501", "sh:x", "pix:-1",
        ] {
            refuse("/\(wrong)/plain/\(source)", "invalid-argument")
        }
    }

    @Test func watermarksHaveAPlaceAndAScale() {
        for name in ["watermark", "wm"] {
            check("\(name):0.5") { $0.watermark = .init(opacity: 0.5) }
            check("\(name):1:soea:10:20:0.6") {
                $0.watermark = .init(opacity: 1, position: self.gravity(.southEast, 10, 20), scale: 0.6)
            }
            check("\(name):1:re") { $0.watermark = .init(opacity: 1, position: nil) }
            check("wm:1/\(name):0") { _ in }
        }
        refuse("/wm:1:ch/plain/\(source)", "unsupported-option", "watermark:ch")
        refuse("/wm:1:re:10:10/plain/\(source)", "unsupported-option", "watermark:re")
        for wrong in ["1.1", "-0.1", "", "1:sm", "1:fp", "1:ce:0:0:0:0", "1:ce:0:0:-1"] {
            refuse("/wm:\(wrong)/plain/\(source)", "invalid-argument", "watermark")
        }
    }

    @Test func resultOptionsHaveLongAndShortNames() {
        for name in ["strip_metadata", "sm"] { check("\(name):0") { $0.stripMetadata = false } }
        for name in ["keep_copyright", "kcr"] { check("\(name):1") { $0.keepCopyright = true } }
        for name in ["strip_color_profile", "scp"] { check("\(name):1") { _ in } }
        for name in ["enforce_thumbnail", "eth"] { check("\(name):0") { _ in } }
        for name in ["quality", "q"] { check("\(name):55") { $0.quality = 55 } }
        for name in ["format_quality", "fq"] {
            check("\(name):jpg:70:webp:60") { $0.formatQuality = [.jpeg: 70, .webp: 60] }
        }
        for name in ["max_bytes", "mb"] { check("\(name):1000000000") { $0.maximumBytes = 1_000_000_000 } }
        for name in ["format", "f", "ext"] {
            for (text, format) in [
                ("jpg", ImageFormat.jpeg), ("jpeg", .jpeg), ("png", .png), ("webp", .webp), ("avif", .avif),
                ("gif", .gif), ("jxl", .jxl), ("PNG", .png),
            ] { check("\(name):\(text)") { $0.format = format } }
        }
        for name in ["page", "pg"] { check("\(name):3") { $0.page = 4 } }
        for name in ["video_thumbnail_second", "vts", "second"] { check("\(name):1.5") { $0.second = 1.5 } }
        for name in ["skip_processing", "skp"] { check("\(name):svg:gif") { $0.skipProcessing = [.svg, .gif] } }
        check("raw:1") { $0.isRaw = true }
        for name in ["cachebuster", "cb"] { check("\(name):v%201") { $0.cacheBuster = "v 1" } }
        for name in ["expires", "exp"] { check("\(name):1893456000") { $0.expires = 1_893_456_000 } }
        for name in ["return_attachment", "att"] { check("\(name):1") { $0.isAttachment = true } }
        refuse("/scp:0/plain/\(source)", "unsupported-option", "strip_color_profile")
        refuse("/eth:1/plain/\(source)", "unsupported-option", "enforce_thumbnail")
        for format in ["best", "tiff", "heic", "svg", "ico", "bmp", "pdf", "mp4"] {
            refuse("/f:\(format)/plain/\(source)", "unsupported-option", "format")
        }
        for wrong in ["f:", "f:x", "fq:jpg", "fq:jpg:0", "fq:jpg:101", "fq:x:1", "q:101", "q:-1", "q:1.5", "mb:-1"] {
            refuse("/\(wrong)/plain/\(source)", "invalid-argument")
        }
        for wrong in [
            "pg:-1", "vts:-1", "vts:x", "skp:x", "raw:yes", "exp:-1", "exp:tomorrow", "att:2", "sm:", "cb:1:2",
        ] {
            refuse("/\(wrong)/plain/\(source)", "invalid-argument")
        }
    }

    @Test func fileNamesAreEscapedOrBase64() {
        for name in ["filename", "fn"] {
            check("\(name):a%20b%C3%A4") { $0.fileName = "a bä" }
            check("\(name):a%3Ab:0") { $0.fileName = "a:b" }
            check("\(name):w6Qg:1") { $0.fileName = "ä " }
            check("\(name):w6Qg:t") { $0.fileName = "ä " }
        }
        let long = String(repeating: "a", count: 256)
        for wrong in ["a%0Ab", "a%2Fb", "..%5Ca", "wyg:1", "%C3:0", "a:2", "w6Q*:1", long] {
            refuse("/fn:\(wrong)/plain/\(source)", "invalid-argument", "filename")
        }
    }

    @Test func laterOptionsOverride() {
        check("w:100/q:10/w:200") { ($0.width, $0.quality) = (200, 10) }
    }

    @Test func everyOptionOfTheTableIsAppliedOrRefused() throws {
        // Each name reaches its own option: an argument that no option takes is refused under the long name.
        for (name, option) in NativeOption.named where ![.cacheBuster, .filename, .preset].contains(option) {
            refuse("/\(name):%21/plain/\(source)", "invalid-argument", option.rawValue)
        }
        for name in NativeOption.unsupported {
            refuse("/\(name):1/plain/\(source)", "unsupported-option", " \(name) ")
            #expect(NativeOption.named[name] == nil)
        }
    }

    // MARK: Bad input

    @Test func unknownOptionsAreNamed() {
        refuse("/wdth:1/plain/\(source)", "unknown-option", "wdth")
        refuse("/W:1/plain/\(source)", "unknown-option", " W.")
        refuse("/:1/plain/\(source)", "unknown-option")
        refuse("/https://example.com/a.jpg", "unknown-option", "behind “plain/”")
        refuse("/rs:fit:9:9/local:///a.jpg", "unknown-option", "behind “plain/”")
        refuse("/width/plain/local:///a", "invalid-source", "behind “plain/”")
        let long = String(repeating: "x", count: 99)
        refuse("/\(long):1/plain/\(source)", "unknown-option", " \(long.prefix(32)).")
        refuse("/a\u{E4}<:1/plain/\(source)", "unknown-option", " a?<.")
    }

    @Test(arguments: [
        "nan", "NaN", "inf", "1e309", "1e3", "0x10", "1000000000", "99999999999999999999", "-1", "-0.5", "1,5", "+1",
        "", "%00", "%", "%zz", " 1", "%201", "१", "1.2.3", ".",
    ])
    func numbersAreDecimalAndInRange(_ number: String) {
        for option in ["w", "h", "mw", "mh", "dpr", "z", "c", "rs:fit", "pix", "q", "mb", "pg", "wm"] {
            // Sizes take empty arguments, and a number of bytes may be large.
            if number.isEmpty && option == "rs:fit" || number == "1000000000" && option == "mb" { continue }
            refuse("/\(option):\(number)/plain/\(source)", "invalid-argument")
        }
    }

    @Test func factorsOfZeroAreRefused() {
        for option in ["dpr:0", "dpr:0.0", "dpr:17", "z:0", "z:1:0", "z:101"] {
            refuse("/\(option)/plain/\(source)", "invalid-argument", option.hasPrefix("d") ? "dpr" : "zoom")
        }
    }

    @Test func sidesAreBoundedWithTheirFactors() {
        check("w:65535") { $0.width = 65_535 }
        refuse("/w:65536/plain/\(source)", "invalid-argument", "width")
        check("w:4000/dpr:16") { ($0.width, $0.dpr) = (4_000, 16) }
        refuse("/w:5000/dpr:16/plain/\(source)", "invalid-argument", "size")
        refuse("/mh:5000/z:100/plain/\(source)", "invalid-argument", "size")
        refuse("/pd:40000/plain/\(source)", "invalid-argument", "size")
    }

    @Test func pathsAreBounded() {
        let long = "/cb:" + String(repeating: "a", count: 8_192 - 4 - "/plain/".count - source.count)
        #expect(throws: Never.self) { try parse("\(long)/plain/\(source)") }
        refuse("\(long)a/plain/\(source)", "path-too-long", status: 414)
        refuse("/" + String(repeating: "w:1/", count: 25_000) + "plain/\(source)", "path-too-long", status: 414)
    }

    @Test func controlCharactersAndBrokenTextAreRefused() {
        for raw in ["\u{0}", "\n", "\r", "\u{7F}", "\u{FFFD}"] {
            refuse("/w:1/plain/http://a/\(raw)", "malformed-path")
        }
        for escaped in [
            "%00", "%0d%0a", "%7F", "%", "%4", "%zz", "%C0%AF", "%E0%80%AF", "%ED%A0%80", "%F8%88%80%80%80", "%FF",
        ] {
            refuse("/w:1/plain/http://a/\(escaped)", "invalid-source")
        }
        for bytes in [[0x61, 0], [0xC0, 0xAF], [0xFF], [0x0A]] as [[UInt8]] {
            let text = Data(bytes).base64EncodedString().replacing("/", with: "_").replacing("+", with: "-")
            refuse("/w:1/\(text)", "invalid-source")
        }
    }

    @Test func oldURLsAreExplained() {
        refuse("/fill/300/400/sm/0/plain/\(source)", "malformed-path", "/resize:fill:300:400/")
    }

    // MARK: Sources

    @Test func plainSourcesAreUnescapedOnce() throws {
        #expect(try parse("/plain/http://a/b%20c%2525%3Fx=1%40").source == "http://a/b c%25?x=1@")
        #expect(try parse("/plain/local:///a/%C3%A4.jpg@webp").source == "local:///a/ä.jpg")
        #expect(try parse("/plain/a//b.jpg").source == "a//b.jpg")
        #expect(try parse("/w:1/plain/rs:fit:1:1/a.jpg").source == "rs:fit:1:1/a.jpg")
        #expect(try parse("/plain/http://a/b?x=1").source == "http://a/b", "a query is ignored")
        #expect(try parse("plain/http://a/b").source == "http://a/b", "the leading slash may be missing")
    }

    @Test func mergedSlashesAreRestored() throws {
        #expect(try parse("/w:1/plain/http:/a.example/b.jpg").source == "http://a.example/b.jpg")
        #expect(try parse("/w:1/plain/local:/b.jpg").source == "local:///b.jpg")
        #expect(try parse("/w:1/plain/data:image/png,x").source == "data:image/png,x")
        #expect(try parse("/w:1/plain/a/http:/b").source == "a/http:/b")
    }

    @Test func base64SourcesMayBeSplit() throws {
        let encoded = "aHR0cDovL2V4YW1wbGUuY29tL2ltYWdlcy9jdXJpb3NpdHkuanBn"
        let source = "http://example.com/images/curiosity.jpg"
        #expect(try parse("/\(encoded)").source == source)
        #expect(try parse("/w:1/\(encoded.prefix(16))/\(encoded.dropFirst(16))").source == source)
        let url = try parse("/w:1/\(encoded.prefix(3))/\(encoded.dropFirst(3)).png")
        #expect(url.source == source && url.options.format == .png)
        #expect(try parse("/YT8_Pg==").source == "a??>")
        #expect(try parse("/YT8_Pg").source == "a??>")
        for wrong in ["YT8/_Pg+", "YT8*", "YTE=YTE", "A", "YQ.png.jpg", "YWI/plain/x"] {
            refuse("/w:1/\(wrong)", "invalid-source")
        }
    }

    @Test func extensionsAreFormats() throws {
        #expect(try parse("/f:png/plain/\(source)@webp").options.format == .webp)
        #expect(try parse("/f:png/plain/\(source)@").options.format == .png)
        #expect(try parse("/raw:1/plain/\(source)@exe").options.format == nil)
        refuse("/plain/\(source)@exe", "invalid-argument", "extension")
        refuse("/plain/\(source)@tiff", "unsupported-option", "extension")
        refuse("/plain/\(source)@png@png", "invalid-source")
        refuse("/plain/user@\(source)@png", "invalid-source")
    }

    @Test func sourcesAreRequired() {
        for path in ["", "/", "/w:1", "/w:1/", "/plain", "/plain/", "/w:1/plain/@png", "/.png"] {
            refuse(path, "missing-source")
        }
        refuse("/enc/abcd", "unsupported-option", "enc")
    }

    @Test func escapedColonsSeparateArguments() {
        check("rs%3Afit%3a300%3A400") { ($0.width, $0.height) = (300, 400) }
    }

    @Test func combiningMarksDoNotHideSeparators() throws {
        refuse("/w:\u{301}1/plain/\(source)", "invalid-argument", "width")
        #expect(try parse("/w:1/plain/\u{301}b").source == "\u{301}b")
        refuse("/plain/a@\u{301}png", "invalid-argument", "extension")
    }

    @Test func anotherSeparatorReplacesTheColon() {
        let grammar = NativeGrammar(argumentsSeparator: ",")
        check("size,100,100,1", in: grammar) { ($0.width, $0.height, $0.enlarge) = (100, 100, true) }
        refuse("/size:100/plain/\(source)", "invalid-source", in: grammar)
    }

    // MARK: Presets

    @Test func presetsApplyInOrder() throws {
        let presets = try NativeGrammar.presets(parsing: [
            "# comment", "", "  thumb = rs:fill:100:100/q:70 ", "sharp=sh:0.7", "both=pr:thumb:sharp/q:80",
            "thumb=rs:fill:200:200/q:60",
        ])
        #expect(presets.count == 3)
        let grammar = NativeGrammar(presets: presets)
        try grammar.validate()
        check("pr:thumb/w:50", in: grammar) {
            ($0.resizingType, $0.width, $0.height, $0.quality) = (.fill, 50, 200, 60)
        }
        check("preset:both", in: grammar) {
            ($0.resizingType, $0.width, $0.height, $0.quality, $0.sharpen) = (.fill, 200, 200, 80, 0.7)
        }
        check("q:10/pr:thumb:sharp", in: grammar) {
            ($0.resizingType, $0.width, $0.height, $0.quality, $0.sharpen) = (.fill, 200, 200, 60, 0.7)
        }
        refuse("/pr:other/plain/\(source)", "unknown-preset", "other", in: grammar)
        refuse("/pr:/plain/\(source)", "unknown-preset", in: grammar)
    }

    @Test func defaultPresetAppliesFirst() {
        let grammar = NativeGrammar(presets: ["default": "q:50/w:100"])
        check("w:200", in: grammar) { ($0.quality, $0.width) = (50, 200) }
    }

    @Test func presetsThatContainThemselvesAreRefused() {
        for presets in [
            ["a": "pr:a"], ["a": "pr:b", "b": "pr:a"], ["default": "pr:default"],
        ] {
            let grammar = NativeGrammar(presets: presets)
            #expect { try grammar.validate() } throws: { ($0 as? RequestError)?.code == "recursive-preset" }
        }
        refuse("/pr:a/plain/\(source)", "recursive-preset", in: NativeGrammar(presets: ["a": "q:1/pr:a"]))
    }

    @Test func presetsAreBoundedInAll() throws {
        // Each names the next twice: 2^20 applications.
        let doubled = Dictionary(
            uniqueKeysWithValues: (0..<20).map { ("p\($0)", $0 == 19 ? "q:1" : "pr:p\($0 + 1):p\($0 + 1)") })
        let grammar = NativeGrammar(presets: doubled)
        #expect { try grammar.validate() } throws: { ($0 as? RequestError)?.code == "invalid-argument" }
        let names = { (count: Int) in Array(repeating: "p19", count: count).joined(separator: ":") }
        check("pr:\(names(64))", in: grammar) { $0.quality = 1 }
        refuse("/pr:\(names(65))/plain/\(source)", "invalid-argument", "preset", in: grammar)
    }

    @Test(arguments: [
        (["x"], "invalid-preset"), (["=q:1"], "invalid-preset"), (["x="], "invalid-preset"),
        (["x=q:1/plain/y"], "invalid-preset"), (["x=q:101"], "invalid-argument"), (["x=qq:1"], "unknown-option"),
        (["x=dpi:1"], "unsupported-option"), (["x=pr:y"], "unknown-preset"), (["x=w:60000/dpr:2"], "invalid-argument"),
    ])
    func presetsAreValidatedAtTheStart(_ lines: [String], _ code: String) {
        #expect {
            try NativeGrammar(presets: NativeGrammar.presets(parsing: lines)).validate()
        } throws: {
            ($0 as? RequestError)?.code == code
        }
    }

    @Test func onlyPresetsReplacesOptions() throws {
        let grammar = NativeGrammar(presets: ["a": "w:100", "b": "h:200"], onlyPresets: true)
        let url = try grammar.parse("/a:b/plain/\(source)@png")
        #expect(url.options.width == 100 && url.options.height == 200 && url.options.format == .png)
        #expect(try grammar.parse("/a/YWI").source == "ab")
        refuse("/w:100/plain/\(source)", "unknown-preset", in: grammar)
        refuse("/plain/\(source)", "unknown-preset", "plain", in: grammar)
        refuse("/a", "missing-source", in: grammar)
        refuse("/", "missing-source", in: grammar)
    }

    @Test func allowedOptionsBoundURLsAndNotPresets() throws {
        let grammar = NativeGrammar(presets: ["p": "q:10"], allowedOptions: ["w", "preset"])
        try grammar.validate()
        check("width:100/pr:p", in: grammar) { ($0.width, $0.quality) = (100, 10) }
        refuse("/h:100/plain/\(source)", "forbidden-option", "height", in: grammar)
        #expect { try NativeGrammar(allowedOptions: ["wdth"]).validate() } throws: {
            ($0 as? RequestError)?.code == "unknown-option"
        }
    }

    // MARK: Fuzz

    /// Any text is either read or refused with a status of a client's error.
    @Test func mutatedPathsNeverTrap() {
        var random = TestGenerator(seed: 19)
        let seed = Array("/rs:fill:300:400:1/g:fp:0.5:1e9/c:1:2:nowe/exp:99/fn:a%20:1/plain/http://a/%41@png".utf8)
        let inserts = Array("/:@.%?=-0919xe\u{0}\u{7F}ä,".utf8)
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
                let url = try NativeGrammar().parse(path[...])
                #expect(!url.source.isEmpty && url.options.width <= 65_535)
            } catch {
                #expect((400..<500).contains(error.status), "\(path)")
            }
        }
    }
}

/// Repeatable random numbers (SplitMix64).
struct TestGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
