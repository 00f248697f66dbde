import VitrineImaging

/// The modes of ``ImageResizer`` for a page or frame, in requests to helpers.
package enum DocumentFit: UInt8, Sendable {
    case stretch = 0
    case inside = 1
    case cover = 2
    /// Like ``inside``, never enlarged; a side of 0 is no limit.
    case limit = 3
    /// The own size: as displayed for a video, 1 pixel a point for a page.
    case none = 4

    /// Converts a mode of images. The client cuts crops.
    package init(_ mode: ImageResizer.Mode) {
        switch mode {
        case .stretch: self = .stretch
        case .fit: self = .inside
        case .fill, .crop: self = .cover
        case .limit: self = .limit
        case .none: self = .none
        }
    }

    /// The equivalent mode of images.
    package var mode: ImageResizer.Mode {
        switch self {
        case .stretch: .stretch
        case .inside: .fit
        case .cover: .fill
        case .limit: .limit
        case .none: .none
        }
    }
}

/// The size of a page or frame in requests to helpers, by the rules of ``ImageResizer``.
package struct DocumentTarget: Sendable, Equatable {
    package var size = PixelSize.zero
    package var fit = DocumentFit.none
    /// Whether the result may be larger than the own size.
    package var allowsUpscaling = true

    package init() {}

    package init(_ size: PixelSize, _ mode: ImageResizer.Mode, allowsUpscaling: Bool) {
        self.size = size
        fit = DocumentFit(mode)
        self.allowsUpscaling = allowsUpscaling
    }

    init(_ wire: inout WireReader) {
        size = PixelSize(width: wire.int(), height: wire.int())
        fit = wire.enumeration(DocumentFit.self, or: .none)
        allowsUpscaling = wire.bool()
    }

    func write(to wire: inout WireWriter) {
        wire.write(size.width)
        wire.write(size.height)
        wire.write(fit.rawValue)
        wire.write(allowsUpscaling)
    }

    /// Returns the target as a rule for images.
    package func resizer(limits: ImageLimits) -> ImageResizer {
        var resizer = ImageResizer(size: size, mode: fit.mode, allowsUpscaling: allowsUpscaling)
        resizer.maximumSide = limits.maximumOutputSide
        return resizer
    }
}

/// The size in pixels of a drawn page.
package struct PageGeometry {
    /// The longest side that cairo draws.
    private static let longestSide = 32_767
    /// Ratios are taken from thousandths of a point.
    private static let unitsPerPoint = 1_000.0

    private let points: PointSize
    private let limits: ImageLimits

    /// - Throws: ``ImageError/limitExceeded(input:limit:actual:allowed:)`` for a page with more points than
    ///   ``ImageLimits/maximumSide``.
    package init(_ points: PointSize, limits: ImageLimits) throws(ImageError) {
        let longest = max(points.width, points.height)
        guard longest <= Double(min(limits.maximumSide, 1 << 20)) else {
            throw .limitExceeded(
                input: "input", limit: .side, actual: Int(min(longest, 1e15)), allowed: limits.maximumSide)
        }
        self.points = points
        self.limits = limits
    }

    /// The page at 1 pixel a point.
    private var natural: PixelSize {
        PixelSize(
            width: max(1, Int(PixelSize.pixels(points.width, scale: 1))),
            height: max(1, Int(PixelSize.pixels(points.height, scale: 1))))
    }

    /// - Throws: ``ImageError/invalidRequest(reason:)``, ``ImageError/limitExceeded(input:limit:actual:allowed:)``.
    package func pixels(for target: DocumentTarget) throws(ImageError) -> PixelSize {
        let size = try wanted(target)
        let area = limits.maximumOutputSide.multipliedReportingOverflow(by: limits.maximumOutputSide)
        guard size.longestSide <= Self.longestSide, area.overflow || size.pixelCount <= area.partialValue else {
            throw .limitExceeded(
                input: "input", limit: .outputSide, actual: size.longestSide, allowed: limits.maximumOutputSide)
        }
        return size
    }

    private func wanted(_ target: DocumentTarget) throws(ImageError) -> PixelSize {
        guard target.fit != .none else { return natural }
        var resizer = ImageResizer(size: target.size, mode: target.fit.mode)
        resizer.maximumSide = .max
        let size = try resizer.targetSize(
            for: PixelSize(
                width: max(1, Int(points.width * Self.unitsPerPoint)),
                height: max(1, Int(points.height * Self.unitsPerPoint))))
        let exceeds = size.width > natural.width || size.height > natural.height
        return exceeds && (!target.allowsUpscaling || target.fit == .limit) ? natural : size
    }
}
