/// Cuts a rectangle out.
struct CropProcessor: ImageProcessing {
    let x: Int, y: Int, width: Int, height: Int

    var identifier: String { "crop(\(x),\(y),\(width),\(height))" }

    func process(_ image: Image) throws(ImageError) -> Image {
        // Far corners may lie beyond any integer; saturate instead of trapping.
        let right = x.addingReportingOverflow(width), bottom = y.addingReportingOverflow(height)
        let left = max(0, x), top = max(0, y)
        let cropWidth = min(image.width, right.overflow ? .max : right.partialValue) - min(left, image.width)
        let cropHeight = min(image.height, bottom.overflow ? .max : bottom.partialValue) - min(top, image.height)
        guard width > 0, height > 0, cropWidth > 0, cropHeight > 0 else {
            throw .invalidRequest(reason: "nothing of \(image.size) lies in \(width)×\(height) at (\(x), \(y))")
        }
        return image.cropped(x: left, y: top, width: cropWidth, height: cropHeight)
    }
}
