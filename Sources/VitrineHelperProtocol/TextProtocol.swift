import VitrineImaging

/// The parameters of requests to `vitrine-text`.
package struct TextParameters: Sendable, Equatable {
    /// The form in which a file is drawn.
    package enum Kind: UInt8, Sendable {
        /// Letters of a font.
        case font = 0
        /// The first page of a text.
        case text = 1
        /// The lines of a text, one below the other, each in a row of ``TextParameters/row``.
        case labels = 2
    }

    /// How a line is drawn.
    package struct Row: Sendable, Equatable {
        /// Width and height in pixels. The middle of a line that is wider is left out.
        package var size = PixelSize.zero
        /// The size of the font in pixels.
        package var fontSize = 0.0
        package var isBold = false

        package init() {}
    }

    package var kind = Kind.text
    /// The file name's extension, which tells the language of a text; empty for none.
    package var fileExtension = ""
    package var target = DocumentTarget()
    /// The rows of labels; unused by the other kinds.
    package var row = Row()

    package init() {}

    package func encoded() -> [UInt8] {
        var wire = WireWriter()
        wire.write(kind.rawValue)
        wire.write(fileExtension, limit: 16)
        target.write(to: &wire)
        wire.write(row.size.width)
        wire.write(row.size.height)
        wire.write(row.fontSize)
        wire.write(row.isBold)
        return wire.bytes
    }

    /// Reads the bytes of ``encoded()``; nil for other bytes.
    package init?(_ bytes: [UInt8]) {
        var wire = WireReader(bytes)
        kind = wire.enumeration(Kind.self, or: .text)
        fileExtension = wire.text()
        target = DocumentTarget(&wire)
        row.size = PixelSize(width: wire.int(), height: wire.int())
        row.fontSize = wire.double()
        row.isBold = wire.bool()
        guard wire.isComplete else { return nil }
    }
}

/// Tells text from other content.
package enum PlainText {
    /// Bytes at the beginning that decide.
    package static let lookedAt = 4_096

    /// Whether a file that begins with these bytes is text: in UTF-8, in UTF-16 with a byte-order mark, or in an 8-bit
    /// encoding, with next to no control characters.
    package static func begins(_ bytes: some Collection<UInt8>) -> Bool {
        let start = Array(bytes.prefix(lookedAt))
        guard !start.isEmpty else { return false }
        if start.starts(with: [0xFF, 0xFE]) || start.starts(with: [0xFE, 0xFF]) {
            return decoded(start).unicodeScalars.allSatisfy { $0 != "\u{0}" && $0 != "\u{FFFD}" }
        }
        var controls = 0
        for byte in start {
            switch byte {
            case 0: return false
            case 0x07...0x0D, 0x1B: continue
            case 0x01...0x1F, 0x7F: controls += 1
            default: continue
            }
        }
        // One in a hundred: terminal logs have some.
        return controls * 100 <= start.count
    }

    /// The text of bytes in UTF-8, UTF-16 with a byte-order mark, or else Latin-1.
    package static func decoded(_ bytes: [UInt8]) -> String {
        if bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]) {
            let (high, low) = bytes[0] == 0xFF ? (1, 0) : (0, 1)
            let units = stride(from: 2, to: bytes.count - 1, by: 2).map { at -> UInt16 in
                UInt16(bytes[at + high]) << 8 | UInt16(bytes[at + low])
            }
            return String(decoding: units, as: UTF16.self)
        }
        let bytes = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes[3...] : bytes[...]
        // The last character may be cut in the middle.
        for cut in 0...min(3, bytes.count) {
            if let text = String(validating: bytes.dropLast(cut), as: UTF8.self) { return text }
        }
        return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }
}
