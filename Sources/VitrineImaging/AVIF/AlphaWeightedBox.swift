#if SystemCodecs
/// Averages blocks of a plane with straight alpha: every sample counts as much as it is visible, so that the colours
/// under transparent pixels do not bleed into visible ones. The same as premultiplying, averaging and dividing again,
/// and right for Y′CbCr too, where premultiplied samples would need a range of their own.
struct AlphaWeightedBox {
    let width: Int
    let height: Int
    let factor: Int
    let verticalFactor: Int
    /// How much coarser the plane is than alpha. A coarse sample weighs as the first pixel it covers.
    let shiftX: Int
    let shiftY: Int
    /// Whether samples, of the plane and of alpha, are 16 bits.
    let isWide: Bool

    /// The means, each rounded by `scale`; a block without any visible sample is its plain mean.
    func reduce(
        _ samples: UnsafeRawPointer, _ stride: Int, alpha: UnsafeRawPointer, _ alphaStride: Int,
        _ scale: BoxReducer.Scale
    ) -> PixelPlane {
        let (columns, rows) = ((width - 1) / factor + 1, (height - 1) / verticalFactor + 1)
        let storage = PixelStorage(uninitializedByteCount: columns * rows)
        let target = storage.bytes.baseAddress!.assumingMemoryBound(to: UInt8.self)
        for row in 0..<rows {
            for column in 0..<columns {
                let (sum, weight) = isWide
                    ? block(column, row, samples, stride, alpha, alphaStride, of: UInt16.self)
                    : block(column, row, samples, stride, alpha, alphaStride, of: UInt8.self)
                // The scales carry the depth, so the mean stays in the file's units until here.
                let divisor = Double(weight) * Double(scale.divisor)
                let value = (Double(sum) * Double(scale.multiplier) + Double(scale.bias) * Double(weight)) / divisor
                target[row * columns + column] = UInt8(max(0, min(255, value.rounded())))
            }
        }
        return PixelPlane(
            width: columns, height: rows, channels: 1, extentWidth: Double(width) / Double(factor),
            extentHeight: Double(height) / Double(verticalFactor), storage: storage)
    }

    @inline(__always)
    private func block<T: FixedWidthInteger & UnsignedInteger>(
        _ column: Int, _ row: Int, _ samples: UnsafeRawPointer, _ stride: Int, _ alpha: UnsafeRawPointer,
        _ alphaStride: Int, of type: T.Type
    ) -> (sum: UInt64, weight: UInt64) {
        let (x0, x1) = (column * factor, min(column * factor + factor, width))
        let (y0, y1) = (row * verticalFactor, min(row * verticalFactor + verticalFactor, height))
        var (sum, weight, plain): (UInt64, UInt64, UInt64) = (0, 0, 0)
        for y in y0..<y1 {
            let line = (samples + y &* stride).assumingMemoryBound(to: T.self)
            let first = (alpha + (y << shiftY) &* alphaStride).assumingMemoryBound(to: T.self)
            for x in x0..<x1 {
                let a = UInt64(truncatingIfNeeded: first[x << shiftX])
                let value = UInt64(truncatingIfNeeded: line[x])
                sum &+= value &* a
                weight &+= a
                plain &+= value
            }
        }
        return weight > 0 ? (sum, weight) : (plain, UInt64((x1 - x0) * (y1 - y0)))
    }
}
#endif
