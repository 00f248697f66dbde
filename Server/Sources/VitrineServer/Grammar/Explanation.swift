import Foundation
import VitrineImaging

/// The meaning of a path as JSON: the output of `vitrine-server --explain`.
package struct Explanation: Sendable {
    /// An object with sorted keys. It has `grammar` and either `source`, `options` and `ignored`, or `error` with
    /// `status`, `code` and `reason`. For the thumbor grammar `parts` has the parts of the path.
    package let json: String
    /// Whether the path is refused.
    package let isError: Bool

    /// Explains the path of a URL: `/SIGNATURE/…`, or `PREFIX/SIGNATURE/…` for the thumbor grammar.
    ///
    /// The result has the signature as `signature` and does not check it. A path without signature is an error.
    ///
    /// - Parameter thumborPrefix: Begins the paths of the thumbor grammar.
    package init(path: String, native: NativeGrammar, thumborPrefix: String = "/thumbor") {
        let isThumbor = path.hasPrefix(thumborPrefix + "/")
        let rest = path.dropFirst(isThumbor ? thumborPrefix.count + 1 : path.hasPrefix("/") ? 1 : 0)
        let slash = rest.firstIndex(of: "/") ?? rest.endIndex
        var document = Document(grammar: isThumbor ? .thumbor : .native)
        document.signature = String(rest[..<slash])
        if isThumbor { document.parts = ThumborPath(rest[slash...]) }
        do throws(RequestError) {
            if !isThumbor { try URLSigner.checkPlaceholder(rest[..<slash]) }
            document.url =
                try isThumbor
                ? ThumborGrammar(defaults: native.base(), rules: native.rules).parse(rest[slash...])
                : native.parse(rest[slash...])
        } catch {
            document.error = error
        }
        self.init(document)
    }

    /// Renders a parsed URL.
    package init(_ url: ImageURL) {
        var document = Document(grammar: url.grammar)
        document.url = url
        self.init(document)
    }

    private init(_ document: Document) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        // Encoding fails for numbers only that are not finite, which no grammar reads.
        json = (try? encoder.encode(document)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
        isError = document.error != nil
    }
}

/// A key of JSON.
private struct Key: CodingKey, ExpressibleByStringLiteral {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringLiteral value: String) { stringValue = value }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

private typealias Container = KeyedEncodingContainer<Key>

private struct Document: Encodable {
    let grammar: ImageURL.Grammar
    var signature: String?
    var parts: ThumborPath?
    var url: ImageURL?
    var error: RequestError?

    init(grammar: ImageURL.Grammar) { self.grammar = grammar }

    func encode(to encoder: any Encoder) throws {
        var object = encoder.container(keyedBy: Key.self)
        try object.encode(grammar.rawValue, forKey: "grammar")
        try object.encodeIfPresent(signature, forKey: "signature")
        if let parts { try object.encode(EncodedPath(path: parts), forKey: "parts") }
        if let url {
            try object.encode(url.source, forKey: "source")
            try object.encode(url.wantsInfo, forKey: "info")
            try object.encode(url.ignored, forKey: "ignored")
            try object.encode(EncodedOptions(options: url.options), forKey: "options")
        }
        if let error {
            var part = object.nestedContainer(keyedBy: Key.self, forKey: "error")
            try part.encode(error.status, forKey: "status")
            try part.encode(error.code, forKey: "code")
            try part.encode(error.reason, forKey: "reason")
        }
    }
}

/// The parts of a thumbor path under the names of `libthumbor`.
private struct EncodedPath: Encodable {
    let path: ThumborPath

    func encode(to encoder: any Encoder) throws {
        var object = encoder.container(keyedBy: Key.self)
        try object.encode(path.debug, forKey: "debug")
        try object.encode(path.meta, forKey: "meta")
        try object.encode(path.trim.map { String($0) }, forKey: "trim")
        var crop = object.nestedContainer(keyedBy: Key.self, forKey: "crop")
        for (name, value) in zip(["left", "top", "right", "bottom"] as [Key], path.crop) {
            try crop.encode(value, forKey: name)
        }
        try object.encode(path.adaptive, forKey: "adaptive")
        try object.encode(path.full, forKey: "full")
        try object.encode(path.fitIn, forKey: "fit_in")
        try encode(path.width, "width", in: &object)
        try encode(path.height, "height", in: &object)
        try object.encode(path.horizontalFlip, forKey: "horizontal_flip")
        try object.encode(path.verticalFlip, forKey: "vertical_flip")
        try object.encode(String(path.halign), forKey: "halign")
        try object.encode(String(path.valign), forKey: "valign")
        try object.encode(path.smart, forKey: "smart")
        try object.encode(String(path.filters), forKey: "filters")
        try object.encode(String(path.image), forKey: "image")
    }

    private func encode(_ side: ThumborPath.Side, _ key: Key, in object: inout Container) throws {
        switch side {
        case .pixels(let pixels): try object.encode(pixels, forKey: key)
        case .original: try object.encode("orig", forKey: key)
        }
    }
}

/// Options under the long names of the native grammar.
private struct EncodedOptions: Encodable {
    let options: ProcessingOptions

    func encode(to encoder: any Encoder) throws {
        var object = encoder.container(keyedBy: Key.self)
        try encodeSize(in: &object)
        try encodeDrawing(in: &object)
        try encodeResult(in: &object)
    }

    private func encodeSize(in object: inout Container) throws {
        if let trim = options.trim {
            var part = object.nestedContainer(keyedBy: Key.self, forKey: "trim")
            try part.encode(trim.threshold, forKey: "threshold")
            try part.encodeIfPresent(trim.color?.cssText, forKey: "color")
            try part.encode(trim.equalHorizontal, forKey: "equal_hor")
            try part.encode(trim.equalVertical, forKey: "equal_ver")
        }
        if let crop = options.crop {
            var part = object.nestedContainer(keyedBy: Key.self, forKey: "crop")
            try part.encode(crop.width, forKey: "width")
            try part.encode(crop.height, forKey: "height")
            try encode(crop.gravity, "gravity", in: &part)
        }
        try object.encode(options.resizingType.rawValue, forKey: "resizing_type")
        try object.encode(options.width, forKey: "width")
        try object.encode(options.height, forKey: "height")
        try object.encode(options.minimumWidth, forKey: "min_width")
        try object.encode(options.minimumHeight, forKey: "min_height")
        try object.encode([options.zoomX, options.zoomY], forKey: "zoom")
        try object.encode(options.dpr, forKey: "dpr")
        try object.encode(options.enlarge, forKey: "enlarge")
        try encode(options.extend, "extend", in: &object)
        try encode(options.extendAspectRatio, "extend_aspect_ratio", in: &object)
        try encode(options.gravity, "gravity", in: &object)
        guard let rules = options.sourceRules else { return }
        var part = object.nestedContainer(keyedBy: Key.self, forKey: "source_rules")
        if let region = rules.region { try part.encode(numbers(region), forKey: "region") }
        try part.encode(rules.usesSourceWidth, forKey: "source_width")
        try part.encode(rules.usesSourceHeight, forKey: "source_height")
        try part.encode(rules.adaptsOrientation, forKey: "adaptive")
        try part.encode(rules.coversBox, forKey: "full")
        try part.encode(rules.focusRegions.map(numbers), forKey: "focal")
    }

    private func encodeDrawing(in object: inout Container) throws {
        try object.encode(options.autoRotate, forKey: "auto_rotate")
        try object.encode(options.rotation, forKey: "rotate")
        try object.encode([options.flipHorizontal, options.flipVertical], forKey: "flip")
        try object.encode(options.blur, forKey: "blur")
        try object.encode(options.sharpen, forKey: "sharpen")
        try object.encode(options.pixelate, forKey: "pixelate")
        try object.encode(options.grayscale, forKey: "grayscale")
        if let padding = options.padding {
            try object.encode([padding.top, padding.right, padding.bottom, padding.left], forKey: "padding")
        }
        if let watermark = options.watermark {
            var part = object.nestedContainer(keyedBy: Key.self, forKey: "watermark")
            try part.encode(watermark.opacity, forKey: "opacity")
            try part.encode(watermark.scale, forKey: "scale")
            try part.encode(watermark.position == nil, forKey: "repeat")
            try encode(watermark.position, "position", in: &part)
        }
        try object.encodeIfPresent(options.background?.cssText, forKey: "background")
    }

    private func encodeResult(in object: inout Container) throws {
        try object.encode(options.page, forKey: "page")
        try object.encodeIfPresent(options.second, forKey: "video_thumbnail_second")
        try object.encodeIfPresent(options.format?.rawValue, forKey: "format")
        try object.encodeIfPresent(options.quality, forKey: "quality")
        let qualities = options.formatQuality.map { ($0.key.rawValue, $0.value) }
        try object.encode(Dictionary(qualities, uniquingKeysWith: { $1 }), forKey: "format_quality")
        try object.encode(options.maximumBytes, forKey: "max_bytes")
        try object.encodeIfPresent(options.stripMetadata, forKey: "strip_metadata")
        try object.encodeIfPresent(options.keepCopyright, forKey: "keep_copyright")
        try object.encode(options.skipProcessing.map(\.rawValue).sorted(), forKey: "skip_processing")
        try object.encode(options.isRaw, forKey: "raw")
        try object.encode(options.cacheBuster, forKey: "cachebuster")
        try object.encodeIfPresent(options.expires, forKey: "expires")
        try object.encodeIfPresent(options.fileName, forKey: "filename")
        try object.encode(options.isAttachment, forKey: "return_attachment")
    }

    private func encode(_ gravity: ProcessingOptions.Gravity?, _ key: Key, in object: inout Container) throws {
        guard let gravity else { return }
        var part = object.nestedContainer(keyedBy: Key.self, forKey: key)
        try part.encode(gravity.anchor.rawValue, forKey: "type")
        try part.encode(gravity.x, forKey: "x")
        try part.encode(gravity.y, forKey: "y")
    }

    private func numbers(_ region: ProcessingOptions.SourceRules.Region) -> [Int] {
        [region.left, region.top, region.right, region.bottom]
    }
}

extension PixelColor {
    /// `#rrggbb`, or `#rrggbbaa` unless opaque.
    fileprivate var cssText: String {
        let channels = alpha == 255 ? [red, green, blue] : [red, green, blue, alpha]
        return channels.reduce(into: "#") { text, channel in
            text += channel < 16 ? "0" : ""
            text += String(channel, radix: 16)
        }
    }
}
