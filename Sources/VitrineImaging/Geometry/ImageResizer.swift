/// A rule for the size of a picture, and its application.
///
/// ```swift
/// let thumbnail = try ImageResizer.fit(200).resize(image)
/// let cover = try ImageResizer.crop(width: 300, height: 200, gravity: .attention).resize(image)
/// ```
///
/// Sides that follow from a ratio are rounded up, in whole-number arithmetic (R59). A picture that needs no work is
/// returned as it is, sharing its memory (R61).
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
/// - ``targetSize(for:)``
public struct ImageResizer: Hashable, Sendable {
    /// How a picture is brought to ``ImageResizer/size``.
    public enum Mode: Hashable, Sendable, Codable {
        /// To exactly the size; the ratio may change.
        case fill
        /// To the largest size inside it.
        case aspectFit
        /// To the smallest size that covers it, nothing cut off.
        case aspectFill
        /// To the smallest size that covers it, then cut to exactly the size.
        case crop(Gravity)
        /// Like ``aspectFit``, but never enlarged, and a side of 0 is no limit (R62).
        case limit
        /// Not at all.
        case none
    }

    /// Width and height aimed at, before ``scale``.
    public var size: PixelSize
    public var mode: Mode
    /// Whether a picture may grow. If not, one whose target exceeds it in either dimension is returned as it is (R60).
    public var allowsUpscaling: Bool
    /// Pixels for each unit of ``size``, as of a display of high density; the product is rounded up (R66).
    public var scale: Double
    /// The longest side a result may have, in pixels. Default ``ImageLimits/maximumOutputSide``.
    public var maximumSide = ImageLimits.standard.maximumOutputSide

    public init(size: PixelSize = .zero, mode: Mode = .none, allowsUpscaling: Bool = true, scale: Double = 1) {
        self.size = size
        self.mode = mode
        self.allowsUpscaling = allowsUpscaling
        self.scale = scale
    }

    /// The largest size inside a box.
    public static func fit(width: Int, height: Int) -> ImageResizer {
        ImageResizer(size: PixelSize(width: width, height: height), mode: .aspectFit)
    }

    /// The largest size inside a square.
    public static func fit(_ side: Int) -> ImageResizer { fit(width: side, height: side) }

    /// The smallest size covering a box.
    public static func fill(width: Int, height: Int) -> ImageResizer {
        ImageResizer(size: PixelSize(width: width, height: height), mode: .aspectFill)
    }

    /// Exactly this size, whatever that does to the ratio.
    public static func stretch(width: Int, height: Int) -> ImageResizer {
        ImageResizer(size: PixelSize(width: width, height: height), mode: .fill)
    }

    /// Exactly this size, by covering it and cutting off what is too much.
    public static func crop(width: Int, height: Int, gravity: Gravity = .center) -> ImageResizer {
        ImageResizer(size: PixelSize(width: width, height: height), mode: .crop(gravity))
    }

    /// Not above these sides, with the ratio kept; 0 is no limit.
    public static func limit(width: Int, height: Int) -> ImageResizer {
        ImageResizer(size: PixelSize(width: width, height: height), mode: .limit, allowsUpscaling: false)
    }

    /// Every picture as it is.
    public static let none = ImageResizer()

    // MARK: Sizes

    /// The size a picture of `source` is scaled to; with ``Mode/crop(_:)`` before anything is cut off.
    ///
    /// - Throws: ``ImageError/invalidRequest(reason:)`` if ``size`` has a side of 0 (unless ``Mode/none``, or
    ///   ``Mode/limit``), is negative, or `source` is empty; ``ImageError/limitExceeded(input:limit:actual:allowed:)``
    ///   if the result's longer side is above ``maximumSide``.
    public func targetSize(for source: PixelSize) throws(ImageError) -> PixelSize {
        guard !source.isEmpty, source.longestSide <= Self.longest else {
            throw .invalidRequest(reason: "a picture of \(source) cannot be resized")
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

    /// The size ``resize(_:)`` gives a picture of `source`.
    ///
    /// - Throws: As ``targetSize(for:)``.
    public func outputSize(for source: PixelSize) throws(ImageError) -> PixelSize {
        let target = try targetSize(for: source)
        guard case .crop = mode else { return target }
        let box = try box()
        // A picture left alone for want of pixels is not cut either.
        return target == Self.scaled(source, to: box, mode) ? box : target
    }

    /// Sides above this are refused, so that products of two fit 64 bits.
    private static let longest = 1 << 30

    /// The size in pixels.
    private func box() throws(ImageError) -> PixelSize {
        let isLimit = mode == .limit
        guard scale.isFinite, scale > 0 else { throw .invalidRequest(reason: "a scale must be positive, not \(scale)") }
        func side(_ side: Int) throws(ImageError) -> Int {
            guard side > 0 || (isLimit && side == 0) else {
                throw .invalidRequest(reason: "pictures cannot be resized to \(size)")
            }
            if scale == 1 && side <= Self.longest { return side }
            let pixels = (Double(side) * scale).rounded(.up)
            guard pixels <= Double(Self.longest) else {
                if isLimit { return 0 }
                throw .limitExceeded(
                    input: "", limit: .outputSide, actual: Int(min(pixels, 1e15)), allowed: maximumSide)
            }
            return Int(pixels)
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
        func ratio(_ a: Int, _ b: Int, _ c: Int) -> Int { max(1, (a * b + c - 1) / c) }
        let byWidth = PixelSize(width: box.width, height: ratio(h, box.width, w))
        let byHeight = PixelSize(width: ratio(w, box.height, h), height: box.height)
        let isWider = w * box.height >= h * box.width
        switch mode {
        case .none: return source
        case .fill: return box
        case .aspectFit: return isWider ? byWidth : byHeight
        case .aspectFill, .crop: return isWider ? byHeight : byWidth
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
