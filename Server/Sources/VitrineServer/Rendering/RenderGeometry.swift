package import VitrineImaging

/// The sizes of a render: of the part that is cut out, of that part after scaling, and of the result's crop.
///
/// The rules are those of imgproxy's documentation of its options: sides are scaled by one factor unless the type is
/// `force`, rounded to the nearest pixel, and never grow without `enlarge`.
package struct RenderGeometry: Sendable, Hashable {
    /// The image's size before anything is cut off, in the direction of the result.
    package let source: PixelSize
    /// The part that is cut out first; nil for all of it.
    package let crop: PixelSize?
    /// The size of the rest after that, scaled.
    package let scaled: PixelSize
    /// The size to which the scaled image is cut; a side of 0 is not cut.
    package let resultCrop: PixelSize
    /// The box in device pixels; a side of 0 follows from the other.
    package let target: PixelSize
    /// The size that gives the result the box's aspect ratio; nil if that is not wanted or cannot be computed.
    package let aspectRatioSize: PixelSize?
    /// Device pixels for each pixel of offsets and paddings. Lower than asked for if the image may not grow.
    package let scale: Double

    /// Computes the sizes.
    ///
    /// - Parameters:
    ///   - source: The image's size after it was turned.
    ///   - options: The processing.
    ///   - mayGrow: Whether it may grow against the options, as drawings may.
    package init(source: PixelSize, _ options: ProcessingOptions, mayGrow: Bool = false) {
        self.source = source
        let cut = Self.cropSize(of: source, options.crop)
        crop = cut == source ? nil : cut
        let factors = Factors(from: cut, options, mayGrow: mayGrow || options.enlarge)
        scale = factors.scale
        scaled = PixelSize(
            width: Self.scaled(cut.width, by: factors.width), height: Self.scaled(cut.height, by: factors.height))
        target = PixelSize(
            width: Self.scaled(options.width, by: scale * options.zoomX),
            height: Self.scaled(options.height, by: scale * options.zoomY))
        resultCrop =
            options.resizingType == .fillDown ? Self.fillDown(scaled, target) : target
        aspectRatioSize =
            options.extendAspectRatio == nil ? nil : Self.aspectRatioSize(scaled, crop: resultCrop, target: target)
    }

    /// The largest side that arithmetic is done with; results have a limit far below.
    private static let longest = 1_000_000.0

    static func scaled(_ side: Int, by factor: Double) -> Int {
        guard side > 0 else { return 0 }
        let product = (Double(side) * factor).rounded()
        return product.isFinite ? Int(max(1, min(product, longest))) : 1
    }

    private static func cropSize(of source: PixelSize, _ crop: ProcessingOptions.Crop?) -> PixelSize {
        guard let crop else { return source }
        func side(_ all: Int, _ wanted: Double) -> Int {
            guard wanted > 0 else { return all }
            return min(all, wanted >= 1 ? Int(min(wanted, longest)) : scaled(all, by: wanted))
        }
        return PixelSize(width: side(source.width, crop.width), height: side(source.height, crop.height))
    }

    /// The largest size within the scaled image that has the box's aspect ratio; the box if that fits.
    private static func fillDown(_ scaled: PixelSize, _ target: PixelSize) -> PixelSize {
        guard target.width > 0, target.height > 0 else { return target }
        let excess = (
            width: Double(target.width) / Double(scaled.width), height: Double(target.height) / Double(scaled.height)
        )
        let ratio = Double(target.height) / Double(target.width)
        if excess.width > excess.height, excess.width > 1 {
            return PixelSize(width: scaled.width, height: self.scaled(scaled.width, by: ratio))
        }
        if excess.height > excess.width, excess.height > 1 {
            return PixelSize(width: self.scaled(scaled.height, by: 1 / ratio), height: scaled.height)
        }
        return target
    }

    private static func aspectRatioSize(
        _ scaled: PixelSize, crop: PixelSize, target: PixelSize
    ) -> PixelSize? {
        guard target.width > 0, target.height > 0 else { return nil }
        let result = PixelSize(
            width: crop.width > 0 ? min(crop.width, scaled.width) : scaled.width,
            height: crop.height > 0 ? min(crop.height, scaled.height) : scaled.height)
        let ratio = Double(target.height) / Double(target.width)
        let width = Double(target.width) / Double(result.width)
        let height = Double(target.height) / Double(result.height)
        if height > width { return PixelSize(width: result.width, height: self.scaled(result.width, by: ratio)) }
        if width > height { return PixelSize(width: self.scaled(result.height, by: 1 / ratio), height: result.height) }
        return nil
    }

    /// The image's size after the result's crop.
    var croppedSize: PixelSize {
        PixelSize(
            width: resultCrop.width > 0 ? min(resultCrop.width, scaled.width) : scaled.width,
            height: resultCrop.height > 0 ? min(resultCrop.height, scaled.height) : scaled.height)
    }

    /// The size of the result with all that is added around it.
    func resultSize(_ options: ProcessingOptions) -> PixelSize {
        var size = croppedSize
        if options.extend != nil {
            size = PixelSize(width: max(size.width, target.width), height: max(size.height, target.height))
        }
        if let aspectRatioSize {
            size = PixelSize(
                width: max(size.width, aspectRatioSize.width), height: max(size.height, aspectRatioSize.height))
        }
        if let padding = options.padding {
            let sides = paddings(padding)
            size.width += sides.left + sides.right
            size.height += sides.top + sides.bottom
        }
        return size
    }

    /// Paddings in device pixels.
    func paddings(_ padding: ProcessingOptions.Padding) -> ProcessingOptions.Padding {
        var result = ProcessingOptions.Padding()
        func side(_ pixels: Int) -> Int { pixels > 0 ? Self.rounded(Double(pixels) * scale) : 0 }
        (result.top, result.right) = (side(padding.top), side(padding.right))
        (result.bottom, result.left) = (side(padding.bottom), side(padding.left))
        return result
    }

    private static func rounded(_ value: Double) -> Int {
        value.isFinite ? Int(max(-longest, min(value.rounded(.toNearestOrEven), longest))) : 0
    }

    /// Returns the upper left corner of a part within a whole, or of an image on a larger one.
    ///
    /// - Parameters:
    ///   - outer: The whole.
    ///   - inner: The part.
    ///   - gravity: Its place; ``ProcessingOptions/Gravity/Anchor/smart`` counts as the middle.
    ///   - scale: Device pixels for each pixel of offsets.
    ///   - mayExceed: Whether the part may reach beyond the whole, as long as one pixel of it is inside.
    package static func position(
        of inner: PixelSize, in outer: PixelSize, _ gravity: ProcessingOptions.Gravity, scale: Double,
        mayExceed: Bool = false
    ) -> (x: Int, y: Int) {
        func offset(_ value: Double, _ side: Int) -> Int {
            rounded(abs(value) >= 1 ? value * scale : Double(side) * value)
        }
        /// - Parameter place: 0 at the beginning, 1 at the end, nil in the middle.
        func start(outer: Int, inner: Int, offset: Int, place: Int?) -> Int {
            let start =
                switch place {
                case 0?: offset
                // As imgproxy (calc_position.go): half a pixel goes to the even side.
                case nil: rounded(Double(outer - inner + 1) / 2) + offset
                default: outer - inner - offset
                }
            return mayExceed
                ? max(1 - inner, min(outer - 1, start)) : max(0, min(max(0, outer - inner), start))
        }
        if gravity.anchor == .focusPoint {
            func focused(outer: Int, inner: Int, value: Double) -> Int {
                start(
                    outer: outer, inner: inner, offset: rounded(Double(outer) * max(0, min(1, value))) - inner / 2,
                    place: 0)
            }
            return (
                focused(outer: outer.width, inner: inner.width, value: gravity.x),
                focused(outer: outer.height, inner: inner.height, value: gravity.y)
            )
        }
        let (horizontal, vertical): (Int?, Int?) =
            switch gravity.anchor {
            case .center, .smart, .focusPoint: (nil, nil)
            case .north: (nil, 0)
            case .south: (nil, 1)
            case .west: (0, nil)
            case .east: (1, nil)
            case .northWest: (0, 0)
            case .northEast: (1, 0)
            case .southWest: (0, 1)
            case .southEast: (1, 1)
            }
        return (
            start(outer: outer.width, inner: inner.width, offset: offset(gravity.x, outer.width), place: horizontal),
            start(outer: outer.height, inner: inner.height, offset: offset(gravity.y, outer.height), place: vertical)
        )
    }

    /// The factors of both sides.
    private struct Factors {
        var width: Double
        var height: Double
        /// The remaining device pixels for each requested pixel.
        let scale: Double

        init(from source: PixelSize, _ options: ProcessingOptions, mayGrow: Bool) {
            let sides = (width: Double(max(1, source.width)), height: Double(max(1, source.height)))
            var shrink = Self.shrink(sides, options)
            shrink.width /= Self.positive(options.zoomX)
            shrink.height /= Self.positive(options.zoomY)
            var scale = Self.positive(options.dpr)
            if !mayGrow {
                let least = min(shrink.width, shrink.height)
                if least < 1 {
                    shrink.width /= least
                    shrink.height /= least
                    // What is extended keeps the box's size.
                    if options.extend == nil { scale /= least }
                }
                // More would enlarge the image.
                scale = min(scale, shrink.width, shrink.height)
            }
            if options.minimumWidth > 0 {
                let limit = sides.width / Double(options.minimumWidth)
                if limit < shrink.width {
                    shrink.height /= shrink.width / limit
                    shrink.width = limit
                }
            }
            if options.minimumHeight > 0 {
                let limit = sides.height / Double(options.minimumHeight)
                if limit < shrink.height {
                    shrink.width /= shrink.height / limit
                    shrink.height = limit
                }
            }
            width = 1 / min(shrink.width / scale, sides.width)
            height = 1 / min(shrink.height / scale, sides.height)
            self.scale = scale
        }

        private static func positive(_ value: Double) -> Double { value.isFinite && value > 0 ? value : 1 }

        /// How many pixels become one, by the box and the resizing type.
        private static func shrink(
            _ source: (width: Double, height: Double), _ options: ProcessingOptions
        ) -> (width: Double, height: Double) {
            let box = (
                width: options.width > 0 ? Double(options.width) : source.width,
                height: options.height > 0 ? Double(options.height) : source.height
            )
            var shrink = (width: source.width / box.width, height: source.height / box.height)
            guard shrink.width != 1 || shrink.height != 1 else { return shrink }
            var type = options.resizingType
            if type == .auto {
                let isSameDirection = (source.width >= source.height) == (box.width >= box.height)
                type = isSameDirection ? .fill : .fit
            }
            if type == .force { return shrink }
            if options.width <= 0 {
                shrink.width = shrink.height
            } else if options.height <= 0 {
                shrink.height = shrink.width
            } else {
                let one = type == .fit ? max(shrink.width, shrink.height) : min(shrink.width, shrink.height)
                shrink = (one, one)
            }
            return shrink
        }
    }
}
