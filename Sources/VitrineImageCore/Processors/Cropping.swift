/// Cuts a rectangle out.
struct CropProcessor: ImageProcessing {
    let x: Int, y: Int, width: Int, height: Int

    var identifier: String { "crop(\(x),\(y),\(width),\(height))" }

    func process(_ image: PixelImage) throws(ImageError) -> PixelImage {
        // Far corners may lie beyond any integer; saturate instead of trapping.
        let right = x.addingReportingOverflow(width), bottom = y.addingReportingOverflow(height)
        let left = max(0, x), top = max(0, y)
        let cropWidth = min(image.width, right.overflow ? .max : right.partialValue) - min(left, image.width)
        let cropHeight = min(image.height, bottom.overflow ? .max : bottom.partialValue) - min(top, image.height)
        guard width > 0, height > 0, cropWidth > 0, cropHeight > 0 else {
            throw .invalidRequest(
                reason: "the rectangle of \(width)×\(height) at (\(x), \(y)) lies outside an image of \(image.size)")
        }
        return image.cropped(x: left, y: top, width: cropWidth, height: cropHeight)
    }
}

/// Cuts a part of a size out, where a gravity says.
struct GravityCropProcessor: ImageProcessing {
    let width: Int, height: Int
    let gravity: Gravity

    var identifier: String { "crop(\(width)x\(height),\(gravity))" }

    func process(_ image: PixelImage) throws(ImageError) -> PixelImage {
        guard width > 0, height > 0 else {
            throw .invalidRequest(reason: "a part of an image cannot be \(width)×\(height)")
        }
        let size = PixelSize(width: min(width, image.width), height: min(height, image.height))
        guard size != image.size else { return image }
        let corner = gravity.corner(of: size, in: image)
        return image.cropped(
            x: Int((corner.x * Double(image.width)).rounded()), y: Int((corner.y * Double(image.height)).rounded()),
            width: size.width, height: size.height)
    }
}

/// Removes edges of one colour.
struct TrimProcessor: ImageProcessing {
    let tolerance: Int

    var identifier: String { "trim(\(tolerance))" }

    func process(_ image: PixelImage) throws(ImageError) -> PixelImage {
        try ProcessorCheck.value(tolerance, in: 0...255, "trim tolerance")
        let source = image.converted(to: image.alpha == .straight ? .premultiplied : image.alpha)
        let box = source.withUnsafeBytes { bytes in
            contentBox(bytes.baseAddress!, width: source.width, height: source.height, stride: source.bytesPerRow)
        }
        guard let (left, top, right, bottom) = box else { return image }
        return image.cropped(x: left, y: top, width: right - left, height: bottom - top)
    }

    /// Returns the smallest rectangle around all pixels unlike the first; nil when there are none.
    private func contentBox(
        _ base: UnsafeRawPointer, width: Int, height: Int, stride: Int
    ) -> (left: Int, top: Int, right: Int, bottom: Int)? {
        let edge = PixelMath.load(base)
        var left = width, right = 0, top = height, bottom = 0
        for y in 0..<height {
            let row = base + y &* stride
            var first = 0
            while first < width && isEdge(PixelMath.load(row + first &* 4), edge) { first &+= 1 }
            if first == width { continue }
            var last = width &- 1
            while isEdge(PixelMath.load(row + last &* 4), edge) { last &-= 1 }
            left = min(left, first)
            right = max(right, last &+ 1)
            top = min(top, y)
            bottom = y &+ 1
        }
        return bottom == 0 ? nil : (left, top, right, bottom)
    }

    @inline(__always)
    private func isEdge(_ pixel: UInt32, _ edge: UInt32) -> Bool {
        if pixel == edge { return true }
        if tolerance == 0 { return false }
        var shift: UInt32 = 0
        while shift < 32 {
            if abs(Int(pixel >> shift & 255) &- Int(edge >> shift & 255)) > tolerance { return false }
            shift &+= 8
        }
        return true
    }
}

extension PixelImage {
    /// Returns a part of the image, moved and reduced to lie inside of it. Shares the memory of a whole image.
    func cropped(x: Int, y: Int, width: Int, height: Int) -> PixelImage {
        let width = min(width, self.width), height = min(height, self.height)
        if width == self.width, height == self.height { return self }
        let x = max(0, min(x, self.width - width)), y = max(0, min(y, self.height - height))
        return PixelImage(width: width, height: height, alpha: alpha) { target in
            withUnsafeBytes { source in
                for row in 0..<height {
                    let from = source.baseAddress! + ((y + row) * bytesPerRow + x * 4)
                    (target.baseAddress! + row * width * 4).copyMemory(from: from, byteCount: width * 4)
                }
            }
        }
    }
}
