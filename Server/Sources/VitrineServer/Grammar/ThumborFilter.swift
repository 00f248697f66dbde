import VitrineImaging

/// A filter of thumbor's URLs.
package enum ThumborFilter: String, CaseIterable {
    case quality, format, blur, sharpen, grayscale, fill, focal, rotate, proportion, upscale, stretch
    case backgroundColor = "background_color"
    case maximumBytes = "max_bytes"
    case noUpscale = "no_upscale"
    case stripExif = "strip_exif"
    case stripICC = "strip_icc"

    /// Filters whose absence changes no image that is asked for: they choose a lifetime or a format, which this
    /// server chooses by its own rules, or take the first frame, which it does always.
    package static let ignored: Set<String> = ["max_age", "autojpg", "cover"]
    /// Filters of thumbor that this server does not have.
    package static let unsupported: Set<String> = [
        "brightness", "contrast", "saturation", "colorize", "convolution", "curve", "equalize", "extract_focal",
        "frame", "noise", "red_eye", "redeye", "rgb", "round_corner", "watermark", "distributed_collage", "duotone",
    ]

    /// Applies filters of the form `name(argument,argument):name()`.
    ///
    /// - Throws: ``RequestError`` that names the filter, for one that is unknown, not supported or has other arguments.
    static func apply(_ encoded: Substring, isFitIn: Bool, to url: inout ImageURL) throws(RequestError) {
        guard !encoded.isEmpty else { return }
        guard let text = GrammarText.percentDecoded(encoded) else {
            throw .invalidArgument("filters", "text with valid percent escapes and without control characters")
        }
        // The last one keeps its parenthesis.
        var calls = text.split(separator: "):", omittingEmptySubsequences: false)[...]
        if let last = calls.popLast() {
            guard last.hasSuffix(")") else { throw .invalidArgument("filters", "filters of the form name(arguments)") }
            calls.append(last.dropLast())
        }
        for call in calls {
            let parts = call.split(separator: "(", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else {
                throw .invalidArgument("filters", "filters of the form name(arguments)")
            }
            guard let filter = ThumborFilter(rawValue: String(parts[0])) else {
                try checkOther(parts[0], in: &url)
                continue
            }
            try filter.apply(filter.arguments(parts[1]), isFitIn: isFitIn, to: &url)
        }
    }

    private static func checkOther(_ name: Substring, in url: inout ImageURL) throws(RequestError) {
        let name = String(name)
        guard !ignored.contains(name) else {
            url.ignored.append(name)
            return
        }
        guard unsupported.contains(name) else { throw .unknownOption(name) }
        throw .unsupportedOption(name)
    }

    private func apply(_ arguments: OptionArguments, isFitIn: Bool, to url: inout ImageURL) throws(RequestError) {
        switch self {
        case .quality:
            let quality = try arguments.integer(0, 0...100)
            url.options.quality = quality > 0 ? quality : nil
        case .format: url.options.format = try GrammarText.resultFormat(arguments[0], option: rawValue)
        case .maximumBytes: url.options.maximumBytes = try arguments.integer(0, 0...2_147_483_647)
        case .backgroundColor: url.options.background = try arguments.color(0)
        case .blur:
            let radius = try arguments.number(0, 0...500)
            let sigma = try arguments.has(1) ? arguments.number(1, 0...500) : 0
            url.options.blur = sigma > 0 ? sigma : radius
        case .sharpen:
            let amount = try arguments.number(0, 0...10)
            let radius = try arguments.number(1, 0...500)
            url.options.sharpen = amount > 0 ? radius : 0
            url.ignored.append("sharpen.amount")
        case .grayscale: url.options.grayscale = true
        case .rotate:
            let angle = try arguments.integer(0, -3_600...3_600)
            guard angle % 90 == 0 else { throw .invalidArgument(rawValue, "a multiple of 90 degrees") }
            // Thumbor counts counter-clockwise.
            url.options.rotation = (360 - angle % 360) % 360
        case .proportion:
            let factor = try arguments.number(0, 0...1)
            guard factor > 0 else { throw .invalidArgument(rawValue, "a number above 0 and at most 1") }
            (url.options.zoomX, url.options.zoomY) = (factor, factor)
        case .upscale: url.options.enlarge = true
        case .noUpscale: url.options.enlarge = false
        case .stretch: if !isFitIn { url.options.resizingType = .force }
        case .stripExif: url.options.stripMetadata = true
        case .stripICC: break  // Results are always sRGB without a profile.
        case .fill: try fill(arguments, &url.options)
        case .focal:
            let region = try region(arguments)
            url.options.sourceRules?.focusRegions.append(region)
        }
    }

    private func fill(_ arguments: OptionArguments, _ options: inout ProcessingOptions) throws(RequestError) {
        guard !["auto", "blur"].contains(arguments[0]) else {
            throw .unsupportedOption("fill(\(arguments[0]))")
        }
        if arguments.has(1) { _ = try arguments.flag(1) }
        options.extend = ProcessingOptions.Gravity()
        options.background = try arguments[0] == "transparent" ? nil : arguments.color(0)
    }

    /// `left x top : right x bottom`
    private func region(_ arguments: OptionArguments) throws(RequestError) -> ProcessingOptions.SourceRules.Region {
        let numbers = arguments[0].split(whereSeparator: { $0 == "x" || $0 == ":" }).compactMap { Int($0) }
        let written = numbers.count == 4 ? "\(numbers[0])x\(numbers[1]):\(numbers[2])x\(numbers[3])" : ""
        guard numbers.count == 4, written == arguments[0], numbers.allSatisfy({ (0...1_000_000).contains($0) }),
            numbers[0] < numbers[2], numbers[1] < numbers[3]
        else { throw .invalidArgument(rawValue, "a rectangle such as 10x20:30x40, of coordinates up to 1000000") }
        return .init(left: numbers[0], top: numbers[1], right: numbers[2], bottom: numbers[3])
    }

    /// The arguments, without blanks around them and without quotes.
    private func arguments(_ text: Substring) throws(RequestError) -> OptionArguments {
        let text = GrammarText.trimmed(text)
        let parts = text.isEmpty ? [] : text.split(separator: ",", omittingEmptySubsequences: false)
        let values = parts.map { part in
            let value = GrammarText.trimmed(part)
            let isQuoted = value.count > 2 && value.hasPrefix("'") && value.hasSuffix("'")
            return String(isQuoted ? value.dropFirst().dropLast() : value)
        }
        let arguments = OptionArguments(option: rawValue, values: values)
        try arguments.check(argumentCount)
        return arguments
    }

    /// The fewest and the most arguments.
    private var argumentCount: ClosedRange<Int> {
        switch self {
        case .grayscale, .upscale, .noUpscale, .stretch, .stripExif, .stripICC: 0...0
        case .quality, .format, .maximumBytes, .backgroundColor, .rotate, .proportion, .focal: 1...1
        case .blur, .fill: 1...2
        case .sharpen: 3...3
        }
    }
}

extension OptionArguments {
    /// A name of CSS or hexadecimal digits without `#`.
    fileprivate func color(_ index: Int) throws(RequestError) -> PixelColor {
        let text = self[index]
        if let color = GrammarText.hexColor(text) { return color }
        guard text.allSatisfy({ $0.isASCII && $0.isLetter }), let color = PixelColor(css: text) else {
            throw .invalidArgument(option, "a colour by name or of three or six hexadecimal digits")
        }
        return color
    }
}
