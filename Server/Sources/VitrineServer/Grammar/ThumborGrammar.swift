import VitrineImaging

/// Reads processing URLs in thumbor's grammar.
///
/// Behind `unsafe/` or the signature a path has parts in this order, each of them optional, then the source:
///
/// ```
/// meta/trim:10/10x10:200x200/fit-in/-300x200/left/top/smart/filters:quality(80):format(webp)/example.com/a.jpg
/// ```
///
/// `Documentation/Options.md` has all parts and filters. Filters that this server does not have are errors, unlike in
/// thumbor; ``ImageURL/ignored`` has those whose absence does no harm.
package struct ThumborGrammar: Sendable {
    /// The scheme of sources without one, as thumbor's loader completes them; nil to leave them as they are.
    package let defaultScheme: String?
    /// The options of a URL that asks for nothing: ``NativeGrammar/base()``.
    package let defaults: ProcessingOptions
    private let rules: ProcessingRules

    /// Creates a grammar.
    package init(
        defaultScheme: String? = "http", defaults: ProcessingOptions = ProcessingOptions(),
        rules: ProcessingRules = ProcessingRules()
    ) {
        self.defaultScheme = defaultScheme
        self.defaults = defaults
        self.rules = rules
    }

    /// Reads the part of a URL behind `unsafe/` or the signature.
    ///
    /// - Parameter path: As the client sent it, percent escapes and query included: a query belongs to the source.
    ///   One leading slash is ignored.
    /// - Throws: ``RequestError`` with status 400, or 414 for more than 8,192 bytes.
    package func parse(_ path: Substring) throws(RequestError) -> ImageURL {
        try GrammarText.checkPath(path)
        guard let parts = ThumborPath(path), parts.image != "/" else { throw .missingSource }
        var source = try GrammarText.source(GrammarText.percentDecoded(GrammarText.restoringSlashes(of: parts.image)))
        if let defaultScheme, !hasScheme(source) { source = "\(defaultScheme)://\(source)" }
        var url = ImageURL(grammar: .thumbor, options: defaults, source: source)
        try parts.apply(to: &url)
        try url.options.checkResultSides()
        url.request = .options(url.options.differences(from: defaults))
        try rules.check(url)
        return url
    }

    private func hasScheme(_ source: String) -> Bool {
        guard let colon = source.firstIndex(of: ":"), source[colon...].hasPrefix("://") else { return false }
        return !source[..<colon].isEmpty
            && source[..<colon].utf8.allSatisfy {
                ($0 | 0x20) >= UInt8(ascii: "a") && ($0 | 0x20) <= UInt8(ascii: "z") || GrammarText.isDigit($0)
                    || [UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: ".")].contains($0)
            }
    }
}

/// The parts of a path, before their meaning is checked. Their names and values are those of `libthumbor`.
package struct ThumborPath: Sendable, Hashable {
    /// A side as it is written.
    package enum Side: Sendable, Hashable {
        case pixels(Int), original
    }

    package var debug = false
    package var meta = false
    /// The whole part, for example `trim:top-left:10`.
    package var trim: Substring?
    /// Left, top, right and bottom.
    package var crop = [0, 0, 0, 0]
    package var adaptive = false
    package var full = false
    package var fitIn = false
    package var width = Side.pixels(0)
    package var height = Side.pixels(0)
    package var horizontalFlip = false
    package var verticalFlip = false
    package var halign: Substring = "center"
    package var valign: Substring = "middle"
    package var smart = false
    /// The filters, not decoded, without the prefix `filters:`.
    package var filters: Substring = ""
    /// The rest, not decoded.
    package var image: Substring = ""

    /// Reads a path; nil if it names no image.
    ///
    /// The parts have a fixed order. A part at the end of the path, with nothing behind its slash, is the image.
    package init?(_ path: Substring) {
        image = path.hasPrefix("/") && path.utf8.count > 1 ? path.dropFirst() : path
        debug = take { $0 == "debug" ? true : nil } ?? false
        meta = take { $0 == "meta" ? true : nil } ?? false
        trim = take { ThumborPath.isTrim($0) ? $0 : nil }
        crop = take(ThumborPath.crop) ?? crop
        if let fit = take({ ThumborPath.fits[String($0)] }) {
            (adaptive, full, fitIn) = (fit.adaptive, fit.full, true)
        }
        if let (horizontal, vertical) = take(ThumborPath.sides) {
            (horizontalFlip, width) = horizontal
            (verticalFlip, height) = vertical
        }
        halign = take { ["left", "right", "center"].contains($0) ? $0 : nil } ?? halign
        valign = take { ["top", "bottom", "middle"].contains($0) ? $0 : nil } ?? valign
        smart = take { $0 == "smart" ? true : nil } ?? false
        takeFilters()
        guard !image.isEmpty else { return nil }
    }

    /// Takes the next part of the path if `read` returns a value for it and something follows.
    private mutating func take<Value>(_ read: (Substring) -> Value?) -> Value? {
        guard let slash = image.utf8.firstIndex(of: UInt8(ascii: "/")) else { return nil }
        let rest = image[image.utf8.index(after: slash)...]
        guard !rest.isEmpty, let value = read(image[..<slash]) else { return nil }
        image = rest
        return value
    }

    /// Filters may contain slashes; they end at the first `)/`.
    private mutating func takeFilters() {
        let prefix = "filters:"
        guard image.hasPrefix(prefix) else { return }
        let text = image.dropFirst(prefix.count)
        // At least one character stands before the parenthesis.
        guard !text.isEmpty, let end = text.dropFirst().firstRange(of: ")/") else { return }
        guard end.upperBound < text.endIndex else { return }
        filters = text[..<text.index(after: end.lowerBound)]
        image = text[end.upperBound...]
    }

    private static let fits: [String: (adaptive: Bool, full: Bool)] = [
        "fit-in": (false, false), "full-fit-in": (false, true), "adaptive-fit-in": (true, false),
        "adaptive-full-fit-in": (true, true),
    ]

    private static func isTrim(_ part: Substring) -> Bool {
        guard part == "trim" || part.hasPrefix("trim:") else { return false }
        var rest = part.dropFirst(4)
        for corner in [":top-left", ":bottom-right"] where rest.hasPrefix(corner) {
            rest = rest.dropFirst(corner.count)
            break
        }
        return rest.isEmpty || rest.hasPrefix(":") && digits(rest.dropFirst()) != nil
    }

    /// `10x20:30x40`
    private static func crop(_ part: Substring) -> [Int]? {
        let corners = part.split(separator: ":", omittingEmptySubsequences: false)
        guard corners.count == 2 else { return nil }
        var numbers: [Int] = []
        for corner in corners {
            let pair = corner.split(separator: "x", omittingEmptySubsequences: false)
            guard pair.count == 2, let x = digits(pair[0]), let y = digits(pair[1]) else { return nil }
            numbers += [x, y]
        }
        return numbers
    }

    private static func sides(
        _ part: Substring
    ) -> (horizontal: (flip: Bool, side: Side), vertical: (flip: Bool, side: Side))? {
        let pair = part.split(separator: "x", omittingEmptySubsequences: false)
        guard pair.count == 2, let horizontal = side(pair[0]), let vertical = side(pair[1]) else { return nil }
        return (horizontal, vertical)
    }

    private static func side(_ text: Substring) -> (flip: Bool, side: Side)? {
        let flip = text.hasPrefix("-")
        let number = flip ? text.dropFirst() : text
        if number.isEmpty { return (flip, .pixels(0)) }
        if number == "orig" { return (flip, .original) }
        return digits(number).map { (flip, .pixels($0)) }
    }

    /// A number of ASCII digits; the largest possible one for more than fit.
    private static func digits(_ text: Substring) -> Int? {
        guard !text.isEmpty, text.utf8.allSatisfy(GrammarText.isDigit) else { return nil }
        return Int(text) ?? .max
    }
}

// MARK: Meaning

extension ThumborPath {
    /// Sets the options of all parts.
    func apply(to url: inout ImageURL) throws(RequestError) {
        guard !debug else { throw .unsupportedOption("debug") }
        url.wantsInfo = meta
        try applyTrim(to: &url.options)
        try applySize(to: &url.options)
        // What the path does not name is left to the defaults.
        if horizontalFlip { url.options.flipHorizontal = true }
        if verticalFlip { url.options.flipVertical = true }
        if smart || halign != "center" || valign != "middle" {
            url.options.gravity = ProcessingOptions.Gravity(anchor: anchor)
        }
        try ThumborFilter.apply(filters, isFitIn: fitIn, to: &url)
        if url.options.sourceRules == ProcessingOptions.SourceRules() { url.options.sourceRules = nil }
    }

    private func applyTrim(to options: inout ProcessingOptions) throws(RequestError) {
        guard let trim else { return }
        guard !trim.hasPrefix("trim:bottom-right") else {
            throw .unsupportedOption("trim:bottom-right", "the colour is that of the top left pixel")
        }
        options.trim = ProcessingOptions.Trim()
        // Thumbor measures the distance of colours, up to 442.
        let tolerance = trim.split(separator: ":").last.flatMap(ThumborPath.digits) ?? 0
        guard tolerance <= 442 else {
            throw .invalidArgument("trim", "a whole number from 0 to 442")
        }
        options.trim?.threshold = Double(min(tolerance, 255))
    }

    private func applySize(to options: inout ProcessingOptions) throws(RequestError) {
        var rules = ProcessingOptions.SourceRules()
        let (left, top, right, bottom) = (crop[0], crop[1], crop[2], crop[3])
        if crop != [0, 0, 0, 0] {
            guard crop.allSatisfy({ $0 <= 1_000_000 }) else {
                throw .invalidArgument("crop", "coordinates from 0 to 1000000")
            }
            rules.region = .init(left: left, top: top, right: right, bottom: bottom)
            if left < right, top < bottom {
                options.crop = .pixels(x: left, y: top, size: PixelSize(width: right - left, height: bottom - top))
            }
        }
        defer { options.sourceRules = rules }
        let namesSize = fitIn || width != .pixels(0) || height != .pixels(0)
        // The size of a default preset.
        guard namesSize || options.width == 0 && options.height == 0 else { return }
        options.width = try pixels(width, uses: &rules.usesSourceWidth)
        options.height = try pixels(height, uses: &rules.usesSourceHeight)
        // Without fit-in the box is filled, also by a smaller image.
        options.resizingType = fitIn ? .fit : .fill
        options.enlarge = !fitIn || full
        rules.adaptsOrientation = adaptive
        rules.coversBox = full
    }

    private func pixels(_ side: Side, uses source: inout Bool) throws(RequestError) -> Int {
        switch side {
        case .original:
            source = true
            return 0
        case .pixels(let pixels):
            guard pixels <= NativeOption.maximumSide else {
                throw .invalidArgument("size", "sides from 0 to \(NativeOption.maximumSide)")
            }
            return pixels
        }
    }

    private var anchor: ProcessingOptions.Gravity.Anchor {
        if smart { return .smart }
        switch (halign, valign) {
        case ("left", "top"): return .northWest
        case ("right", "top"): return .northEast
        case (_, "top"): return .north
        case ("left", "bottom"): return .southWest
        case ("right", "bottom"): return .southEast
        case (_, "bottom"): return .south
        case ("left", _): return .west
        case ("right", _): return .east
        default: return .center
        }
    }
}
