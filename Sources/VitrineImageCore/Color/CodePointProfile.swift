/// An ICC profile made from the code points (ITU-T H.273 tables 2 and 3) by which video formats name a colour space.
///
/// It is a version 4 matrix profile (ICC.1:2022 §8.3) of about half a kilobyte, or a whole one for PQ and HLG. These
/// have the tag `cicp` (§9.2.17), by which ``HighRangeColors`` knows them.
package struct CodePointProfile {
    package let bytes: [UInt8]

    /// nil for colours that equal sRGB at eight bits (BT.709 and BT.601 primaries with the usual curves, or nothing
    /// specified), and for transfer functions that have no curve here (logarithmic ones).
    ///
    /// - Parameters:
    ///   - primaries: The code point of the primaries. PQ and HLG without any have those of BT.2020.
    ///   - transfer: The code point of the transfer function.
    ///   - light: The light of a still image in PQ or HLG, if it states that.
    package init?(primaries: Int, transfer: Int, light: ContentLight? = nil) {
        if let high = HighRangeColors.Transfer(rawValue: transfer) {
            let space = primaries == 2 || primaries == 0 ? Primaries.bt2020 : Primaries(codePoint: primaries)
            guard let space else { return nil }
            let code = space.codePoint
            var tags = [("cicp", Array("cicp".utf8) + Self.big(0) + [code, UInt8(transfer), 0, 1])]
            if let light {
                func units(_ value: Double) -> [UInt8] { Self.big(UInt32(max(0, min(4e9, value * 10_000)))) }
                tags.append(("clli", Array("ui32".utf8) + Self.big(0) + units(light.maximum) + units(light.average)))
            }
            bytes = Self.profile(space, trc: Self.table(high), more: tags)
            return
        }
        guard let curve = Curve(transfer: transfer), let space = Primaries(codePoint: primaries) else { return nil }
        if space.codePoint == 1, curve.isVideo { return nil }
        bytes = Self.profile(space, trc: Self.parametric(curve.parameters), more: [])
    }

    /// Whether colours of these code points are known here: by a profile, or as sRGB.
    package static func knows(primaries: Int, transfer: Int) -> Bool {
        (Primaries(codePoint: primaries) != nil)
            && (HighRangeColors.Transfer(rawValue: transfer) != nil || Curve(transfer: transfer) != nil)
    }

    /// A transfer function as the parameters g, a, b, c, d of an ICC parametric curve of type 3 (§10.18), or of type 0
    /// with only g.
    private struct Curve {
        let parameters: [Double]
        /// Whether it is sRGB's, or so near that images made for screens mean sRGB by it.
        let isVideo: Bool

        init?(transfer: Int) {
            switch transfer {
            case 0, 2, 13:
                parameters = [2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045]
                isVideo = true
            case 1, 6, 14, 15:
                parameters = [1 / 0.45, 1 / 1.099, 0.099 / 1.099, 1 / 4.5, 0.081]
                isVideo = true
            case 4: (parameters, isVideo) = ([2.2], false)
            case 5: (parameters, isVideo) = ([2.8], false)
            case 8: (parameters, isVideo) = ([1], false)
            default: return nil
            }
        }
    }

    /// XYZ of red, green and blue, adapted to D50 by the Bradford transform: the columns of the matrix, computed from
    /// the chromaticities of ITU-R BT.709-6, BT.2020-2 and SMPTE EG 432-1 with white D65 (0.3127, 0.3290).
    struct Primaries {
        let codePoint: UInt8
        let red, green, blue: [Double]

        /// nil for primaries that are not known here. Those of BT.601 and unspecified ones count as those of BT.709.
        init?(codePoint: Int) {
            switch codePoint {
            case 9: self = .bt2020
            case 12: self = .displayP3
            case 0, 1, 2, 5, 6: self = .bt709
            default: return nil
            }
        }

        private init(codePoint: UInt8, red: [Double], green: [Double], blue: [Double]) {
            (self.codePoint, self.red, self.green, self.blue) = (codePoint, red, green, blue)
        }

        /// XYZ of each colour.
        var columns: [SIMD4<Float>] {
            [red, green, blue].map { SIMD4<Float>(SIMD4<Double>($0[0], $0[1], $0[2], 0)) }
        }

        static let bt709 = Primaries(
            codePoint: 1,
            red: [0.436028, 0.222479, 0.013926], green: [0.385101, 0.716897, 0.097092],
            blue: [0.143091, 0.060624, 0.714191])
        static let displayP3 = Primaries(
            codePoint: 12,
            red: [0.515102, 0.241182, -0.001049], green: [0.291965, 0.692236, 0.041882],
            blue: [0.157153, 0.066582, 0.784378])
        static let bt2020 = Primaries(
            codePoint: 9,
            red: [0.673459, 0.279033, -0.001931], green: [0.165661, 0.675338, 0.029979],
            blue: [0.125100, 0.045629, 0.797162])
    }

    private static func profile(_ primaries: Primaries, trc: [UInt8], more: [(String, [UInt8])]) -> [UInt8] {
        let name = localized("Coded colour space")
        let tags: [(String, [UInt8])] = [
            ("desc", name), ("cprt", localized("No rights reserved")), ("wtpt", xyz([0.964203, 1, 0.824905])),
            ("rXYZ", xyz(primaries.red)), ("gXYZ", xyz(primaries.green)), ("bXYZ", xyz(primaries.blue)),
            ("rTRC", trc), ("gTRC", trc), ("bTRC", trc),
        ] + more
        var table = big(UInt32(tags.count))
        var data: [UInt8] = []
        let start = 128 + 4 + 12 * tags.count
        for (signature, content) in tags {
            table += Array(signature.utf8) + big(UInt32(start + data.count)) + big(UInt32(content.count))
            data += content + [UInt8](repeating: 0, count: (4 - content.count % 4) % 4)
        }
        var header = [UInt8](repeating: 0, count: 128)
        func put(_ bytes: [UInt8], at offset: Int) {
            header.replaceSubrange(offset..<(offset + bytes.count), with: bytes)
        }
        put(big(UInt32(start + data.count)), at: 0)
        put([4, 0x40, 0, 0], at: 8)
        put(Array("mntrRGB XYZ ".utf8), at: 12)
        put(big(0x07E8_0001), at: 24)
        put(big(0x0001_0000), at: 28)
        put(Array("acsp".utf8), at: 36)
        put(Array(xyz([0.964203, 1, 0.824905])[8...]), at: 68)
        return header + table + data
    }

    private static func big(_ value: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * UInt32($0))) }
    }

    private static func fixed(_ value: Double) -> [UInt8] {
        big(UInt32(bitPattern: Int32((value * 65_536).rounded())))
    }

    private static func xyz(_ values: [Double]) -> [UInt8] { Array("XYZ ".utf8) + big(0) + values.flatMap(fixed) }

    private static func parametric(_ values: [Double]) -> [UInt8] {
        Array("para".utf8) + big(0) + [0, values.count == 1 ? 0 : 3, 0, 0] + values.flatMap(fixed)
    }

    private static func table(_ transfer: HighRangeColors.Transfer) -> [UInt8] {
        let values = (0..<256).flatMap { level -> [UInt8] in
            let value = UInt16((HighRangeColors.light(Double(level) / 255, transfer) * 65_535).rounded())
            return [UInt8(value >> 8), UInt8(value & 0xFF)]
        }
        return Array("curv".utf8) + big(0) + big(256) + values
    }

    private static func localized(_ text: String) -> [UInt8] {
        let characters = text.utf16.flatMap { [UInt8(truncatingIfNeeded: $0 >> 8), UInt8(truncatingIfNeeded: $0)] }
        return Array("mluc".utf8) + big(0) + big(1) + big(12) + Array("enUS".utf8)
            + big(UInt32(characters.count)) + big(28) + characters
    }
}

/// Colours that a file states by code points instead of a profile.
package struct CodedColors: Sendable, Hashable {
    package var primaries: Int
    package var transfer: Int
    /// Whether they go before an ICC profile in the same file.
    package var precedesProfile = false

    package init(primaries: Int, transfer: Int) {
        (self.primaries, self.transfer) = (primaries, transfer)
    }
}

extension ImageInfo {
    /// The profile in which the samples are: embedded, or made from code points; nil for sRGB.
    package var samplesProfile: [UInt8]? {
        guard let codedColors else { return colorProfile }
        let (primaries, transfer) = (codedColors.primaries, codedColors.transfer)
        if let colorProfile,
            !codedColors.precedesProfile || !CodePointProfile.knows(primaries: primaries, transfer: transfer)
        {
            return colorProfile
        }
        // Of an animation, the average is that of its brightest frame.
        return CodePointProfile(
            primaries: primaries, transfer: transfer, light: isAnimated ? nil : contentLight)?.bytes
    }
}
