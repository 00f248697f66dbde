import VitrineCore

/// Scales planes of 8-bit samples with a separable Lanczos3 filter.
///
/// Arithmetic is 16-bit fixed point. The result differs from a double-precision Lanczos3 by little more than the
/// rounding to 8 bits. Eight rows of the result are made at a time. A first pass down the columns gives eight lines of
/// source width. A second pass goes along them with one SIMD lane a line, so that neither pass adds across lanes. Only
/// the source rows of eight result rows are in memory at a time.
package enum Resampler {
    /// The reduction from which samples are first averaged in whole boxes.
    package static let boxThreshold = 6.0
    /// The smallest reduction by Lanczos3 after the boxes.
    static let boxRemainder = 3.0

    /// Scales `plane`, or a region of it, to `size`.
    ///
    /// Maps the plane's extent onto `size`. Taps beyond an edge are left out and the rest renormalised. When nothing
    /// changes, the result is the plane itself and shares its memory.
    ///
    /// - Parameters:
    ///   - region: The part to scale, in samples of the extent; parts outside it are cut off. nil for everything.
    ///   - premultiplying: Whether the last of 2 or 4 channels is straight alpha. Colours are then multiplied by it, at
    ///     16 bits and before they are filtered, so that invisible colours do not bleed into visible ones.
    ///   - cancellation: Polled every eight rows.
    /// - Returns: A plane of exactly `size` (premultiplied if asked for), or nil when cancelled.
    /// - Precondition: `size` is not empty; 1 to 4 channels.
    package static func resample(
        _ plane: PixelPlane, to size: PixelSize, region: PixelRegion? = nil, kernel: Kernel = .lanczos3,
        premultiplying: Bool = false, cancellation: CancellationToken? = nil
    ) -> PixelPlane? {
        precondition(!size.isEmpty && (1...4).contains(plane.channels), "a plane is scaled to at least one sample")
        let extent = clip(nil, to: plane)
        let area = clip(region, to: plane)
        let premultiplies = premultiplying && (plane.channels == 2 || plane.channels == 4)
        let isSame = ResampleWeights.isIdentity(
            samples: plane.width, origin: area.x, length: area.width, count: size.width)
            && ResampleWeights.isIdentity(
                samples: plane.height, origin: area.y, length: area.height, count: size.height)
        if isSame { return premultiplies ? premultiplied(plane) : plane }

        if !premultiplies, let part = part(of: plane, area, size) { return part }
        let shape = ResampleRows.Shape(
            width: plane.width, height: plane.height, channels: plane.channels, bytesPerRow: plane.bytesPerRow)
        return job(shape, extent: extent, area: area, to: size, kernel: kernel, premultiplies: premultiplies).run(
            plane, cancellation)
    }

    /// Scales rows while they are made, with the result of scaling a plane of them. Only the rows of eight result rows
    /// are in memory at a time.
    ///
    /// - Parameters:
    ///   - width: Samples a row.
    ///   - height: The number of rows.
    ///   - channels: 1 to 4, none of which is alpha.
    ///   - extent: The samples that the image spans, as of ``PixelPlane/extentWidth``.
    ///   - row: Returns the address of a row, valid until the next call, or nil to end. Rows are asked for from above
    ///     to below, each at most once.
    /// - Returns: A plane of exactly `size`; nil when `row` ended it.
    /// - Precondition: `size` is not empty, and more than a sixth of the extent in both directions.
    package static func resample(
        width: Int, height: Int, channels: Int, extent: (width: Double, height: Double), to size: PixelSize,
        row: (Int) -> UnsafePointer<UInt8>?
    ) -> PixelPlane? {
        precondition(!size.isEmpty && (1...4).contains(channels), "rows are scaled to at least one sample")
        let shape = ResampleRows.Shape(width: width, height: height, channels: channels, bytesPerRow: width * channels)
        let area = PixelRegion(x: 0, y: 0, width: extent.width, height: extent.height)
        let job = job(shape, extent: area, area: area, to: size, kernel: .lanczos3, premultiplies: false)
        precondition(job.rows.boxWidth == 1 && job.rows.boxHeight == 1, "boxes need several rows at once")
        return job.run(nil, source: row)
    }

    private static func job(
        _ shape: ResampleRows.Shape, extent: PixelRegion, area: PixelRegion, to size: PixelSize, kernel: Kernel,
        premultiplies: Bool
    ) -> ResampleJob {
        let boxWidth = box(reduction: area.width / Double(size.width))
        let boxHeight = box(reduction: area.height / Double(size.height))
        let rows = ResampleRows(plane: shape, boxWidth: boxWidth, boxHeight: boxHeight, premultiplies: premultiplies)
        let across = ResampleWeightsCache.shared.weights(
            ResampleWeights.Axis(
                samples: rows.width, extent: extent.width / Double(boxWidth), origin: area.x / Double(boxWidth),
                length: area.width / Double(boxWidth), count: size.width,
                kernel: boxWidth > 1 ? .lanczos3ForMeans : kernel, highPrecision: true))
        let down = ResampleWeightsCache.shared.weights(
            ResampleWeights.Axis(
                samples: rows.height, extent: extent.height / Double(boxHeight), origin: area.y / Double(boxHeight),
                length: area.height / Double(boxHeight), count: size.height,
                kernel: boxHeight > 1 ? .lanczos3ForMeans : kernel, highPrecision: false))
        return ResampleJob(rows: rows, across: across, down: down, size: size)
    }

    /// A copy of whole samples; nil if the area has fractions of samples, or another size.
    private static func part(of plane: PixelPlane, _ area: PixelRegion, _ size: PixelSize) -> PixelPlane? {
        // The area was computed from fractions of the sides.
        func isEqual(_ one: Double, _ other: Double) -> Bool { abs(one - other) < 1e-6 }
        let (x, y) = (area.x.rounded(), area.y.rounded())
        guard isEqual(area.width, Double(size.width)), isEqual(area.height, Double(size.height)), isEqual(area.x, x),
            isEqual(area.y, y), Int(x) + size.width <= plane.width, Int(y) + size.height <= plane.height
        else { return nil }
        let row = size.width * plane.channels
        let start = Int(y) * plane.bytesPerRow + Int(x) * plane.channels
        let storage = PixelStorage(zeroedByteCount: row * size.height)
        plane.storage.withUnsafeBytes { source in
            guard let from = source.baseAddress, let to = storage.bytes.baseAddress else { return }
            for y in 0..<size.height {
                (to + y * row).copyMemory(from: from + (start + y * plane.bytesPerRow), byteCount: row)
            }
        }
        return PixelPlane(width: size.width, height: size.height, channels: plane.channels, storage: storage)
    }

    /// A copy with colours multiplied by alpha.
    private static func premultiplied(_ plane: PixelPlane) -> PixelPlane {
        let row = plane.width * plane.channels
        let storage = PixelStorage(zeroedByteCount: row * plane.height)
        plane.storage.withUnsafeBytes { source in
            guard let source = source.bindMemory(to: UInt8.self).baseAddress,
                let target = storage.bytes.bindMemory(to: UInt8.self).baseAddress
            else { return }
            for y in 0..<plane.height {
                let line = target + y * row
                line.update(from: source + y * plane.bytesPerRow, count: row)
                if plane.channels == 4 {
                    AlphaMath.premultiply(line, count: plane.width)
                } else {
                    for x in 0..<plane.width {
                        let level = AlphaMath.multiply(UInt32(line[2 &* x]), UInt32(line[2 &* x &+ 1]))
                        line[2 &* x] = UInt8(truncatingIfNeeded: level)
                    }
                }
            }
        }
        return PixelPlane(width: plane.width, height: plane.height, channels: plane.channels, storage: storage)
    }

    private static func box(reduction: Double) -> Int {
        reduction < boxThreshold ? 1 : max(1, Int(reduction / boxRemainder))
    }

    /// Returns the region, cut to the extent and at least a thousandth of a sample in size. Accepts any numbers.
    private static func clip(_ region: PixelRegion?, to plane: PixelPlane) -> PixelRegion {
        let width = sane(plane.extentWidth, low: 0.001, high: Double(plane.width), fallback: Double(plane.width))
        let height = sane(plane.extentHeight, low: 0.001, high: Double(plane.height), fallback: Double(plane.height))
        guard let region else { return PixelRegion(x: 0, y: 0, width: width, height: height) }
        let x = sane(region.x, low: 0, high: width - 0.001, fallback: 0)
        let y = sane(region.y, low: 0, high: height - 0.001, fallback: 0)
        return PixelRegion(
            x: x, y: y,
            width: sane(region.width - (x - region.x), low: 0.001, high: width - x, fallback: width - x),
            height: sane(region.height - (y - region.y), low: 0.001, high: height - y, fallback: height - y))
    }

    private static func sane(_ value: Double, low: Double, high: Double, fallback: Double) -> Double {
        value.isFinite ? max(low, min(high, value)) : fallback
    }
}

/// A rectangle of a ``PixelPlane`` in samples, fractions included, inside the plane's extent.
package struct PixelRegion: Sendable, Hashable {
    package var x: Double
    package var y: Double
    package var width: Double
    package var height: Double

    package init(x: Double, y: Double, width: Double, height: Double) {
        self.x = x
        self.y = y
        self.width = width
        self.height = height
    }
}
