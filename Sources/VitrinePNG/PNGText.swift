import VitrineImageCore

/// The texts that stand in a PNG file beside its pixels, by keyword.
///
/// Source: PNG specification, third edition, §11.3.3. Texts are written as tEXt, which every reader knows and
/// which holds Latin-1 only. Uncompressed tEXt and iTXt chunks are read, anywhere in the file.
package enum PNGText: TextStoring {
    /// Texts longer than this are passed over.
    private static let maximumCount = 64 << 10
    /// Chunks looked at, as a bound on the work for hostile files.
    private static let maximumChunks = 10_000
    /// The eight bytes that begin a PNG file, and the IHDR chunk: texts are put behind them.
    private static let headerEnd = 33

    /// The texts of a file by keyword; the first one of a repeated keyword. Damaged chunks are left out, and a file of
    /// another format has no texts.
    ///
    /// - Throws: ``ImageError/unreadable(input:reason:)`` when the system reports a read error.
    package static func entries(of source: ByteSource) throws(ImageError) -> [String: String] {
        let reader = ByteReader(source)
        guard isPNG(try source.bytes(at: 0, count: 8)) else { return [:] }
        var entries: [String: String] = [:]
        var offset = 8
        for _ in 0..<maximumChunks {
            guard let length = try? reader.u32(at: offset), let type = try? reader.fourCC(at: offset &+ 4),
                type != "IEND"
            else { break }
            let data = (offset &+ 8)..<(offset &+ 8 &+ length)
            if type == "tEXt" || type == "iTXt", length <= maximumCount, let payload = payload(reader, data),
                let (keyword, text) = type == "tEXt" ? plain(payload) : international(payload),
                entries[keyword] == nil
            {
                entries[keyword] = text
            }
            offset = data.upperBound &+ 4
        }
        return entries
    }

    /// The PNG file `file` with texts in front of its pixels.
    ///
    /// - Parameters:
    ///   - entries: Keywords of 1 to 79 bytes, with their texts. Those with characters beyond Latin-1, or a zero, are
    ///     left out.
    ///   - file: A whole PNG file; anything else is returned as it is.
    package static func adding(_ entries: [(keyword: String, text: String)], to file: [UInt8]) -> [UInt8] {
        guard file.count > headerEnd, isPNG(file) else { return file }
        var chunks: [UInt8] = []
        for (keyword, text) in entries {
            guard let key = latin1(keyword), (1...79).contains(key.count), let value = latin1(text) else { continue }
            let payload = key + [0] + value
            let body = Array("tEXt".utf8) + payload
            chunks += bigEndian(UInt32(clamping: payload.count)) + body + bigEndian(CRC32.checksum(body))
        }
        return file[..<headerEnd] + chunks + file[headerEnd...]
    }

    private static func isPNG(_ bytes: [UInt8]) -> Bool {
        bytes.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])
    }

    private static func payload(_ reader: ByteReader, _ data: Range<Int>) -> [UInt8]? {
        guard let bytes = try? reader.bytes((data.lowerBound - 4)..<data.upperBound),
            let sum = try? reader.u32(at: data.upperBound), Int(CRC32.checksum(bytes)) == sum
        else { return nil }
        return Array(bytes[4...])
    }

    /// tEXt: keyword, zero, text, both in Latin-1.
    private static func plain(_ payload: [UInt8]) -> (String, String)? {
        guard let zero = payload.firstIndex(of: 0), zero > 0 else { return nil }
        return (text(latin1: payload[..<zero]), text(latin1: payload[(zero + 1)...]))
    }

    /// iTXt: keyword, zero, compression flag and method, language, zero, translated keyword, zero, text in UTF-8.
    private static func international(_ payload: [UInt8]) -> (String, String)? {
        guard let zero = payload.firstIndex(of: 0), zero > 0, zero + 2 < payload.count, payload[zero + 1] == 0,
            let language = payload[(zero + 3)...].firstIndex(of: 0),
            let translation = payload[(language + 1)...].firstIndex(of: 0)
        else { return nil }
        return (text(latin1: payload[..<zero]), String(decoding: payload[(translation + 1)...], as: UTF8.self))
    }

    private static func text(latin1 bytes: ArraySlice<UInt8>) -> String {
        String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }

    private static func latin1(_ text: String) -> [UInt8]? {
        var bytes: [UInt8] = []
        for scalar in text.unicodeScalars {
            guard scalar.value > 0, scalar.value < 256 else { return nil }
            bytes.append(UInt8(scalar.value))
        }
        return bytes
    }

    private static func bigEndian(_ value: UInt32) -> [UInt8] {
        withUnsafeBytes(of: value.bigEndian) { Array($0) }
    }
}
