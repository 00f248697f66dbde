/// Turns stored rows of a bitmap into red, green, blue and, with alpha, a fourth channel.
struct BMPRowConverter {
    private let header: BMPHeader
    private let channels: Int
    private let fields: [Field]

    /// One channel of a masked word.
    private struct Field {
        let mask: UInt32
        let shift: UInt32
        /// Largest value; at least 1.
        let peak: UInt64
        let isPresent: Bool

        init(_ mask: UInt32) {
            self.mask = mask
            isPresent = mask != 0
            shift = mask == 0 ? 0 : UInt32(mask.trailingZeroBitCount)
            peak = mask == 0 ? 1 : UInt64(mask >> shift)
        }

        /// Stretched to 0…255, rounded.
        @inline(__always)
        func value(of word: UInt32) -> UInt8 {
            let value = UInt64((word & mask) &>> shift)
            return peak == 255
                ? UInt8(truncatingIfNeeded: value) : UInt8(truncatingIfNeeded: (value &* 255 &+ peak / 2) / peak)
        }
    }

    /// - Parameter channels: 3, or 4 for alpha, which is opaque where the bitmap has none.
    init(_ header: BMPHeader, channels: Int) {
        self.header = header
        self.channels = channels
        if case .masked(let masks) = header.packing { fields = masks.map(Field.init) } else { fields = [] }
    }

    /// Converts one row; `row` has ``BMPHeader/bytesPerRow`` bytes, or for run-length coded bitmaps one index a byte.
    func convert(_ row: UnsafePointer<UInt8>, into target: UnsafeMutablePointer<UInt8>) {
        let width = header.size.width
        switch header.packing {
        case .indexed: indexed(row, bits: header.bits, into: target, width)
        case .runLength: indexed(row, bits: 8, into: target, width)
        case .bytes:
            var (s, t) = (row, target)
            for _ in 0..<width {
                t[0] = s[2]
                t[1] = s[1]
                t[2] = s[0]
                if channels == 4 { t[3] = 255 }
                s += 3
                t += channels
            }
        case .masked:
            if header.bits == 16 {
                masked(row, into: target, width) { UInt32($0[0]) | UInt32($0[1]) << 8 }
            } else {
                masked(row, into: target, width) {
                    UInt32($0[0]) | UInt32($0[1]) << 8 | UInt32($0[2]) << 16 | UInt32($0[3]) << 24
                }
            }
        }
    }

    private func indexed(
        _ row: UnsafePointer<UInt8>, bits: Int, into target: UnsafeMutablePointer<UInt8>, _ width: Int
    ) {
        header.palette.withUnsafeBufferPointer { palette in
            var t = target
            let perByte = 8 / bits
            let mask = (1 << bits) - 1
            for x in 0..<width {
                let shift = 8 - bits - (x % perByte) * bits
                let index = (Int(row[x / perByte]) >> shift) & mask
                t[0] = palette[3 * index]
                t[1] = palette[3 * index + 1]
                t[2] = palette[3 * index + 2]
                if channels == 4 { t[3] = 255 }
                t += channels
            }
        }
    }

    @inline(__always)
    private func masked(
        _ row: UnsafePointer<UInt8>, into target: UnsafeMutablePointer<UInt8>, _ width: Int,
        word: (UnsafePointer<UInt8>) -> UInt32
    ) {
        let (red, green, blue, alpha) = (fields[0], fields[1], fields[2], fields[3])
        let step = header.bits / 8
        var (s, t) = (row, target)
        for _ in 0..<width {
            let value = word(s)
            t[0] = red.value(of: value)
            t[1] = green.value(of: value)
            t[2] = blue.value(of: value)
            if channels == 4 { t[3] = alpha.isPresent ? alpha.value(of: value) : 255 }
            s += step
            t += channels
        }
    }
}
