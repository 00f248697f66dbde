import VitrineCore

/// The sizes and regions that a resizer requires of one image: those to decode, and those to scale to.
///
/// All sizes and regions are in the orientation the file stores.
struct DecodePlan {
    /// The size the whole image would be scaled to, which the decoder is given; nil for every pixel.
    var target: PixelSize?
    /// The part of the image that is shown; nil for all of it.
    var region: UnitRect?
    /// The size that part is scaled to.
    var rendered: PixelSize
    /// Whether the resizer needs the pixels to choose the crop.
    var needsPixels = false

    /// - Throws: ``ImageError/invalidRequest(reason:)`` or ``ImageError/limitExceeded(input:limit:actual:allowed:)``
    ///   when there is no such image.
    init(
        _ resizer: ImageResizer, for info: ImageInfo, limits: ImageLimits, input: String
    ) throws(ImageError) {
        var resizer = resizer
        resizer.maximumSide = limits.maximumOutputSide
        let scaled: PixelSize
        let output: PixelSize
        let region: UnitRect?
        do {
            scaled = try resizer.targetSize(for: info.size)
            output = try resizer.outputSize(for: info.size)
            region = try resizer.cropRegion(for: info.size)
        } catch .limitExceeded(_, let limit, let actual, let allowed) {
            // The resizer knows no input; the caller does.
            throw .limitExceeded(input: input, limit: limit, actual: actual, allowed: allowed)
        }
        let orientation = info.orientation
        target = scaled == info.size ? nil : orientation.upright(scaled)
        if let region {
            self.region = orientation.stored(region)
            rendered = orientation.upright(output)
        } else if case .crop = resizer.mode, output != info.size {
            // Reduced as far as the crop allows, but not enlarged before most of it is cut off.
            let isReduced = scaled.width <= info.size.width && scaled.height <= info.size.height
            rendered = orientation.upright(isReduced ? scaled : info.size)
            needsPixels = true
        } else {
            rendered = orientation.upright(output)
        }
        if info.format == .svg {
            // A drawing is drawn at the size, all of it.
            try limits.require(
                (target ?? info.storedSize).longestSide, .outputSide, atMost: limits.maximumOutputSide, input: input)
        } else {
            try limits.require(rendered.pixelCount, .pixels, atMost: limits.maximumResultPixels, input: input)
        }
    }
}

extension ImageInfo {
    /// The header with the size of a page that has another shape than the first, as far as its samples tell; nil when
    /// the shape is the same.
    func ofPage(_ decoded: DecodedImage) -> ImageInfo? {
        guard let plane = decoded.planes.first else { return nil }
        let shape = Double(storedSize.width) / Double(storedSize.height)
        guard abs(plane.extentWidth / plane.extentHeight / shape - 1) > 0.02 else { return nil }
        var page = self
        page.storedSize = PixelSize(
            width: max(1, Int(plane.extentWidth.rounded())), height: max(1, Int(plane.extentHeight.rounded())))
        return page
    }
}

/// Finished images of several sizes from one decoder's samples.
struct ResizedImages {
    /// How many times as wide and as high a finished image must be to replace the decoder's samples. From twice the
    /// size on, the detail that Lanczos removes from the larger one is finer than the smaller one can show.
    static let reduction = 2

    let decoded: DecodedImage
    let info: ImageInfo
    let limits: ImageLimits
    let cancellation: CancellationToken
    let inputName: String
    /// The part of the decoder's samples that is the image.
    var area = UnitRect.full

    /// The images, in the order of `resizers`.
    func images(_ resizers: [ImageResizer]) throws(ImageError) -> [PixelImage] {
        var plans: [DecodePlan] = []
        for resizer in resizers {
            plans.append(try DecodePlan(resizer, for: info, limits: limits, input: inputName))
        }
        var images = [PixelImage?](repeating: nil, count: resizers.count)
        // Images of all that is to be seen, smallest last.
        var whole: [PixelImage] = []
        for index in plans.indices.sorted(by: { plans[$0].rendered.pixelCount > plans[$1].rendered.pixelCount }) {
            let plan = plans[index]
            let size = info.orientation.upright(plan.rendered)
            let image: PixelImage
            if let larger = whole.last(where: { Self.serves(info.orientation.upright($0.size), plan) }) {
                if cancellation.isCancelled { throw .cancelled(input: inputName) }
                let region = try resizers[index].cropRegion(for: info.size)
                image = larger.scaled(to: size, region: region.map { PixelRegion($0, of: larger.size) })
            } else {
                image = try DecodedImageRenderer.image(
                    from: decoded, size: plan.rendered, region: within(plan.region), orientation: info.orientation,
                    cancellation: cancellation, inputName: inputName)
            }
            if plan.region == nil && hasAllPixels(plan.rendered) { whole.append(image) }
            images[index] = plan.needsPixels ? try resizers[index].resize(image) : image
        }
        return images.compactMap { $0 }
    }

    /// A part of the image as a part of the decoder's samples.
    private func within(_ region: UnitRect?) -> UnitRect? {
        guard area != .full else { return region }
        let part = region ?? .full
        return UnitRect(
            x: area.x + part.x * area.width, y: area.y + part.y * area.height, width: part.width * area.width,
            height: part.height * area.height)
    }

    /// Whether an image of this size, as stored, was not enlarged.
    private func hasAllPixels(_ size: PixelSize) -> Bool {
        guard let plane = decoded.planes.first else { return false }
        return Double(size.width) <= plane.extentWidth * area.width
            && Double(size.height) <= plane.extentHeight * area.height
    }

    /// Whether the part that `plan` shows of a finished image has enough pixels for it.
    ///
    /// - Parameter larger: The size of that image in the orientation of the file.
    private static func serves(_ larger: PixelSize, _ plan: DecodePlan) -> Bool {
        let region = plan.region ?? .full
        return Double(larger.width) * region.width >= Double(plan.rendered.width * reduction)
            && Double(larger.height) * region.height >= Double(plan.rendered.height * reduction)
    }

    /// Whether the largest image is all of the file at the size of the decode, and the others can be made from it.
    static func largestServesAll(_ plans: [DecodePlan], at target: PixelSize?) -> Bool {
        guard
            let largest = plans.indices.max(by: { plans[$0].rendered.pixelCount < plans[$1].rendered.pixelCount }),
            plans[largest].region == nil, plans[largest].rendered == target
        else { return false }
        return plans.indices.allSatisfy { $0 == largest || serves(plans[largest].rendered, plans[$0]) }
    }
}

extension PixelRegion {
    fileprivate init(_ rect: UnitRect, of size: PixelSize) {
        let (width, height) = (Double(size.width), Double(size.height))
        self.init(x: rect.x * width, y: rect.y * height, width: rect.width * width, height: rect.height * height)
    }
}
