#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import CVitrineFFmpeg
import VitrineImaging

/// Converts finished pictures of wide gamut or high dynamic range to sRGB.
///
/// Works on the few pixels of the result, whose 8 bits still distinguish the encoded values of the film. Light is
/// relative to diffuse white at 203 cd/m² (ITU-R BT.2408, 2.2). Brighter light is compressed below display white by one
/// factor for all three colours, which preserves hues.
struct DisplayColors {
    /// Linear light of an encoded value; 1 is diffuse white.
    private let linear: [Float]
    /// The matrix from the film's primaries to those of sRGB, by rows.
    private let matrix: (SIMD4<Float>, SIMD4<Float>, SIMD4<Float>)
    private let isHighRange: Bool

    /// The brightness from which light is compressed.
    private static let knee: Float = 0.5
    private static let diffuseWhite = 203.0

    /// Returns nil for frames close to sRGB. Code points of ITU-T H.273, tables 2 and 3.
    init?(primaries: Int32, transfer: Int32) {
        let isPQ = transfer == 16
        let isHLG = transfer == 18
        isHighRange = isPQ || isHLG
        guard isHighRange || primaries == 9 || primaries == 12 else { return nil }
        linear = (0..<256).map { code in
            let value = Double(code) / 255
            return Float(isPQ ? Self.perceptual(value) : isHLG ? Self.hybridLog(value) : Self.standard(value))
        }
        switch primaries {
        case 9:
            // ITU-R BT.2087, annex 1, inverted.
            matrix = ([1.6605, -0.5876, -0.0728, 0], [-0.1246, 1.1329, -0.0083, 0], [-0.0182, -0.1006, 1.1187, 0])
        case 12:
            // From the chromaticities of SMPTE EG 432-1 (Display P3) and IEC 61966-2-1.
            matrix = ([1.2249, -0.2247, 0, 0], [-0.0420, 1.0419, 0, 0], [-0.0197, -0.0786, 1.0979, 0])
        default:
            matrix = ([1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0])
        }
    }

    /// Converts all pixels and keeps alpha.
    func apply(to image: inout Image) {
        let (width, height, stride) = (image.width, image.height, image.bytesPerRow)
        let encoded = Self.encoded
        image.withUnsafeMutableBytes { bytes in
            linear.withUnsafeBufferPointer { linear in
                encoded.withUnsafeBufferPointer { encoded in
                    for y in 0..<height {
                        let row = UnsafeMutableRawBufferPointer(rebasing: bytes[(y * stride)...].prefix(width * 4))
                        convert(row, linear, encoded)
                    }
                }
            }
        }
    }

    private func convert(
        _ row: UnsafeMutableRawBufferPointer, _ linear: UnsafeBufferPointer<Float>,
        _ encoded: UnsafeBufferPointer<UInt8>
    ) {
        let most = Float(Self.steps - 1)
        for x in stride(from: 0, to: row.count, by: 4) {
            var light = SIMD4<Float>(
                linear[Int(row[x])], linear[Int(row[x + 1])], linear[Int(row[x + 2])], 0)
            light = SIMD4((matrix.0 * light).sum(), (matrix.1 * light).sum(), (matrix.2 * light).sum(), 0)
            light.clamp(lowerBound: SIMD4(repeating: 0), upperBound: SIMD4(repeating: 100))
            let peak = light.max()
            if isHighRange, peak > Self.knee {
                let bent = 1 - (1 - Self.knee) * expf(-(peak - Self.knee) / (1 - Self.knee))
                light *= bent / peak
            }
            light.clamp(lowerBound: SIMD4(repeating: 0), upperBound: SIMD4(repeating: 1))
            for channel in 0..<3 { row[x + channel] = encoded[Int(light[channel] * most + 0.5)] }
        }
    }

    // MARK: Curves

    private static let steps = 16_384

    /// Linear light to sRGB (IEC 61966-2-1).
    private static let encoded: [UInt8] = (0..<steps).map { step in
        let light = Double(step) / Double(steps - 1)
        let value = light <= 0.0031308 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055
        return UInt8(max(0, min(255, (value * 255).rounded())))
    }

    private static func standard(_ value: Double) -> Double {
        value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
    }

    /// SMPTE ST 2084, equation 4.1.
    private static func perceptual(_ value: Double) -> Double {
        let root = pow(value, 1 / 78.84375)
        let light = pow(max(0, root - 0.8359375) / (18.8515625 - 18.6875 * root), 1 / 0.1593017578125)
        return light * 10_000 / diffuseWhite
    }

    /// ITU-R BT.2100, table 5, on a display of 1,000 cd/m², whose gamma of 1.2 is taken for each colour by itself.
    private static func hybridLog(_ value: Double) -> Double {
        let scene = value <= 0.5 ? value * value / 3 : (exp((value - 0.55991073) / 0.17883277) + 0.28466892) / 12
        return pow(scene, 1.2) * 1_000 / diffuseWhite
    }
}
