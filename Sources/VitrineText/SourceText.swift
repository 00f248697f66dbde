import CVitrineText

/// The first lines of a text, in a shape that is cheap to draw.
struct TextLines {
    /// Lines, and columns of each, on a page.
    static let rows = 60
    static let columns = 100
    /// Characters of a line that are kept: the rest of a line is not seen, but may be expensive.
    private static let maximumCharacters = 200
    private static let tab = 4

    private(set) var lines: [String] = []
    /// Characters of the longest line.
    private(set) var longest = 0

    init(_ text: String) {
        var line = ""
        var count = 0
        for character in text {
            if character.isNewline {
                append(line, count)
                (line, count) = ("", 0)
                if lines.count == Self.rows { return }
                continue
            }
            guard count < Self.maximumCharacters else { continue }
            if character == "\t" {
                let spaces = Self.tab - count % Self.tab
                line += String(repeating: " ", count: spaces)
                count += spaces
            } else {
                line.unicodeScalars.append(contentsOf: character.drawableScalars)
                count += 1
            }
        }
        append(line, count)
    }

    private mutating func append(_ line: String, _ count: Int) {
        lines.append(line)
        longest = max(longest, count)
    }
}

extension Character {
    /// Combining marks of a character that are kept.
    private static let maximumMarks = 8

    /// The scalars that are drawn: no controls, no marks that turn the direction of the rest, and not more combining
    /// marks than a script has.
    var drawableScalars: [Unicode.Scalar] {
        unicodeScalars.prefix(1 + Self.maximumMarks).map {
            $0.properties.generalCategory == .control || (0x202A...0x202E).contains($0.value)
                || (0x2066...0x2069).contains($0.value) ? " " : $0
        }
    }
}

/// Text with styles.
struct StyledText {
    private(set) var text = ""
    private(set) var runs: [ctext_run] = []

    /// A style of a part of a text.
    struct Style {
        var color: (UInt8, UInt8, UInt8) = (34, 34, 34)
        var isBold = false
        var isItalic = false
        var isMonospaced = false
        var scale: Float = 1
    }

    mutating func append(_ part: some StringProtocol, _ style: Style? = nil) {
        guard !part.isEmpty else { return }
        let start = text.utf8.count
        text += part
        guard let style else { return }
        runs.append(
            ctext_run(
                start: UInt32(start), end: UInt32(text.utf8.count), red: style.color.0, green: style.color.1,
                blue: style.color.2, bold: style.isBold, italic: style.isItalic, monospaced: style.isMonospaced,
                scale: style.scale))
    }
}

/// Colours comments, strings, numbers and words of languages.
enum SourceText {
    /// The marks of comments of a family of languages.
    private struct Comments {
        var line: [String] = []
        var block: (String, String)?
    }

    private static let comment = StyledText.Style(color: (96, 125, 96), isItalic: true)
    private static let string = StyledText.Style(color: (163, 49, 34))
    private static let number = StyledText.Style(color: (28, 80, 180))
    private static let keyword = StyledText.Style(color: (120, 40, 140), isBold: true)

    private static let words: Set<String> = [
        "abstract", "as", "async", "await", "bool", "break", "case", "catch", "char", "class", "const", "continue",
        "def", "default", "defer", "do", "double", "elif", "else", "end", "enum", "except", "export", "extends",
        "extension", "extern", "false", "final", "finally", "float", "fn", "for", "foreach", "from", "func", "function",
        "go", "guard", "if", "impl", "implements", "import", "in", "include", "int", "interface", "internal", "is", "let",
        "long", "loop", "match", "mod", "module", "mut", "namespace", "new", "nil", "None", "null", "override", "package",
        "pass", "private", "protected", "protocol", "pub", "public", "return", "Self", "self", "short", "signed",
        "sizeof", "static", "struct", "super", "switch", "template", "then", "this", "throw", "throws", "trait", "true",
        "True", "False", "try", "type", "typedef", "typename", "union", "unsafe", "unsigned", "use", "using", "var",
        "virtual", "void", "where", "while", "with", "yield",
    ]

    private static func comments(_ fileExtension: String) -> Comments? {
        switch fileExtension.lowercased() {
        case "swift", "c", "h", "cc", "cpp", "cxx", "hpp", "hh", "m", "mm", "java", "kt", "kts", "scala", "js", "mjs", "cjs",
            "jsx", "ts", "tsx", "go", "rs", "cs", "dart", "groovy", "gradle", "php", "proto", "glsl", "metal", "vala",
            "zig", "d", "less", "scss", "css":
            Comments(line: ["//"], block: ("/*", "*/"))
        case "py", "rb", "sh", "bash", "zsh", "fish", "pl", "pm", "r", "jl", "toml", "yaml", "yml", "conf", "cfg", "mk",
            "cmake", "nix", "tcl", "awk", "dockerfile", "ex", "exs", "service":
            Comments(line: ["#"])
        case "sql", "lua", "hs", "elm", "ada", "adb", "ads", "vhdl": Comments(line: ["--"])
        case "lisp", "el", "clj", "scm", "rkt", "asm", "s", "ini": Comments(line: [";"])
        case "tex", "erl", "hrl", "matlab": Comments(line: ["%"])
        case "html", "htm", "xml", "xhtml", "plist", "vue", "svelte": Comments(block: ("<!--", "-->"))
        case "json": Comments()
        default: nil
        }
    }

    /// The lines with the colours of a language; plain if it is none.
    static func page(_ lines: [String], _ fileExtension: String) -> StyledText {
        var page = StyledText()
        guard let comments = comments(fileExtension) else {
            for line in lines { page.append(line + "\n") }
            return page
        }
        var isInBlock = false
        for line in lines {
            append(line, comments: comments, isInBlock: &isInBlock, to: &page)
            page.append("\n")
        }
        return page
    }

    private static func append(_ line: String, comments: Comments, isInBlock: inout Bool, to page: inout StyledText) {
        var rest = line[...]
        var plain = ""
        func flush() {
            page.append(plain)
            plain = ""
        }
        while let first = rest.first {
            if let (open, close) = comments.block, isInBlock || rest.hasPrefix(open) {
                flush()
                let body = rest.dropFirst(isInBlock ? 0 : open.count)
                let end = body.firstRange(of: close)?.upperBound
                page.append(rest[..<(end ?? rest.endIndex)], comment)
                isInBlock = end == nil
                rest = rest[(end ?? rest.endIndex)...]
            } else if comments.line.contains(where: { rest.hasPrefix($0) }) {
                flush()
                page.append(rest, comment)
                return
            } else if first == "\"" || first == "'" || first == "`", let end = endOfString(rest, first) {
                flush()
                page.append(rest[..<end], string)
                rest = rest[end...]
            } else if first.isLetter || first == "_" || first.isNumber {
                let word = rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" || (first.isNumber && $0 == ".") }
                let style: StyledText.Style? = first.isNumber ? number : words.contains(String(word)) ? keyword : nil
                if let style {
                    flush()
                    page.append(word, style)
                } else {
                    plain += word
                }
                rest = rest[word.endIndex...]
            } else {
                plain.append(first)
                rest = rest.dropFirst()
            }
        }
        flush()
    }

    /// Behind the quotation mark that ends a string of this line; nil if none does, as in `don't`.
    private static func endOfString(_ text: Substring, _ mark: Character) -> Substring.Index? {
        var index = text.index(after: text.startIndex)
        while index < text.endIndex {
            if text[index] == mark { return text.index(after: index) }
            if text[index] == "\\" { index = text.index(after: index) }
            guard index < text.endIndex else { return nil }
            index = text.index(after: index)
        }
        return nil
    }
}

/// Headings, lists, code, and emphasis of Markdown. HTML and images are left as text.
enum Markdown {
    private static let code = StyledText.Style(color: (90, 60, 40), isMonospaced: true, scale: 0.9)
    private static let rule = StyledText.Style(color: (150, 150, 150))

    static func page(_ lines: [String]) -> StyledText {
        var page = StyledText()
        var isCode = false
        for line in lines {
            let body = line.drop { $0 == " " }
            if body.hasPrefix("```") || body.hasPrefix("~~~") {
                isCode.toggle()
                continue
            }
            if isCode {
                page.append(line, code)
            } else {
                append(body, indent: line.count - body.count, to: &page)
            }
            page.append("\n")
        }
        return page
    }

    private static func append(_ body: Substring, indent: Int, to page: inout StyledText) {
        let level = body.prefix { $0 == "#" }.count
        if (1...6).contains(level), body.dropFirst(level).first == " " {
            var style = StyledText.Style(isBold: true)
            style.scale = [1.9, 1.55, 1.3, 1.15, 1.05, 1][level - 1]
            appendInline(body.dropFirst(level).drop { $0 == " " }, style, to: &page)
        } else if body.count >= 3, Set(body) == ["-"] || Set(body) == ["*"] || Set(body) == ["="] {
            page.append(String(repeating: "─", count: 30), rule)
        } else if ["- ", "* ", "+ "].contains(where: { body.hasPrefix($0) }) {
            page.append(String(repeating: "    ", count: indent / 2) + "  •  ")
            appendInline(body.dropFirst(2), StyledText.Style(), to: &page)
        } else if body.hasPrefix("> ") {
            appendInline(body.dropFirst(2), StyledText.Style(color: (110, 110, 110), isItalic: true), to: &page)
        } else {
            appendInline(body, StyledText.Style(), to: &page)
        }
    }

    /// `**bold**`, `*italic*`, `` `code` `` and `[text](address)`.
    private static func appendInline(_ text: Substring, _ base: StyledText.Style, to page: inout StyledText) {
        var rest = text
        var plain = ""
        func between(_ mark: String) -> (inner: Substring, end: Substring.Index)? {
            guard rest.hasPrefix(mark) else { return nil }
            let body = rest.dropFirst(mark.count)
            guard let close = body.firstRange(of: mark), close.lowerBound > body.startIndex, body.first != " " else {
                return nil
            }
            return (body[..<close.lowerBound], close.upperBound)
        }
        func add(_ part: (inner: Substring, end: Substring.Index), _ style: StyledText.Style) {
            page.append(plain, base)
            plain = ""
            page.append(part.inner, style)
            rest = rest[part.end...]
        }
        while let first = rest.first {
            var style = base
            if let part = between("`") {
                (style.color, style.isMonospaced) = (code.color, true)
                add(part, style)
            } else if let part = between("**") ?? between("__") {
                style.isBold = true
                add(part, style)
            } else if let part = between("*") {
                style.isItalic = true
                add(part, style)
            } else if let part = link(rest) {
                style.color = (28, 80, 180)
                add(part, style)
            } else {
                plain.append(first)
                rest = rest.dropFirst()
            }
        }
        page.append(plain, base)
    }

    private static func link(_ text: Substring) -> (inner: Substring, end: Substring.Index)? {
        guard text.first == "[", let middle = text.firstRange(of: "]("),
            let end = text[middle.upperBound...].firstIndex(of: ")")
        else { return nil }
        return (text[text.index(after: text.startIndex)..<middle.lowerBound], text.index(after: end))
    }
}
