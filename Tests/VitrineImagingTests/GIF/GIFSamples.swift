import VitrineImaging

/// Decoded GIF samples as comparable values.
enum GIFSamples {
    /// Red, green, blue, alpha of every pixel; an empty one is four zeros.
    static func rgba(_ decoded: DecodedImage) -> [UInt8] {
        let plane = decoded.planes[0]
        var result: [UInt8] = []
        plane.storage.withUnsafeBytes { bytes in
            for y in 0..<plane.height {
                for x in 0..<plane.width {
                    let at = y * plane.bytesPerRow + x * plane.channels
                    let alpha = plane.channels == 4 ? bytes[at + 3] : 255
                    result += alpha == 0 ? [0, 0, 0, 0] : [bytes[at], bytes[at + 1], bytes[at + 2], alpha]
                }
            }
        }
        return result
    }

    /// FNV-1a over pixels, as Fixtures/Info/make.py computes it.
    static func digest(_ decoded: DecodedImage) -> UInt64 {
        let bytes = rgba(decoded)
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for i in stride(from: 0, to: bytes.count, by: 4) {
            let value = (0..<4).reduce(UInt64(0)) { $0 | UInt64(bytes[i + $1]) << (8 * UInt64($1)) }
            hash = (hash ^ value) &* 0x100_0000_01B3
        }
        return hash
    }
}
