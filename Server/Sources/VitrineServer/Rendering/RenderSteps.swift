import VitrineImaging

/// All that is done to a decoded image, in the order of imgproxy: trim, turn, crop, resize, crop to the result,
/// filters, extend, padding, watermark, background.
struct RenderSteps: ImageProcessing {
    private let options: ProcessingOptions
    /// Turns an upright image back to how it is stored.
    private let undo: Orientation
    private let mayGrow: Bool
    private let watermark: PixelImage?
    private let watermarkOpacity: Double
    private let maximumSide: Int
    /// The sizes, if the image arrives scaled; nil if it arrives with all its pixels.
    var geometry: RenderGeometry?

    init(_ options: ProcessingOptions, header: SourceHeader, settings: RenderSettings) {
        self.options = options
        undo = options.autoRotate ? .up : Self.inverse(header.orientation)
        mayGrow = header.isVector
        watermark = options.watermark == nil ? nil : settings.watermark
        watermarkOpacity = settings.watermarkOpacity
        maximumSide = settings.maximumSide
    }

    private static func inverse(_ orientation: Orientation) -> Orientation {
        switch orientation {
        case .right: .left
        case .left: .right
        default: orientation
        }
    }

    /// Whether width and height change places.
    var turnsSideways: Bool {
        let isUndoneSideways = undo.rawValue >= 5
        return isUndoneSideways != (quarterTurns % 2 == 1)
    }

    private var quarterTurns: Int { ((options.rotation / 90) % 4 + 4) % 4 }

    /// Whether an image that arrives at its size is the result already.
    var isEmpty: Bool {
        guard let geometry, options.trim == nil, geometry.crop == nil else { return false }
        return undo == .up && quarterTurns == 0 && !options.flipHorizontal && !options.flipVertical
            && geometry.croppedSize == geometry.scaled && geometry.resultSize(options) == geometry.scaled
            && filters.isEmpty && watermark == nil && options.background == nil
    }

    var identifier: String {
        let mark = watermark.map { "\($0.width)x\($0.height)" } ?? ""
        let size = geometry.map { "\($0.source)\($0.scaled)" } ?? ""
        let settings = "\(mark),\(watermarkOpacity),\(size),\(maximumSide)"
        return "server(\(options.resultName),\(undo.rawValue),\(mayGrow),\(settings))"
    }

    func process(_ image: PixelImage) throws(ImageError) -> PixelImage {
        var image = image
        if let trim = options.trim { image = try trimmed(image, trim) }
        image = try turned(image)
        let sizes: RenderGeometry
        if let geometry {
            sizes = geometry
            image = try partOfScaled(image, geometry)
        } else {
            sizes = RenderGeometry(source: image.size, options, mayGrow: mayGrow)
            if let crop = sizes.crop {
                image = try part(of: image, crop, options.crop?.gravity ?? options.gravity, scale: 1)
            }
        }
        if image.size != sizes.scaled {
            image = try ImageResizer.stretch(width: sizes.scaled.width, height: sizes.scaled.height).resize(image)
        }
        if sizes.croppedSize != sizes.scaled {
            image = try part(of: image, sizes.croppedSize, options.gravity, scale: sizes.scale)
        }
        image = try image.processed(by: filters)
        image = try extended(image, sizes)
        if let watermark, let wanted = options.watermark {
            image = try marked(image, watermark: watermark, wanted: wanted, sizes: sizes)
        }
        if let background = options.background { image = try image.processed(by: [.background(background)]) }
        // Sizes that were not known before the pixels: trimmed images, and pages of other sizes.
        if max(image.width, image.height) > maximumSide {
            image = try ImageResizer.fit(width: maximumSide, height: maximumSide).resize(image)
        }
        return image
    }

    // MARK: Shape

    private func turned(_ image: PixelImage) throws(ImageError) -> PixelImage {
        var image = image.oriented(undo)
        switch quarterTurns {
        case 1: image = image.oriented(.right)
        case 2: image = image.oriented(.down)
        case 3: image = image.oriented(.left)
        default: break
        }
        if options.flipHorizontal { image = image.oriented(.upMirrored) }
        if options.flipVertical { image = image.oriented(.downMirrored) }
        return image
    }

    /// The part of an image that was scaled as a whole.
    private func partOfScaled(_ image: PixelImage, _ sizes: RenderGeometry) throws(ImageError) -> PixelImage {
        guard let crop = sizes.crop, image.size != sizes.scaled else { return image }
        let gravity = options.crop?.gravity ?? options.gravity
        if gravity.anchor == .smart { return try part(of: image, sizes.scaled, gravity, scale: 1) }
        let place = RenderGeometry.position(of: crop, in: sizes.source, gravity, scale: 1)
        func scaled(_ offset: Int, all: Int, source: Int, part: Int) -> Int {
            let position = (Double(offset) * Double(all) / Double(source)).rounded()
            return max(0, min(all - part, Int(position)))
        }
        let (width, height) = (min(sizes.scaled.width, image.width), min(sizes.scaled.height, image.height))
        return try image.processed(by: [
            .crop(
                x: scaled(place.x, all: image.width, source: sizes.source.width, part: width),
                y: scaled(place.y, all: image.height, source: sizes.source.height, part: height), width: width,
                height: height)
        ])
    }

    private func part(
        of image: PixelImage, _ size: PixelSize, _ gravity: ProcessingOptions.Gravity, scale: Double
    ) throws(ImageError) -> PixelImage {
        if gravity.anchor == .smart {
            return try image.processed(by: [.crop(width: size.width, height: size.height, gravity: .attention)])
        }
        let place = RenderGeometry.position(of: size, in: image.size, gravity, scale: scale)
        return try image.processed(by: [.crop(x: place.x, y: place.y, width: size.width, height: size.height)])
    }

    // MARK: Filters

    private var filters: [ImageProcessor] {
        var filters: [ImageProcessor] = []
        if options.grayscale { filters.append(.grayscale) }
        if options.isBitonal { filters.append(ImageProcessor(BitonalStep())) }
        if options.blur > 0 { filters.append(.blur(radius: min(options.blur, 500))) }
        if options.sharpen > 0 { filters.append(.sharpen(amount: 1, radius: min(options.sharpen, 500))) }
        if options.pixelate > 1 { filters.append(.pixelate(block: min(options.pixelate, 8_192))) }
        return filters
    }

    // MARK: Trim

    private func trimmed(_ image: PixelImage, _ trim: ProcessingOptions.Trim) throws(ImageError) -> PixelImage {
        let tolerance = trim.threshold.isFinite ? Int(max(0, min(255, trim.threshold.rounded()))) : 0
        if trim.color == nil, !trim.equalHorizontal, !trim.equalVertical {
            return try image.processed(by: [.trim(tolerance: tolerance)])
        }
        let straight = image.alpha == .premultiplied ? image.converted(to: .straight) : image
        let edge = trim.color ?? straight[0, 0]
        guard var box = Self.content(of: straight, edge, tolerance) else { return image }
        if trim.equalHorizontal {
            let cut = min(box.left, image.width - box.right)
            (box.left, box.right) = (cut, image.width - cut)
        }
        if trim.equalVertical {
            let cut = min(box.top, image.height - box.bottom)
            (box.top, box.bottom) = (cut, image.height - cut)
        }
        return try image.processed(by: [
            .crop(x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top)
        ])
    }

    /// The smallest rectangle around all pixels unlike a colour; nil if there are none.
    private static func content(
        of image: PixelImage, _ edge: PixelColor, _ tolerance: Int
    ) -> (left: Int, top: Int, right: Int, bottom: Int)? {
        let channels = [Int(edge.red), Int(edge.green), Int(edge.blue), Int(edge.alpha)]
        return image.withUnsafeBytes { bytes -> (left: Int, top: Int, right: Int, bottom: Int)? in
            func isEdge(_ x: Int, _ y: Int) -> Bool {
                let at = y &* image.bytesPerRow &+ 4 &* x
                for channel in 0..<4 where abs(Int(bytes[at &+ channel]) &- channels[channel]) > tolerance {
                    return false
                }
                return true
            }
            var left = image.width, right = 0, top = image.height, bottom = 0
            for y in 0..<image.height {
                var first = 0
                while first < image.width, isEdge(first, y) { first &+= 1 }
                if first == image.width { continue }
                var last = image.width &- 1
                while isEdge(last, y) { last &-= 1 }
                (left, right) = (min(left, first), max(right, last &+ 1))
                (top, bottom) = (min(top, y), y &+ 1)
            }
            return bottom == 0 ? nil : (left, top, right, bottom)
        }
    }

    // MARK: Around the image

    private func extended(_ image: PixelImage, _ sizes: RenderGeometry) throws(ImageError) -> PixelImage {
        var image = image
        if let gravity = options.extend {
            image = try placed(image, in: sizes.target, gravity, scale: sizes.scale)
        }
        if let gravity = options.extendAspectRatio, let size = sizes.aspectRatioSize {
            image = try placed(image, in: size, gravity, scale: sizes.scale)
        }
        if let padding = options.padding {
            let sides = sizes.paddings(padding)
            let size = PixelSize(
                width: image.width + sides.left + sides.right, height: image.height + sides.top + sides.bottom)
            image = try canvas(size, with: image, x: sides.left, y: sides.top)
        }
        return image
    }

    private func placed(
        _ image: PixelImage, in box: PixelSize, _ gravity: ProcessingOptions.Gravity, scale: Double
    ) throws(ImageError) -> PixelImage {
        let size = PixelSize(width: max(box.width, image.width), height: max(box.height, image.height))
        let place = RenderGeometry.position(of: image.size, in: size, gravity, scale: scale)
        return try canvas(size, with: image, x: place.x, y: place.y)
    }

    /// A transparent image with another one on it, which may reach beyond its edges.
    private func canvas(_ size: PixelSize, with image: PixelImage, x: Int, y: Int) throws(ImageError) -> PixelImage {
        guard size != image.size || x != 0 || y != 0 else { return image }
        let limit = maximumSide
        let longest = max(size.width, size.height)
        guard longest <= limit || (size.width <= image.width && size.height <= image.height) else {
            throw .limitExceeded(input: "", limit: .outputSide, actual: longest, allowed: limit)
        }
        let (left, top) = (max(0, x), max(0, y))
        let (right, bottom) = (min(size.width, x + image.width), min(size.height, y + image.height))
        let alpha: PixelImage.Alpha = image.alpha == .opaque ? .straight : image.alpha
        return PixelImage(width: size.width, height: size.height, alpha: alpha) { target in
            guard let base = target.baseAddress else { return }
            base.initializeMemory(as: UInt8.self, repeating: 0, count: target.count)
            guard left < right, top < bottom else { return }
            image.withUnsafeBytes { source in
                guard let start = source.baseAddress else { return }
                for row in top..<bottom {
                    (base + (row * size.width + left) * 4).copyMemory(
                        from: start + ((row - y) * image.bytesPerRow + (left - x) * 4), byteCount: (right - left) * 4)
                }
            }
        }
    }

    private func marked(
        _ image: PixelImage, watermark: PixelImage, wanted: ProcessingOptions.Watermark, sizes: RenderGeometry
    ) throws(ImageError) -> PixelImage {
        var mark = watermark
        if wanted.scale > 0 {
            let box = PixelSize(
                width: RenderGeometry.scaled(image.width, by: min(wanted.scale, 1)),
                height: RenderGeometry.scaled(image.height, by: min(wanted.scale, 1)))
            mark = try ImageResizer.fit(width: box.width, height: box.height).resize(mark)
        }
        let opacity = max(0, min(1, wanted.opacity * watermarkOpacity))
        guard let gravity = wanted.position else {
            return try image.processed(by: [.watermark(mark, at: .topLeft, opacity: opacity, isTiled: true)])
        }
        let place = RenderGeometry.position(of: mark.size, in: image.size, gravity, scale: sizes.scale, mayExceed: true)
        let layer = try canvas(image.size, with: mark, x: place.x, y: place.y)
        return try image.processed(by: [.watermark(layer, at: .topLeft, opacity: opacity)])
    }
}

extension ProcessingOptions {
    /// The options that change the result, as a text that is the same in every run. Equal texts have equal results.
    package var resultName: String {
        var parts: [String] = []
        func add(_ name: String, _ value: some CustomStringConvertible, unless isDefault: Bool) {
            if !isDefault { parts.append("\(name):\(value)") }
        }
        func text(_ gravity: Gravity) -> String { "\(gravity.anchor.rawValue),\(gravity.x),\(gravity.y)" }
        func text(_ color: PixelColor) -> String { "\(color.red),\(color.green),\(color.blue),\(color.alpha)" }
        if let trim {
            let color = trim.color.map(text) ?? ""
            parts.append("t:\(trim.threshold),\(color),\(trim.equalHorizontal),\(trim.equalVertical)")
        }
        if let crop { parts.append("c:\(crop.width),\(crop.height),\(crop.gravity.map(text) ?? "")") }
        add("rt", resizingType.rawValue, unless: width == 0 && height == 0)
        add("w", width, unless: width == 0)
        add("h", height, unless: height == 0)
        add("mw", minimumWidth, unless: minimumWidth == 0)
        add("mh", minimumHeight, unless: minimumHeight == 0)
        add("zx", zoomX, unless: zoomX == 1)
        add("zy", zoomY, unless: zoomY == 1)
        add("dpr", dpr, unless: dpr == 1)
        add("el", 1, unless: !enlarge)
        if let extend { parts.append("ex:\(text(extend))") }
        if let extendAspectRatio { parts.append("exar:\(text(extendAspectRatio))") }
        add("g", text(gravity), unless: gravity == Gravity())
        add("ar", 0, unless: autoRotate)
        add("rot", ((rotation % 360) + 360) % 360, unless: rotation % 360 == 0)
        add("fl", "\(flipHorizontal),\(flipVertical)", unless: !flipHorizontal && !flipVertical)
        add("bl", blur, unless: blur <= 0)
        add("sh", sharpen, unless: sharpen <= 0)
        add("pix", pixelate, unless: pixelate <= 1)
        add("gs", 1, unless: !grayscale)
        add("bt", 1, unless: !isBitonal)
        if let iiif = sourceRules?.iiif { parts.append("iiif:\(iiif.name)") }
        if let padding { parts.append("pd:\(padding.top),\(padding.right),\(padding.bottom),\(padding.left)") }
        if let watermark {
            parts.append("wm:\(watermark.opacity),\(watermark.position.map(text) ?? "re"),\(watermark.scale)")
        }
        if let background { parts.append("bg:\(text(background))") }
        add("page", page, unless: page == 1)
        if let second { parts.append("sec:\(second)") }
        if let format { parts.append("f:\(format.rawValue)") }
        if let quality { parts.append("q:\(quality)") }
        for (format, quality) in formatQuality.map({ ($0.key.rawValue, $0.value) }).sorted(by: { $0.0 < $1.0 }) {
            parts.append("fq:\(format),\(quality)")
        }
        add("mb", maximumBytes, unless: maximumBytes <= 0)
        if let stripMetadata { parts.append("sm:\(stripMetadata)") }
        if let keepCopyright { parts.append("kcr:\(keepCopyright)") }
        for format in skipProcessing.map(\.rawValue).sorted() { parts.append("skp:\(format)") }
        add("raw", 1, unless: !isRaw)
        if !cacheBuster.isEmpty { parts.append("cb:\(cacheBuster.utf8.count):\(cacheBuster)") }
        return parts.joined(separator: "/")
    }
}
