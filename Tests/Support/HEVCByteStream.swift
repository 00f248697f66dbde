/// A picture of HEVC in a byte stream with start codes (ITU-T H.265 annex B), in the form that HEIF files have.
public struct HEVCByteStream {
    /// A configuration with the parameter sets (hvcC, ISO/IEC 14496-15 §8.3.3).
    public private(set) var configuration: [UInt8]
    /// All other NAL units, with lengths of four bytes in front.
    public private(set) var stream: [UInt8] = []

    public init(_ bytes: [UInt8]) {
        configuration = [UInt8](repeating: 0, count: 22)
        configuration[21] = 3
        var sets: [UInt8] = []
        var count = 0
        for unit in Self.units(bytes) where unit.count > 2 {
            switch unit[0] >> 1 & 0x3F {
            case 32: continue
            case 33, 34:
                guard count < 255, unit.count < 1 << 16 else { continue }
                sets += [unit[0] >> 1 & 0x3F, 0, 1, UInt8(unit.count >> 8), UInt8(unit.count & 255)] + unit
                count += 1
            default:
                stream += (0..<4).map { UInt8(truncatingIfNeeded: unit.count >> (24 - 8 * $0)) } + unit
            }
        }
        configuration.append(UInt8(count))
        configuration += sets
    }

    private static func units(_ bytes: [UInt8]) -> [[UInt8]] {
        var units: [[UInt8]] = []
        var start: Int?
        func end(at i: Int) {
            guard let start else { return }
            var end = i
            while end > start, bytes[end - 1] == 0 { end -= 1 }
            units.append(Array(bytes[start..<end]))
        }
        var i = 0
        while i + 2 < bytes.count {
            if bytes[i] == 0, bytes[i + 1] == 0, bytes[i + 2] == 1 {
                end(at: i)
                start = i + 3
                i += 3
            } else {
                i += 1
            }
        }
        end(at: bytes.count)
        return units
    }
}
