import VitrineImaging

/// Tells films from other files by how they begin.
package enum VideoSignature {
    /// Bytes that are enough: three packets of a transport stream.
    package static let length = 3 * 192

    /// Whether a file that begins so is a container of films. One with sound alone can be taken for one.
    package static func matches(_ prefix: [UInt8]) -> Bool {
        func has(_ text: String, at offset: Int) -> Bool {
            prefix.count >= offset + text.utf8.count && prefix[offset...].starts(with: text.utf8)
        }
        guard prefix.count >= 12 else { return false }
        if has("ftyp", at: 4) {
            // Pictures and sound use the same boxes (ISO/IEC 14496-12 §4.3).
            return ImageFormat.detect(prefix) == nil && !has("M4A", at: 8) && !has("M4B", at: 8) && !has("jxl ", at: 8)
        }
        // QuickTime files of before there was `ftyp`, which begin with any box.
        if ["moov", "mdat", "wide", "pnot"].contains(where: { has($0, at: 4) }) { return true }
        if has("RIFF", at: 0) { return has("AVI ", at: 8) }
        if has("FLV\u{1}", at: 0) { return true }
        switch (prefix[0], prefix[1], prefix[2], prefix[3]) {
        case (0x1A, 0x45, 0xDF, 0xA3): return true  // Matroska and WebM (RFC 8794, EBML)
        case (0x30, 0x26, 0xB2, 0x75): return true  // ASF
        case (0, 0, 1, 0xBA), (0, 0, 1, 0xB3): return true  // MPEG program and video streams
        default: break
        }
        if has("OggS", at: 0) { return has("\u{1}video", at: 28) || prefix.dropFirst(28).starts(with: theora) }
        // A transport stream: a synchronisation byte every 188 bytes, behind 4 bytes of time in cameras' files.
        return [(0, 188), (4, 192)].contains { start, packet in
            (0..<3).allSatisfy { start + $0 * packet < prefix.count && prefix[start + $0 * packet] == 0x47 }
        }
    }

    private static let theora: [UInt8] = [0x80] + Array("theora".utf8)
}
