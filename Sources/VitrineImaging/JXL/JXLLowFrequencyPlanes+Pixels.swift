extension JXLLowFrequencyPlanes {
    /// The encoded sRGB level for linear light of `(i / 4095)²`: finer in the dark, where the curve is steep.
    private static let levels: [UInt8] = (0..<4096).map { i in
        let root = Float(i) / 4095
        return SRGB.level(root * root)
    }

    /// The samples as sRGB, one pixel a block.
    ///
    /// Source: ISO/IEC 18181-1 annex L.2 (XYB, inverse opsin matrix and bias).
    func rgb(_ width: Int, _ height: Int, brightness: Float) -> PixelPlane {
        let columns = (width + 7) / 8
        let rows = (height + 7) / 8
        let storage = PixelStorage(uninitializedByteCount: columns * rows * 3)
        let target = storage.bytes.baseAddress!.assumingMemoryBound(to: UInt8.self)
        let stride = planes[1].width
        let bias: Float = 0.003_793_073_255_275_449_3
        let root: Float = 0.155_954_2  // the bias's cube root
        let first = SIMD4<Float>(11.031_566_9, -3.254_147_38, -3.658_851_29, 0) * brightness
        let second = SIMD4<Float>(-9.866_943_92, 4.418_770_39, 2.712_923_05, 0) * brightness
        let third = SIMD4<Float>(-0.164_622_997, -0.164_622_997, 1.945_928_24, 0) * brightness
        JXLLowFrequencyPlanes.levels.withUnsafeBufferPointer { levels in
            for row in 0..<rows {
                let x = planes[0].samples + row * stride
                let y = planes[1].samples + row * stride
                let b = planes[2].samples + row * stride
                let to = target + row * columns * 3
                for i in 0..<columns {
                    // Kept where cubes stay finite: damaged files have any number.
                    let l = max(-8, min(8, y[i] + x[i] + root))
                    let m = max(-8, min(8, y[i] - x[i] + root))
                    let s = max(-8, min(8, b[i] + root))
                    let linear = first * (l * l * l - bias) + second * (m * m * m - bias) + third * (s * s * s - bias)
                    let clamped = linear.clamped(lowerBound: SIMD4(), upperBound: SIMD4(repeating: 1))
                    let index = SIMD4<Int32>(clamped.squareRoot() * 4095 + 0.5)
                    to[3 * i] = levels[Int(index[0]) & 4095]
                    to[3 * i + 1] = levels[Int(index[1]) & 4095]
                    to[3 * i + 2] = levels[Int(index[2]) & 4095]
                }
            }
        }
        return PixelPlane(
            width: columns, height: rows, channels: 3, extentWidth: Double(width) / 8,
            extentHeight: Double(height) / 8, storage: storage)
    }

    /// The samples as planes of Y′CbCr, chroma as subsampled as it is.
    func yCbCr(_ width: Int, _ height: Int) -> [PixelPlane] {
        [1, 0, 2].map { c in
            let plane = planes[c]
            let (stepX, stepY) = (8 << plane.shiftX, 8 << plane.shiftY)
            let (columns, rows) = ((width + stepX - 1) / stepX, (height + stepY - 1) / stepY)
            let storage = PixelStorage(uninitializedByteCount: columns * rows)
            let target = storage.bytes.baseAddress!.assumingMemoryBound(to: UInt8.self)
            for row in 0..<rows {
                let from = plane.samples + row * plane.width
                for i in 0..<columns {
                    target[row * columns + i] = UInt8(max(0, min(255, from[i] * 255 + 128.5)))
                }
            }
            return PixelPlane(
                width: columns, height: rows, channels: 1, extentWidth: Double(width) / Double(stepX),
                extentHeight: Double(height) / Double(stepY), storage: storage)
        }
    }
}
