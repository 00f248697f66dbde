import Foundation
import Testing

import VitrineServer

@Suite struct GrammarExplanationTests {
    private func object(_ explanation: Explanation) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(explanation.json.utf8)) as? [String: Any])
    }

    @Test func nativePathsAreExplained() throws {
        let path = "/insecure/rs:fill:300:400/g:fp:0.25:1/bg:0f0/q:70/plain/http://a/b.jpg@webp"
        let explanation = Explanation(path: path, native: NativeGrammar())
        let object = try object(explanation)
        #expect(!explanation.isError)
        #expect(object["grammar"] as? String == "native" && object["signature"] as? String == "insecure")
        #expect(object["source"] as? String == "http://a/b.jpg")
        let options = try #require(object["options"] as? [String: Any])
        #expect(options["resizing_type"] as? String == "fill" && options["format"] as? String == "webp")
        #expect(options["width"] as? Int == 300 && options["height"] as? Int == 400 && options["quality"] as? Int == 70)
        #expect(options["background"] as? String == "#00ff00")
        let gravity = try #require(options["gravity"] as? [String: Any])
        #expect(gravity["type"] as? String == "fp" && gravity["x"] as? Double == 0.25)
        // The same text for the same URL, so that outputs can be compared.
        #expect(Explanation(path: path, native: NativeGrammar()).json == explanation.json)
        let url = try NativeGrammar().parse(path.dropFirst("/insecure".count))
        #expect(try self.object(Explanation(url))["source"] as? String == "http://a/b.jpg")
    }

    @Test func everySetOptionIsShown() throws {
        let options = "t:1:fff:1:1/c:1:2:no:3:4/exar:1/pd:1:2:3:4/wm:0.5:re/fq:jpg:1:png:2/skp:svg:gif/mb:9/sm:1/kcr:0"
        let path = "/_/\(options)/vts:2/pg:4/exp:9999999999/fn:x/att:1/cb:y/raw:1/plain/a"
        let object = try object(Explanation(path: path, native: NativeGrammar()))
        let shown = try #require(object["options"] as? [String: Any])
        for (key, text) in [
            ("trim", "ffffff"), ("crop", "gravity"), ("extend_aspect_ratio", "ce"), ("padding", "4"),
            ("watermark", "repeat"), ("format_quality", "png"), ("skip_processing", "svg"), ("max_bytes", "9"),
            ("strip_metadata", "1"), ("keep_copyright", "0"), ("video_thumbnail_second", "2"), ("page", "5"),
            ("expires", "9999999999"), ("filename", "x"), ("return_attachment", "1"), ("cachebuster", "y"),
            ("raw", "1"),
        ] {
            let value = try #require(shown[key], "\(key)")
            let isBool = value as? Bool == (text == "1")
            #expect("\(value)".contains(text) || isBool, "\(key): \(value)")
        }
    }

    @Test func thumborPathsAreExplainedWithTheirParts() throws {
        let path = "/thumbor/unsafe/meta/10x20:30x40/adaptive-fit-in/origx200/filters:max_age(1):focal(1x2:3x4)/a.jpg"
        let object = try object(Explanation(path: path, native: NativeGrammar()))
        #expect(object["grammar"] as? String == "thumbor" && object["signature"] as? String == "unsafe")
        #expect(object["info"] as? Bool == true && object["ignored"] as? [String] == ["max_age"])
        let parts = try #require(object["parts"] as? [String: Any])
        #expect(parts["width"] as? String == "orig" && parts["height"] as? Int == 200)
        #expect(parts["filters"] as? String == "max_age(1):focal(1x2:3x4)" && parts["image"] as? String == "a.jpg")
        let options = try #require(object["options"] as? [String: Any])
        let rules = try #require(options["source_rules"] as? [String: Any])
        #expect(rules["region"] as? [Int] == [10, 20, 30, 40] && rules["focal"] as? [[Int]] == [[1, 2, 3, 4]])
    }

    @Test func errorsAreExplained() throws {
        for (path, code) in [
            ("/insecure/w:x/plain/a", "invalid-argument"), ("/rs:fit:1:1/plain/a", "malformed-path"),
            ("/thumbor/unsafe/filters:rgb(1,2,3)/a", "unsupported-option"), ("/insecure", "missing-source"),
            ("", "malformed-path"),
        ] {
            let explanation = Explanation(path: path, native: NativeGrammar())
            let error = try #require(try object(explanation)["error"] as? [String: Any])
            #expect(explanation.isError && error["code"] as? String == code, "\(path)")
            #expect(error["status"] as? Int == 400 && (error["reason"] as? String)?.isEmpty == false)
        }
    }
}
