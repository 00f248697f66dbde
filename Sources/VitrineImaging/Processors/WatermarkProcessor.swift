/// Draws another picture on top.
struct WatermarkProcessor: ImageProcessing {
    let watermark: Watermark

    var identifier: String { watermark.identifier }

    func process(_ image: Image) throws(ImageError) -> Image {
        try ProcessorCheck.value(watermark.opacity, in: 0...1, "watermark opacity")
        try ProcessorCheck.value(watermark.margin, in: 0...65_535, "watermark margin")
        if let scale = watermark.scale, !(scale > 0 && scale <= 1) {
            throw .invalidRequest(reason: "watermark scale must be above 0 and at most 1, not \(scale)")
        }
        let opacity = UInt32((watermark.opacity * 255).rounded())
        if opacity == 0 { return image }
        let mark = sized(for: image.size)
        var result = image.alpha == .straight ? image.converted(to: .premultiplied) : image
        let (x, y) = origin(of: mark.size, on: image.size)
        guard watermark.isTiled else {
            result.compose(mark, x: x, y: y, opacity: opacity)
            return result
        }
        let stepX = mark.width + watermark.margin, stepY = mark.height + watermark.margin
        for top in stride(from: firstTile(y, stepY), to: image.height, by: stepY) {
            for left in stride(from: firstTile(x, stepX), to: image.width, by: stepX) {
                result.compose(mark, x: left, y: top, opacity: opacity)
            }
        }
        return result
    }

    /// The watermark at the size it is drawn, premultiplied or opaque.
    private func sized(for size: PixelSize) -> Image {
        let mark = watermark.image.alpha == .straight ? watermark.image.converted(to: .premultiplied) : watermark.image
        guard let scale = watermark.scale else { return mark }
        let factor = scale * min(
            Double(size.width) / Double(mark.width), Double(size.height) / Double(mark.height))
        let wanted = PixelSize(
            width: max(1, Int((Double(mark.width) * factor).rounded())),
            height: max(1, Int((Double(mark.height) * factor).rounded())))
        if wanted.width <= mark.width && wanted.height <= mark.height {
            return AreaReduction.apply(to: mark, size: wanted)
        }
        let sampler = AffineSampler(
            origin: (0, 0), alongRow: (Double(mark.width) / Double(wanted.width), 0),
            alongColumn: (0, Double(mark.height) / Double(wanted.height)), extendsEdges: true)
        return sampler.draw(mark, size: wanted)
    }

    private func origin(of mark: PixelSize, on size: PixelSize) -> (x: Int, y: Int) {
        let margin = watermark.margin
        let x: Int, y: Int
        switch watermark.position {
        case .topLeft, .left, .bottomLeft: x = margin
        case .top, .center, .bottom: x = (size.width - mark.width) / 2
        case .topRight, .right, .bottomRight: x = size.width - mark.width - margin
        }
        switch watermark.position {
        case .topLeft, .top, .topRight: y = margin
        case .left, .center, .right: y = (size.height - mark.height) / 2
        case .bottomLeft, .bottom, .bottomRight: y = size.height - mark.height - margin
        }
        return (x, y)
    }

    /// The first tile that reaches into the picture when one stands at `origin`.
    private func firstTile(_ origin: Int, _ step: Int) -> Int {
        let rest = origin % step
        return rest > 0 ? rest - step : rest
    }
}
