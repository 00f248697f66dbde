import VitrineImageCore

/// One pass of ``SVGPolicy`` over the markup of a document: tags, declarations, and the text of style elements.
///
/// It notes the references to other files, and the edits that take them out. Edits overwrite bytes, so that every other
/// byte stays at its place.
struct SVGPolicyScan {
    /// Attributes whose whole value is an address, or a list of them, in SVG or in the HTML that SVG may hold.
    private static let addresses: Set<String> = [
        "href", "src", "srcset", "data", "poster", "background", "codebase", "lowsrc", "dynsrc", "manifest",
    ]
    /// Encodings in which every single ASCII byte means itself, by the beginnings of their names.
    private static let readableEncodings = [
        "utf-8", "utf8", "utf-16", "us-ascii", "ascii", "iso-8859-", "iso8859", "iso_8859-", "latin", "windows-125",
        "cp125", "koi8", "euc-", "shift_jis", "shift-jis", "gb", "big5",
    ]

    private let text: [UInt8]
    private var entities: SVGEntities
    private var hasDocumentType = false
    private var openStyles = 0
    private var style: [UInt8] = []
    /// Where the bytes of ``style`` stand, as written.
    private var stylePieces: [Range<Int>] = []
    /// The references to other files, each kind once, in the order of the document.
    private(set) var references: [String] = []
    private var edits: [Edit] = []

    /// Bytes of the document that are replaced; spaces fill the rest of the range.
    private struct Edit {
        var range: Range<Int>
        var replacement = ""
    }

    init(_ text: [UInt8]) {
        self.text = text
        entities = SVGEntities(budget: text.count &+ (1 << 20))
    }

    /// The document without its references to other files.
    var edited: [UInt8] {
        var copy = text
        for edit in edits {
            for at in edit.range { copy[at] = 32 }
            for (at, byte) in zip(edit.range, edit.replacement.utf8) { copy[at] = byte }
        }
        return copy
    }

    /// Reads the whole document, once.
    ///
    /// - Returns: The reason why its references cannot be found; nil for a document that can be edited.
    mutating func refusal() -> String? {
        if text.contains(0) { return "an encoding that cannot be checked" }
        var at = 0
        while let open = text[at...].firstIndex(of: UInt8(ascii: "<")) {
            if let reason = content(text[at..<open]) { return reason }
            let rest = text[(open + 1)...]
            if rest.starts(with: "!--".utf8) {
                at = ByteText.find("-->", in: text, from: open + 4) ?? text.count
            } else if rest.starts(with: "![CDATA[".utf8) {
                let end = ByteText.find("]]>", in: text, from: open + 9)
                at = end ?? text.count
                if openStyles > 0 {
                    let piece = (open + 9)..<(end.map { $0 - 3 } ?? at)
                    style += text[piece]
                    stylePieces.append(piece)
                }
            } else if rest.first == UInt8(ascii: "?") {
                at = ByteText.find("?>", in: text, from: open + 2) ?? text.count
                if let reason = instruction((open + 1)..<at) { return reason }
            } else if rest.starts(with: "!DOCTYPE".utf8) {
                // A second one is not XML, and would make this pass quadratic.
                if hasDocumentType { return "a second document type" }
                hasDocumentType = true
                at = SVGTag.end(text, from: open + 1) ?? text.count
                let body = text[(open + 1)..<at]
                // Declarations inside of a document type follow one by one.
                if let subset = indexOutsideQuotes(of: UInt8(ascii: "["), in: body) { at = subset }
                documentType(body[..<at])
                at = min(at + 1, text.count)
            } else {
                let end = SVGTag.end(text, from: open + 1) ?? text.count
                let range = (open + 1)..<end
                if let reason = rest.first == UInt8(ascii: "!") ? declaration(range) : element(range) { return reason }
                at = min(end + 1, text.count)
            }
        }
        if let reason = content(text[at...]) { return reason }
        checkStyle()
        return nil
    }

    private mutating func note(_ reference: String, _ edits: Edit...) {
        if !references.contains(reference) { references.append(reference) }
        self.edits += edits
    }

    /// Takes text between two pieces of markup, which counts inside of a style element.
    private mutating func content(_ run: ArraySlice<UInt8>) -> String? {
        guard openStyles > 0, !run.isEmpty else { return nil }
        guard let expanded = entities.expand(run) else { return "entities that cannot be checked" }
        style += expanded.bytes
        stylePieces.append(run.startIndex..<run.endIndex)
        return nil
    }

    // MARK: Elements

    private mutating func element(_ range: Range<Int>) -> String? {
        if text[range].first == UInt8(ascii: "/") {
            let name = text[range].dropFirst().prefix { !ByteText.isSpace($0) }
            if isStyle(name) { closeStyle() }
            return nil
        }
        let tag = SVGTag(text, range)
        if isStyle(tag.name), text[range].last != UInt8(ascii: "/") { openStyles += 1 }
        let isLink = lowercased(SVGTag.local(tag.name)) == "a"
        var animatesAddress = false
        var targets: [SVGTag.Attribute] = []
        var areTargetsInternal = true
        for attribute in tag.attributes {
            guard let value = entities.expand(attribute.value) else { return "entities that cannot be checked" }
            let bytes = value.bytes[...]
            if SVGPolicy.contains(bytes, "/xinclude") {
                // The prefix stays declared, as the URI of something else: parsers refuse what is no URI.
                let other = "urn:" + String(repeating: "x", count: max(0, attribute.value.count &- 4))
                note(
                    "XInclude",
                    Edit(range: attribute.value.startIndex..<attribute.value.endIndex, replacement: other))
                continue
            }
            switch lowercased(attribute.localName) {
            case "base" where attribute.name.contains(UInt8(ascii: ":")): note("xml:base", whole(attribute))
            case "href" where isLink: break
            case let name where Self.addresses.contains(name):
                if !value.isComplete || !SVGPolicy.isInternal(bytes) {
                    note(SVGPolicy.reference(bytes), whole(attribute))
                }
            case "attributename":
                animatesAddress = Self.addresses.contains(lowercased(SVGTag.local(trimmed(bytes))))
            case "to", "from", "by", "values":
                targets.append(attribute)
                let values = bytes.split(separator: UInt8(ascii: ";"))
                areTargetsInternal = areTargetsInternal && values.allSatisfy(SVGPolicy.isInternal)
                fallthrough
            default:
                guard let reference = SVGPolicy.css(bytes) else { continue }
                note(reference)
                edits += styleEdits(attribute.value) ?? [whole(attribute)]
            }
        }
        if animatesAddress, !areTargetsInternal {
            note(SVGPolicy.otherFile)
            edits += targets.map(whole)
        }
        return nil
    }

    /// Takes an attribute out, with its quotes.
    private func whole(_ attribute: SVGTag.Attribute) -> Edit {
        let end = attribute.value.endIndex
        let start = attribute.value.startIndex
        let isQuoted = start > 0 && end < text.count && text[start - 1] == text[end]
            && (text[end] == UInt8(ascii: "\"") || text[end] == UInt8(ascii: "'"))
        return Edit(range: attribute.name.startIndex..<(isQuoted ? end + 1 : end))
    }

    private func isStyle(_ name: ArraySlice<UInt8>) -> Bool { lowercased(SVGTag.local(name)) == "style" }

    private mutating func closeStyle() {
        openStyles = max(0, openStyles - 1)
        if openStyles == 0 { checkStyle() }
    }

    /// Takes imports and addresses out of the text of style elements, or all of that text where they hide.
    private mutating func checkStyle() {
        defer { (style, stylePieces) = ([], []) }
        guard let reference = SVGPolicy.css(style[...]) else { return }
        note(reference)
        var found: [Edit] = []
        var rest: [UInt8] = []
        for piece in stylePieces {
            let own = SVGPolicy.externalParts(text[piece]).map { Edit(range: $0.range, replacement: $0.replacement) }
            found += own
            guard let expanded = entities.expand(applied(own, to: piece)[...]) else { break }
            rest += expanded.bytes
        }
        let isClean = !found.isEmpty && SVGPolicy.css(rest[...]) == nil
        edits += isClean ? found : stylePieces.map { Edit(range: $0) }
    }

    /// The edits that take addresses out of a value; nil where they hide.
    private mutating func styleEdits(_ value: ArraySlice<UInt8>) -> [Edit]? {
        let found = SVGPolicy.externalParts(value).map { Edit(range: $0.range, replacement: $0.replacement) }
        let range = value.startIndex..<value.endIndex
        guard !found.isEmpty, let expanded = entities.expand(applied(found, to: range)[...]),
            SVGPolicy.css(expanded.bytes[...]) == nil
        else { return nil }
        return found
    }

    private func applied(_ edits: [Edit], to range: Range<Int>) -> [UInt8] {
        var copy = Array(text[range])
        for edit in edits {
            for at in edit.range { copy[at - range.lowerBound] = 32 }
            for (at, byte) in zip(edit.range, edit.replacement.utf8) {
                copy[at - range.lowerBound] = byte
            }
        }
        return copy
    }

    // MARK: Declarations

    private mutating func instruction(_ range: Range<Int>) -> String? {
        let body = text[range]
        let isDeclaration = body.starts(with: "?xml".utf8) && body.dropFirst(4).first.map(ByteText.isSpace) == true
        guard isDeclaration || body.starts(with: "?xml-stylesheet".utf8) else { return nil }
        let end = body.count >= 3 && body.suffix(2).elementsEqual("?>".utf8) ? range.upperBound - 2 : range.upperBound
        for attribute in SVGTag(text, range.lowerBound..<end).attributes {
            if isDeclaration, attribute.name.elementsEqual("encoding".utf8) {
                let name = lowercased(attribute.value)
                if !Self.readableEncodings.contains(where: name.hasPrefix) {
                    return "an encoding that cannot be checked"
                }
                // An edited document is in UTF-8.
                if name.hasPrefix("utf-16") { edits.append(whole(attribute)) }
            } else if !isDeclaration, lowercased(attribute.name) == "href" {
                guard let value = entities.expand(attribute.value), value.isComplete,
                    SVGPolicy.isInternal(value.bytes[...])
                else {
                    note("an external style sheet", Edit(range: (range.lowerBound - 1)..<range.upperBound))
                    continue
                }
            }
        }
        return nil
    }

    /// Checks a document type up to its internal subset. Renderers know the W3C's and do not read it.
    private mutating func documentType(_ body: ArraySlice<UInt8>) {
        guard let system = literals(body).last else { return }
        let isStandard = ["http://www.w3.org/", "https://www.w3.org/"].contains { system.starts(with: $0.utf8) }
        if !isStandard, !system.allSatisfy(ByteText.isSpace) {
            note("an external document type", Edit(range: system.startIndex..<system.endIndex))
        }
    }

    private mutating func declaration(_ range: Range<Int>) -> String? {
        let body = text[range]
        if body.starts(with: "!ENTITY".utf8) {
            let rest = body.dropFirst(7).drop(while: ByteText.isSpace)
            if rest.first == UInt8(ascii: "%") { return "a parameter entity" }
            let name = rest.prefix { !ByteText.isSpace($0) }
            let value = rest[name.endIndex...].drop(while: ByteText.isSpace)
            // Anything but a literal is SYSTEM or PUBLIC, or is not XML.
            guard let quote = value.first, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
                guard value.count >= 2 else { return "an entity that cannot be checked" }
                note("an external entity", Edit(range: value.startIndex..<value.endIndex, replacement: "''"))
                return entities.declare(name, [])
            }
            return entities.declare(name, value.dropFirst().prefix { $0 != quote })
        }
        if body.starts(with: "!ATTLIST".utf8) {
            let defaults = literals(body)
            guard !defaults.isEmpty else { return nil }
            var reference: String?
            if ["href", "src", ":base"].contains(where: { SVGPolicy.contains(body, $0) }) {
                reference = "a reference by default"
            }
            for value in defaults {
                guard let bytes = entities.expand(value)?.bytes[...] else { return "entities that cannot be checked" }
                if SVGPolicy.contains(bytes, "/xinclude") { reference = "XInclude" }
                if let found = SVGPolicy.css(bytes) { reference = found }
            }
            if let reference {
                note(reference, Edit(range: (range.lowerBound - 1)..<min(range.upperBound + 1, text.count)))
            }
        }
        return nil
    }

    // MARK: Text

    private func literals(_ body: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
        var found: [ArraySlice<UInt8>] = []
        var rest = body
        while let open = rest.firstIndex(where: { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "'") }) {
            let value = rest[(open + 1)...].prefix { $0 != rest[open] }
            found.append(value)
            rest = rest[value.endIndex...].dropFirst()
        }
        return found
    }

    private func indexOutsideQuotes(of sought: UInt8, in body: ArraySlice<UInt8>) -> Int? {
        var quote = UInt8(0)
        return body.indices.first { at in
            let byte = body[at]
            if quote != 0 {
                if byte == quote { quote = 0 }
            } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
                quote = byte
            }
            return quote == 0 && byte == sought
        }
    }

    private func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        bytes.drop(while: ByteText.isSpace).prefix { !ByteText.isSpace($0) }
    }

    /// Returns the first 32 bytes of a name in lower case, which distinguish it from all names sought.
    private func lowercased(_ name: ArraySlice<UInt8>) -> String {
        String(decoding: name.prefix(32).map(SVGPolicy.lowercase), as: UTF8.self)
    }
}

/// The entities that a document declares, and their replacement in values.
///
/// Source: XML 1.0 §4.1, §4.4, §4.6. Expansion is bounded in depth and, over the whole document, in bytes.
private struct SVGEntities {
    struct Expansion {
        var bytes: [UInt8]
        /// Whether every reference was to a known entity; unknown ones are left out, as lenient parsers do.
        var isComplete = true
    }

    private static let predefined: [String: UInt8] = [
        "amp": UInt8(ascii: "&"), "lt": UInt8(ascii: "<"), "gt": UInt8(ascii: ">"), "quot": UInt8(ascii: "\""),
        "apos": UInt8(ascii: "'"),
    ]
    private static let maximumDepth = 16

    private var values: [String: [UInt8]] = [:]
    private var budget: Int

    /// `budget` bounds the bytes of all expansions together.
    init(budget: Int) { self.budget = budget }

    /// Adds an entity, of which the first declaration counts.
    ///
    /// - Returns: The reason why the document must not be rendered, or nil.
    mutating func declare(_ name: ArraySlice<UInt8>, _ literal: ArraySlice<UInt8>) -> String? {
        // Parameter entities inside of a value would be replaced first.
        if literal.contains(UInt8(ascii: "%")), literal.contains(UInt8(ascii: ";")) { return "a parameter entity" }
        var expansion = Expansion(bytes: [])
        guard replace(literal, into: &expansion, depth: 0, charactersOnly: true) else {
            return "entities that cannot be checked"
        }
        if expansion.bytes.contains(UInt8(ascii: "<")) { return "an entity that holds markup" }
        let name = String(decoding: name, as: UTF8.self)
        if values[name] == nil { values[name] = expansion.bytes }
        return nil
    }

    /// Returns the text with all references replaced; nil when it is too large or entities refer to themselves.
    mutating func expand(_ text: ArraySlice<UInt8>) -> Expansion? {
        guard text.contains(UInt8(ascii: "&")) else { return Expansion(bytes: Array(text)) }
        var expansion = Expansion(bytes: [])
        return replace(text, into: &expansion, depth: 0, charactersOnly: false) ? expansion : nil
    }

    private mutating func replace(
        _ text: ArraySlice<UInt8>, into expansion: inout Expansion, depth: Int, charactersOnly: Bool
    ) -> Bool {
        guard depth <= Self.maximumDepth else { return false }
        var rest = text
        while let at = rest.firstIndex(of: UInt8(ascii: "&")) {
            guard append(rest[..<at], to: &expansion) else { return false }
            let name = rest[(at + 1)...].prefix(256).prefix { $0 != UInt8(ascii: ";") }
            guard name.endIndex < rest.endIndex, rest[name.endIndex] == UInt8(ascii: ";") else {
                // A longer name hides something; otherwise it is an ampersand that begins nothing.
                guard name.count < 256, append(rest[at...at], to: &expansion) else { return false }
                rest = rest[(at + 1)...]
                continue
            }
            let reference = rest[at...name.endIndex]
            rest = rest[(name.endIndex + 1)...]
            if name.first == UInt8(ascii: "#") {
                guard append(character(name.dropFirst()), to: &expansion) else { return false }
            } else if charactersOnly {
                guard append(reference, to: &expansion) else { return false }
            } else {
                let name = String(decoding: name, as: UTF8.self)
                if let byte = Self.predefined[name] {
                    guard append([byte], to: &expansion) else { return false }
                } else if let value = values[name] {
                    // An entity without text still takes its time.
                    budget -= 1
                    guard budget >= 0, replace(value[...], into: &expansion, depth: depth + 1, charactersOnly: false)
                    else { return false }
                } else {
                    expansion.isComplete = false
                }
            }
        }
        return append(rest, to: &expansion)
    }

    private mutating func append(_ bytes: ArraySlice<UInt8>, to expansion: inout Expansion) -> Bool {
        guard bytes.count <= budget else { return false }
        budget -= bytes.count
        expansion.bytes += bytes
        return true
    }

    /// Returns the character of `65` or `x41`; empty for other numbers.
    private func character(_ number: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let isHexadecimal = number.first.map { $0 | 0x20 } == UInt8(ascii: "x")
        let digits = String(decoding: isHexadecimal ? number.dropFirst() : number, as: UTF8.self)
        guard let value = UInt32(digits, radix: isHexadecimal ? 16 : 10), let scalar = UnicodeScalar(value) else {
            return []
        }
        return ArraySlice(String(scalar).utf8)
    }
}
