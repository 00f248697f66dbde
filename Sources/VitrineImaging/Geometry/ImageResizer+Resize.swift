extension ImageResizer {
    /// The picture at ``outputSize(for:)``; the very same picture, sharing its memory, when nothing is to be done.
    ///
    /// Lanczos3. A picture with straight alpha becomes premultiplied, unless it is returned as it is or only cut.
    ///
    /// - Throws: As ``targetSize(for:)``.
    public func resize(_ image: Image) throws(ImageError) -> Image {
        let output = try outputSize(for: image.size)
        guard output != image.size else { return image }
        guard case .crop(let gravity) = mode else { return image.scaled(to: output, region: nil) }
        let window = Self.window(of: output, in: image, gravity)
        if window.width == Double(output.width) && window.height == Double(output.height) {
            // Nothing is scaled: whole pixels, so that none is blurred.
            return image.cut(x: Int(window.x.rounded()), y: Int(window.y.rounded()), to: output)
        }
        return image.scaled(to: output, region: window)
    }

    /// The part of a picture of `source` that becomes the result, known without its pixels; nil where nothing is cut
    /// off or ``Gravity/attention`` has to look at them.
    ///
    /// - Throws: As ``targetSize(for:)``.
    package func cropRegion(for source: PixelSize) throws(ImageError) -> UnitRect? {
        guard case .crop(let gravity) = mode, let focus = gravity.focus else { return nil }
        let output = try outputSize(for: source)
        guard output != source else { return nil }
        let window = Self.window(of: output, in: source, focus)
        let (width, height) = (Double(source.width), Double(source.height))
        return UnitRect(
            x: window.x / width, y: window.y / height, width: window.width / width, height: window.height / height)
    }

    /// The part of a picture of `source`, in its pixels, that has the ratio of `output` and the most of the picture.
    private static func window(
        of output: PixelSize, in source: PixelSize, _ focus: (x: Double, y: Double)
    ) -> PixelRegion {
        let width = Double(source.width)
        let height = Double(source.height)
        let reduction = min(width / Double(output.width), height / Double(output.height))
        var window = PixelRegion(
            x: 0, y: 0, width: min(width, Double(output.width) * reduction),
            height: min(height, Double(output.height) * reduction))
        window.x = max(0, min(width - window.width, focus.x * width - window.width / 2))
        window.y = max(0, min(height - window.height, focus.y * height - window.height / 2))
        return window
    }

    /// The same for a gravity that may look at the pixels.
    static func window(of output: PixelSize, in image: Image, _ gravity: Gravity) -> PixelRegion {
        if let focus = gravity.focus { return window(of: output, in: image.size, focus) }
        let width = Double(image.width)
        let height = Double(image.height)
        var window = window(of: output, in: image.size, (0.5, 0.5))
        let longest = 200
        let small: Image
        if image.size.longestSide > longest {
            let side = Double(longest) / Double(image.size.longestSide)
            small = image.scaled(
                to: PixelSize(width: max(1, Int(width * side)), height: max(1, Int(height * side))), region: nil)
        } else {
            small = image.converted(to: image.alpha == .straight ? .premultiplied : image.alpha)
        }
        let best = AttentionMap(small).bestWindow(width: window.width / width, height: window.height / height)
        window.x = max(0, min(width - window.width, best.x * width))
        window.y = max(0, min(height - window.height, best.y * height))
        return window
    }
}

extension Image {
    /// Scaled with Lanczos3, or a region (in pixels) of it; premultiplied if it has alpha.
    package func scaled(to size: PixelSize, region: PixelRegion?) -> Image {
        let plane = PixelPlane(width: width, height: height, channels: 4, bytesPerRow: bytesPerRow, storage: storage)
        let scaled = Resampler.resample(plane, to: size, region: region, premultiplying: alpha == .straight)
        // Only a cancelled run has no result, and this one has nothing to cancel it with.
        guard let scaled else { return self }
        var image = Image(
            width: scaled.width, height: scaled.height, bytesPerRow: scaled.bytesPerRow,
            alpha: alpha == .opaque ? .opaque : .premultiplied, storage: scaled.storage)
        if alpha != .opaque && scaled.storage !== storage { image.limitToAlpha() }
        return image
    }

    /// The part of `size` whose upper left corner is at (x, y), kept inside the picture.
    package func cut(x: Int, y: Int, to size: PixelSize) -> Image {
        let size = PixelSize(width: min(size.width, width), height: min(size.height, height))
        let x = max(0, min(x, width - size.width))
        let y = max(0, min(y, height - size.height))
        let row = size.width * Image.bytesPerPixel
        return Image(width: size.width, height: size.height, alpha: alpha) { pixels in
            withUnsafeBytes { source in
                for line in 0..<size.height {
                    let start = (y + line) * bytesPerRow + x * Image.bytesPerPixel
                    UnsafeMutableRawBufferPointer(rebasing: pixels[(line * row)..<((line + 1) * row)]).copyMemory(
                        from: UnsafeRawBufferPointer(rebasing: source[start..<(start + row)]))
                }
            }
        }
    }

    private mutating func limitToAlpha() {
        let (width, height, row) = (self.width, self.height, bytesPerRow)
        withUnsafeMutableBytes { bytes in
            guard let pixels = bytes.bindMemory(to: UInt8.self).baseAddress else { return }
            for y in 0..<height { AlphaMath.limit(pixels + y * row, count: width) }
        }
    }
}
