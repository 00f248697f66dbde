/// The IHDR chunk of a PNG file (PNG specification, third edition, §11.2.1).
struct PNGHeader: Sendable, Hashable {
    /// What the samples of a pixel are, with the values of the file.
    enum ColorType: UInt8, Sendable {
        case gray = 0
        case rgb = 2
        case palette = 3
        case grayAlpha = 4
        case rgbAlpha = 6

        /// Samples a pixel as stored.
        var channels: Int {
            switch self {
            case .gray, .palette: 1
            case .grayAlpha: 2
            case .rgb: 3
            case .rgbAlpha: 4
            }
        }
    }

    /// The length of the chunk's payload.
    static let byteCount = 13

    var width: Int
    var height: Int
    /// Bits a sample: 1, 2, 4, 8 or 16.
    let depth: Int
    let colorType: ColorType
    let isInterlaced: Bool

    /// Reads the payload; nil if it breaks a rule.
    init?(_ bytes: [UInt8]) {
        guard bytes.count == Self.byteCount, let colorType = ColorType(rawValue: bytes[9]) else { return nil }
        width = Int(bytes.bigEndian32(at: 0))
        height = Int(bytes.bigEndian32(at: 4))
        depth = Int(bytes[8])
        self.colorType = colorType
        isInterlaced = bytes[12] == 1
        let depths: [Int] =
            switch colorType {
            case .gray: [1, 2, 4, 8, 16]
            case .palette: [1, 2, 4, 8]
            default: [8, 16]
            }
        guard depths.contains(depth), bytes[10] == 0, bytes[11] == 0, bytes[12] <= 1 else { return nil }
        guard (1...0x7FFF_FFFF).contains(width), (1...0x7FFF_FFFF).contains(height) else { return nil }
    }

    /// Bits a pixel, at most 64.
    var bitsPerPixel: Int { depth * colorType.channels }
    /// How far back filters look, in bytes.
    var filterDistance: Int { max(1, bitsPerPixel / 8) }

    /// Bytes of a row of `width` pixels, without its filter byte. Widths have 31 bits, so this cannot overflow.
    func rowBytes(width: Int) -> Int { (width * bitsPerPixel + 7) / 8 }
}

extension [UInt8] {
    /// Four bytes as a number, the most significant first; 0 where there are none.
    func bigEndian32(at offset: Int) -> UInt32 {
        guard offset >= 0, offset <= count - 4 else { return 0 }
        return UInt32(self[offset]) << 24 | UInt32(self[offset + 1]) << 16 | UInt32(self[offset + 2]) << 8
            | UInt32(self[offset + 3])
    }

    /// Two bytes as a number, the most significant first; 0 where there are none.
    func bigEndian16(at offset: Int) -> UInt16 {
        guard offset >= 0, offset <= count - 2 else { return 0 }
        return UInt16(self[offset]) << 8 | UInt16(self[offset + 1])
    }
}
