import Foundation
package import VitrineImaging

/// Chooses the format of an answer by the client's `Accept` field.
///
/// AVIF, JPEG XL and WebP are sent only to clients that name them, because also clients that know none of them send
/// `*/*`. The highest quality value wins; among equal ones, the order of the configuration. JPEG and PNG count as one
/// choice unless the client refuses one of them, because the image decides between them by its transparency.
package struct FormatNegotiation: Sendable {
    /// The enabled formats, the preferred one first.
    package let formats: [ImageFormat]
    private let types: [MediaType]
    /// By the set of acceptable formats, as bits by place.
    private let choices: [FormatChoice]

    private struct MediaType: Sendable {
        let subtypes: [[UInt8]]
        /// Whether only its name makes it acceptable.
        let mustBeNamed: Bool
    }

    /// The formats that can be negotiated, in the default order.
    package static let negotiable: [ImageFormat] = [.avif, .jxl, .webp, .jpeg, .png]

    /// Creates a negotiation.
    ///
    /// - Parameter formats: The preferred one first. Formats that are not in ``negotiable`` and repetitions are left
    ///   out. Without formats, nothing is negotiated.
    package init(formats: [ImageFormat] = FormatNegotiation.negotiable) {
        var enabled: [ImageFormat] = []
        for format in formats where Self.negotiable.contains(format) && !enabled.contains(format) {
            enabled.append(format)
        }
        self.formats = enabled
        types = enabled.map(Self.mediaType)
        choices = (0..<(1 << enabled.count)).map { set in Self.choice(from: enabled, set: set, best: nil) }
    }

    private static func mediaType(of format: ImageFormat) -> MediaType {
        switch format {
        case .avif: MediaType(subtypes: [Array("avif".utf8)], mustBeNamed: true)
        case .jxl: MediaType(subtypes: [Array("jxl".utf8)], mustBeNamed: true)
        case .webp: MediaType(subtypes: [Array("webp".utf8)], mustBeNamed: true)
        case .jpeg: MediaType(subtypes: [Array("jpeg".utf8), Array("jpg".utf8)], mustBeNamed: false)
        default: MediaType(subtypes: [Array("png".utf8)], mustBeNamed: false)
        }
    }

    /// Makes the choice for a set of acceptable formats, with one of them first.
    private static func choice(from formats: [ImageFormat], set: Int, best: Int?) -> FormatChoice {
        var places = formats.indices.filter { set & (1 << $0) != 0 }
        if let best, let place = places.firstIndex(of: best) { places.insert(places.remove(at: place), at: 0) }
        let acceptable = places.map { formats[$0] }
        guard let first = places.first else { return FormatChoice(preferred: nil, acceptable: [], slot: formats.count) }
        let isOpen = !mustBeNamed(formats[first]) && acceptable.contains(.jpeg) && acceptable.contains(.png)
        return FormatChoice(
            preferred: isOpen ? nil : formats[first], acceptable: acceptable, slot: isOpen ? formats.count : first)
    }

    private static func mustBeNamed(_ format: ImageFormat) -> Bool { format != .jpeg && format != .png }

    /// Returns the choice for the values of `Accept`, joined by commas; nil stands for no field.
    ///
    /// Media ranges that are malformed are left out. A field without any valid range counts as missing.
    package func choice(for accept: String?) -> FormatChoice {
        var quality = SIMD8<Int16>(repeating: -1)
        var level = SIMD8<Int16>(repeating: -1)
        var isEmpty = true
        if let accept {
            let isRead: Void? = accept.utf8.withContiguousStorageIfAvailable { bytes in
                isEmpty = !self.read(bytes, quality: &quality, level: &level)
            }
            if isRead == nil {
                Array(accept.utf8).withUnsafeBufferPointer { bytes in
                    isEmpty = !self.read(bytes, quality: &quality, level: &level)
                }
            }
        }
        var set = 0
        var best = -1
        for place in types.indices {
            let isAcceptable =
                isEmpty
                ? !types[place].mustBeNamed : quality[place] > 0 && (level[place] == 2 || !types[place].mustBeNamed)
            guard isAcceptable else { continue }
            set |= 1 << place
            if best < 0 || quality[place] > quality[best] { best = place }
        }
        let choice = choices[set]
        guard best > 0, best != set.trailingZeroBitCount else { return choice }
        return Self.choice(from: formats, set: set, best: best)
    }

    /// Whether a choice has no format that the client accepts.
    package func isUnacceptable(_ choice: FormatChoice) -> Bool { !formats.isEmpty && choice.acceptable.isEmpty }

    /// Reads media ranges (RFC 9110, section 12.5.1). Returns whether one was valid.
    private func read(
        _ bytes: UnsafeBufferPointer<UInt8>, quality: inout SIMD8<Int16>, level: inout SIMD8<Int16>
    ) -> Bool {
        var isAnyValid = false
        var position = 0
        while position < bytes.count {
            let start = position
            var isQuoted = false
            while position < bytes.count, isQuoted || bytes[position] != 0x2C {
                if bytes[position] == 0x22 { isQuoted.toggle() }
                if isQuoted, bytes[position] == 0x5C { position += 1 }
                position += 1
            }
            let range = UnsafeBufferPointer(rebasing: bytes[start..<min(position, bytes.count)])
            position += 1
            if readRange(range, quality: &quality, level: &level) { isAnyValid = true }
        }
        return isAnyValid
    }

    private func readRange(
        _ bytes: UnsafeBufferPointer<UInt8>, quality: inout SIMD8<Int16>, level: inout SIMD8<Int16>
    ) -> Bool {
        let parametersStart = bytes.firstIndex(of: 0x3B) ?? bytes.count
        let type = FieldText.trimmed(bytes, 0..<parametersStart)
        guard !type.isEmpty, let slash = bytes[type].firstIndex(of: 0x2F), slash > type.lowerBound,
            slash + 1 < type.upperBound, let value = Self.quality(in: bytes, from: parametersStart)
        else { return false }
        let subtype = UnsafeBufferPointer(rebasing: bytes[(slash + 1)..<type.upperBound])
        let main = UnsafeBufferPointer(rebasing: bytes[type.lowerBound..<slash])
        if main.count == 1, main[0] == 0x2A {
            guard subtype.count == 1, subtype[0] == 0x2A else { return false }
            note(value, level: 0, at: types.indices, quality: &quality, level: &level)
        } else if FieldText.equal(main, Self.image) {
            if subtype.count == 1, subtype[0] == 0x2A {
                note(value, level: 1, at: types.indices, quality: &quality, level: &level)
            } else {
                for place in types.indices {
                    guard types[place].subtypes.contains(where: { FieldText.equal(subtype, $0) }) else { continue }
                    note(value, level: 2, at: place..<(place + 1), quality: &quality, level: &level)
                }
            }
        }
        return true
    }

    private static let image = Array("image".utf8)

    /// The most specific range counts; of equally specific ones, the higher value.
    private func note(
        _ value: Int16, level rangeLevel: Int16, at places: Range<Int>, quality: inout SIMD8<Int16>,
        level: inout SIMD8<Int16>
    ) {
        for place in places {
            if rangeLevel > level[place] {
                level[place] = rangeLevel
                quality[place] = value
            } else if rangeLevel == level[place] {
                quality[place] = max(quality[place], value)
            }
        }
    }

    /// Returns the thousandths of parameter `q`, 1000 if there is none, nil if it is malformed.
    private static func quality(in bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Int16? {
        var position = start
        while position < bytes.count {
            position += 1
            var end = position
            var isQuoted = false
            while end < bytes.count, isQuoted || bytes[end] != 0x3B {
                if bytes[end] == 0x22 { isQuoted.toggle() }
                if isQuoted, bytes[end] == 0x5C { end += 1 }
                end += 1
            }
            end = min(end, bytes.count)
            let parameter = FieldText.trimmed(bytes, position..<end)
            position = end
            guard parameter.count >= 2, bytes[parameter.lowerBound] | 0x20 == 0x71,
                bytes[parameter.lowerBound + 1] == 0x3D
            else { continue }
            return thousandths(UnsafeBufferPointer(rebasing: bytes[parameter.dropFirst(2)]))
        }
        return 1000
    }

    /// Parses `0`, `0.25` or `1.000`.
    private static func thousandths(_ bytes: UnsafeBufferPointer<UInt8>) -> Int16? {
        guard (1...5).contains(bytes.count), bytes[0] == 0x30 || bytes[0] == 0x31 else { return nil }
        var value = Int16(bytes[0] - 0x30) * 1000
        guard bytes.count > 1 else { return value }
        guard bytes[1] == 0x2E else { return nil }
        var unit: Int16 = 100
        for byte in bytes.dropFirst(2) {
            guard (0x30...0x39).contains(byte) else { return nil }
            value += Int16(byte - 0x30) * unit
            unit /= 10
        }
        return value <= 1000 ? value : nil
    }
}

/// Sets pixel ratio, width and quality by the client's hints, for URLs that leave them open. Off by default.
///
/// Values are rounded up to few different ones, because each makes a result of its own. Every field that is used is
/// listed in `Accept-CH` and `Vary`.
package struct ClientHints: Sendable, Hashable {
    /// Whether `Sec-CH-DPR` and `DPR` set the device pixel ratio, if the URL has none. Default: true.
    package var usesPixelRatio = true
    /// Whether `Sec-CH-Width` and `Width` set the width, if the URL has neither width nor height. Default: true.
    package var usesWidth = true
    /// Whether `Save-Data: on` lowers the quality, if the URL has none. Default: true.
    package var usesSaveData = true
    /// The ratios that are used, ascending. Default: 1, 1.5, 2, 3, 4.
    package var pixelRatios = [1, 1.5, 2, 3, 4.0]
    /// Widths are multiples of this. Default: 64.
    package var widthStep = 64
    /// Greater widths count as this. Default: 4096.
    package var maximumWidth = 4096
    /// The quality under `Save-Data`, from 1 to 100. Default: 50.
    package var savingQuality = 50

    package init() {}

    /// The names for `Accept-CH`.
    var names: [String] {
        (usesPixelRatio ? ["Sec-CH-DPR", "DPR"] : []) + (usesWidth ? ["Sec-CH-Width", "Width"] : [])
            + (usesSaveData ? ["Save-Data"] : [])
    }

    /// Hints after rounding.
    package struct Values: Hashable {
        package var pixelRatio: Double?
        package var width: Int?
        package var savesData = false

        package init(pixelRatio: Double? = nil, width: Int? = nil, savesData: Bool = false) {
            (self.pixelRatio, self.width, self.savesData) = (pixelRatio, width, savesData)
        }

        package var isEmpty: Bool { pixelRatio == nil && width == nil && !savesData }
    }

    package func values(in fields: RequestFields) -> Values {
        var values = Values()
        if usesPixelRatio, let text = fields.pixelRatio, let ratio = Double(text), ratio.isFinite, ratio > 0 {
            values.pixelRatio = pixelRatios.first { $0 >= ratio } ?? pixelRatios.last
        }
        if usesWidth, let text = fields.width, let width = Double(text), width.isFinite, width >= 1 {
            let limited = Int(min(width, Double(maximumWidth)).rounded(.up))
            let step = max(1, widthStep)
            values.width = min((limited + step - 1) / step * step, max(1, maximumWidth))
        }
        if usesSaveData, let text = fields.saveData, text.lowercased() == "on" { values.savesData = true }
        return values
    }

    package func apply(_ values: Values, to url: ImageURL) -> ImageURL {
        var url = url
        if let ratio = values.pixelRatio, url.options.dpr == 1 { url.options.dpr = ratio }
        if let width = values.width, url.options.width == 0, url.options.height == 0 {
            // The hint counts device pixels.
            url.options.width = max(1, Int((Double(width) / url.options.dpr).rounded(.up)))
        }
        if values.savesData, url.options.quality == nil, url.options.formatQuality.isEmpty {
            url.options.quality = savingQuality
        }
        return url
    }
}
