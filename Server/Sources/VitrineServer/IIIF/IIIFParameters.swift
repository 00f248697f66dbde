package import VitrineImaging

/// The region, size, rotation, quality and format of an image request of the IIIF Image API 2.1 or 3.0.
///
/// <https://iiif.io/api/image/3.0/#4-image-requests>
package struct IIIFParameters: Sendable, Hashable {
    /// The version of the API, whose rules about enlarging differ.
    package enum Version: Int, Sendable, CaseIterable { case two = 2, three = 3 }

    /// The part of the image.
    package enum Region: Sendable, Hashable {
        case full, square
        case pixels(x: Int, y: Int, width: Int, height: Int)
        /// Hundredths of the image's sides.
        case percent(x: Double, y: Double, width: Double, height: Double)
    }

    /// The size of the result before it is rotated.
    package enum Size: Sendable, Hashable {
        case maximum
        case percent(Double)
        case width(Int)
        case height(Int)
        case exact(Int, Int)
        case within(Int, Int)
    }

    package var version = Version.three
    package var region = Region.full
    package var size = Size.maximum
    /// Whether the size begins with `^`.
    package var isUpscaled = false
    package var isMirrored = false
    /// Clockwise: 0, 90, 180 or 270.
    package var degrees = 0
    package var quality = Quality.standard
    package var format = ImageFormat.jpeg
    /// The longest side of a result.
    package var longestSide = 8_192

    package enum Quality: String, Sendable, CaseIterable { case standard = "default", color, gray, bitonal }

    /// The formats by their names in URLs.
    package static let formats: [(name: String, format: ImageFormat)] = [
        ("jpg", .jpeg), ("png", .png), ("gif", .gif), ("webp", .webp), ("avif", .avif), ("jxl", .jxl),
    ]

    package init() {}

    // MARK: Parsing

    /// Parses the last four segments of a path, percent-decoded.
    ///
    /// - Throws: 400 for text that is not valid, 501 for rotations by other than quarters.
    package init(
        version: Version, region: Substring, size: Substring, rotation: Substring, file: Substring, longestSide: Int
    ) throws(RequestError) {
        self.version = version
        self.longestSide = longestSide
        self.region = try Self.region(region)
        try readSize(size)
        try readRotation(rotation)
        try readFile(file)
    }

    private static func invalid(_ part: String) -> RequestError {
        RequestError(400, code: "invalid-\(part)", reason: "The \(part) is not valid in the IIIF Image API.")
    }

    /// A decimal number without sign and exponent; nil for other text.
    private static func number(_ text: Substring) -> Double? {
        let parts = text.utf8.split(separator: 0x2E, maxSplits: 1, omittingEmptySubsequences: false)
        guard text.utf8.count <= 24, !text.isEmpty, text != ".",
            parts.allSatisfy({ $0.allSatisfy { (0x30...0x39).contains($0) } })
        else { return nil }
        return Double("0" + text + (text.hasSuffix(".") ? "0" : ""))
    }

    /// A whole number without sign; nil for other text.
    private static func whole(_ text: Substring) -> Int? {
        guard (1...9).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return Int(text)
    }

    private static func fields(_ text: Substring) -> [Substring] {
        text.split(separator: ",", omittingEmptySubsequences: false)
    }

    private static func region(_ text: Substring) throws(RequestError) -> Region {
        if text == "full" { return .full }
        if text == "square" { return .square }
        if text.hasPrefix("pct:") {
            let values = fields(text.dropFirst(4)).map(number)
            guard values.count == 4, let x = values[0], let y = values[1], let width = values[2],
                let height = values[3], x < 100, y < 100, width > 0, height > 0
            else { throw invalid("region") }
            return .percent(x: x, y: y, width: width, height: height)
        }
        let values = fields(text).map(whole)
        guard values.count == 4, let x = values[0], let y = values[1], let width = values[2],
            let height = values[3], width > 0, height > 0
        else { throw invalid("region") }
        return .pixels(x: x, y: y, width: width, height: height)
    }

    private mutating func readSize(_ text: Substring) throws(RequestError) {
        var rest = text
        if version == .three, rest.hasPrefix("^") {
            isUpscaled = true
            rest = rest.dropFirst()
        }
        if rest == "max" || version == .two && rest == "full" {
            size = .maximum
            return
        }
        if rest.hasPrefix("pct:") {
            guard let percent = Self.number(rest.dropFirst(4)), percent > 0, percent <= 100 || mayGrow else {
                throw Self.invalid("size")
            }
            size = .percent(percent)
            return
        }
        let isWithin = rest.hasPrefix("!")
        let sides = Self.fields(isWithin ? rest.dropFirst() : rest)
        guard sides.count == 2 else { throw Self.invalid("size") }
        let (width, height) = (Self.whole(sides[0]), Self.whole(sides[1]))
        guard width != 0, height != 0, width != nil || sides[0].isEmpty, height != nil || sides[1].isEmpty else {
            throw Self.invalid("size")
        }
        switch (width, height) {
        case (let width?, let height?): size = isWithin ? .within(width, height) : .exact(width, height)
        case (let width?, nil) where !isWithin: size = .width(width)
        case (nil, let height?) where !isWithin: size = .height(height)
        default: throw Self.invalid("size")
        }
    }

    private mutating func readRotation(_ text: Substring) throws(RequestError) {
        isMirrored = text.hasPrefix("!")
        guard let angle = Self.number(isMirrored ? text.dropFirst() : text), angle <= 360 else {
            throw Self.invalid("rotation")
        }
        guard angle.truncatingRemainder(dividingBy: 90) == 0 else {
            throw RequestError(
                501, code: "unsupported-rotation", reason: "Images are rotated by multiples of 90 degrees only.")
        }
        degrees = Int(angle) % 360
    }

    private mutating func readFile(_ text: Substring) throws(RequestError) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let quality = Quality(rawValue: String(parts[0])) else {
            throw Self.invalid("quality")
        }
        guard let format = Self.formats.first(where: { $0.name == parts[1] })?.format else {
            throw Self.invalid("format")
        }
        (self.quality, self.format) = (quality, format)
    }

    /// Whether the result may have more pixels than the region.
    private var mayGrow: Bool { isUpscaled || version == .two }

    // MARK: Sizes

    /// A part of an image and the size that it gets, before it is rotated.
    package struct Part: Sendable, Hashable {
        package var x: Int
        package var y: Int
        package var region: PixelSize
        package var size: PixelSize
    }

    /// Returns the part of an image of a known size.
    ///
    /// - Throws: 400 for a region outside of the image and for a result that is larger than it may be.
    package func part(of whole: PixelSize) throws(RequestError) -> Part {
        var part = try area(of: whole)
        let size = try scaled(part.region)
        guard max(size.width, size.height) <= longestSide else {
            throw RequestError(
                400, code: "size-too-large", reason: "The longest side of a result is \(longestSide) pixels.")
        }
        part.size = size
        return part
    }

    private func area(of whole: PixelSize) throws(RequestError) -> Part {
        func part(_ x: Double, _ y: Double, width: Double, height: Double) throws(RequestError) -> Part {
            // Percents may have up to 24 digits, so that the products are compared before they become integers.
            guard x < Double(whole.width), y < Double(whole.height), width >= 1, height >= 1 else {
                throw RequestError(
                    400, code: "region-outside", reason: "The region is outside of the image or empty.")
            }
            let size = PixelSize(
                width: Int(min(width, Double(whole.width) - x)), height: Int(min(height, Double(whole.height) - y)))
            return Part(x: Int(x), y: Int(y), region: size, size: size)
        }
        switch region {
        case .full: return Part(x: 0, y: 0, region: whole, size: whole)
        case .square:
            let side = min(whole.width, whole.height)
            let size = PixelSize(side)
            return Part(x: (whole.width - side) / 2, y: (whole.height - side) / 2, region: size, size: size)
        case .pixels(let x, let y, let width, let height):
            return try part(Double(x), Double(y), width: Double(width), height: Double(height))
        case .percent(let x, let y, let width, let height):
            let (wide, high) = (Double(whole.width) / 100, Double(whole.height) / 100)
            return try part(
                (x * wide).rounded(), (y * high).rounded(), width: (width * wide).rounded(),
                height: (height * high).rounded())
        }
    }

    private func scaled(_ region: PixelSize) throws(RequestError) -> PixelSize {
        let (width, height) = (Double(region.width), Double(region.height))
        func side(_ value: Double) -> Int { Int(min(max(1, value.rounded()), 1e9)) }
        func size(_ factor: Double) -> PixelSize {
            PixelSize(width: side(width * factor), height: side(height * factor))
        }
        let result: PixelSize
        switch self.size {
        case .maximum:
            let most = Double(longestSide) / max(width, height)
            return size(isUpscaled ? most : min(1, most))
        case .percent(let percent): result = size(percent / 100)
        case .width(let wanted): result = PixelSize(width: wanted, height: side(height * Double(wanted) / width))
        case .height(let wanted): result = PixelSize(width: side(width * Double(wanted) / height), height: wanted)
        case .exact(let wide, let high): result = PixelSize(width: wide, height: high)
        case .within(let wide, let high):
            let factor = min(Double(wide) / width, Double(high) / height)
            result = size(mayGrow ? factor : min(1, factor))
        }
        guard mayGrow || result.width <= region.width && result.height <= region.height else {
            throw RequestError(
                400, code: "size-above-region", reason: "The size is larger than the region. “^” enlarges.")
        }
        return result
    }

    // MARK: Texts

    /// The canonical form of the request for an image of a known size: the last four segments of its path.
    ///
    /// - Throws: As ``part(of:)``.
    package func canonicalPath(for whole: PixelSize) throws(RequestError) -> String {
        let part = try part(of: whole)
        let isWhole = part.region == whole
        let region = isWhole ? "full" : "\(part.x),\(part.y),\(part.region.width),\(part.region.height)"
        let turn = (isMirrored ? "!" : "") + String(degrees)
        let kind = quality == .color ? Quality.standard : quality
        let name = Self.formats.first { $0.format == format }?.name ?? "jpg"
        return "\(region)/\(canonicalSize(part))/\(turn)/\(kind.rawValue).\(name)"
    }

    private func canonicalSize(_ part: Part) -> String {
        let sides = "\(part.size.width),\(part.size.height)"
        if version == .two {
            if part.size == part.region { return "full" }
            let height = Double(part.region.height) * Double(part.size.width) / Double(part.region.width)
            return Int(max(1, height.rounded())) == part.size.height ? "\(part.size.width)," : sides
        }
        var most = self
        (most.size, most.isUpscaled) = (.maximum, false)
        if let maximum = try? most.scaled(part.region), maximum == part.size { return "max" }
        let isLarger = part.size.width > part.region.width || part.size.height > part.region.height
        return (isLarger ? "^" : "") + sides
    }

    /// A text that is the same for equal parameters only.
    var name: String { "\(version.rawValue),\(region),\(size),\(isUpscaled),\(longestSide)" }
}

extension ProcessingOptions {
    /// Options whose region and size are computed when the size of the source is known.
    ///
    /// - Parameter defaults: The options of a URL that asks for nothing. Its effects, qualities and fields of the
    ///   answer are kept; sizes and places are the parameters'.
    init(_ parameters: IIIFParameters, _ defaults: ProcessingOptions = ProcessingOptions()) {
        self.init()
        applyDefaults(defaults)
        sourceRules = SourceRules()
        sourceRules?.iiif = parameters
        format = parameters.format
        if parameters.quality == .gray || parameters.quality == .bitonal { grayscale = true }
        if parameters.quality == .bitonal { isBitonal = true }
        // The API mirrors first, the renderer rotates first.
        rotation = parameters.isMirrored ? (360 - parameters.degrees) % 360 : parameters.degrees
        flipHorizontal = parameters.isMirrored
    }

    /// Takes over all that no parameter of IIIF says.
    fileprivate mutating func applyDefaults(_ defaults: ProcessingOptions) {
        (blur, sharpen, pixelate) = (defaults.blur, defaults.sharpen, defaults.pixelate)
        (grayscale, isBitonal) = (defaults.grayscale, defaults.isBitonal)
        (watermark, background) = (defaults.watermark, defaults.background)
        (quality, formatQuality, maximumBytes) = (defaults.quality, defaults.formatQuality, defaults.maximumBytes)
        (stripMetadata, keepCopyright) = (defaults.stripMetadata, defaults.keepCopyright)
        (cacheBuster, expires) = (defaults.cacheBuster, defaults.expires)
        (fileName, isAttachment) = (defaults.fileName, defaults.isAttachment)
    }

    /// - Parameter size: The size of the image after its rotation.
    func resolved(_ parameters: IIIFParameters, forSource size: PixelSize) throws(RequestError) -> ProcessingOptions {
        var options = self
        options.sourceRules = nil
        let quarters = rotation / 90
        func turned(_ size: PixelSize) -> PixelSize {
            quarters % 2 == 0 ? size : PixelSize(width: size.height, height: size.width)
        }
        let whole = turned(size)
        let part = try parameters.part(of: whole)
        let (right, bottom) = (whole.width - part.x - part.region.width, whole.height - part.y - part.region.height)
        var (x, y) =
            switch quarters {
            case 1: (bottom, part.x)
            case 2: (right, bottom)
            case 3: (part.y, right)
            default: (part.x, part.y)
            }
        let region = turned(part.region)
        if flipHorizontal { x = size.width - x - region.width }
        options.crop = region == size ? nil : .pixels(x: x, y: y, size: region)
        options.resizingType = .force
        options.enlarge = true
        (options.width, options.height) = (turned(part.size).width, turned(part.size).height)
        return options
    }
}

/// Makes every pixel black or white.
struct BitonalStep: ImageProcessing {
    var identifier: String { "bitonal" }

    func process(_ image: PixelImage) throws(ImageError) -> PixelImage {
        var image = image
        let isPremultiplied = image.alpha == .premultiplied
        image.withUnsafeMutableBytes { bytes in
            for at in stride(from: 0, to: bytes.count - 3, by: 4) {
                let white = isPremultiplied ? bytes[at + 3] : 255
                let level = 2 * Int(bytes[at + 1]) >= Int(white) ? white : 0
                (bytes[at], bytes[at + 1], bytes[at + 2]) = (level, level, level)
            }
        }
        return image
    }
}
