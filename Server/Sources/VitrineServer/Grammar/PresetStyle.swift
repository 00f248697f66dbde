import VitrineImaging
public import VitrinePipeline

/// Styles of the library as presets of URLs, and presets as styles.
extension ServerConfiguration {
    /// Defines a preset that has the name of a style and makes the same images.
    ///
    /// Options of URLs express the rules `limit` and `fit`, `crop` and `stretch` of images that may grow, and the
    /// processors `blur`, `sharpen` of amount 1, `pixelate` and `background`, in this order. Qualities are rounded to
    /// whole percents. The format `automatic` is that of the client's `Accept` field.
    ///
    /// - Parameter style: The style. Set ``argumentsSeparator`` before.
    /// - Throws: ``RequestError`` with the code `invalid-preset` for any other style, and `invalid-argument` for a
    ///   number that no URL may have.
    public mutating func addPreset(_ style: ImageStyle) throws(RequestError) {
        let definition = try definition(of: style)
        _ = try options(ofPreset: style.name, in: [style.name: definition])
        presets[style.name] = definition
    }

    /// Returns the style whose images a preset makes.
    ///
    /// The preset `default`, which applies to every URL, is not part of it. A format without a quality has that of this
    /// configuration.
    ///
    /// - Throws: ``RequestError`` with the code `unknown-preset`, the errors of its options, and `invalid-preset` for
    ///   options that a style does not have.
    public func style(ofPreset name: String) throws(RequestError) -> ImageStyle {
        var options = try options(ofPreset: name, in: presets)
        if let format = options.format {
            let standard = formatQuality[format] ?? RenderSettings().formatQuality[format] ?? quality
            options.quality = format == .png || format == .gif ? nil : options.quality ?? standard
        }
        // A style has all options if they are read back from it.
        guard let style = options.style(name: name), let definition = try? definition(of: style),
            let same = try? self.options(ofPreset: name, in: [name: definition]), same == options
        else { throw Self.inexpressible("The preset \(GrammarText.printable(name)) has options that no style has.") }
        return style
    }

    private static func inexpressible(_ reason: String) -> RequestError {
        RequestError(400, code: "invalid-preset", reason: reason)
    }

    private func options(
        ofPreset name: String, in presets: [String: String]
    ) throws(RequestError) -> ProcessingOptions {
        try NativeGrammar(presets: presets, argumentsSeparator: argumentsSeparator.first ?? ":").options(ofPreset: name)
    }

    private func definition(of style: ImageStyle) throws(RequestError) -> String {
        guard var options = style.options else {
            throw Self.inexpressible("Options of URLs cannot express the style \(GrammarText.printable(style.name)).")
        }
        // A preset has at least one option.
        if options.isEmpty { options = [["rs", "fit", "0", "0"]] }
        return options.map { $0.joined(separator: argumentsSeparator) }.joined(separator: "/")
    }
}

extension ImageStyle {
    /// The names and arguments of the options that express the style; nil if none do.
    fileprivate var options: [[String]]? {
        let size = resizing.size, sides = [String(size.width), String(size.height)]
        let enlarge = resizing.allowsUpscaling ? "1" : "0"
        let hasSides = size.width > 0 && size.height > 0
        var processors = processors[...], options: [[String]] = []
        switch resizing.mode {
        case .none: break
        case .limit: options = [["rs", "fit"] + sides + ["0"]]
        case .fit where hasSides: options = [["rs", "fit"] + sides + [enlarge]]
        case .stretch where resizing.allowsUpscaling && hasSides: options = [["rs", "force"] + sides + ["1"]]
        case .crop(let gravity) where resizing.allowsUpscaling && hasSides:
            options = [["rs", "fill"] + sides + ["1"], ["g"] + gravity.arguments]
        case .fill where !resizing.allowsUpscaling:
            // Images that may not grow are scaled and then cut, as one that is smaller is cut as well.
            let cut = Gravity.named.first { gravity, _ in
                processors.first == .crop(width: size.width, height: size.height, gravity: gravity)
            }
            guard let cut, hasSides else { return nil }
            processors = processors.dropFirst()
            options = [["rs", "fill"] + sides + ["0"], ["g"] + cut.gravity.arguments]
        default: return nil
        }
        var last = 0
        for processor in processors {
            guard let (place, option) = Self.option(of: processor), place > last else { return nil }
            last = place
            options.append(option)
        }
        guard let format else { return options }
        if let name = format.presetName { options.append(["f", name]) }
        if let quality = format.presetQuality {
            guard !quality.isNaN else { return nil }
            options.append(["q", String(Int(max(1, min(100, (quality * 100).rounded()))))])
        }
        return options
    }

    /// The option of a processor, and its place in the order of the work.
    private static func option(of processor: ImageProcessor) -> (place: Int, option: [String])? {
        // Its identifier has its parameters. That they are read rightly is checked by a processor made of them.
        let parts = processor.identifier.split { "(,)".contains($0) }.map(String.init)
        guard parts.count > 1, let text = parts.last else { return nil }
        let number = Double(text) ?? .nan
        switch parts[0] {
        case "blur" where processor == .blur(radius: number): return (1, ["bl", text])
        case "sharpen" where processor == .sharpen(amount: 1, radius: number): return (2, ["sh", text])
        case "pixelate":
            guard let block = Int(text), (2...8_192).contains(block), processor == .pixelate(block: block) else {
                return nil
            }
            return (3, ["pix", text])
        case "background":
            // A colour with alpha has more digits.
            guard text.count == 7, let color = PixelColor(css: text), processor == .background(color) else {
                return nil
            }
            return (4, ["bg", String(text.dropFirst())])
        default: return nil
        }
    }
}

extension ProcessingOptions {
    /// The style that makes the same images, if there is one.
    fileprivate func style(name: String) -> ImageStyle? {
        guard let gravity = Gravity.style(gravity) else { return nil }
        var style = ImageStyle(name)
        switch resizingType {
        case _ where width == 0 && height == 0: break
        case .fit where !enlarge: style.resizing = .limit(width: width, height: height)
        case .fit: style.resizing = .fit(width: width, height: height)
        case .force: style.resizing = .stretch(width: width, height: height)
        case .fill where enlarge: style.resizing = .crop(width: width, height: height, gravity: gravity)
        case .fill:
            style.resizing = .fill(width: width, height: height)
            style.resizing.allowsUpscaling = false
            style.processors = [.crop(width: width, height: height, gravity: gravity)]
        case .fillDown, .auto: return nil
        }
        if blur > 0 { style.processors.append(.blur(radius: blur)) }
        if sharpen > 0 { style.processors.append(.sharpen(amount: 1, radius: sharpen)) }
        if pixelate > 1 { style.processors.append(.pixelate(block: pixelate)) }
        if let background { style.processors.append(.background(background)) }
        let quality = quality.map { Double($0) / 100 }
        style.format =
            switch format {
            case .jpeg: quality.map { .jpeg(quality: $0) }
            case .webp: quality.map { .webp(quality: $0) }
            case .avif: quality.map { .avif(quality: $0) }
            case .jxl: quality.map { .jxl(quality: $0) }
            case .png: .png
            case .gif: .gif
            default: quality.map { .automatic(quality: $0) }
            }
        return style
    }
}

extension VitrineImaging.Gravity {
    fileprivate static let named: [(gravity: Self, anchor: ProcessingOptions.Gravity.Anchor)] = [
        (.center, .center), (.top, .north), (.bottom, .south), (.left, .west), (.right, .east),
        (.topLeft, .northWest), (.topRight, .northEast), (.bottomLeft, .southWest), (.bottomRight, .southEast),
        (.attention, .smart),
    ]

    /// The arguments of the option `g`.
    fileprivate var arguments: [String] {
        if case .focal(let x, let y) = self { return ["fp", "\(x)", "\(y)"] }
        return [Self.named.first { $0.gravity == self }?.anchor.rawValue ?? "ce"]
    }
}

extension ProcessingOptions.Gravity {
    /// The gravity of a style; nil for one with offsets.
    fileprivate static func style(_ gravity: Self) -> VitrineImaging.Gravity? {
        if gravity.anchor == .focusPoint { return .focal(x: gravity.x, y: gravity.y) }
        guard gravity.x == 0, gravity.y == 0 else { return nil }
        return VitrineImaging.Gravity.named.first { $0.anchor == gravity.anchor }?.gravity
    }
}

extension OutputFormat {
    /// The argument of the option `f`; nil for a format that depends on the picture.
    fileprivate var presetName: String? {
        switch self {
        case .jpeg: "jpg"
        case .png: "png"
        case .webp: "webp"
        case .avif: "avif"
        case .jxl: "jxl"
        case .gif: "gif"
        case .automatic: nil
        }
    }

    fileprivate var presetQuality: Double? {
        switch self {
        case .jpeg(let quality), .webp(let quality), .avif(let quality), .jxl(let quality),
            .automatic(let quality, _):
            quality
        case .png, .gif: nil
        }
    }
}
