import Testing
import VitrineImaging
import VitrineServer

/// The operator's rules in every grammar.
struct GrammarRulesTests {
    /// Grammars of a configuration, as the server makes them.
    private struct Grammars {
        let native: NativeGrammar
        let thumbor: ThumborGrammar
        let iiif: IIIFGrammar

        init(_ change: (inout ServerConfiguration) -> Void) throws {
            var configuration = ServerConfiguration()
            configuration.localRoot = "/"
            change(&configuration)
            native = try configuration.grammar()
            let base = try native.base()
            thumbor = ThumborGrammar(defaults: base, rules: native.rules)
            iiif = IIIFGrammar(configuration, defaults: base, rules: native.rules)
        }

        /// The code of the error of a path that begins with the name of its grammar; nil if it is accepted.
        func error(_ path: String) -> String? {
            do throws(RequestError) {
                _ = try url(path)
                return nil
            } catch {
                return error.code
            }
        }

        func url(_ path: String) throws(RequestError) -> ImageURL {
            let path = path[...]
            if path.hasPrefix("thumbor ") { return try thumbor.parse(path.dropFirst(8)) }
            if path.hasPrefix("iiif ") { return try iiif.parse(path.dropFirst(5)) }
            return try native.parse(path)
        }
    }

    @Test func onlyPresetsHoldsInEveryGrammar() throws {
        let grammars = try Grammars { ($0.presets, $0.onlyPresets) = (["thumb": "rs:fit:50:50"], true) }
        #expect(grammars.error("/thumb/plain/local:///a.jpg") == nil)
        for path in [
            "thumbor 300x300/local:///a.jpg", "thumbor local:///a.jpg", "thumbor meta/local:///a.jpg",
            "iiif /3/a.jpg/full/max/0/default.jpg", "iiif /2/a.jpg/0,0,9,9/9,/90/gray.png",
        ] {
            #expect(grammars.error(path) == "only-presets", "\(path)")
        }
    }

    @Test(arguments: [
        ("/w:9/plain/local:///a.jpg", ["width"]), ("/rs:fit:9:9/plain/local:///a.jpg", ["resize"]),
        ("thumbor 9x9/local:///a.jpg", ["resize"]), ("thumbor fit-in/9x0/local:///a.jpg", ["width"]),
        ("thumbor -9x9/local:///a.jpg", ["resize", "flip"]), ("thumbor 1x1:5x5/local:///a.jpg", ["crop"]),
        ("thumbor trim/local:///a.jpg", ["trim"]), ("thumbor 9x9/left/local:///a.jpg", ["resize", "g"]),
        ("thumbor filters:blur(3)/local:///a.jpg", ["blur"]), ("thumbor filters:quality(3)/local:///a.jpg", ["q"]),
        ("thumbor filters:rotate(90)/local:///a.jpg", ["rot"]), ("thumbor adaptive-fit-in/9x9/local:///a.jpg", ["rs"]),
        ("thumbor filters:max_bytes(9000)/local:///a.jpg", ["mb"]),
        ("thumbor 9x9/filters:focal(1x1:2x2)/local:///a.jpg", ["rs", "gravity"]),
        ("iiif /3/a.jpg/full/9,/0/default.jpg", ["size"]), ("iiif /3/a.jpg/square/max/0/default.jpg", ["crop"]),
        ("iiif /3/a.jpg/full/max/90/default.jpg", ["rotate"]), ("iiif /3/a.jpg/full/max/!0/default.jpg", ["flip"]),
    ] as [(String, [String])])
    func optionsAreAllowedInEveryGrammarOrInNone(_ path: String, _ needed: [String]) throws {
        #expect(try Grammars { _ in }.error(path) == nil)
        #expect(try Grammars { $0.allowedOptions = needed + ["preset"] }.error(path) == nil)
        for missing in needed {
            let rest = needed.filter { $0 != missing } + ["expires"]
            #expect(try Grammars { $0.allowedOptions = rest }.error(path) == "forbidden-option", "without \(missing)")
        }
    }

    /// Grey pictures are an effect of thumbor and IIIF that no option of the native grammar has.
    @Test func effectsWithoutAnOptionAreNotAmongTheAllowedOnes() throws {
        let grammars = try Grammars { $0.allowedOptions = ["resize"] }
        #expect(grammars.error("thumbor filters:grayscale()/local:///a.jpg") == "forbidden-option")
        #expect(grammars.error("iiif /3/a.jpg/full/max/0/gray.jpg") == "forbidden-option")
        #expect(grammars.error("thumbor local:///a.jpg") == nil)
        #expect(grammars.error("iiif /3/a.jpg/full/max/0/default.png") == nil)
    }

    @Test func theDefaultPresetHoldsInEveryGrammar() throws {
        let options = "bl:20/wm:0.5/q:33/sm:0/mb:5000/w:700"
        let grammars = try Grammars { $0.presets = ["default": options] }
        for path in [
            "/plain/local:///a.jpg", "thumbor local:///a.jpg", "thumbor 9x9/local:///a.jpg",
            "iiif /3/a.jpg/full/max/0/default.jpg", "iiif /3/a.jpg/0,0,512,512/512,512/0/default.jpg",
        ] {
            let found = try grammars.url(path).options
            #expect(found.blur == 20 && found.watermark?.opacity == 0.5 && found.quality == 33, "\(path)")
            #expect(found.stripMetadata == false && found.maximumBytes == 5_000, "\(path)")
        }
        // A size of the URL is a size of the URL, and the IIIF always names one.
        #expect(try grammars.url("thumbor local:///a.jpg").options.width == 700)
        #expect(try grammars.url("thumbor 9x0/local:///a.jpg").options.width == 9)
        #expect(try grammars.url("thumbor filters:quality(90)/local:///a.jpg").options.quality == 90)
        #expect(try grammars.url("iiif /3/a.jpg/full/max/0/default.jpg").options.width == 0)
        // What the preset sets is not what the URL asks for.
        let strict = try Grammars { ($0.presets, $0.allowedOptions) = (["default": options], ["height"]) }
        #expect(strict.error("thumbor local:///a.jpg") == nil)
        #expect(strict.error("iiif /3/a.jpg/full/max/0/default.jpg") == nil)
    }

    @Test func theRulesAreThoseOfExplanations() throws {
        let native = NativeGrammar(presets: ["a": "w:5"], onlyPresets: true)
        #expect(Explanation(path: "/thumbor/unsafe/9x9/a.example/b.jpg", native: native).isError)
        #expect(!Explanation(path: "/x/a/plain/http://a.example/b.jpg", native: native).isError)
    }
}
