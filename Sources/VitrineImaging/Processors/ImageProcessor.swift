/// One step that makes a new picture from a picture: rounding corners, blurring, a caller's own drawing.
///
/// Synchronous: the library calls it off the cooperative pool. A processor accepts every ``Image/Alpha`` and labels
/// what it returns correctly.
public protocol ImageProcessing: Sendable {
    /// What the processor does, parameters included, as part of a cache key.
    ///
    /// Two processors with one identifier must give equal pixels for equal pixels, in every run of the program. Text
    /// that came from elsewhere is preceded by its length, so that no text can imitate another processor.
    var identifier: String { get }

    /// The processed picture; `image` itself when there is nothing to do.
    ///
    /// - Throws: ``ImageError/invalidRequest(reason:)`` when a parameter is out of its range;
    ///   ``ImageError/limitExceeded(input:limit:actual:allowed:)`` when the result would be larger than
    ///   ``ImageLimits/maximumOutputSide``.
    func process(_ image: Image) throws(ImageError) -> Image
}

extension Image {
    /// The picture after each of `processors` in order.
    ///
    /// ```swift
    /// let avatar = try photo.processed(by: [.circle(border: .hairline(.white)), .background(.black)])
    /// ```
    ///
    /// - Throws: What the first processor that fails throws; see ``ImageProcessing/process(_:)``.
    public func processed(by processors: [ImageProcessor]) throws(ImageError) -> Image {
        var image = self
        for processor in processors { image = try processor.process(image) }
        return image
    }
}

/// A processor as a value: the built-in ones by leading dot, any ``ImageProcessing`` by ``init(_:)``.
///
/// Lengths are pixels of the picture being processed; rows count downwards from the top. Parameters are checked when
/// a picture is processed, not when the value is made.
///
/// ## Topics
///
/// ### Shape
///
/// - ``resize(_:)``
/// - ``crop(x:y:width:height:)``
/// - ``trim(tolerance:)``
/// - ``roundCorners(_:border:)-(Double,_)``
/// - ``roundCorners(_:border:)-(CornerRadii,_)``
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
/// - ``watermark(_:)``
/// - ``sequence(_:)``
/// - ``custom(identifier:_:)``
public struct ImageProcessor: ImageProcessing, Hashable, CustomStringConvertible {
    private let base: any ImageProcessing

    /// Wraps a processor of your own.
    public init(_ base: some ImageProcessing) {
        self.base = base
    }

    public var identifier: String { base.identifier }

    public func process(_ image: Image) throws(ImageError) -> Image { try base.process(image) }

    /// The identifier.
    public var description: String { identifier }

    /// Processors are equal when their identifiers are.
    public static func == (a: ImageProcessor, b: ImageProcessor) -> Bool { a.identifier == b.identifier }

    public func hash(into hasher: inout Hasher) { hasher.combine(identifier) }
}

extension ImageProcessor {
    /// The part of the picture inside a rectangle; what lies outside the picture is left away.
    ///
    /// - Throws: ``ImageError/invalidRequest(reason:)`` when nothing of the picture is inside.
    public static func crop(x: Int, y: Int, width: Int, height: Int) -> ImageProcessor {
        ImageProcessor(CropProcessor(x: x, y: y, width: width, height: height))
    }

    /// Removes edges of one colour, the colour of the top left pixel. A picture of that colour alone is left as it is.
    ///
    /// - Parameter tolerance: How far a channel may be from that colour and still belong to the edge, 0…255. Default 0.
    public static func trim(tolerance: Int = 0) -> ImageProcessor {
        ImageProcessor(TrimProcessor(tolerance: tolerance))
    }

    /// Rounds all corners with circles of `radius` pixels, and draws a border along them.
    ///
    /// Radii that do not fit are all made smaller by one factor, as in CSS. Edges are smooth: what lies outside is
    /// transparent, so follow with ``background(_:)`` where an opaque picture is wanted.
    public static func roundCorners(_ radius: Double, border: ImageBorder? = nil) -> ImageProcessor {
        roundCorners(CornerRadii(radius), border: border)
    }

    /// Rounds each corner with its own radius.
    public static func roundCorners(_ radii: CornerRadii, border: ImageBorder? = nil) -> ImageProcessor {
        ImageProcessor(RoundCornersProcessor(shape: .radii(radii), border: border))
    }

    /// Cuts the square in the middle of the picture, then a circle out of it.
    public static func circle(border: ImageBorder? = nil) -> ImageProcessor {
        ImageProcessor(RoundCornersProcessor(shape: .circle, border: border))
    }

    /// Draws a frame inside the edges of the picture, whose size stays the same.
    ///
    /// - Parameters:
    ///   - width: In pixels, fractions allowed; 1, a hairline, by default.
    ///   - color: What it is drawn in.
    public static func border(width: Double = 1, color: Color) -> ImageProcessor {
        let border = ImageBorder(width: width, color: color)
        return ImageProcessor(RoundCornersProcessor(shape: .radii(CornerRadii(0)), border: border))
    }

    /// Puts a colour behind the picture. The result is opaque if the colour is.
    public static func background(_ color: Color) -> ImageProcessor {
        ImageProcessor(BackgroundProcessor(color: color))
    }

    /// Blurs with a Gaussian whose standard deviation is `radius` pixels, 0…500; 0 changes nothing.
    ///
    /// The pixels at the edges are taken to continue outwards.
    public static func blur(radius: Double) -> ImageProcessor {
        ImageProcessor(BlurProcessor(radius: radius))
    }

    /// Unsharp masking: adds `amount` times the difference to a blurred copy.
    ///
    /// - Parameters:
    ///   - amount: 0…10; 0 changes nothing. Default 0.5, right after a reduction.
    ///   - radius: Standard deviation of the blur in pixels, 0…500. Default 1.
    public static func sharpen(amount: Double = 0.5, radius: Double = 1) -> ImageProcessor {
        ImageProcessor(SharpenProcessor(amount: amount, radius: radius))
    }

    /// Replaces colours by their luma (ITU-R BT.709 §3.2). Alpha stays.
    public static let grayscale = ImageProcessor(GrayscaleProcessor())

    /// Colours the picture.
    ///
    /// - Parameters:
    ///   - color: The tint.
    ///   - opacity: How much of the tinted picture to mix in, 0…1. Default 1.
    ///   - mode: What of the picture stays.
    public static func tint(_ color: Color, opacity: Double = 1, mode: TintMode = .template) -> ImageProcessor {
        ImageProcessor(TintProcessor(color: color, opacity: opacity, mode: mode))
    }

    /// Draws another picture on top.
    public static func watermark(_ watermark: Watermark) -> ImageProcessor {
        ImageProcessor(WatermarkProcessor(watermark: watermark))
    }

    /// Turns the picture clockwise.
    ///
    /// Multiples of 90 move pixels and lose nothing. Any other angle interpolates, and the result grows to hold the
    /// turned picture with `background` in its corners.
    public static func rotate(degrees: Double, background: Color = .clear) -> ImageProcessor {
        ImageProcessor(RotateProcessor(degrees: degrees, background: background))
    }

    /// Mirrors the picture.
    public static func flip(_ axis: FlipAxis) -> ImageProcessor { ImageProcessor(FlipProcessor(axis: axis)) }

    /// Fills squares of `block` pixels a side with their mean colour; 1 changes nothing.
    public static func pixelate(block: Int) -> ImageProcessor { ImageProcessor(PixelateProcessor(block: block)) }

    /// Several processors as one, in order.
    public static func sequence(_ processors: [ImageProcessor]) -> ImageProcessor {
        ImageProcessor(SequenceProcessor(processors: processors))
    }

    /// A processor written in place.
    ///
    /// - Parameters:
    ///   - identifier: Names what `body` does, everything it depends on included: results are cached under it.
    ///   - body: Makes the new picture.
    public static func custom(
        identifier: String, _ body: @escaping @Sendable (Image) throws(ImageError) -> Image
    ) -> ImageProcessor {
        ImageProcessor(CustomProcessor(name: identifier, body: body))
    }
}

/// Several processors as one.
struct SequenceProcessor: ImageProcessing {
    let processors: [ImageProcessor]

    var identifier: String {
        "sequence(" + processors.map { ProcessorCheck.delimited($0.identifier) }.joined() + ")"
    }

    func process(_ image: Image) throws(ImageError) -> Image { try image.processed(by: processors) }
}

/// A caller's closure under a caller's name.
struct CustomProcessor: ImageProcessing {
    let name: String
    let body: @Sendable (Image) throws(ImageError) -> Image

    var identifier: String { "custom(\(ProcessorCheck.delimited(name)))" }

    func process(_ image: Image) throws(ImageError) -> Image { try body(image) }
}

/// What all processors check of their parameters, and how they write them into identifiers.
enum ProcessorCheck {
    /// - Throws: ``ImageError/invalidRequest(reason:)`` unless `value` is a number within `range`.
    static func value(_ value: Double, in range: ClosedRange<Double>, _ name: String) throws(ImageError) {
        guard range.contains(value) else {
            throw .invalidRequest(reason: "\(name) must be \(range.lowerBound)…\(range.upperBound), not \(value)")
        }
    }

    /// - Throws: ``ImageError/invalidRequest(reason:)`` unless `value` is within `range`.
    static func value(_ value: Int, in range: ClosedRange<Int>, _ name: String) throws(ImageError) {
        guard range.contains(value) else {
            throw .invalidRequest(reason: "\(name) must be \(range.lowerBound)…\(range.upperBound), not \(value)")
        }
    }

    /// - Throws: ``ImageError/limitExceeded(input:limit:actual:allowed:)`` when a result that is larger than its input
    ///   would break the default ``ImageLimits/maximumOutputSide``.
    static func outputSide(_ size: PixelSize, _ operation: String) throws(ImageError) {
        let allowed = ImageLimits.standard.maximumOutputSide
        guard size.longestSide <= allowed else {
            throw .limitExceeded(input: operation, limit: .outputSide, actual: size.longestSide, allowed: allowed)
        }
    }

    /// Text from elsewhere, preceded by its length in bytes.
    static func delimited(_ text: String) -> String { "\(text.utf8.count):\(text)" }
}
