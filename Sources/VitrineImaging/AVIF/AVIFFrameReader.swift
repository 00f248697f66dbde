#if SystemCodecs
import CVitrineAVIF

/// Reduces the planes of one decoded frame to 8-bit ones, in the colour model they were coded in.
struct AVIFFrameReader {
    let frame: cavif_frame
    /// The side of the blocks to average, in luma samples.
    let factor: Int

    /// What the planes mean.
    enum Colors: Equatable {
        case gray
        case planes(DecodedImage.Matrix)
        /// Green, blue and red, in this order.
        case identity
        /// Something only the library can convert.
        case foreign
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
            reduce(frame.y, frame.y_stride, lumaScale, weighted: weight),
            reduce(frame.u, frame.u_stride, chromaScale, shiftX, shiftY, weighted: weight),
            reduce(frame.v, frame.v_stride, chromaScale, shiftX, shiftY, weighted: weight),
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
        let planes = [reduce(frame.y, frame.y_stride, fullScale, weighted: weight)] + (alpha.map { [$0] } ?? [])
        return DecodedImage(
            planes: [interleave(planes)], model: .gray, alpha: meaning(of: alpha), samplesAreMeans: factor > 1)
    }

    /// One plane of red, green, blue and alpha.
    func identity() -> DecodedImage {
        let alpha = reducedAlpha()
        let weight = alpha != nil && frame.premultiplied == 0 && factor > 1
        var planes = [
            reduce(frame.v, frame.v_stride, fullScale, weighted: weight),
            reduce(frame.y, frame.y_stride, fullScale, weighted: weight),
            reduce(frame.u, frame.u_stride, fullScale, weighted: weight),
        ]
        if let alpha { planes.append(alpha) }
        return DecodedImage(
            planes: [interleave(planes)], model: .rgb, alpha: meaning(of: alpha), samplesAreMeans: factor > 1)
    }

    private func meaning(of alpha: PixelPlane?) -> DecodedImage.Alpha {
        alpha == nil ? .none : frame.premultiplied != 0 ? .premultiplied : .straight
    }

    /// The alpha plane, unless all of it is opaque.
    private func reducedAlpha() -> PixelPlane? {
        guard let alpha = frame.alpha else { return nil }
        let plane = reduce(alpha, frame.alpha_stride, alphaScale, weighted: false)
        let isOpaque = plane.storage.withUnsafeBytes { bytes in bytes.allSatisfy { $0 == 255 } }
        return isOpaque ? nil : plane
    }

    /// One plane, `shiftX` and `shiftY` coarser than luma.
    private func reduce(
        _ samples: UnsafeRawPointer?, _ stride: Int, _ scale: BoxReducer.Scale, _ shiftX: Int = 0, _ shiftY: Int = 0,
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
            plane = box.reduce(samples, stride, alpha: alpha, Int(frame.alpha_stride), scale)
        } else {
            plane = reducePlain(samples, stride, scale, PixelSize(width: width, height: height), kx, ky)
        }
        // The last coarse sample of an odd side covers one pixel, not two.
        plane.extentWidth = Double(frame.width) / Double(kx << shiftX)
        plane.extentHeight = Double(frame.height) / Double(ky << shiftY)
        return plane
    }

    private func reducePlain(
        _ samples: UnsafeRawPointer?, _ stride: Int, _ scale: BoxReducer.Scale, _ size: PixelSize, _ kx: Int, _ ky: Int
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
        let storage = PixelStorage(uninitializedByteCount: count * n)
        let target = storage.bytes.baseAddress!.assumingMemoryBound(to: UInt8.self)
        for (channel, plane) in planes.enumerated() {
            plane.storage.withUnsafeBytes { bytes in
                for i in 0..<count { target[i &* n &+ channel] = bytes[i] }
            }
        }
        return PixelPlane(
            width: first.width, height: first.height, channels: n, extentWidth: first.extentWidth,
            extentHeight: first.extentHeight, storage: storage)
    }
}
#endif
