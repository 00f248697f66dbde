/// One step that makes a new image from an image: rounding corners, blurring, your own drawing.
///
/// ```swift
/// struct Inverted: ImageProcessing {
///     let identifier = "inverted"
///
///     func process(_ image: PixelImage) throws(ImageError) -> PixelImage {
///         var result = image.converted(to: .opaque)
///         result.withUnsafeMutableBytes { bytes in
///             for i in bytes.indices where i % 4 != 3 { bytes[i] = 255 - bytes[i] }
///         }
///         return result
///     }
/// }
///
/// let negative = try photo.processed(by: [ImageProcessor(Inverted())])
/// ```
///
/// The library calls a processor on a thread that may block. A processor accepts every ``PixelImage/Alpha`` and returns
/// an image with the correct one.
public protocol ImageProcessing: Sendable {
    /// The name of the step with all its parameters, as part of cache keys.
    ///
    /// Two processors with one identifier must give equal pixels for equal pixels, in every run of the program. Put the
    /// length of text from outside before it, so that no text can imitate another processor.
    var identifier: String { get }

    /// Returns the processed image, or `image` itself when there is nothing to do.
    ///
    /// - Throws: ``ImageError/invalidRequest(reason:)`` when a parameter is out of its range;
    ///   ``ImageError/limitExceeded(input:limit:actual:allowed:)`` when the result would be larger than
    ///   ``ImageLimits/maximumOutputSide``.
    func process(_ image: PixelImage) throws(ImageError) -> PixelImage
}

extension PixelImage {
    /// Returns the image after each of `processors` in order.
    ///
    /// ```swift
    /// let avatar = try photo.processed(by: [.circle(border: ImageBorder(color: .white)), .background(.black)])
    /// ```
    ///
    /// - Throws: The error of the first processor that fails; see ``ImageProcessing/process(_:)``.
    public func processed(by processors: [ImageProcessor]) throws(ImageError) -> PixelImage {
        var image = self
        for processor in processors { image = try processor.process(image) }
        return image
    }
}

/// A processor as a value: a built-in one by leading dot, or any ``ImageProcessing`` by ``init(_:)``.
///
/// Lengths are pixels of the image that is processed. Rows count downwards from the top. Parameters are checked when
/// an image is processed, not when the value is made.
///
/// ## Topics
///
/// ### Shape
///
/// - ``resize(_:)``
/// - ``crop(x:y:width:height:)``
/// - ``crop(width:height:gravity:)``
/// - ``trim(tolerance:)``
/// - ``roundCorners(_:border:)``
/// - ``roundCorners(topLeft:topRight:bottomRight:bottomLeft:border:)``
/// - ``circle(border:)``
/// - ``border(width:color:)``
/// - ``rotate(degrees:background:)``
/// - ``flip(_:)``
///
/// ### Colour
///
/// - ``background(_:)``
/// - ``grayscale``
/// - ``tint(_:opacity:mode:)``
///
/// ### Detail
///
/// - ``blur(radius:)``
/// - ``sharpen(amount:radius:)``
/// - ``pixelate(block:)``
///
/// ### Composition
///
/// - ``watermark(_:at:scale:opacity:margin:isTiled:)``
/// - ``custom(identifier:_:)``
public struct ImageProcessor: Sendable, Hashable {
    private let step: Step
    private var base: any ImageProcessing { step.base }

    /// Wraps a processor of your own.
    public init(_ base: some ImageProcessing) {
        step = Step(base: base)
    }

    /// The identifier of the wrapped processor; see ``ImageProcessing/identifier``.
    public var identifier: String { base.identifier }

    /// Processes an image; see ``ImageProcessing/process(_:)``.
    ///
    /// - Throws: The error of the wrapped processor, or ``ImageError/limitExceeded(input:limit:actual:allowed:)`` if it
    ///   enlarges the image beyond ``ImageLimits/maximumOutputSide``.
    package func process(_ image: PixelImage) throws(ImageError) -> PixelImage {
        let result = try base.process(image)
        // Images that were decoded at a larger size keep it, and resizers have a limit of their own.
        if result.size.longestSide > image.size.longestSide, !(base is ResizeProcessor) {
            try ProcessorCheck.outputSide(result.size, identifier)
        }
        return result
    }
}

/// An operation on pixels. Two with the same identifier are equal.
private struct Step: Sendable, Hashable {
    let base: any ImageProcessing

    static func == (a: Step, b: Step) -> Bool { a.base.identifier == b.base.identifier }

    func hash(into hasher: inout Hasher) { hasher.combine(base.identifier) }
}

extension ImageProcessor {
    /// Resizes the image.
    ///
    /// For a file, ask ``ImageDecoder`` for the size instead, which costs far less than a decode of all pixels.
    public static func resize(_ resizer: ImageResizer) -> ImageProcessor {
        ImageProcessor(ResizeProcessor(resizer: resizer))
    }

    /// Cuts a rectangle out. A rectangle that reaches beyond the image is reduced to the part inside.
    ///
    /// - Throws: ``ImageError/invalidRequest(reason:)`` when nothing of the image is inside.
    public static func crop(x: Int, y: Int, width: Int, height: Int) -> ImageProcessor {
        ImageProcessor(CropProcessor(x: x, y: y, width: width, height: height))
    }

    /// Cuts a part of this size out, and scales nothing. A side longer than the image's becomes the image's.
    ///
    /// - Parameters:
    ///   - width: The width of the part in pixels.
    ///   - height: The height of the part in pixels.
    ///   - gravity: The place of the part. ``Gravity/attention`` finds the part with the most detail.
    /// - Throws: ``ImageError/invalidRequest(reason:)`` for a side that is not positive.
    public static func crop(width: Int, height: Int, gravity: Gravity) -> ImageProcessor {
        ImageProcessor(GravityCropProcessor(width: width, height: height, gravity: gravity))
    }

    /// Removes edges in the colour of the top left pixel. An image in that colour alone stays as it is.
    ///
    /// - Parameter tolerance: The largest difference of a channel to that colour in the edge, 0…255. Default 0.
    public static func trim(tolerance: Int = 0) -> ImageProcessor {
        ImageProcessor(TrimProcessor(tolerance: tolerance))
    }

    /// Rounds all corners with circles of `radius` pixels, and draws a border along them.
    ///
    /// Radii that do not fit are all reduced by one factor, as in CSS. Edges are smooth and pixels outside transparent:
    /// add ``background(_:)`` for an opaque image.
    public static func roundCorners(_ radius: Double, border: ImageBorder? = nil) -> ImageProcessor {
        roundCorners(
            topLeft: radius, topRight: radius, bottomRight: radius, bottomLeft: radius, border: border)
    }

    /// Rounds each corner with its own radius in pixels; 0, the default, keeps it square.
    public static func roundCorners(
        topLeft: Double = 0, topRight: Double = 0, bottomRight: Double = 0, bottomLeft: Double = 0,
        border: ImageBorder? = nil
    ) -> ImageProcessor {
        let radii = CornerRadii(
            topLeft: topLeft, topRight: topRight, bottomRight: bottomRight, bottomLeft: bottomLeft)
        return ImageProcessor(RoundCornersProcessor(shape: .radii(radii), border: border))
    }

    /// Cuts the square in the middle of the image, then a circle out of it.
    public static func circle(border: ImageBorder? = nil) -> ImageProcessor {
        ImageProcessor(RoundCornersProcessor(shape: .circle, border: border))
    }

    /// Draws a frame inside the edges of the image, whose size stays the same.
    ///
    /// - Parameters:
    ///   - width: In pixels, fractions allowed; 1, a hairline, by default.
    ///   - color: The colour of the frame.
    public static func border(width: Double = 1, color: PixelColor) -> ImageProcessor {
        let border = ImageBorder(width: width, color: color)
        return ImageProcessor(RoundCornersProcessor(shape: .radii(CornerRadii(0)), border: border))
    }

    /// Puts a colour behind the image. An opaque colour makes the result opaque.
    public static func background(_ color: PixelColor) -> ImageProcessor {
        ImageProcessor(BackgroundProcessor(color: color))
    }

    /// Blurs with a Gaussian whose standard deviation is `radius` pixels, 0…500; 0 changes nothing.
    ///
    /// The pixels at the edges continue outwards.
    public static func blur(radius: Double) -> ImageProcessor {
        ImageProcessor(BlurProcessor(radius: radius))
    }

    /// Unsharp masking: adds `amount` times the difference to a blurred copy.
    ///
    /// - Parameters:
    ///   - amount: 0…10; 0 changes nothing. Default 0.5, which suits images that were just reduced.
    ///   - radius: Standard deviation of the blur in pixels, 0…500. Default 1.
    public static func sharpen(amount: Double = 0.5, radius: Double = 1) -> ImageProcessor {
        ImageProcessor(SharpenProcessor(amount: amount, radius: radius))
    }

    /// Replaces colours by their luma (ITU-R BT.709 §3.2). Alpha stays.
    public static let grayscale = ImageProcessor(GrayscaleProcessor())

    /// Colours the image.
    ///
    /// - Parameters:
    ///   - color: The tint.
    ///   - opacity: The share of the tinted image, 0…1. Default 1.
    ///   - mode: Whether the image serves as a stencil or keeps its shades.
    public static func tint(_ color: PixelColor, opacity: Double = 1, mode: TintMode = .template) -> ImageProcessor {
        ImageProcessor(TintProcessor(color: color, opacity: opacity, mode: mode))
    }

    /// Draws another image on top.
    ///
    /// Reads all pixels of `image` for cache keys: use one processor for many images.
    ///
    /// - Parameters:
    ///   - image: The image to draw.
    ///   - position: Its place. ``Gravity/attention`` is none and an error. Default bottom right.
    ///   - scale: The share of the other image's width and height that it fits into, above 0 up to 1. Default nil:
    ///     its own size in pixels.
    ///   - opacity: From 0, invisible, to 1, the default.
    ///   - margin: Pixels between the watermark and the edges, and between tiles. Default 0.
    ///   - isTiled: Whether copies cover the whole image, one of them at `position`. Default false.
    public static func watermark(
        _ image: PixelImage, at position: Gravity = .bottomRight, scale: Double? = nil, opacity: Double = 1,
        margin: Int = 0, isTiled: Bool = false
    ) -> ImageProcessor {
        ImageProcessor(
            WatermarkProcessor(
                image, position: position, scale: scale, opacity: opacity, margin: margin, isTiled: isTiled))
    }

    /// Rotates the image clockwise.
    ///
    /// Multiples of 90 move pixels and lose nothing. Other angles interpolate, and the result grows to hold the rotated
    /// image with `background` in its corners.
    public static func rotate(degrees: Double, background: PixelColor = .clear) -> ImageProcessor {
        ImageProcessor(RotateProcessor(degrees: degrees, background: background))
    }

    /// Mirrors the image.
    public static func flip(_ axis: FlipAxis) -> ImageProcessor { ImageProcessor(FlipProcessor(axis: axis)) }

    /// Fills squares of `block` pixels a side with their mean colour; 1 changes nothing.
    public static func pixelate(block: Int) -> ImageProcessor { ImageProcessor(PixelateProcessor(block: block)) }

    /// Calls a closure.
    ///
    /// ```swift
    /// let frosted = ImageProcessor.custom(identifier: "frosted-2") { image throws(ImageError) in
    ///     try image.processed(by: [.blur(radius: 2), .tint(.white, opacity: 0.2, mode: .template)])
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - identifier: Names the work of `body` with everything it depends on. Results are cached under it.
    ///   - body: Returns the new image.
    public static func custom(
        identifier: String, _ body: @escaping @Sendable (PixelImage) throws(ImageError) -> PixelImage
    ) -> ImageProcessor {
        ImageProcessor(CustomProcessor(name: identifier, body: body))
    }
}

/// Resizes an image.
private struct ResizeProcessor: ImageProcessing {
    let resizer: ImageResizer

    var identifier: String { resizer.identifier }

    func process(_ image: PixelImage) throws(ImageError) -> PixelImage { try resizer.resize(image) }
}

/// A user's closure under a user's name.
private struct CustomProcessor: ImageProcessing {
    let name: String
    let body: @Sendable (PixelImage) throws(ImageError) -> PixelImage

    var identifier: String { "custom(\(ProcessorCheck.delimited(name)))" }

    func process(_ image: PixelImage) throws(ImageError) -> PixelImage { try body(image) }
}

/// Checks of parameters, and text for identifiers.
package enum ProcessorCheck {
    /// - Throws: ``ImageError/invalidRequest(reason:)`` unless `value` is a number within `range`.
    package static func value(_ value: Double, in range: ClosedRange<Double>, _ name: String) throws(ImageError) {
        guard range.contains(value) else {
            throw .invalidRequest(reason: "\(name) must be \(range.lowerBound)…\(range.upperBound), not \(value)")
        }
    }

    /// - Throws: ``ImageError/invalidRequest(reason:)`` unless `value` is within `range`.
    package static func value(_ value: Int, in range: ClosedRange<Int>, _ name: String) throws(ImageError) {
        guard range.contains(value) else {
            throw .invalidRequest(reason: "\(name) must be \(range.lowerBound)…\(range.upperBound), not \(value)")
        }
    }

    /// - Throws: ``ImageError/limitExceeded(input:limit:actual:allowed:)`` when a result that is larger than its input
    ///   would break the default ``ImageLimits/maximumOutputSide``.
    package static func outputSide(_ size: PixelSize, _ operation: String) throws(ImageError) {
        let allowed = ImageLimits.standard.maximumOutputSide
        guard size.longestSide <= allowed else {
            throw .limitExceeded(input: operation, limit: .outputSide, actual: size.longestSide, allowed: allowed)
        }
    }

    /// Text from elsewhere, preceded by its length in bytes.
    static func delimited(_ text: String) -> String { "\(text.utf8.count):\(text)" }
}
