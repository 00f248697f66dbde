import VitrineImaging

/// An option of the native grammar, by its long name.
package enum NativeOption: String, CaseIterable {
    case resize, size, width, height, zoom, dpr, enlarge, extend, gravity, crop, trim, padding, rotate, flip
    case background, blur, sharpen, pixelate, watermark, quality, format, page, raw, expires, filename, preset
    case resizingType = "resizing_type"
    case minimumWidth = "min-width"
    case minimumHeight = "min-height"
    case extendAspectRatio = "extend_aspect_ratio"
    case autoRotate = "auto_rotate"
    case stripMetadata = "strip_metadata"
    case keepCopyright = "keep_copyright"
    case stripColorProfile = "strip_color_profile"
    case enforceThumbnail = "enforce_thumbnail"
    case formatQuality = "format_quality"
    case maximumBytes = "max_bytes"
    case second = "video_thumbnail_second"
    case skipProcessing = "skip_processing"
    case cacheBuster = "cachebuster"
    case attachment = "return_attachment"

    /// Options by all their names.
    package static let named: [String: NativeOption] = {
        let short: [String: NativeOption] = [
            "rs": .resize, "s": .size, "rt": .resizingType, "w": .width, "h": .height, "mw": .minimumWidth,
            "min_width": .minimumWidth, "mh": .minimumHeight, "min_height": .minimumHeight, "z": .zoom,
            "el": .enlarge, "ex": .extend, "extend_ar": .extendAspectRatio, "exar": .extendAspectRatio,
            "g": .gravity, "c": .crop, "t": .trim, "pd": .padding, "ar": .autoRotate, "rot": .rotate, "fl": .flip,
            "bg": .background, "bl": .blur, "sh": .sharpen, "pix": .pixelate, "wm": .watermark,
            "sm": .stripMetadata, "kcr": .keepCopyright, "scp": .stripColorProfile, "eth": .enforceThumbnail,
            "q": .quality, "fq": .formatQuality, "mb": .maximumBytes, "f": .format, "ext": .format, "pg": .page,
            "vts": .second, "second": .second, "skp": .skipProcessing, "cb": .cacheBuster, "exp": .expires,
            "fn": .filename, "att": .attachment, "pr": .preset,
        ]
        return NativeOption.allCases.reduce(into: short) { $0[$1.rawValue] = $1 }
    }()

    /// Options of imgproxy that this server does not have.
    package static let unsupported: Set<String> = [
        "resizing_algorithm", "ra", "objects_position", "obj_pos", "op", "crop_aspect_ratio", "crop_ar", "car",
        "background_alpha", "bga", "adjust", "a", "brightness", "br", "contrast", "co", "saturation", "sa",
        "monochrome", "mc", "duotone", "dt", "unsharp_masking", "ush", "blur_detections", "bd", "draw_detections",
        "dd", "colorize", "col", "gradient", "gr", "watermark_url", "wmu", "watermark_text", "wmt", "watermark_size",
        "wms", "watermark_rotate", "wm_rot", "wmr", "watermark_shadow", "wmsh", "style", "st", "dpi", "autoquality",
        "aq", "jpeg_options", "jpgo", "png_options", "pngo", "webp_options", "webpo", "avif_options", "avifo",
        "pages", "pgs", "disable_animation", "da", "video_thumbnail_keyframes", "vtk", "video_thumbnail_tile", "vtt",
        "video_thumbnail_animation", "vta", "fallback_image_url", "fiu", "hashsum", "hs", "max_src_resolution", "msr",
        "max_src_file_size", "msfs", "max_animation_frames", "maf", "max_animation_frame_resolution", "mafr",
        "max_result_dimension", "mrd", "blur_areas", "ba", "bypass_cache", "bc", "cache_tags", "ct", "color_profile",
        "cp", "icc", "crop_objects", "jxl_options", "jxlo", "preserve_hdr", "ph", "progressive_blur", "pbl",
    ]

    static func find(_ name: Substring) throws(RequestError) -> NativeOption {
        if let option = named[String(name)] { return option }
        guard unsupported.contains(String(name)) else { throw .unknownOption(name) }
        throw .unsupportedOption(name)
    }
}

// MARK: Applying

extension NativeOption {
    /// The largest side of a result that a URL may ask for, in pixels.
    static let maximumSide = 65_535
    /// The largest coordinate in a source, in pixels.
    private static let maximumOffset = 1_000_000.0

    /// Sets the values of the option. Presets are left to the grammar.
    func apply(_ arguments: OptionArguments, to options: inout ProcessingOptions) throws(RequestError) {
        switch self {
        case .resize, .size, .resizingType, .width, .height, .minimumWidth, .minimumHeight, .zoom, .dpr, .enlarge,
            .extend, .extendAspectRatio, .gravity, .crop, .trim:
            try applySize(arguments, to: &options)
        case .padding, .autoRotate, .rotate, .flip, .background, .blur, .sharpen, .pixelate, .watermark:
            try applyDrawing(arguments, to: &options)
        default:
            try applyResult(arguments, to: &options)
        }
    }

    private func applySize(_ arguments: OptionArguments, to options: inout ProcessingOptions) throws(RequestError) {
        let side = 0...NativeOption.maximumSide
        switch self {
        case .resize:
            try arguments.check(1...8)
            if arguments.has(0) { options.resizingType = try resizingType(arguments) }
            try applySides(arguments.dropFirst(1), to: &options)
        case .size:
            try arguments.check(1...7)
            try applySides(arguments, to: &options)
        case .resizingType:
            try arguments.check(1...1)
            options.resizingType = try resizingType(arguments)
        case .width:
            try arguments.check(1...1)
            options.width = try arguments.integer(0, side)
        case .height:
            try arguments.check(1...1)
            options.height = try arguments.integer(0, side)
        case .minimumWidth:
            try arguments.check(1...1)
            options.minimumWidth = try arguments.integer(0, side)
        case .minimumHeight:
            try arguments.check(1...1)
            options.minimumHeight = try arguments.integer(0, side)
        case .zoom:
            try arguments.check(1...2)
            options.zoomX = try arguments.factor(0, upTo: 100)
            options.zoomY = try arguments.count > 1 ? arguments.factor(1, upTo: 100) : options.zoomX
        case .dpr:
            try arguments.check(1...1)
            options.dpr = try arguments.factor(0, upTo: 16)
        case .enlarge:
            try arguments.check(1...1)
            options.enlarge = try arguments.flag(0)
        case .extend:
            options.extend = try placeOfExtension(arguments)
        case .extendAspectRatio:
            options.extendAspectRatio = try placeOfExtension(arguments)
        case .gravity:
            options.gravity = try gravity(arguments)
        case .crop:
            options.crop = try crop(arguments)
        default:
            try arguments.check(1...4)
            guard arguments.has(0) else {
                options.trim = nil
                return
            }
            var trim = ProcessingOptions.Trim()
            trim.threshold = try arguments.number(0, 0...255)
            if arguments.has(1) { trim.color = try arguments.hexColor(1) }
            if arguments.has(2) { trim.equalHorizontal = try arguments.flag(2) }
            if arguments.has(3) { trim.equalVertical = try arguments.flag(3) }
            options.trim = trim
        }
    }

    private func applyDrawing(_ arguments: OptionArguments, to options: inout ProcessingOptions) throws(RequestError) {
        switch self {
        case .padding:
            options.padding = try padding(arguments)
        case .autoRotate:
            try arguments.check(1...1)
            options.autoRotate = try arguments.flag(0)
        case .rotate:
            try arguments.check(1...1)
            let angle = try arguments.integer(0, -3_600...3_600)
            guard angle % 90 == 0 else { throw .invalidArgument(rawValue, "a multiple of 90 degrees") }
            options.rotation = (angle % 360 + 360) % 360
        case .flip:
            try arguments.check(1...2)
            if arguments.has(0) { options.flipHorizontal = try arguments.flag(0) }
            if arguments.has(1) { options.flipVertical = try arguments.flag(1) }
        case .background:
            options.background = try background(arguments)
        case .blur:
            try arguments.check(1...1)
            options.blur = try arguments.number(0, 0...500)
        case .sharpen:
            try arguments.check(1...1)
            options.sharpen = try arguments.number(0, 0...500)
        case .pixelate:
            try arguments.check(1...1)
            options.pixelate = try arguments.integer(0, 0...NativeOption.maximumSide)
        default:
            options.watermark = try watermark(arguments)
        }
    }

    private func applyResult(_ arguments: OptionArguments, to options: inout ProcessingOptions) throws(RequestError) {
        switch self {
        case .skipProcessing:
            for index in 0..<arguments.count { options.skipProcessing.insert(try anyFormat(arguments[index])) }
            return
        case .formatQuality:
            guard arguments.count.isMultiple(of: 2) else {
                throw .invalidArgument(rawValue, "pairs of a format and a quality")
            }
            for index in stride(from: 0, to: arguments.count, by: 2) {
                let format = try anyFormat(arguments[index])
                options.formatQuality[format] = try arguments.integer(index + 1, 1...100)
            }
            return
        case .filename:
            options.fileName = try fileName(arguments)
            return
        default:
            try arguments.check(1...1)
        }
        switch self {
        case .stripMetadata: options.stripMetadata = try arguments.flag(0)
        case .keepCopyright: options.keepCopyright = try arguments.flag(0)
        case .stripColorProfile:
            // Results are always sRGB without a profile.
            guard try arguments.flag(0) else { throw .unsupportedOption(rawValue, "results are always sRGB") }
        case .enforceThumbnail:
            guard try !arguments.flag(0) else {
                throw .unsupportedOption(rawValue, "thumbnails in files are used where they suffice")
            }
        case .quality:
            let quality = try arguments.integer(0, 0...100)
            options.quality = quality > 0 ? quality : nil
        case .maximumBytes: options.maximumBytes = try arguments.integer(0, 0...2_147_483_647)
        case .format: options.format = try GrammarText.resultFormat(arguments[0], option: rawValue)
        case .page: options.page = try arguments.integer(0, 0...1_000_000) + 1
        case .second: options.second = try arguments.number(0, 0...1_000_000)
        case .raw: options.isRaw = try arguments.flag(0)
        case .cacheBuster: options.cacheBuster = arguments[0]
        case .expires:
            let time = try arguments.integer(0, 0...253_402_300_799)
            options.expires = time > 0 ? time : nil
        default: options.isAttachment = try arguments.flag(0)
        }
    }

    // MARK: Single options

    private func resizingType(_ arguments: OptionArguments) throws(RequestError) -> ProcessingOptions.ResizingType {
        guard let type = ProcessingOptions.ResizingType(rawValue: arguments[0]) else {
            throw .invalidArgument(rawValue, "fit, fill, fill-down, force or auto")
        }
        return type
    }

    /// Width, height, enlarge and extend, each of which may be empty.
    private func applySides(_ arguments: OptionArguments, to options: inout ProcessingOptions) throws(RequestError) {
        let side = 0...NativeOption.maximumSide
        if arguments.has(0) { options.width = try arguments.integer(0, side) }
        if arguments.has(1) { options.height = try arguments.integer(1, side) }
        if arguments.has(2) { options.enlarge = try arguments.flag(2) }
        if arguments.has(3) { options.extend = try placeOfExtension(arguments.dropFirst(3)) }
    }

    private func placeOfExtension(_ arguments: OptionArguments) throws(RequestError) -> ProcessingOptions.Gravity? {
        try arguments.check(1...4)
        let isOn = try arguments.flag(0)
        var place = ProcessingOptions.Gravity()
        if arguments.has(1) { place = try gravity(arguments.dropFirst(1)) }
        guard place.anchor != .smart else { throw .invalidArgument(rawValue, "a gravity other than sm") }
        return isOn ? place : nil
    }

    private func gravity(_ arguments: OptionArguments) throws(RequestError) -> ProcessingOptions.Gravity {
        var gravity = ProcessingOptions.Gravity()
        guard arguments[0] != "obj", arguments[0] != "objw" else {
            throw .unsupportedOption("\(rawValue):\(arguments[0])", "there is no detector of objects")
        }
        guard let anchor = ProcessingOptions.Gravity.Anchor(rawValue: arguments[0]) else {
            throw .invalidArgument(
                rawValue, "a gravity of ce, no, so, ea, we, noea, nowe, soea, sowe, sm or fp")
        }
        gravity.anchor = anchor
        switch anchor {
        case .smart:
            guard arguments.count == 1 else { throw .invalidArgument(rawValue, "no offsets after sm") }
        case .focusPoint:
            guard arguments.count == 3 else { throw .invalidArgument(rawValue, "two coordinates after fp") }
            gravity.x = try arguments.number(1, 0...1)
            gravity.y = try arguments.number(2, 0...1)
        default:
            guard arguments.count <= 3 else { throw .invalidArgument(rawValue, "two offsets at most") }
            let range = -NativeOption.maximumOffset...NativeOption.maximumOffset
            if arguments.has(1) { gravity.x = try arguments.number(1, range) }
            if arguments.has(2) { gravity.y = try arguments.number(2, range) }
        }
        return gravity
    }

    private func crop(_ arguments: OptionArguments) throws(RequestError) -> ProcessingOptions.Crop? {
        try arguments.check(1...5)
        var crop = ProcessingOptions.Crop()
        crop.width = try arguments.number(0, 0...NativeOption.maximumOffset)
        if arguments.count > 1 { crop.height = try arguments.number(1, 0...NativeOption.maximumOffset) }
        if arguments.has(2) { crop.gravity = try gravity(arguments.dropFirst(2)) }
        return crop.width == 0 && crop.height == 0 ? nil : crop
    }

    private func padding(_ arguments: OptionArguments) throws(RequestError) -> ProcessingOptions.Padding? {
        try arguments.check(1...4)
        let side = 0...NativeOption.maximumSide
        var padding = ProcessingOptions.Padding()
        if arguments.has(0) { padding.top = try arguments.integer(0, side) }
        padding.right = try arguments.has(1) ? arguments.integer(1, side) : padding.top
        padding.bottom = try arguments.has(2) ? arguments.integer(2, side) : padding.top
        padding.left = try arguments.has(3) ? arguments.integer(3, side) : padding.right
        return padding == ProcessingOptions.Padding() ? nil : padding
    }

    private func background(_ arguments: OptionArguments) throws(RequestError) -> PixelColor? {
        switch arguments.count {
        case 1: return try arguments.has(0) ? arguments.hexColor(0) : nil
        case 3:
            let channel = 0...255
            return try PixelColor(
                red: UInt8(arguments.integer(0, channel)), green: UInt8(arguments.integer(1, channel)),
                blue: UInt8(arguments.integer(2, channel)))
        default: throw .invalidArgument(rawValue, "red, green and blue, a hexadecimal colour, or nothing")
        }
    }

    private func watermark(_ arguments: OptionArguments) throws(RequestError) -> ProcessingOptions.Watermark? {
        try arguments.check(1...5)
        var watermark = ProcessingOptions.Watermark()
        watermark.opacity = try arguments.number(0, 0...1)
        let range = -NativeOption.maximumOffset...NativeOption.maximumOffset
        var place = ProcessingOptions.Gravity()
        if arguments.has(2) { place.x = try arguments.number(2, range) }
        if arguments.has(3) { place.y = try arguments.number(3, range) }
        switch arguments[1] {
        case "re":
            guard place.x == 0, place.y == 0 else {
                throw .unsupportedOption("\(rawValue):re", "tiles have no spacing")
            }
            watermark.position = nil
        case "ch": throw .unsupportedOption("\(rawValue):ch", "tiles stand in rows and columns")
        case let name:
            let anchor = name.isEmpty ? .center : ProcessingOptions.Gravity.Anchor(rawValue: name)
            guard let anchor, anchor != .smart, anchor != .focusPoint else {
                throw .invalidArgument(rawValue, "a position of ce, no, so, ea, we, noea, nowe, soea, sowe or re")
            }
            place.anchor = anchor
            watermark.position = place
        }
        if arguments.has(4) { watermark.scale = try arguments.number(4, 0...100) }
        return watermark.opacity > 0 ? watermark : nil
    }

    private func fileName(_ arguments: OptionArguments) throws(RequestError) -> String? {
        try arguments.check(1...2)
        let isEncoded = try arguments.has(1) ? arguments.flag(1) : false
        guard let name = isEncoded ? GrammarText.base64Decoded(arguments[0]) : arguments[0] else {
            throw .invalidArgument(rawValue, "base64 in the alphabet for URLs")
        }
        guard name.utf8.count <= 255, !name.contains(where: { "/\\".contains($0) }) else {
            throw .invalidArgument(rawValue, "at most 255 bytes without slashes")
        }
        return name.isEmpty ? nil : name
    }

    private func anyFormat(_ name: String) throws(RequestError) -> ImageFormat {
        guard let format = GrammarText.format(name) else {
            throw .invalidArgument(rawValue, "names of formats, for example jpg or webp")
        }
        return format
    }
}

extension ProcessingOptions {
    /// - Throws: ``RequestError`` if `dpr` and `zoom` make a side of the result, or a padding, too large.
    func checkResultSides() throws(RequestError) {
        let maximum = Double(NativeOption.maximumSide)
        let sides = [
            Double(max(width, minimumWidth)) * zoomX * dpr, Double(max(height, minimumHeight)) * zoomY * dpr,
            Double((padding?.left ?? 0) + (padding?.right ?? 0)) * dpr,
            Double((padding?.top ?? 0) + (padding?.bottom ?? 0)) * dpr,
        ]
        guard sides.allSatisfy({ $0 <= maximum }) else {
            throw .invalidArgument("size", "sides and paddings up to \(NativeOption.maximumSide) device pixels")
        }
    }
}
