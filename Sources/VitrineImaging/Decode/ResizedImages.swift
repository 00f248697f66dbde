import VitrineCore

/// Finished pictures of several sizes from one decoder's samples.
struct ResizedImages {
    /// How many times as wide and as high a finished picture must be to stand in for the decoder's samples. From twice
    /// the size on, what Lanczos leaves out of the larger one is more than the smaller one can show.
    static let reduction = 2

    let decoded: DecodedImage
    let info: ImageInfo
    let limits: ImageLimits
    let cancellation: CancellationToken
    let inputName: String

    /// The pictures, in the order of `resizers`.
    func images(_ resizers: [ImageResizer]) throws(ImageError) -> [Image] {
        var plans: [DecodePlan] = []
        for resizer in resizers {
            plans.append(try DecodePlan(resizer, for: info, limits: limits, input: inputName))
        }
        var images = [Image?](repeating: nil, count: resizers.count)
        // Pictures of all that is to be seen, smallest last.
        var whole: [Image] = []
        for index in plans.indices.sorted(by: { plans[$0].rendered.pixelCount > plans[$1].rendered.pixelCount }) {
            let plan = plans[index]
            let size = info.orientation.upright(plan.rendered)
            let image: Image
            if let larger = whole.last(where: { serves($0, plan) }) {
                if cancellation.isCancelled { throw .cancelled(input: inputName) }
                let region = try resizers[index].cropRegion(for: info.size)
                image = larger.scaled(to: size, region: region.map { PixelRegion($0, of: larger.size) })
            } else {
                image = try DecodedImageRenderer.image(
                    from: decoded, size: plan.rendered, region: plan.region, orientation: info.orientation,
                    cancellation: cancellation, inputName: inputName)
            }
            if plan.region == nil && hasAllPixels(plan.rendered) { whole.append(image) }
            images[index] = plan.needsPixels ? try resizers[index].resize(image) : image
        }
        return images.compactMap { $0 }
    }

    /// Whether a picture of this size, as stored, was not enlarged.
    private func hasAllPixels(_ size: PixelSize) -> Bool {
        guard let plane = decoded.planes.first else { return false }
        return Double(size.width) <= plane.extentWidth && Double(size.height) <= plane.extentHeight
    }

    /// Whether the part of a finished picture that `plan` shows has enough pixels for it.
    private func serves(_ larger: Image, _ plan: DecodePlan) -> Bool {
        let stored = info.orientation.upright(larger.size)
        let region = plan.region ?? .full
        return Double(stored.width) * region.width >= Double(plan.rendered.width * Self.reduction)
            && Double(stored.height) * region.height >= Double(plan.rendered.height * Self.reduction)
    }
}

extension PixelRegion {
    fileprivate init(_ rect: UnitRect, of size: PixelSize) {
        let (width, height) = (Double(size.width), Double(size.height))
        self.init(x: rect.x * width, y: rect.y * height, width: rect.width * width, height: rect.height * height)
    }
}
