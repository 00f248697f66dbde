import VitrineImageCore

/// Reads SVG documents, plain or compressed by gzip (`.svgz`).
///
/// Source: SVG 2 appendix H.5 (compressed documents); RFC 1952 (gzip).
enum SVGFile {
    /// The beginning of the document, at most `count` bytes of it.
    static func beginning(_ reader: ByteReader, count: Int) throws(ImageError) -> [UInt8] {
        guard let start = gzipHeader(reader) else { return try reader.source.bytes(at: 0, count: count) }
        var inflater = Inflater(
            InflaterRange(reader.source, start..<reader.count), wrapper: .raw, chunk: min(max(count, 64), 16 << 10),
            inputCapacity: 4 << 10)
        var result: [UInt8] = []
        // Damage behind what is there shows when the document is drawn.
        while result.count < count, let piece = try? inflater.next(), !piece.isEmpty {
            result.append(contentsOf: piece.prefix(count - result.count))
        }
        return result
    }

    /// The whole document, not compressed.
    ///
    /// - Throws: ``ImageError/limitExceeded(input:limit:actual:allowed:)`` above
    ///   ``ImageLimits/maximumDocumentBytes``; ``ImageError/corrupt(input:reason:)`` and
    ///   ``ImageError/truncated(input:)`` for damaged gzip.
    static func document(_ source: ByteSource, _ limits: ImageLimits) throws(ImageError) -> [UInt8] {
        let reader = ByteReader(source)
        try limits.require(source.count, .documentBytes, atMost: limits.maximumDocumentBytes, input: source.name)
        guard let start = gzipHeader(reader) else { return try source.allBytes() }
        // The checksum and the length of the content stand behind it.
        guard start <= source.count - 8 else { throw .truncated(input: source.name) }
        let bytes = try InflaterRange.inflate(
            start..<source.count, source, wrapper: .raw, claimed: 0, maximum: limits.maximumDocumentBytes)
        guard try reader.u32(at: source.count - 8, bigEndian: false) == Int(CRC32.checksum(bytes)) else {
            throw reader.corrupt("its compressed content has another checksum")
        }
        return bytes
    }

    /// Where the compressed data begins; nil for an input that is not compressed by gzip.
    private static func gzipHeader(_ reader: ByteReader) -> Int? {
        guard reader.count >= 18, let magic = try? reader.u32(at: 0), magic >> 8 == 0x1F8B08 else { return nil }
        let flags = magic & 0xFF
        guard flags & 0xE0 == 0 else { return nil }
        var at = 10
        if flags & 4 != 0 {
            guard let length = try? reader.u16(at: at, bigEndian: false) else { return nil }
            at += 2 + length
        }
        // A name and a comment, each with a zero at its end.
        for flag in [8, 16] where flags & flag != 0 {
            while let byte = try? reader.u8(at: at), byte != 0 { at += 1 }
            at += 1
        }
        if flags & 2 != 0 { at += 2 }
        return at < reader.count ? at : nil
    }
}

/// An SVG document as it is drawn: not compressed, without references to other files, of a size that renderers accept.
package struct SVGDrawing: CheckedDrawing {
    /// The document.
    package let bytes: [UInt8]
    /// The references that were left out, each kind once, such as "a reference to another file".
    package let leftOut: [String]

    /// The longer side that a drawing of an unusual size gets in the document: any will do, as it is scaled.
    private static let side = 4_096.0

    /// - Throws: ``ImageError/unsupported(input:reason:)`` for a document that cannot be told to keep to itself, and
    ///   the errors of reading it.
    package init(_ source: ByteSource, _ limits: ImageLimits) throws(ImageError) {
        let drawing = try SVGPolicy.keepToItself(try SVGFile.document(source, limits), input: source.name)
        bytes = Self.withUsualSize(drawing.bytes)
        leftOut = drawing.leftOut
    }

    /// Writes another size of the same shape into a root element whose sides are below one pixel, or more than
    /// renderers count.
    private static func withUsualSize(_ document: [UInt8]) -> [UInt8] {
        let prologue = SVGPrologue(document)
        guard let root = prologue.root else { return document }
        let tag = SVGTag(prologue.text, root)
        let size = SVGHeaderReader.size(tag)
        guard SVGHeaderReader.isUnusual(size) else { return document }
        let scale = side / max(size.width, size.height)
        var added = " width=\"\(max(1, size.width * scale))\" height=\"\(max(1, size.height * scale))\""
        if tag["viewBox"] == nil { added += " viewBox=\"0 0 \(size.width) \(size.height)\"" }
        var text = prologue.text
        for attribute in tag.attributes.prefix(256)
        where attribute.name.elementsEqual("width".utf8) || attribute.name.elementsEqual("height".utf8) {
            // Another name, which means nothing.
            text[attribute.name.startIndex] = UInt8(ascii: "_")
        }
        text.insert(contentsOf: added.utf8, at: tag.name.endIndex)
        return text
    }
}
