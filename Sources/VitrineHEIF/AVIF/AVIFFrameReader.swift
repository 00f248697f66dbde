#if SystemCodecs
import CVitrineAVIF
import VitrineCore
import VitrineImageCore

extension cavif_frame {
    /// Leaves the samples of a part of the frame. Where it begins with an odd pixel, the first sample of coarser chroma
    /// covers half of one beside it.
    ///
    /// - Returns: Whether anything was cut off.
    mutating func cut(to part: PixelRect?) -> Bool {
        let whole = PixelSize(width: Int(width), height: Int(height))
        guard let part, part.size != whole, part.clipped(to: whole) == part else { return false }
        let bytes = depth > 8 ? 2 : 1
        let shiftX = Int(layout) == CAVIF_444 ? 0 : 1, shiftY = Int(layout) == CAVIF_420 ? 1 : 0
        if let samples = y { y = samples + part.y * y_stride + part.x * bytes }
        if let samples = alpha { alpha = samples + part.y * alpha_stride + part.x * bytes }
        if let samples = u { u = samples + (part.y >> shiftY) * u_stride + (part.x >> shiftX) * bytes }
        if let samples = v { v = samples + (part.y >> shiftY) * v_stride + (part.x >> shiftX) * bytes }
        (width, height) = (Int32(part.size.width), Int32(part.size.height))
        return true
    }
}

/// Reduces the planes of one decoded frame to 8-bit ones, in the colour model they were coded in.
struct AVIFFrameReader {
    let frame: cavif_frame
    /// The side of the blocks to average, in luma samples.
    let factor: Int

    /// The meaning of the planes.
    enum Colors: Equatable {
        case gray
        case planes(DecodedImage.Matrix)
        /// Green, blue and red, in this order.
        case identity
        /// Y, Cg and Co of RGB with so many bits less: YCgCo-R, which loses nothing.
        case lifted(bits: Int)
        /// Something only the library can convert.
        case foreign
        /// A matrix that the library does not convert either.
        case unknown(Int32)
    }

    /// ITU-T H.273 table 4. Code point 2, unspecified, is BT.601, as in libavif; 12 derives the matrix from the
    /// primaries.
    var colors: Colors {
        if Int(frame.layout) == CAVIF_GRAY { return .gray }
        switch (frame.matrix, frame.primaries) {
        case (0, _): return Int(frame.layout) == CAVIF_444 ? .identity : .foreign
        case (1, _), (12, 1): return .planes(.bt709)
        case (2, _), (5, _), (6, _): return .planes(.bt601)
        case (9, _), (12, 9): return .planes(.bt2020)
        case (16, _), (17, _):
            let isWhole = Int(frame.layout) == CAVIF_444 && frame.full_range != 0 && frame.depth > 8
            return isWhole ? .lifted(bits: frame.matrix == 16 ? 2 : 1) : .unknown(frame.matrix)
        case (10, _), (11, _), (14..., _): return .unknown(frame.matrix)
        default: return .foreign
        }
    }

    /// Largest value of a sample.
    private var peak: Int { (1 << Int(frame.depth)) - 1 }
    /// How much larger samples are than bytes.
    private var step: Int { 1 << (Int(frame.depth) - 8) }

    /// To bytes of the same range: limited range shifts (16…235 stays 16…235), full range stretches 0…peak to 0…255.
    private var lumaScale: BoxReducer.Scale {
        frame.full_range != 0
            ? BoxReducer.Scale(multiplier: 255, bias: 0, divisor: peak)
            : BoxReducer.Scale(multiplier: 1, bias: 0, divisor: step)
    }

    /// As for luma, but keeps neutral at 128, which stretching alone would move by a third.
    private var chromaScale: BoxReducer.Scale {
        frame.full_range != 0
            ? BoxReducer.Scale(multiplier: 255, bias: 128 * peak - 255 * 128 * step, divisor: peak)
            : BoxReducer.Scale(multiplier: 1, bias: 0, divisor: step)
    }

    /// To bytes of full range, for models without a range of their own.
    private var fullScale: BoxReducer.Scale {
        frame.full_range != 0
            ? lumaScale : BoxReducer.Scale(multiplier: 255, bias: -16 * step * 255, divisor: 219 * step)
    }

    private var alphaScale: BoxReducer.Scale { BoxReducer.Scale(multiplier: 255, bias: 0, divisor: peak) }

    /// Three planes, and alpha as the fourth.
    func yCbCr(_ matrix: DecodedImage.Matrix) -> DecodedImage {
        let shiftX = Int(frame.layout) == CAVIF_444 ? 0 : 1
        let shiftY = Int(frame.layout) == CAVIF_420 ? 1 : 0
        let alpha = reducedAlpha()
        let weight = alpha != nil && frame.premultiplied == 0 && factor > 1
        var planes = [
            reduce(frame.y, stride: frame.y_stride, scale: lumaScale, weighted: weight),
                reduce(
                    frame.u, stride: frame.u_stride, scale: chromaScale, shiftX: shiftX, shiftY: shiftY,
                    weighted: weight),
                reduce(
                    frame.v, stride: frame.v_stride, scale: chromaScale, shiftX: shiftX, shiftY: shiftY,
                    weighted: weight),
        ]
        if let alpha { planes.append(alpha) }
        return DecodedImage(
            planes: planes, model: .yCbCr(matrix, fullRange: frame.full_range != 0), alpha: meaning(of: alpha),
            samplesAreMeans: factor > 1)
    }

    /// One plane of full-range grey, with alpha beside it.
    func gray() -> DecodedImage {
        let alpha = reducedAlpha()
        let weight = alpha != nil && frame.premultiplied == 0 && factor > 1
            let planes =
                [reduce(frame.y, stride: frame.y_stride, scale: fullScale, weighted: weight)]
                + (alpha.map { [$0] } ?? [])
        return DecodedImage(
            planes: [interleave(planes)], model: .gray, alpha: meaning(of: alpha), samplesAreMeans: factor > 1)
    }

    /// One plane of red, green, blue and alpha.
    func identity() -> DecodedImage {
        let alpha = reducedAlpha()
        let weight = alpha != nil && frame.premultiplied == 0 && factor > 1
        var planes = [
            reduce(frame.v, stride: frame.v_stride, scale: fullScale, weighted: weight),
            reduce(frame.y, stride: frame.y_stride, scale: fullScale, weighted: weight),
            reduce(frame.u, stride: frame.u_stride, scale: fullScale, weighted: weight),
        ]
        if let alpha { planes.append(alpha) }
        return DecodedImage(
            planes: [interleave(planes)], model: .rgb, alpha: meaning(of: alpha), samplesAreMeans: factor > 1)
    }

    /// Red, green and blue of YCgCo-R, averaged after the conversion, which rounds.
    ///
    /// Source: ITU-T H.273 (2023), equations 62 to 65.
    func lifted(by bits: Int) -> DecodedImage {
        let (width, height) = (Int(frame.width), Int(frame.height))
        let channels = frame.alpha == nil ? 3 : 4
        let isPremultiplied = frame.alpha != nil && (frame.premultiplied != 0 || factor > 1)
        let most = Int32(1) << Int32(Int(frame.depth) - bits) - 1
        let middle = Int32(1) << Int32(frame.depth - 1)
        var line = [UInt8](repeating: 255, count: width * channels)
        var reducer = BoxReducer(width: width, height: height, channels: channels, factor: factor)
        func row(_ samples: UnsafeRawPointer?, stride: Int, y: Int) -> UnsafePointer<UInt16>? {
            samples.map { ($0 + y * stride).assumingMemoryBound(to: UInt16.self) }
        }
        func level(_ value: Int32) -> UInt8 { UInt8((max(0, min(most, value)) * 255 + most / 2) / most) }
        for y in 0..<height {
                guard let luma = row(frame.y, stride: frame.y_stride, y: y),
                    let cg = row(frame.u, stride: frame.u_stride, y: y),
                let co = row(frame.v, stride: frame.v_stride, y: y)
            else { break }
            let alpha = row(frame.alpha, stride: frame.alpha_stride, y: y)
            for x in 0..<width {
                let (green, orange) = (Int32(cg[x]) - middle, Int32(co[x]) - middle)
                let t = Int32(luma[x]) - green >> 1
                let b = t - orange >> 1
                line[channels * x] = level(b + orange)
                line[channels * x + 1] = level(t + green)
                line[channels * x + 2] = level(b)
                if let alpha { line[channels * x + 3] = UInt8((min(Int(alpha[x]), peak) * 255 + peak / 2) / peak) }
            }
            line.withUnsafeMutableBufferPointer { pixels in
                guard let base = pixels.baseAddress else { return }
                if isPremultiplied, frame.premultiplied == 0 { AlphaMath.premultiply(base, count: width) }
                reducer.add(rows: UnsafePointer(base), count: 1, bytesPerRow: width * channels)
            }
        }
        return DecodedImage(
            planes: [reducer.finish()], model: .rgb,
            alpha: channels == 3 ? .none : isPremultiplied ? .premultiplied : .straight, samplesAreMeans: factor > 1)
    }

    /// The frame in sRGB, if it is of high dynamic range and of more than 8 bits, and opaque or with a map of its own.
    func shown(
        in profile: [UInt8]?, _ gain: GainSamples?, _ cancellation: CancellationToken
    ) -> DecodedImage? {
        guard frame.depth > 8, frame.alpha == nil || (gain != nil && frame.premultiplied == 0),
            let profile = profile.flatMap({ ColorProfile($0) }),
            profile.isHighRange, let luma = frame.y
        else { return nil }
        let (width, height) = (Int(frame.width), Int(frame.height))
        var planes = [
            DeepFrame.Plane(
                samples: luma, bytesPerRow: frame.y_stride, size: PixelSize(width: width, height: height),
                block: (factor, factor))
        ]
        let shiftX = Int(frame.layout) == CAVIF_444 ? 0 : 1
        let shiftY = Int(frame.layout) == CAVIF_420 ? 1 : 0
        var matrix: DecodedImage.Matrix?
        switch colors {
        case .gray: break
        case .foreign, .lifted, .unknown: return nil
        case .identity, .planes:
            guard let u = frame.u, let v = frame.v else { return nil }
            if case .planes(let meaning) = colors { matrix = meaning }
            let size = PixelSize(width: (width + shiftX) >> shiftX, height: (height + shiftY) >> shiftY)
            let block = (max(1, factor >> shiftX), max(1, factor >> shiftY))
            planes.append(DeepFrame.Plane(samples: u, bytesPerRow: frame.u_stride, size: size, block: block))
            planes.append(DeepFrame.Plane(samples: v, bytesPerRow: frame.v_stride, size: size, block: block))
        }
        var deep = DeepFrame(
            planes: planes, matrix: matrix, isFullRange: frame.full_range != 0, depth: Int(frame.depth))
        deep.gain = gain
        deep.alpha = reducedAlpha()
        guard var plane = deep.shown(in: profile, cancellation) else { return nil }
        plane.extentWidth = Double(width) / Double(factor)
        plane.extentHeight = Double(height) / Double(factor)
        return DecodedImage(
            planes: [plane], model: .rgb, alpha: deep.alpha == nil ? .none : .straight, samplesAreMeans: factor > 1)
    }

    private func meaning(of alpha: PixelPlane?) -> DecodedImage.Alpha {
        alpha == nil ? .none : frame.premultiplied != 0 ? .premultiplied : .straight
    }

    /// The alpha plane, unless all of it is opaque.
    private func reducedAlpha() -> PixelPlane? {
        guard let alpha = frame.alpha else { return nil }
        let plane = reduce(alpha, stride: frame.alpha_stride, scale: alphaScale, weighted: false)
        let isOpaque = plane.storage.withUnsafeBytes { bytes in bytes.allSatisfy { $0 == 255 } }
        return isOpaque ? nil : plane
    }

    /// One plane, `shiftX` and `shiftY` coarser than luma.
    private func reduce(
        _ samples: UnsafeRawPointer?, stride: Int, scale: BoxReducer.Scale, shiftX: Int = 0, shiftY: Int = 0,
        weighted: Bool
    ) -> PixelPlane {
        let width = (Int(frame.width) + shiftX) >> shiftX
        let height = (Int(frame.height) + shiftY) >> shiftY
        let (kx, ky) = (max(1, factor >> shiftX), max(1, factor >> shiftY))
        var plane: PixelPlane
        if weighted, let samples, let alpha = frame.alpha {
            let box = AlphaWeightedBox(
                width: width, height: height, factor: kx, verticalFactor: ky, shiftX: shiftX, shiftY: shiftY,
                isWide: frame.depth > 8)
                plane = box.reduce(
                    samples, stride: stride, alpha: alpha, alphaStride: Int(frame.alpha_stride), scale: scale)
        } else {
                plane = reducePlain(
                    samples, stride: stride, scale: scale, size: PixelSize(width: width, height: height), kx: kx, ky: ky
                )
        }
        // The last coarse sample of an odd side covers one pixel, not two.
        plane.extentWidth = Double(frame.width) / Double(kx << shiftX)
        plane.extentHeight = Double(frame.height) / Double(ky << shiftY)
        return plane
    }

    private func reducePlain(
        _ samples: UnsafeRawPointer?, stride: Int, scale: BoxReducer.Scale, size: PixelSize, kx: Int, ky: Int
    ) -> PixelPlane {
        var reducer = BoxReducer(
            width: size.width, height: size.height, factor: kx, verticalFactor: ky,
            scale: frame.depth > 8 || scale == fullScale ? scale : .identity)
        if let samples {
            if frame.depth > 8 {
                reducer.add(rows: samples.assumingMemoryBound(to: UInt16.self), count: size.height, bytesPerRow: stride)
            } else {
                reducer.add(rows: samples.assumingMemoryBound(to: UInt8.self), count: size.height, bytesPerRow: stride)
            }
        }
        return reducer.finish()
    }

    /// Planes of equal size as the channels of one.
    private func interleave(_ planes: [PixelPlane]) -> PixelPlane {
        let first = planes[0]
        guard planes.count > 1 else { return first }
        let (count, n) = (first.width * first.height, planes.count)
        let storage = PixelStorage(zeroedByteCount: count * n)
        let target = storage.bytes.baseAddress!.assumingMemoryBound(to: UInt8.self)
        for (channel, plane) in planes.enumerated() {
            plane.storage.withUnsafeBytes { bytes in
                for i in 0..<count { target[i &* n &+ channel] = bytes[i] }
            }
        }
        return PixelPlane(
            width: first.width, height: first.height, channels: n, extent: (first.extentWidth, first.extentHeight),
            storage: storage)
    }
}

/// Averages blocks of a plane with straight alpha: every sample counts as much as it is visible, so that the colours
/// under transparent pixels do not bleed into visible ones. The same as premultiplying, averaging and dividing again,
/// and right for Y′CbCr too, where premultiplied samples would need a range of their own.
private struct AlphaWeightedBox {
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
        _ samples: UnsafeRawPointer, stride: Int, alpha: UnsafeRawPointer, alphaStride: Int,
        scale: BoxReducer.Scale
    ) -> PixelPlane {
        let (columns, rows) = ((width - 1) / factor + 1, (height - 1) / verticalFactor + 1)
        let storage = PixelStorage(zeroedByteCount: columns * rows)
        let target = storage.bytes.baseAddress!.assumingMemoryBound(to: UInt8.self)
        let planes = Planes(samples: samples, stride: stride, alpha: alpha, alphaStride: alphaStride)
        for row in 0..<rows {
            for column in 0..<columns {
                let (sum, weight) =
                    isWide
                    ? weightedSum(ofBlock: column, row: row, planes: planes, of: UInt16.self)
                    : weightedSum(ofBlock: column, row: row, planes: planes, of: UInt8.self)
                // The scales carry the depth, so the mean stays in the file's units until here.
                let divisor = Double(weight) * Double(scale.divisor)
                let value = (Double(sum) * Double(scale.multiplier) + Double(scale.bias) * Double(weight)) / divisor
                target[row * columns + column] = UInt8(max(0, min(255, value.rounded())))
            }
        }
        return PixelPlane(
            width: columns, height: rows, channels: 1,
            extent: (Double(width) / Double(factor), Double(height) / Double(verticalFactor)), storage: storage)
    }

    /// The first rows of the plane and of alpha, and the bytes from row to row.
    private struct Planes {
        let samples: UnsafeRawPointer
        let stride: Int
        let alpha: UnsafeRawPointer
        let alphaStride: Int
    }

    /// The weighted sum of the samples of a block, and the sum of the weights.
    @inline(__always)
    private func weightedSum<T: FixedWidthInteger & UnsignedInteger>(
        ofBlock column: Int, row: Int, planes: Planes, of type: T.Type
    ) -> (sum: UInt64, weight: UInt64) {
        let (x0, x1) = (column * factor, min(column * factor + factor, width))
        let (y0, y1) = (row * verticalFactor, min(row * verticalFactor + verticalFactor, height))
        var (sum, weight, plain): (UInt64, UInt64, UInt64) = (0, 0, 0)
        for y in y0..<y1 {
            let line = (planes.samples + y &* planes.stride).assumingMemoryBound(to: T.self)
            let first = (planes.alpha + (y << shiftY) &* planes.alphaStride).assumingMemoryBound(to: T.self)
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
