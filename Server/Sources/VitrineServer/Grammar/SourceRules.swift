package import VitrineImaging

extension ProcessingOptions {
    /// Settings of URLs of thumbor and IIIF whose meaning depends on the size of the source.
    package struct SourceRules: Sendable, Hashable {
        /// A rectangle in pixels of the source. Right and bottom lie outside.
        package struct Region: Sendable, Hashable {
            package var left = 0, top = 0, right = 0, bottom = 0

            package init(left: Int = 0, top: Int = 0, right: Int = 0, bottom: Int = 0) {
                (self.left, self.top, self.right, self.bottom) = (left, top, right, bottom)
            }
        }

        /// Cut out before everything else; clipped to the source, and ignored if nothing remains.
        package var region: Region?
        /// The width is that of the source.
        package var usesSourceWidth = false
        /// The height is that of the source.
        package var usesSourceHeight = false
        /// The box is turned if it is landscape and the source portrait, or the reverse.
        package var adaptsOrientation = false
        /// The image is as small as possible while it covers the box, and nothing is cut off.
        package var coversBox = false
        /// Parts that a cut keeps near its centre, each with its area as weight.
        package var focusRegions: [Region] = []
        /// The region and the size in the grammar of IIIF; all others are left out then.
        package var iiif: IIIFParameters?

        package init(
            region: Region? = nil, usesSourceWidth: Bool = false, usesSourceHeight: Bool = false,
            adaptsOrientation: Bool = false, coversBox: Bool = false, focusRegions: [Region] = []
        ) {
            (self.region, self.focusRegions) = (region, focusRegions)
            (self.usesSourceWidth, self.usesSourceHeight) = (usesSourceWidth, usesSourceHeight)
            (self.adaptsOrientation, self.coversBox) = (adaptsOrientation, coversBox)
        }
    }

    /// Returns the options for a source of a known size, with ``sourceRules`` replaced by plain values.
    ///
    /// - Parameter size: The size of the upright image, after ``trim``.
    package func resolved(forSource size: PixelSize) -> ProcessingOptions {
        guard let rules = sourceRules, size.width > 0, size.height > 0 else { return self }
        var options = self
        options.sourceRules = nil
        var (originX, originY, part) = (0, 0, size)
        if let region = rules.region {
            let left = min(region.left, size.width), right = min(region.right, size.width)
            let top = min(region.top, size.height), bottom = min(region.bottom, size.height)
            if left < right, top < bottom {
                (originX, originY) = (left, top)
                part = PixelSize(width: right - left, height: bottom - top)
                options.crop = .pixels(x: left, y: top, size: part)
            } else {
                options.crop = nil
            }
        }
        options.focus(on: rules.focusRegions, x: originX, y: originY, part)
        if rules.usesSourceWidth { options.width = part.width }
        if rules.usesSourceHeight { options.height = part.height }
        options.fitBox(to: part, rules)
        return options
    }

    /// Sets the focus point to the mean of the regions' centres within the part; keeps the gravity if none is inside.
    private mutating func focus(on regions: [SourceRules.Region], x originX: Int, y originY: Int, _ part: PixelSize) {
        var (sumX, sumY, sumWeight) = (0.0, 0.0, 0.0)
        for region in regions {
            let weight = Double(region.right - region.left) * Double(region.bottom - region.top)
            let x = region.left + (region.right - region.left) / 2 - originX
            let y = region.top + (region.bottom - region.top) / 2 - originY
            guard weight > 0, (0...part.width).contains(x), (0...part.height).contains(y) else { continue }
            sumX += Double(x) * weight
            sumY += Double(y) * weight
            sumWeight += weight
        }
        guard sumWeight > 0 else { return }
        gravity = Gravity()
        gravity.anchor = .focusPoint
        gravity.x = (sumX / sumWeight).rounded(.down) / Double(part.width)
        gravity.y = (sumY / sumWeight).rounded(.down) / Double(part.height)
    }

    /// Turns the box, and replaces a covered box by the size that covers it.
    private mutating func fitBox(to part: PixelSize, _ rules: SourceRules) {
        guard width > 0 || height > 0 else { return }
        if rules.adaptsOrientation {
            // A side that follows from the other has the orientation of the source, and needs no turn.
            let isTurned = width > 0 && height > 0
                && (part.width < part.height && width > height || part.width > part.height && width < height)
            if isTurned { swap(&width, &height) }
        }
        guard rules.coversBox else { return }
        if !enlarge {
            width = min(width, part.width)
            height = min(height, part.height)
        }
        let scale = max(Double(width) / Double(part.width), Double(height) / Double(part.height))
        resizingType = .force
        enlarge = true
        width = side(Double(part.width) * scale)
        height = side(Double(part.height) * scale)
    }
}

/// A side of at least one pixel. Limits of the result judge the sides of an extreme aspect ratio.
private func side(_ value: Double) -> Int { Int(min(max(value.rounded(), 1), 1e9)) }

extension ProcessingOptions.Crop {
    /// A rectangle in pixels of the source.
    package static func pixels(x: Int, y: Int, size: PixelSize) -> ProcessingOptions.Crop {
        var crop = ProcessingOptions.Crop()
        crop.width = Double(size.width)
        crop.height = Double(size.height)
        var gravity = ProcessingOptions.Gravity()
        gravity.anchor = .northWest
        gravity.x = Double(x)
        gravity.y = Double(y)
        crop.gravity = gravity
        return crop
    }
}
