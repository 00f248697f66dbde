import VitrineCore

/// Makes the finished image from a decoder's samples: scaled, in sRGB, upright.
package enum DecodedImageRenderer {
    /// Scales `decoded` (or a region of it) to `size`, converts it to sRGB and turns it upright.
    ///
    /// Samples are scaled in their own colour model, so that conversion and profile work on the small image. The
    /// result is premultiplied if any pixel is not opaque. Ignores a profile that is malformed or for another colour
    /// model than the samples; one for grey holds for an image in which everything is grey, however it is coded.
    ///
    /// Rows below ``DecodedImage/filledHeight`` are transparent.
    ///
    /// - Parameters:
    ///   - size: Width and height in the stored orientation; the result has ``Orientation/upright(_:)`` of it.
    ///   - region: The part to show, in the stored orientation as well. nil for everything.
    ///   - orientation: The orientation of the stored pixels, which no other code applies.
    /// - Throws: ``ImageError/invalidRequest(reason:)`` for an empty size or region,
    ///   ``ImageError/corrupt(input:reason:)`` if the planes do not fit the model, ``ImageError/cancelled(input:)``.
    package static func image(
        from decoded: DecodedImage, size: PixelSize, region: UnitRect? = nil, orientation: Orientation,
        cancellation: CancellationToken, inputName: String
    ) throws(ImageError) -> PixelImage {
        guard !size.isEmpty, size.pixelCount <= Int.max / 64 else {
            throw .invalidRequest(reason: "an image cannot have the size \(size)")
        }
        var area: UnitRect?
        if let region {
            guard let clipped = region.clipped else {
                throw .invalidRequest(reason: "the region lies outside the image")
            }
            area = clipped == .full ? nil : clipped
        }
        let job = RenderJob(
            decoded: decoded, size: size, region: area, cancellation: cancellation, inputName: inputName)
        return try (decoded.filledHeight < 1 ? job.filledRows() : job.run()).oriented(orientation)
    }
}

extension DecodedImage {
    /// Returns the image with samples scaled to exactly `size`, as the renderer scales them.
    ///
    /// Returns the image itself if it has alpha, by which its colours may still have to be multiplied, and if there
    /// would not be fewer samples.
    package func reduced(to size: PixelSize) -> DecodedImage {
        let (count, overflow) = size.pixelCount.multipliedReportingOverflow(by: planes.count)
        guard alpha == .none, !size.isEmpty, !overflow,
            count < planes.reduce(0, { $0 + $1.width * $1.height })
        else { return self }
        var reduced = self
        reduced.planes = planes.compactMap { plane in
            Resampler.resample(plane, to: size, kernel: samplesAreMeans ? .lanczos3ForMeans : .lanczos3)
        }
        reduced.samplesAreMeans = false
        return reduced.planes.count == planes.count ? reduced : self
    }
}

/// The conversion of one image from planes to pixels.
private struct RenderJob {
    let decoded: DecodedImage
    let size: PixelSize
    let region: UnitRect?
    let cancellation: CancellationToken
    let inputName: String

    private typealias Bytes = UnsafePointer<UInt8>
    private typealias Pixels = UnsafeMutablePointer<UInt8>

    /// The image of ``run()`` with the rows that have samples of the file, and transparent ones below.
    ///
    /// The planes are cut first, so that nothing else is scaled into the last of these rows.
    func filledRows() throws(ImageError) -> PixelImage {
        let area = region ?? .full
        let share = (decoded.filledHeight - area.y) / area.height
        guard share > 0 else { return PixelImage(size: size) }
        // Whole rows of the result, of which there is one at least. Products of fractions are a little less than whole.
        let rows = max(1, Int(min(1, share) * Double(size.height) + 1e-6))
        guard rows < size.height else { return try run() }
        let height = area.height * Double(rows) / Double(size.height)
        let end = area.y + height
        var part = decoded
        for i in part.planes.indices {
            let extent = part.planes[i].extentHeight * end
            part.planes[i].extentHeight = extent
            part.planes[i].height = max(1, min(part.planes[i].height, Int(extent.rounded(.up))))
        }
        let cut = UnitRect(x: area.x, y: area.y / end, width: area.width, height: height / end)
        let shown = try RenderJob(
            decoded: part, size: PixelSize(width: size.width, height: rows), region: cut == .full ? nil : cut,
            cancellation: cancellation, inputName: inputName
        ).run()
        let count = size.width * PixelImage.bytesPerPixel
        return PixelImage(width: size.width, height: size.height, alpha: .premultiplied) { pixels in
            pixels.initializeMemory(as: UInt8.self, repeating: 0)
            shown.withUnsafeBytes { source in
                for y in 0..<rows {
                    UnsafeMutableRawBufferPointer(rebasing: pixels[(y * count)...]).copyMemory(
                        from: UnsafeRawBufferPointer(rebasing: source[(y * shown.bytesPerRow)...].prefix(count)))
                }
            }
        }
    }

    /// The image in sRGB, not yet upright.
    func run() throws(ImageError) -> PixelImage {
        let image = try convert()
        guard decoded.model != .gray, let levels = profile(.gray)?.grayLevels else { return image }
        return image.withGrays(levels) ?? image
    }

    private func convert() throws(ImageError) -> PixelImage {
        try checkPlanes()
        switch decoded.model {
        case .gray: return try gray()
        case .rgb: return try rgb(decoded.planes[0], alpha: decoded.alpha)
        case .yCbCr(let matrix, let fullRange):
            let conversion = YCbCrConversion(matrix, fullRange: fullRange)
            if decoded.planes.count == 4 && decoded.alpha != .none && !Self.isOpaque(decoded.planes[3]) {
                return try translucent(conversion)
            }
            return try opaque(conversion)
        case .cmyk(let inverted): return try cmyk(inverted: inverted)
        }
    }

    // MARK: Checks

    private func checkPlanes() throws(ImageError) {
        let channels = decoded.planes.map(\.channels)
        let hasAlpha = decoded.alpha != .none
        let isRight =
            switch decoded.model {
            case .gray: channels == [hasAlpha ? 2 : 1]
            case .rgb: channels == [hasAlpha ? 4 : 3]
            case .yCbCr: channels == (hasAlpha ? [1, 1, 1, 1] : [1, 1, 1])
            case .cmyk: channels == (hasAlpha ? [4, 1] : [4])
            }
        guard isRight else {
            throw .corrupt(input: inputName, reason: "the decoder's planes \(channels) do not fit its colour model")
        }
    }

    private static func isOpaque(_ plane: PixelPlane) -> Bool {
        plane.storage.withUnsafeBytes { bytes in
            (0..<plane.height).allSatisfy { y in
                var all: UInt8 = 255
                for x in (y * plane.bytesPerRow)..<(y * plane.bytesPerRow + plane.width) { all &= bytes[x] }
                return all == 255
            }
        }
    }

    // MARK: Scaling

    private func scale(_ plane: PixelPlane, premultiplying: Bool = false) throws(ImageError) -> PixelPlane {
        let area = region.map {
            PixelRegion(
                x: $0.x * plane.extentWidth, y: $0.y * plane.extentHeight, width: $0.width * plane.extentWidth,
                height: $0.height * plane.extentHeight)
        }
        let scaled = Resampler.resample(
            plane, to: size, region: area, kernel: decoded.samplesAreMeans ? .lanczos3ForMeans : .lanczos3,
            premultiplying: premultiplying, cancellation: cancellation)
        guard let scaled, !cancellation.isCancelled else { throw .cancelled(input: inputName) }
        return scaled
    }

    private func profile(_ space: ColorProfile.Space) -> ColorProfile? {
        guard let bytes = decoded.colorProfile, let profile = ColorProfile(bytes), profile.space == space,
            !profile.isSRGB
        else { return nil }
        return profile
    }

    /// Returns an image whose rows `body` writes one after the other.
    private func make(
        _ size: PixelSize, alpha: PixelImage.Alpha, row body: (Pixels, Int) -> Void
    ) throws(ImageError) -> PixelImage {
        var y = 0
        let image = PixelImage(width: size.width, height: size.height, alpha: alpha) { pixels in
            guard let pixels = pixels.bindMemory(to: UInt8.self).baseAddress else { return }
            while y < size.height && (y % 16 != 0 || !cancellation.isCancelled) {
                body(pixels + y * size.width * PixelImage.bytesPerPixel, y)
                y += 1
            }
        }
        guard y == size.height else { throw .cancelled(input: inputName) }
        return image
    }

    private func bytes<R>(_ plane: PixelPlane, _ body: (Bytes) throws(ImageError) -> R) throws(ImageError) -> R {
        try plane.storage.withUnsafeBytes { (bytes) throws(ImageError) in
            guard let start = bytes.bindMemory(to: UInt8.self).baseAddress else {
                throw .corrupt(input: inputName, reason: "a plane has no samples")
            }
            return try body(start)
        }
    }

    // MARK: Grey

    private func gray() throws(ImageError) -> PixelImage {
        let hasAlpha = decoded.alpha != .none
        let plane = try scale(decoded.planes[0], premultiplying: decoded.alpha == .straight)
        // Code points name a colour space even where there is one channel.
        let levels = (profile(.gray) ?? profile(.rgb))?.grayLevels
        let width = size.width
        let image = try bytes(plane) { (source) throws(ImageError) in
            try make(size, alpha: hasAlpha ? .premultiplied : .opaque) { pixels, y in
                let line = source + y * plane.bytesPerRow
                for x in 0..<width {
                    let p = pixels + 4 &* x
                    let v = hasAlpha ? line[2 &* x] : line[x]
                    p[0] = v
                    p[1] = v
                    p[2] = v
                    p[3] = hasAlpha ? line[2 &* x &+ 1] : 255
                }
                if hasAlpha { AlphaMath.limit(pixels, count: width) }
                guard let levels else { return }
                if hasAlpha { AlphaMath.unpremultiply(pixels, count: width) }
                for x in 0..<width { for c in 0..<3 { pixels[4 &* x &+ c] = levels[Int(pixels[4 &* x &+ c])] } }
                if hasAlpha { AlphaMath.premultiply(pixels, count: width) }
            }
        }
        return Self.opaqueIfPossible(image)
    }

    // MARK: RGB

    private func rgb(_ plane: PixelPlane, alpha: DecodedImage.Alpha) throws(ImageError) -> PixelImage {
        let plane = try scale(plane, premultiplying: alpha == .straight)
        let profile = profile(.rgb)
        let width = size.width
        if alpha == .none {
            return try bytes(plane) { (source) throws(ImageError) in
                try make(size, alpha: .opaque) { pixels, y in
                    Self.expand(source + y * plane.bytesPerRow, into: pixels, count: width)
                    profile?.convertRGB(pixels, count: width, isPremultiplied: false)
                }
            }
        }
        let image = try bytes(plane) { (source) throws(ImageError) in
            try make(size, alpha: .premultiplied) { pixels, y in
                pixels.update(from: source + y * plane.bytesPerRow, count: 4 * width)
                AlphaMath.limit(pixels, count: width)
                profile?.convertRGB(pixels, count: width, isPremultiplied: true)
            }
        }
        return Self.opaqueIfPossible(image)
    }

    /// Converts red, green, blue to red, green, blue, 255. Reads and writes four bytes at once, except for the last
    /// pixel.
    private static func expand(_ source: Bytes, into pixels: Pixels, count: Int) {
        let from = UnsafeRawPointer(source)
        let to = UnsafeMutableRawPointer(pixels)
        for x in 0..<(count - 1) {
            let word = UInt32(littleEndian: (from + 3 &* x).loadUnaligned(as: UInt32.self)) | 0xFF00_0000
            (to + 4 &* x).storeBytes(of: word.littleEndian, as: UInt32.self)
        }
        let last = count - 1
        for c in 0..<3 { pixels[4 * last + c] = source[3 * last + c] }
        pixels[4 * last + 3] = 255
    }

    // MARK: Y′CbCr

    private func opaque(_ conversion: YCbCrConversion) throws(ImageError) -> PixelImage {
        let y = try scale(decoded.planes[0])
        let cb = try scale(decoded.planes[1])
        let cr = try scale(decoded.planes[2])
        let profile = profile(.rgb)
        let width = size.width
        return try bytes(y) { (luma) throws(ImageError) in
            try bytes(cb) { (blue) throws(ImageError) in
                try bytes(cr) { (red) throws(ImageError) in
                    try make(size, alpha: .opaque) { pixels, row in
                        conversion.convert(
                            y: luma + row * y.bytesPerRow, cb: blue + row * cb.bytesPerRow,
                            cr: red + row * cr.bytesPerRow, alpha: nil, into: pixels, count: width)
                        profile?.convertRGB(pixels, count: width, isPremultiplied: false)
                    }
                }
            }
        }
    }

    /// Colours under transparent pixels must not bleed, so alpha is multiplied in before scaling. This needs red, green
    /// and blue at the size of luma.
    private func translucent(_ conversion: YCbCrConversion) throws(ImageError) -> PixelImage {
        let first = decoded.planes[0]
        let full = RenderJob(
            decoded: decoded, size: PixelSize(width: first.width, height: first.height), region: nil,
            cancellation: cancellation, inputName: inputName)
        var planes: [PixelPlane] = []
        for var plane in decoded.planes {
            // Only the fraction that luma's own plane spans beyond its extent is stretched.
            plane.extentWidth = min(Double(plane.width), plane.extentWidth * Double(first.width) / first.extentWidth)
            plane.extentHeight = min(
                Double(plane.height), plane.extentHeight * Double(first.height) / first.extentHeight)
            planes.append(try full.scale(plane))
        }
        let (y, cb, cr, a) = (planes[0], planes[1], planes[2], planes[3])
        let image = try bytes(y) { (luma) throws(ImageError) in
            try bytes(cb) { (blue) throws(ImageError) in
                try bytes(cr) { (red) throws(ImageError) in
                    try bytes(a) { (alpha) throws(ImageError) in
                        try full.make(full.size, alpha: .straight) { pixels, row in
                            conversion.convert(
                                y: luma + row * y.bytesPerRow, cb: blue + row * cb.bytesPerRow,
                                cr: red + row * cr.bytesPerRow, alpha: alpha + row * a.bytesPerRow, into: pixels,
                                count: full.size.width)
                        }
                    }
                }
            }
        }
        let plane = PixelPlane(
            width: image.width, height: image.height, channels: 4, extent: (first.extentWidth, first.extentHeight),
            storage: image.storage)
        return try rgb(plane, alpha: decoded.alpha)
    }

    // MARK: CMYK

    private func cmyk(inverted: Bool) throws(ImageError) -> PixelImage {
        let plane = try scale(decoded.planes[0])
        let transparency = decoded.planes.count > 1 ? try scale(decoded.planes[1]) : nil
        let profile = profile(.cmyk)
        let width = size.width
        let image = try bytes(plane) { (source) throws(ImageError) in
            try make(size, alpha: transparency == nil ? .opaque : .premultiplied) { pixels, y in
                let line = source + y * plane.bytesPerRow
                let flip: UInt8 = inverted ? 255 : 0
                for i in 0..<(4 &* width) { pixels[i] = line[i] ^ flip }
                let alphas = transparency?.storage.sharedBytes.dropFirst(y * plane.width).prefix(width)
                if let alphas { Self.unpremultiplyInks(pixels, alphas) }
                if let profile {
                    profile.convertCMYK(pixels, count: width)
                } else {
                    Self.mixInks(pixels, count: width)
                }
                guard let alphas else { return }
                for (x, alpha) in alphas.enumerated() { pixels[4 &* x &+ 3] = alpha }
                AlphaMath.premultiply(pixels, count: width)
            }
        }
        return transparency == nil ? image : Self.opaqueIfPossible(image)
    }

    /// Divides the four inks of each pixel by its alpha.
    private static func unpremultiplyInks(_ pixels: Pixels, _ alphas: Slice<UnsafeRawBufferPointer>) {
        for (x, alpha) in alphas.enumerated() {
            let (p, whole) = (pixels + 4 &* x, UInt32(max(alpha, 1)))
            for c in 0..<4 { p[c] = UInt8(min((UInt32(p[c]) &* 255 &+ whole / 2) / whole, 255)) }
        }
    }

    /// Mixes inks as ideal filters: the white that each leaves, times the white that black leaves. Browsers and most
    /// converters treat CMYK without a profile in this way.
    private static func mixInks(_ pixels: Pixels, count: Int) {
        for x in 0..<count {
            let p = pixels + 4 &* x
            let light = UInt32(255 &- p[3])
            for c in 0..<3 { p[c] = UInt8(truncatingIfNeeded: AlphaMath.multiply(UInt32(255 &- p[c]), light)) }
            p[3] = 255
        }
    }

    // MARK: Result

    /// Returns the image as opaque if all its pixels are.
    private static func opaqueIfPossible(_ image: PixelImage) -> PixelImage {
        let isOpaque = image.withUnsafeBytes { bytes in
            (0..<image.height).allSatisfy { y in
                var all: UInt8 = 255
                for x in 0..<image.width { all &= bytes[y &* image.bytesPerRow &+ 4 &* x &+ 3] }
                return all == 255
            }
        }
        guard isOpaque else { return image }
        return PixelImage(
            width: image.width, height: image.height, bytesPerRow: image.bytesPerRow, alpha: .opaque,
            storage: image.storage)
    }
}

extension PixelImage {
    /// How far the channels of a grey may lie apart: chroma is rounded, and lossy.
    private static let grayTolerance = 4

    /// Returns the image with other greys, not premultiplied; nil if any pixel is coloured.
    fileprivate func withGrays(_ levels: [UInt8]) -> PixelImage? {
        var image = self
        let (width, height, pitch, alpha) = (width, height, bytesPerRow, alpha)
        let isGray = image.withUnsafeMutableBytes { bytes in
            guard let base = bytes.bindMemory(to: UInt8.self).baseAddress else { return false }
            for y in 0..<height {
                for x in 0..<width {
                    let p = base + (y &* pitch &+ 4 &* x)
                    let (low, high) = (min(p[0], p[1], p[2]), max(p[0], p[1], p[2]))
                    if Int(high) &- Int(low) > Self.grayTolerance { return false }
                }
            }
            for y in 0..<height {
                let row = base + y &* pitch
                if alpha == .premultiplied { AlphaMath.unpremultiply(row, count: width) }
                for x in 0..<width {
                    // Green is nearest to the brightness that was coded.
                    let level = levels[Int(row[4 &* x &+ 1])]
                    for c in 0..<3 { row[4 &* x &+ c] = level }
                }
                if alpha == .premultiplied { AlphaMath.premultiply(row, count: width) }
            }
            return true
        }
        return isGray ? image : nil
    }
}
