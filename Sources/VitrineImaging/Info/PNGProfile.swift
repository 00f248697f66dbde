/// Decompression of what PNG stores deflated beside the pixels: the ICC profile and compressed texts.
enum PNGProfile {
    /// The zlib stream `compressed` unpacked; nil when it is damaged or longer than `limit` bytes.
    static func decompress(_ compressed: [UInt8], limit: Int) -> [UInt8]? {
        guard let bytes = try? Inflater.inflate(compressed, maximum: limit + 1), bytes.count <= limit else {
            return nil
        }
        return bytes
    }
}
