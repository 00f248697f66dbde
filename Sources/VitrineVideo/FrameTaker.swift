import CVitrineFFmpeg
import VitrineCore
import VitrineHelperProtocol
import VitrineImaging

/// Takes frames of one film and makes pictures of them.
struct FrameTaker {
    let video: OpenVideo
    let rule: ImageResizer

    /// Frames decoded to reach one by its second: five minutes from the nearest key frame.
    static let budget = 9_000
    /// Frames looked at until one comes that is no key frame, where there are no key frames.
    private static let unmarkedBudget = 600
    /// Seconds by which the last frame may lie before the second asked for, where the film's length is not known.
    private static let slack = 1.0

    /// Seconds by which a frame may come later than the one asked for: rounding of time stamps.
    private static let lateness = 0.001

    /// The frame at a second.
    ///
    /// - Parameter isExact: The frame seen at that second; otherwise the key frame nearest to it, or the next frame
    ///   where there are none.
    func frame(at second: Double, isExact: Bool, clampsToEnd: Bool) throws(ImageError) -> Image {
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
            // The first frame that could be decoded may come later than the one that is wanted.
            if let nearest, !isExact || !(nearest.second > second + Self.lateness) { return nearest }
        }
        return nearest
    }

    /// How many seconds to go back, in turn, where a container finds a place by its time only, and frames cannot be
    /// decoded before the next key frame.
    private static func steps(before second: Double) -> [Double] {
        [0, 3, 12, 60].filter { $0 == 0 || $0 < second } + (second > 0 ? [second] : [])
    }

    /// The attached picture.
    func cover() throws(ImageError) -> Image {
        try video.begin(cover: true, keyFrames: false, reduction: 1, side: 0)
        guard let frame = try video.next() else {
            throw .corrupt(input: "input", reason: "its attached picture cannot be decoded")
        }
        return try picture(frame, orientation: .up)
    }

    /// Prepares for frames of the film, as small as the rule allows.
    func begin(keyFrames: Bool) throws(ImageError) {
        let shape = video.shape
        let target = try shape.target(rule)
        // The longer side's twofold, as in `FrameShape.factor`; pixels may be wider than high.
        let scale = max(
            Double(target.width) / Double(shape.square.width), Double(target.height) / Double(shape.square.height))
        let side = Double(max(shape.stored.width, shape.stored.height)) * min(1, 2 * scale)
        let reduction = min(shape.stored.width / max(1, target.width), shape.stored.height / max(1, target.height))
        try video.begin(keyFrames: keyFrames, reduction: reduction, side: Int(side.rounded(.up)))
    }

    /// The picture of a frame that was decoded last.
    func picture(_ frame: cffmpeg_frame, orientation: Orientation? = nil) throws(ImageError) -> Image {
        let shape = FrameShape(
            stored: PixelSize(width: Int(frame.full_width), height: Int(frame.full_height)),
            pixelShape: (Int(frame.sar_num), Int(frame.sar_den)), orientation: orientation ?? video.orientation)
        let target = try shape.target(rule)
        let samples = try FrameReader(frame: frame, video: video).samples(for: target)
        var image = try DecodedImageRenderer.image(
            from: samples, size: target, orientation: shape.orientation, cancellation: CancellationToken(),
            inputName: "input")
        DisplayColors(primaries: frame.primaries, transfer: frame.transfer)?.apply(to: &image)
        return image
    }
}
