/// Rounds corners and draws a border along the edge.
struct RoundCornersProcessor: ImageProcessing {
    enum Shape {
        case radii(CornerRadii)
        case circle
    }

    let shape: Shape
    let border: ImageBorder?

    var identifier: String {
        let line = border.map { ",border:\($0.width),\($0.color.cssString)" } ?? ""
        switch shape {
        case .circle: return "circle(\(line))"
        case .radii(let radii): return "roundCorners(" + radii.all.map { "\($0)" }.joined(separator: ",") + line + ")"
        }
    }

    func process(_ image: Image) throws(ImageError) -> Image {
        let largest = 65_535.0
        if let border { try ProcessorCheck.value(border.width, in: 0...largest, "border width") }
        var source = image
        let radii: CornerRadii
        switch shape {
        case .circle:
            let side = min(image.width, image.height)
            source = image.cropped(
                x: (image.width - side) / 2, y: (image.height - side) / 2, width: side, height: side)
            radii = CornerRadii(Double(side) / 2)
        case .radii(let wanted):
            for radius in wanted.all { try ProcessorCheck.value(radius, in: 0...largest, "corner radius") }
            radii = wanted.fitting(width: Double(image.width), height: Double(image.height))
        }
        let isRound = radii.all.contains { $0 > 0 }
        let line = border.flatMap { $0.width > 0 && $0.color.alpha > 0 ? $0 : nil }
        guard isRound || line != nil else { return source }
        var result = source.converted(to: isRound || source.hasAlpha ? .premultiplied : .opaque)
        RoundedEdge(size: result.size, radii: radii, border: line).apply(to: &result)
        return result
    }
}
