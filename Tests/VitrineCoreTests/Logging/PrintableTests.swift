import Foundation
import Logging
import TestSupport
import Testing
import VitrineCore

struct PrintableTests {
    @Test func whatCouldActOnATerminalIsEscaped() {
        let vectors = [
            "a\u{1B}]0;title\u{07}b": #"a\u{1B}]0;title\u{7}b"#, "\u{9B}31m": #"\u{9B}31m"#, "a\rb\nc\td": #"a\rb\nc\td"#,
            "\u{7F}\0": #"\u{7F}\u{0}"#, "gpj.\u{202E}exe": #"gpj.\u{202E}exe"#, "\u{2066}x\u{2069}": #"\u{2066}x\u{2069}"#,
            "\u{2028}\u{2029}": #"\u{2028}\u{2029}"#, "pay\u{200B}pal\u{FEFF}": #"pay\u{200B}pal\u{FEFF}"#,
            "a\u{200D}b": #"a\u{200D}b"#, "\u{E0041}\u{AD}": #"\u{E0041}\u{AD}"#, "caf\u{10FEE9}": #"caf\xE9"#,
            "\u{10FE80}": #"\x80"#, "\u{10FFFF}": #"\u{10FFFF}"#, "x\u{FE0F}": #"x\u{FE0F}"#, "\r\n": #"\r\n"#,
        ]
        for (text, shown) in vectors { #expect(Printable.line(text) == shown) }
    }

    @Test func writtenLanguagesAndEmojiStay() {
        for text in ["Müller, 日本語, עברית, ไทย", "👨‍👩‍👧 ❤️ 🏳️‍🌈", "می‌خواهم", "a\\xFF \\u{1B}", "e\u{301}", ""] {
            #expect(Printable.line(text) == text)
        }
    }

    @Test func linesOfTheCommandsOwnStay() {
        #expect(Printable.lines("a\nb\u{1B}\r\n") == "a\nb\\u{1B}\\r\n")
    }

    @Test func JSONKeepsItsValues() throws {
        let values = ["a\u{1B}\u{9B}\u{202E}\u{7F}", "caf\u{10FEE9}", "\u{E0041}\"\\", "👨‍👩‍👧", "\u{2028}"]
        let text = Printable.json(String(decoding: try JSONEncoder().encode(values), as: UTF8.self))
        #expect(text.contains(#"caf\udbff\udee9"#) && text.contains(#"\u009b\u202e\u007f"#))
        #expect(Printable.lines(text) == text)
        #expect(try JSONDecoder().decode([String].self, from: Data(text.utf8)) == values)
    }

    @Test func logHandlersGetNothingUnescaped() {
        let recorder = Recorder<String>()
        var log = Log.logger("test", handler: RecordingHandler(recorder: recorder))
        log[metadataKey: "own"] = "\u{1B}"
        log.warning(
            "A \u{9B}file\n", metadata: ["path": "x\u{202E}", "all": ["\r", .stringConvertible(FileError.notFound(path: "\u{7}"))]])
        #expect(recorder.all == [#"A \u{9B}file\n"#, #"["all": ["\\r", "\\u{7} does not exist."], "path": "x\\u{202E}"]"#, #"\u{1B}"#])
    }
}

private struct RecordingHandler: LogHandler {
    let recorder: Recorder<String>
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    init(recorder: Recorder<String>) { self.recorder = recorder }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        recorder.add(event.message.description)
        let values: Logger.Metadata = event.metadata ?? [:]
        let sorted = values.sorted { $0.key < $1.key }.map { "\"\($0)\": \($1.debug)" }
        recorder.add("[" + sorted.joined(separator: ", ") + "]")
        recorder.add(metadata["own"]?.description ?? "")
    }
}

extension Logger.MetadataValue {
    fileprivate var debug: String {
        switch self {
        case .string(let text): text.debugDescription
        case .array(let values): "[" + values.map(\.debug).joined(separator: ", ") + "]"
        default: description
        }
    }
}
