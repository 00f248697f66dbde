import VitrineImageCore

extension Codec {
    /// JPEG XL: small sizes in Swift; others by libjxl in `vitrine-worker`.
    package static let jxl = Codec(.jxl, header: JXLHeaderReader.self, decoders: [JXLLowFrequencyDecoder()]) {
        reader throws(ImageError) in
        guard reader.count >= 2 else { return nil }
        let isCodestream = try reader.u16(at: 0) == 0xFF0A
        return isCodestream || reader.matches("\0\0\0\u{C}JXL \r\n", at: 0) ? .jxl : nil
    }
}
