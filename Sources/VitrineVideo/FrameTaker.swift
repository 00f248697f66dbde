import CVitrineFFmpeg
import VitrineCore
import VitrineHelperProtocol
import VitrineImaging

/// Decodes frames of one video to images.
struct FrameTaker {
    let video: OpenVideo
    let rule: ImageResizer

    /// The most frames decoded to reach a second: five minutes from the nearest key frame.
    static let budget = 9_000
    /// The most packets read in search of a decodable frame, in videos without key frames.
    private static let unmarkedBudget = 600
    /// The most seconds from the last frame to the requested second in videos of unknown length.
    private static let slack = 1.0

    /// The most seconds from the requested second to a frame: rounding of time stamps.
    private static let lateness = 0.001

    /// Returns the frame at a second.
    ///
    /// - Parameter isExact: Whether to take the frame displayed at that second. Otherwise the nearest key frame, or the
    ///   next frame of a video without key frames.
    func frame(at second: Double, isExact: Bool, clampsToEnd: Bool) throws(ImageError) -> PixelImage {
        if !isExact {
            try begin(keyFrames: true)
            if let frame = try keyFrame(near: second) { return try picture(frame) }
        }
        try begin(keyFrames: false)
        guard let frame = try anyFrame(at: second, isExact: isExact) else {
            throw .corrupt(input: "input", reason: "it has no frames that can be decoded")
        }
        if video.duration <= 0, !clampsToEnd, frame.second < second - Self.slack {
            throw VideoFailure.beyondEnd(duration: max(0, frame.second)).error
        }
        return try picture(frame)
    }

    private func keyFrame(near second: Double) throws(ImageError) -> cffmpeg_frame? {
        for step in Self.steps(before: second) {
            if second > 0 { video.seek(to: max(0, second - step), nearest: step == 0) }
            if let frame = try video.next() { return frame }
        }
        return nil
    }

    private func anyFrame(at second: Double, isExact: Bool) throws(ImageError) -> cffmpeg_frame? {
        var nearest: cffmpeg_frame?
        for step in Self.steps(before: second) {
            if second > 0 { video.seek(to: max(0, second - step), nearest: false) }
            nearest =
                isExact
                ? try video.next(at: second, budget: Self.budget) : try video.next(budget: Self.unmarkedBudget)
            // The first decodable frame may come later than the requested one.
            if let nearest, !isExact || !(nearest.second > second + Self.lateness) { return nearest }
        }
        return nearest
    }

    /// The seconds to seek back in successive attempts. Some containers seek by time only, and decoding begins at a key
    /// frame.
    private static func steps(before second: Double) -> [Double] {
        [0, 3, 12, 60].filter { $0 == 0 || $0 < second } + (second > 0 ? [second] : [])
    }

    /// Returns the attached image.
    func cover() throws(ImageError) -> PixelImage {
        try video.begin(cover: true, keyFrames: false, reduction: 1, side: 0)
        guard let frame = try video.next() else {
            throw .corrupt(input: "input", reason: "its attached picture cannot be decoded")
        }
        return try picture(frame, orientation: .up)
    }

    /// Prepares to decode frames, as small as the rule allows.
    func begin(keyFrames: Bool, dropsUnneeded: Bool = false) throws(ImageError) {
        let shape = video.shape
        let target = try shape.target(rule)
        // The longer side's twofold, as in `FrameShape.factor`; pixels may be wider than high.
        let scale = max(
            Double(target.width) / Double(shape.square.width), Double(target.height) / Double(shape.square.height))
        let side = Double(max(shape.stored.width, shape.stored.height)) * min(1, 2 * scale)
        let reduction = min(shape.stored.width / max(1, target.width), shape.stored.height / max(1, target.height))
        try video.begin(
            keyFrames: keyFrames, dropsUnneeded: dropsUnneeded, reduction: reduction, side: Int(side.rounded(.up)))
    }

    /// Returns the image of the frame decoded last.
    func picture(_ frame: cffmpeg_frame, orientation: Orientation? = nil) throws(ImageError) -> PixelImage {
        let shape = FrameShape(
            stored: PixelSize(width: Int(frame.full_width), height: Int(frame.full_height)),
            pixelShape: (Int(frame.sar_num), Int(frame.sar_den)), orientation: orientation ?? video.orientation)
        let target = try shape.target(rule)
        let samples = try FrameReader(frame: frame, video: video).samples(for: target)
        return try DecodedImageRenderer.image(
            from: samples, size: target, orientation: shape.orientation, cancellation: CancellationToken(),
            inputName: "input")
    }
}
