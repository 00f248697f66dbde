import CVitrineFFmpeg
import VitrineHelperProtocol
import VitrineImaging

/// Decodes the frames of a short clip of a video, at the rate and size of the clip.
///
/// Where the video has at least twice the rate of the clip, frames that no other builds on are not decoded. Frames have
/// their own times, so that the motion stays even.
struct ClipTaker {
    private let video: OpenVideo
    private let parameters: ClipParameters
    private let taker: FrameTaker

    /// Parts of a clip that is spread over the video, and the part of the video that they come from.
    private static let parts = 6
    private static let spread = (from: 0.1, to: 0.9)
    /// Videos at least so many times as long as the clip are spread.
    private static let longFilm = 2.0
    /// The share of a frame's time by which frames may come early.
    private static let earliness = 0.01

    init(video: OpenVideo, parameters: ClipParameters, limits: ImageLimits) {
        self.video = video
        self.parameters = parameters
        taker = FrameTaker(video: video, rule: parameters.target.resizer(limits: limits))
    }

    /// The clip.
    ///
    /// - Throws: An error when no frame can be decoded.
    func clip() throws(ImageError) -> VideoClip {
        var clip = VideoClip()
        var failure: ImageError?
        var end = -Double.infinity
        for part in parts() {
            do throws(ImageError) {
                end = try add(part, after: end, to: &clip)
            } catch {
                // What was decoded before damage is shown.
                if case .corrupt = error { failure = error } else if case .truncated = error { failure = error } else {
                    throw error
                }
            }
        }
        guard clip.frameCount > 0 else {
            throw failure ?? .corrupt(input: "input", reason: "it has no frames that can be decoded")
        }
        return clip
    }

    /// A stretch of the video.
    private struct Part {
        var start: Double
        var seconds: Double
        /// How far it may move to begin at a key frame.
        var slack = 0.0
    }

    private func parts() -> [Part] {
        let (duration, seconds) = (video.duration, parameters.seconds)
        if parameters.isSpread, duration > Self.longFilm * seconds {
            let gap = duration * (Self.spread.to - Self.spread.from) / Double(Self.parts - 1)
            return (0..<Self.parts).map { index in
                Part(
                    start: duration * Self.spread.from + Double(index) * gap, seconds: seconds / Double(Self.parts),
                    slack: gap / 2)
            }
        }
        guard duration > seconds || duration <= 0 else { return [Part(start: 0, seconds: seconds)] }
        let poster = PosterSearch(taker).bestSecond()
        return [Part(start: duration > 0 ? min(poster, duration - seconds) : poster, seconds: seconds)]
    }

    /// Adds a stretch.
    ///
    /// - Parameter end: The second at which the one before ends.
    /// - Returns: The second at which it ends.
    private func add(_ part: Part, after end: Double, to clip: inout VideoClip) throws(ImageError) -> Double {
        let step = 1 / parameters.framesPerSecond
        try taker.begin(keyFrames: false, dropsUnneeded: video.frameRate >= 2 * parameters.framesPerSecond)
        guard var frame = try first(of: part, after: end) else { return end }
        let start = frame.second.isFinite ? frame.second : part.start
        var shown = start
        var index = 0
        while true {
            try append(frame, to: &clip)
            // A frame that came late stands for the times before it, too.
            repeat { index += 1 } while start + Double(index) * step <= shown + step * Self.earliness
            let wanted = start + Double(index) * step
            guard wanted < start + part.seconds - step * Self.earliness, clip.frameCount < ClipParameters.maximumFrames,
                let next = try video.next(at: wanted, budget: FrameTaker.budget)
            else { break }
            let second = next.second.isFinite ? next.second : wanted
            // The video has ended before.
            guard second > shown else { break }
            clip.seconds[clip.frameCount - 1] = second - shown
            (frame, shown) = (next, second)
        }
        clip.seconds[clip.frameCount - 1] = max(step / 2, min(start + part.seconds - shown, step))
        return start + part.seconds
    }

    /// The frame at which a stretch begins: that at its start, or at a key frame nearby.
    private func first(of part: Part, after end: Double) throws(ImageError) -> cffmpeg_frame? {
        if part.slack > 0 {
            video.seek(to: part.start, nearest: true)
            if let frame = try video.next(), abs(frame.second - part.start) <= part.slack, frame.second >= end {
                return frame
            }
        }
        if part.start > 0 { video.seek(to: part.start, nearest: false) }
        return try video.next(at: part.start, budget: FrameTaker.budget)
    }

    private func append(_ frame: cffmpeg_frame, to clip: inout VideoClip) throws(ImageError) {
        let image = try taker.picture(frame)
        if clip.frameCount == 0 { clip.size = image.size }
        // A video may change its shape.
        guard image.size == clip.size else { throw .corrupt(input: "input", reason: "its frames change their size") }
        let (bytes, overflow) = (clip.size.pixelCount * 3).multipliedReportingOverflow(by: clip.frameCount + 1)
        guard !overflow, bytes <= ClipParameters.maximumBytes else {
            throw .limitExceeded(
                input: "input", limit: .memory, actual: overflow ? .max : bytes, allowed: ClipParameters.maximumBytes)
        }
        clip.append(image, seconds: 1 / parameters.framesPerSecond)
    }
}
