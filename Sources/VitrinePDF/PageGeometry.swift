import VitrineHelperProtocol
import VitrineImaging

/// How many pixels a page is drawn to.
struct PageGeometry {
    /// Beyond this cairo draws nothing.
    private static let longestSide = 32_767
    /// Ratios are taken from thousandths of a point.
    private static let unitsPerPoint = 1_000.0

    private let points: ContentMode.Size
    private let limits: ImageLimits

    /// - Throws: ``ImageError/limitExceeded(input:limit:actual:allowed:)`` for a page with more points than
    ///   ``ImageLimits/maximumSide``.
    init(_ points: ContentMode.Size, limits: ImageLimits) throws(ImageError) {
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
        PixelSize(width: max(1, Int(points.width.rounded(.up))), height: max(1, Int(points.height.rounded(.up))))
    }

    /// - Throws: ``ImageError/invalidRequest(reason:)``, ``ImageError/limitExceeded(input:limit:actual:allowed:)``.
    func pixels(for parameters: PDFParameters) throws(ImageError) -> PixelSize {
        let size = try wanted(parameters)
        let area = limits.maximumOutputSide.multipliedReportingOverflow(by: limits.maximumOutputSide)
        guard size.longestSide <= Self.longestSide, area.overflow || size.pixelCount <= area.partialValue else {
            throw .limitExceeded(
                input: "input", limit: .outputSide, actual: size.longestSide, allowed: limits.maximumOutputSide)
        }
        return size
    }

    private func wanted(_ parameters: PDFParameters) throws(ImageError) -> PixelSize {
        guard parameters.fit != .none else { return natural }
        var resizer = ImageResizer(size: parameters.size, mode: parameters.fit.mode)
        resizer.maximumSide = .max
        let target = try resizer.targetSize(
            for: PixelSize(
                width: max(1, Int(points.width * Self.unitsPerPoint)),
                height: max(1, Int(points.height * Self.unitsPerPoint))))
        let exceeds = target.width > natural.width || target.height > natural.height
        return exceeds && (!parameters.allowsUpscaling || parameters.fit == .limit) ? natural : target
    }
}
