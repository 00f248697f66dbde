import CVitrineFFmpeg
import VitrineCore
import VitrineImaging

/// Converts decoded frames to samples near the requested size.
///
/// Planes are averaged in blocks, in the frame's own colours, and scaled like other images, for the same sharpness
/// and colours. From 1,920 × 1,080 to 320 × 180 this takes 3 ms more than libswscale's conversion at the target size
/// (`SWS_AREA`, 0.9 ms). Decoding takes 20 to 60 ms.
struct FrameReader {
    let frame: cffmpeg_frame
    let video: OpenVideo

    /// Returns samples for an image of `target` pixels, in the stored orientation.
    ///
    /// They have a profile, except for those of high dynamic range and more than 8 bits, which are in sRGB already.
    func samples(for target: PixelSize) throws(ImageError) -> DecodedImage {
        let profile = profile
        if let image = shown(for: target, in: profile) { return image }
        var image = try planes(for: target)
        image.colorProfile = profile
        return image
    }

    private func planes(for target: PixelSize) throws(ImageError) -> DecodedImage {
        let factors = (
            x: FrameShape.factor(Int(frame.width), target.width), y: FrameShape.factor(Int(frame.height), target.height)
        )
        let areMeans = factors.x > 1 || factors.y > 1
        guard hasPlanes else {
            let size = PixelSize(
                width: (Int(frame.width) - 1) / factors.x + 1, height: (Int(frame.height) - 1) / factors.y + 1)
            return DecodedImage(planes: [try video.convert(to: size)], model: .rgb, samplesAreMeans: areMeans)
        }
        let luma = PixelSize(width: Int(frame.width), height: Int(frame.height))
        guard frame.plane_count > 1 else {
            return DecodedImage(
                planes: [
                    plane(frame.planes.0, stride: frame.strides.0, size: luma, factors: factors, scale: fullScale)
                ], model: .gray,
                samplesAreMeans: areMeans)
        }
        let chroma = PixelSize(width: Int(frame.chroma_width), height: Int(frame.chroma_height))
        // One sample a pixel of the target suffices: edges of colours are hardly visible.
        let coarser = (x: max(1, chroma.width / target.width), y: max(1, chroma.height / target.height))
        var planes = [
            plane(frame.planes.0, stride: frame.strides.0, size: luma, factors: factors, scale: lumaScale),
            plane(frame.planes.1, stride: frame.strides.1, size: chroma, factors: coarser, scale: chromaScale),
            plane(frame.planes.2, stride: frame.strides.2, size: chroma, factors: coarser, scale: chromaScale),
        ]
        if frame.plane_count > 3 {
            planes.append(
                plane(frame.planes.3, stride: frame.strides.3, size: luma, factors: factors, scale: alphaScale))
        }
        return DecodedImage(
            planes: planes, model: .yCbCr(matrix, fullRange: frame.full_range),
            alpha: frame.plane_count > 3 ? .straight : .none, samplesAreMeans: areMeans)
    }

    /// Colours of standard range are shown by the curve of sRGB, with any of the usual curves in the video: screens do
    /// not invert the curve of a camera.
    private var profile: [UInt8]? {
        let isHighRange = frame.transfer == 16 || frame.transfer == 18
        return CodePointProfile(
            primaries: Int(frame.primaries), transfer: isHighRange ? Int(frame.transfer) : 13)?.bytes
    }

    /// The frame in sRGB, if it is opaque, of high dynamic range and of more than 8 bits.
    private func shown(for target: PixelSize, in profile: [UInt8]?) -> DecodedImage? {
        guard hasPlanes, frame.depth > 8, frame.plane_count < 4, let luma = frame.planes.0,
            let profile = profile.flatMap({ ColorProfile($0) }), profile.isHighRange
        else { return nil }
        let size = PixelSize(width: Int(frame.width), height: Int(frame.height))
        let factors = (
            x: FrameShape.factor(size.width, target.width), y: FrameShape.factor(size.height, target.height)
        )
        var planes = [
            DeepFrame.Plane(samples: luma, bytesPerRow: Int(frame.strides.0), size: size, block: factors)
        ]
        if frame.plane_count == 3 {
            guard let blue = frame.planes.1, let red = frame.planes.2 else { return nil }
            let chroma = PixelSize(width: Int(frame.chroma_width), height: Int(frame.chroma_height))
            let block = (
                x: max(1, factors.x >> Int(frame.chroma_shift_x)), y: max(1, factors.y >> Int(frame.chroma_shift_y))
            )
            for (samples, stride) in [(blue, frame.strides.1), (red, frame.strides.2)] {
                planes.append(
                    DeepFrame.Plane(samples: samples, bytesPerRow: Int(stride), size: chroma, block: block))
            }
        }
        let deep = DeepFrame(
            planes: planes, matrix: planes.count == 3 ? matrix : nil, isFullRange: frame.full_range,
            depth: Int(frame.depth), shift: Int(frame.shift))
        guard var plane = deep.shown(in: profile, CancellationToken()) else { return nil }
        plane.extentWidth = Double(size.width) / Double(factors.x)
        plane.extentHeight = Double(size.height) / Double(factors.y)
        return DecodedImage(planes: [plane], model: .rgb, samplesAreMeans: factors.x > 1 || factors.y > 1)
    }

    /// Returns the visible content of the frame.
    func content() throws(ImageError) -> FrameContent {
        guard hasPlanes, let bytes = frame.planes.0 else {
            let plane = try video.convert(to: PixelSize(width: FrameContent.columns, height: FrameContent.rows))
            return plane.storage.withUnsafeBytes { FrameContent(rgb: $0) }
        }
        let scale = frame.full_range ? 1.0 : 255.0 / 219
        let offset = frame.full_range ? 0.0 : 16
        let unit = 1 / Double(1 << (Int(frame.depth) - 8))
        return FrameContent { column, row in
            let x = (2 * column + 1) * Int(frame.width) / (2 * FrameContent.columns)
            let y = (2 * row + 1) * Int(frame.height) / (2 * FrameContent.rows)
            let start = UnsafeRawPointer(bytes) + y * Int(frame.strides.0)
            let sample =
                frame.depth > 8
                ? Double(start.loadUnaligned(fromByteOffset: 2 * x, as: UInt16.self) >> UInt16(frame.shift)) * unit
                : Double(start.load(fromByteOffset: x, as: UInt8.self))
            return (sample - offset) * scale
        }
    }

    // MARK: Planes

    private var hasPlanes: Bool {
        [1, 3, 4].contains(frame.plane_count) && (8...16).contains(frame.depth) && (0...8).contains(frame.shift)
            && frame.depth + frame.shift <= 16
    }

    private func plane(
        _ bytes: UnsafePointer<UInt8>?, stride: Int32, size: PixelSize, factors: (x: Int, y: Int),
        scale: BoxReducer.Scale
    ) -> PixelPlane {
        var reducer = BoxReducer(
            width: size.width, height: size.height, factor: factors.x, verticalFactor: factors.y, scale: scale)
        guard let bytes else { return reducer.finish(fill: 128) }
        if frame.depth > 8 {
            UnsafeRawPointer(bytes).withMemoryRebound(to: UInt16.self, capacity: 1) {
                reducer.add(rows: $0, count: size.height, bytesPerRow: Int(stride))
            }
        } else {
            reducer.add(rows: bytes, count: size.height, bytesPerRow: Int(stride))
        }
        return reducer.finish()
    }

    /// The largest value of a sample, and its ratio to a byte; without padding bits.
    private var peak: Int { (1 << Int(frame.depth)) - 1 }
    private var step: Int { 1 << (Int(frame.depth) - 8) }
    /// The factor of the zero bits below a sample. Some formats keep 10 bits at the upper end of a word.
    private var padding: Int { 1 << Int(frame.shift) }

    /// The scale to bytes of the same range: limited range shifts (16…235 stays 16…235), full range stretches 0…peak to
    /// 0…255 (ITU-T H.273, 8.3).
    private var lumaScale: BoxReducer.Scale {
        if frame.depth == 8 { return .identity }
        return frame.full_range
            ? scale(multiplier: 255, bias: 0, divisor: peak) : scale(multiplier: 1, bias: 0, divisor: step)
    }

    /// Like luma, but keeps neutral at 128.
    private var chromaScale: BoxReducer.Scale {
        if frame.depth == 8 { return .identity }
        return frame.full_range
            ? scale(multiplier: 255, bias: 128 * peak - 255 * 128 * step, divisor: peak)
            : scale(multiplier: 1, bias: 0, divisor: step)
    }

    /// The scale to bytes of full range, for grey images, which always have full range.
    private var fullScale: BoxReducer.Scale {
        frame.full_range ? lumaScale : scale(multiplier: 255, bias: -16 * step * 255, divisor: 219 * step)
    }

    private var alphaScale: BoxReducer.Scale {
        frame.depth == 8 ? .identity : scale(multiplier: 255, bias: 0, divisor: peak)
    }

    /// `bias` is in units of `divisor` for samples without padding.
    private func scale(multiplier: Int, bias: Int, divisor: Int) -> BoxReducer.Scale {
        let most = 65_535
        guard divisor * padding <= most, abs(bias * padding) < 1 << 24 else {
            return BoxReducer.Scale(multiplier: 1, bias: 0, divisor: min(most, step * padding))
        }
        return BoxReducer.Scale(multiplier: multiplier, bias: bias * padding, divisor: divisor * padding)
    }

    /// ITU-T H.273, table 4. Like players, takes unmarked high definition for BT.709.
    private var matrix: DecodedImage.Matrix {
        switch frame.matrix {
        case 1: .bt709
        case 9, 10: .bt2020
        case 4, 5, 6, 7: .bt601
        default: frame.full_height >= 720 || frame.full_width >= 1_280 ? .bt709 : .bt601
        }
    }
}

/// The shape of a video: stored, with square pixels, and upright.
struct FrameShape: Equatable {
    /// The size of coded pixels.
    let stored: PixelSize
    /// The size with square pixels.
    let square: PixelSize
    let orientation: Orientation

    /// The largest plausible ratio of a pixel.
    private static let sharpest = 16

    /// - Parameter pixelShape: Width to height of a pixel (ITU-T H.273, 8.6); anything impossible is square.
    init(stored: PixelSize, pixelShape: (width: Int, height: Int), orientation: Orientation) {
        self.stored = PixelSize(width: max(1, stored.width), height: max(1, stored.height))
        self.orientation = orientation
        let (w, h) = pixelShape
        guard w > 0, h > 0, w != h, w / h < Self.sharpest, h / w < Self.sharpest else {
            square = self.stored
            return
        }
        let width = (Double(self.stored.width) * Double(w) / Double(h)).rounded()
        square = PixelSize(width: max(1, Int(width)), height: self.stored.height)
    }

    /// The displayed size.
    var upright: PixelSize { orientation.upright(square) }

    /// Returns the size of an image by `rule`, before it is turned upright.
    ///
    /// - Throws: The errors of ``ImageResizer/targetSize(for:)``.
    func target(_ rule: ImageResizer) throws(ImageError) -> PixelSize {
        orientation.upright(try rule.targetSize(for: upright))
    }

    /// Returns the largest number of `pixels` for one mean that leaves at least twice `target` for the final filter.
    static func factor(_ pixels: Int, _ target: Int) -> Int { max(1, pixels / max(1, 2 * target)) }
}
