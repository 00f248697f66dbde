/// A rule for the size of images.
///
/// ```swift
/// let thumbnail = try ImageResizer.fit(200).resize(image)
/// let cover = try ImageResizer.crop(width: 300, height: 200, gravity: .attention).resize(image)
/// ```
///
/// Sides that follow from a ratio are rounded up, in whole-number arithmetic. An image that needs no work is returned
/// as it is and shares its memory.
///
/// ## Topics
///
/// ### Making one
///
/// - ``fit(width:height:)``
/// - ``fit(_:)``
/// - ``fill(width:height:)``
/// - ``stretch(width:height:)``
/// - ``crop(width:height:gravity:)``
/// - ``limit(width:height:)``
/// - ``none``
///
/// ### Using it
///
/// - ``resize(_:)``
/// - ``outputSize(for:)``
public struct ImageResizer: Hashable, Sendable {
    /// The relation of a result to ``ImageResizer/size``.
    ///
    /// | Mode | CSS | UIKit | SwiftUI |
    /// |---|---|---|---|
    /// | ``fit`` | `contain` | `scaleAspectFit` | `fit` |
    /// | ``fill`` | | `scaleAspectFill` | `fill` |
    /// | ``crop(_:)`` | `cover` | `scaleAspectFill`, clipped | `fill`, clipped |
    /// | ``stretch`` | `fill` | `scaleToFill` | |
    /// | ``limit`` | `scale-down` | | |
    public enum Mode: Hashable, Sendable {
        /// The largest size inside it.
        case fit
        /// The smallest size that covers it; nothing is cut off.
        case fill
        /// Exactly the size; the ratio may change.
        case stretch
        /// The smallest size that covers it, then cut to exactly the size.
        case crop(Gravity)
        /// Like ``fit``, but never enlarged, and a side of 0 is no limit.
        case limit
        /// The image's own size.
        case none
    }

    /// The wanted width and height, in pixels.
    public var size: PixelSize
    /// The relation of a result to ``size``.
    public var mode: Mode
    /// Whether an image may grow. If not, an image smaller than its target in either dimension stays as it is.
    public var allowsUpscaling: Bool
    /// The longest side a result may have, in pixels. Default ``ImageLimits/maximumOutputSide``.
    package var maximumSide = ImageLimits.standard.maximumOutputSide

    /// Creates a rule; by default one that changes nothing.
    public init(size: PixelSize = .zero, mode: Mode = .none, allowsUpscaling: Bool = true) {
        self.size = size
        self.mode = mode
        self.allowsUpscaling = allowsUpscaling
    }

    /// Returns the rule for the largest size inside a box.
    public static func fit(width: Int, height: Int) -> ImageResizer {
        ImageResizer(size: PixelSize(width: width, height: height), mode: .fit)
    }

    /// Returns the rule for the largest size inside a square.
    public static func fit(_ side: Int) -> ImageResizer { fit(width: side, height: side) }

    /// Returns the rule for the smallest size that covers a box.
    public static func fill(width: Int, height: Int) -> ImageResizer {
        ImageResizer(size: PixelSize(width: width, height: height), mode: .fill)
    }

    /// Returns the rule for exactly this size, which may change the ratio.
    public static func stretch(width: Int, height: Int) -> ImageResizer {
        ImageResizer(size: PixelSize(width: width, height: height), mode: .stretch)
    }

    /// Returns the rule for exactly this size: covers it, then cuts off the rest.
    public static func crop(width: Int, height: Int, gravity: Gravity = .center) -> ImageResizer {
        ImageResizer(size: PixelSize(width: width, height: height), mode: .crop(gravity))
    }

    /// Returns the rule that reduces images above these sides and keeps the ratio; 0 is no limit.
    public static func limit(width: Int, height: Int) -> ImageResizer {
        ImageResizer(size: PixelSize(width: width, height: height), mode: .limit, allowsUpscaling: false)
    }

    /// The rule that changes no image.
    public static let none = ImageResizer()

    // MARK: Sizes

    /// Returns the size to which an image of `source` is scaled, before ``Mode/crop(_:)`` cuts anything off.
    ///
    /// - Throws: As ``outputSize(for:)``.
    package func targetSize(for source: PixelSize) throws(ImageError) -> PixelSize {
        guard !source.isEmpty, source.longestSide <= Self.longest else {
            throw .invalidRequest(reason: "an image of \(source) cannot be resized")
        }
        if mode == .none { return source }
        let box = try box()
        let target = Self.scaled(source, to: box, mode)
        let exceeds = target.width > source.width || target.height > source.height
        if exceeds && (!allowsUpscaling || mode == .limit) { return source }
        if case .crop = mode {
            try check(box)
        } else if target != source {
            try check(target)
        }
        return target
    }

    /// Returns the size of the result of ``resize(_:)`` for an image of `source`.
    ///
    /// - Throws: ``ImageError/invalidRequest(reason:)`` for an empty `source` and a side of ``size`` that is not
    ///   positive. A side of 0 is valid for ``Mode/limit``, and ``Mode/none`` ignores both. ``ImageError/limitExceeded(input:limit:actual:allowed:)`` if the result's longer side is above
    ///   ``ImageLimits/maximumOutputSide``.
    public func outputSize(for source: PixelSize) throws(ImageError) -> PixelSize {
        let target = try targetSize(for: source)
        guard case .crop = mode else { return target }
        let box = try box()
        // An image that is too small to be scaled is not cut either.
        return target == Self.scaled(source, to: box, mode) ? box : target
    }

    /// The longest side accepted, so that products of two fit 64 bits.
    private static let longest = 1 << 30

    /// The size, if it is valid.
    private func box() throws(ImageError) -> PixelSize {
        let isLimit = mode == .limit
        func side(_ side: Int) throws(ImageError) -> Int {
            guard side > 0 || (isLimit && side == 0) else {
                throw .invalidRequest(reason: "images cannot be resized to \(size)")
            }
            if side <= Self.longest { return side }
            if isLimit { return 0 }
            throw .limitExceeded(input: "", limit: .outputSide, actual: side, allowed: maximumSide)
        }
        return PixelSize(width: try side(size.width), height: try side(size.height))
    }

    private func check(_ size: PixelSize) throws(ImageError) {
        guard size.longestSide <= maximumSide else {
            throw .limitExceeded(input: "", limit: .outputSide, actual: size.longestSide, allowed: maximumSide)
        }
    }

    private static func scaled(_ source: PixelSize, to box: PixelSize, _ mode: Mode) -> PixelSize {
        let (w, h) = (source.width, source.height)
        /// `a * b / c`, rounded up, at least 1.
        func ratio(a: Int, b: Int, c: Int) -> Int { max(1, (a * b + c - 1) / c) }
        let byWidth = PixelSize(width: box.width, height: ratio(a: h, b: box.width, c: w))
        let byHeight = PixelSize(width: ratio(a: w, b: box.height, c: h), height: box.height)
        let isWider = w * box.height >= h * box.width
        switch mode {
        case .none: return source
        case .stretch: return box
        case .fit: return isWider ? byWidth : byHeight
        case .fill, .crop: return isWider ? byHeight : byWidth
        case .limit:
            switch (box.width, box.height) {
            case (0, 0): return source
            case (_, 0): return byWidth
            case (0, _): return byHeight
            default: return isWider ? byWidth : byHeight
            }
        }
    }
}

extension ImageResizer {
    /// Returns the image at ``outputSize(for:)``; the very same image when nothing is to be done.
    ///
    /// Filters with Lanczos3. An image with straight alpha becomes premultiplied, unless it stays as it is or is only
    /// cut.
    ///
    /// - Throws: As ``outputSize(for:)``.
    public func resize(_ image: PixelImage) throws(ImageError) -> PixelImage {
        let output = try outputSize(for: image.size)
        guard output != image.size else { return image }
        guard case .crop(let gravity) = mode else { return image.scaled(to: output, region: nil) }
        let window = Self.window(of: output, in: image, gravity)
        if window.width == Double(output.width) && window.height == Double(output.height) {
            // Nothing is scaled: whole pixels, so that none is blurred.
            return image.cropped(
                x: Int(window.x.rounded()), y: Int(window.y.rounded()), width: output.width, height: output.height)
        }
        return image.scaled(to: output, region: window)
    }

    /// Returns the part of an image of `source` that becomes the result. nil where nothing is cut off, and for
    /// ``Gravity/attention``, which reads the pixels.
    ///
    /// - Throws: As ``outputSize(for:)``.
    package func cropRegion(for source: PixelSize) throws(ImageError) -> UnitRect? {
        guard case .crop(let gravity) = mode, let focus = gravity.focus else { return nil }
        let output = try outputSize(for: source)
        guard output != source else { return nil }
        let window = Self.window(of: output, in: source, focus)
        let (width, height) = (Double(source.width), Double(source.height))
        return UnitRect(
            x: window.x / width, y: window.y / height, width: window.width / width, height: window.height / height)
    }

    /// Returns the largest part of an image of `source` that has the ratio of `output`.
    private static func window(
        of output: PixelSize, in source: PixelSize, _ focus: (x: Double, y: Double)
    ) -> PixelRegion {
        let width = Double(source.width)
        let height = Double(source.height)
        let reduction = min(width / Double(output.width), height / Double(output.height))
        var window = PixelRegion(
            x: 0, y: 0, width: min(width, Double(output.width) * reduction),
            height: min(height, Double(output.height) * reduction))
        window.x = max(0, min(width - window.width, focus.x * width - window.width / 2))
        window.y = max(0, min(height - window.height, focus.y * height - window.height / 2))
        return window
    }

    /// Returns the same for a gravity that may read the pixels.
    static func window(of output: PixelSize, in image: PixelImage, _ gravity: Gravity) -> PixelRegion {
        if let focus = gravity.focus { return window(of: output, in: image.size, focus) }
        let width = Double(image.width)
        let height = Double(image.height)
        var window = window(of: output, in: image.size, (0.5, 0.5))
        let best = AttentionMap(image.forAttention).bestWindow(
            width: window.width / width, height: window.height / height)
        window.x = max(0, min(width - window.width, best.x * width))
        window.y = max(0, min(height - window.height, best.y * height))
        return window
    }
}

extension PixelImage {
    /// Returns the image, or a region of it in pixels, scaled with Lanczos3; premultiplied if it has alpha.
    package func scaled(to size: PixelSize, region: PixelRegion?) -> PixelImage {
        let plane = PixelPlane(width: width, height: height, channels: 4, bytesPerRow: bytesPerRow, storage: storage)
        let scaled = Resampler.resample(plane, to: size, region: region, premultiplying: alpha == .straight)
        // Only a cancelled run has no result, and this one has no token.
        guard let scaled else { return self }
        var image = PixelImage(
            width: scaled.width, height: scaled.height, bytesPerRow: scaled.bytesPerRow,
            alpha: alpha == .opaque ? .opaque : .premultiplied, storage: scaled.storage)
        if alpha != .opaque && scaled.storage !== storage { image.limitToAlpha() }
        return image
    }

    private mutating func limitToAlpha() {
        let (width, height, row) = (self.width, self.height, bytesPerRow)
        withUnsafeMutableBytes { bytes in
            guard let pixels = bytes.bindMemory(to: UInt8.self).baseAddress else { return }
            for y in 0..<height { AlphaMath.limit(pixels + y * row, count: width) }
        }
    }
}

extension ImageResizer {
    /// Size, mode and permission to enlarge: results of different rules never share a key.
    package var identifier: String {
        "resize(\(size.width)x\(size.height) \(mode.identifier)\(allowsUpscaling ? "" : " no-upscaling"))"
    }
}

extension ImageResizer.Mode {
    /// The name in keys of caches.
    package var identifier: String {
        switch self {
        // Keys on disk never change: the mode had the name that CSS gives it.
        case .stretch: "fill"
        case .fit: "fit"
        case .fill: "cover"
        case .crop(let gravity): "crop-\(gravity)"
        case .limit: "limit"
        case .none: "none"
        }
    }
}
