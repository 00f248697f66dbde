import VitrineImaging

/// The operator's rules about the options of URLs, which hold in every grammar.
///
/// Every grammar makes an ``ImageURL`` with its ``ImageURL/request``, and every URL passes ``check(_:)``.
package struct ProcessingRules: Sendable {
    /// Whether URLs name presets instead of options.
    package let onlyPresets: Bool
    /// The options that URLs may have; nil for all. Presets may have all options.
    let allowed: Set<NativeOption>?

    package init(onlyPresets: Bool = false, allowedOptions: Set<String>? = nil) {
        self.onlyPresets = onlyPresets
        allowed = allowedOptions.map { Set($0.compactMap { NativeOption.named[$0] }) }
    }

    /// Checks the wishes of a URL.
    ///
    /// - Throws: ``RequestError`` 400 for an option that is not allowed, and for a URL that names no preset where only
    ///   presets are allowed.
    package func check(_ url: ImageURL) throws(RequestError) {
        if onlyPresets {
            guard url.request == .presets else {
                throw RequestError(
                    400, code: "only-presets",
                    reason: "URLs of this server name presets, which only /SIGNATURE/PRESET/… can do.")
            }
            return
        }
        guard let allowed, case .options(let asked) = url.request else { return }
        for options in asked where allowed.isDisjoint(with: options) {
            let names = options.map(\.rawValue).sorted()
            throw RequestError(
                400, code: "forbidden-option",
                reason: names.isEmpty
                    ? "The URL asks for an effect that is not among the allowed options."
                    : "The option \(names.joined(separator: " or ")) is not allowed in URLs.")
        }
    }
}

extension ImageURL {
    /// The wishes of a URL itself, beside the operator's presets.
    package enum Request: Sendable, Hashable {
        /// Presets by their names, and nothing else.
        case presets
        /// Values, each with the options that set it: one of them has to be allowed.
        case options([Set<NativeOption>])
    }
}

extension ProcessingOptions {
    /// The values in which these options differ from others, each with the options of the native grammar that set it.
    ///
    /// The format is left out: the native grammar names it behind the source as well, which is no option.
    func differences(from base: ProcessingOptions) -> [Set<NativeOption>] {
        var found: [Set<NativeOption>] = []
        func compare<Value: Equatable>(_ path: KeyPath<ProcessingOptions, Value>, _ options: NativeOption...) {
            if self[keyPath: path] != base[keyPath: path] { found.append(Set(options)) }
        }
        compare(\.trim, .trim)
        compare(\.crop, .crop)
        if width > 0 || height > 0 {
            // Without a size, neither has an effect.
            compare(\.resizingType, .resizingType, .resize)
            compare(\.enlarge, .enlarge, .size, .resize)
        }
        compare(\.width, .width, .size, .resize)
        compare(\.height, .height, .size, .resize)
        compare(\.minimumWidth, .minimumWidth)
        compare(\.minimumHeight, .minimumHeight)
        compare(\.zoomX, .zoom)
        compare(\.zoomY, .zoom)
        compare(\.dpr, .dpr)
        compare(\.extend, .extend, .size, .resize)
        compare(\.extendAspectRatio, .extendAspectRatio)
        compare(\.gravity, .gravity)
        compare(\.autoRotate, .autoRotate)
        compare(\.rotation, .rotate)
        compare(\.flipHorizontal, .flip)
        compare(\.flipVertical, .flip)
        compare(\.blur, .blur)
        compare(\.sharpen, .sharpen)
        compare(\.pixelate, .pixelate)
        // No option of the native grammar sets these.
        compare(\.grayscale)
        compare(\.isBitonal)
        compare(\.padding, .padding)
        compare(\.watermark, .watermark)
        compare(\.background, .background)
        compare(\.page, .page)
        compare(\.second, .second)
        compare(\.quality, .quality)
        compare(\.formatQuality, .formatQuality)
        compare(\.maximumBytes, .maximumBytes)
        compare(\.stripMetadata, .stripMetadata)
        compare(\.keepCopyright, .keepCopyright)
        compare(\.skipProcessing, .skipProcessing)
        compare(\.isRaw, .raw)
        compare(\.cacheBuster, .cacheBuster)
        compare(\.expires, .expires)
        compare(\.fileName, .filename)
        compare(\.isAttachment, .attachment)
        if let rules = sourceRules { found += rules.differences }
        return found
    }

    /// Whether something is drawn beside the resized image.
    var hasEffects: Bool {
        blur > 0 || sharpen > 0 || pixelate > 1 || grayscale || isBitonal || watermark != nil || padding != nil
            || background != nil
    }
}

extension ProcessingOptions.SourceRules {
    /// The wishes of the rules, in the form of ``ProcessingOptions/differences(from:)``.
    fileprivate var differences: [Set<NativeOption>] {
        var found: [Set<NativeOption>] = []
        if region != nil { found.append([.crop]) }
        if usesSourceWidth || usesSourceHeight { found.append([.size, .resize, .width, .height]) }
        if adaptsOrientation || coversBox { found.append([.resizingType, .resize]) }
        if !focusRegions.isEmpty { found.append([.gravity]) }
        if let iiif {
            if iiif.region != .full { found.append([.crop]) }
            if iiif.size != .maximum || iiif.isUpscaled { found.append([.size, .resize]) }
        }
        return found
    }
}
