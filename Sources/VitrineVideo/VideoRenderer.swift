import CVitrineFFmpeg
import VitrineHelperProtocol
import VitrineImaging

/// Describes videos and decodes single frames by libavformat and libavcodec.
final class VideoRenderer: DocumentRendering {
    /// The file of the last request, kept open for the next ones.
    private var last: (file: UInt64, video: OpenVideo)?
    /// The loudness of the last file whose waveform was drawn.
    private var heard: (file: UInt64, loudness: Loudness)?

    func describe(_ source: ByteSource, _ request: DocumentRequest) throws(ImageError) -> [UInt8] {
        guard !request.parameters.isEmpty else { return try video(source, request.limits).description.encoded() }
        guard let parameters = ClipParameters(request.parameters) else {
            throw .invalidRequest(reason: "an unknown question about a video")
        }
        let video = try video(source, request.limits)
        defer { video.finish() }
        do throws(ImageError) {
            guard video.hasVideo else { throw VideoFailure.noVideo.error }
            return try ClipTaker(video: video, parameters: parameters, limits: request.limits).clip().encoded()
        } catch {
            last = nil
            throw error
        }
    }

    func render(_ source: ByteSource, _ request: DocumentRequest) throws(ImageError) -> DecodedImage {
        guard let parameters = VideoParameters(request.parameters), parameters.second.isFinite, parameters.second >= 0
        else { throw .invalidRequest(reason: "a second must be a number of 0 or more") }
        if parameters.moment == .waveform {
            let waveform = Waveform(try loudness(source, request.limits))
            return try waveform.drawn(by: parameters.target.resizer(limits: request.limits))
        }
        let video = try video(source, request.limits)
        defer { video.finish() }
        do throws(ImageError) {
            return try Self.image(video, parameters: parameters, limits: request.limits).samples
        } catch {
            // A malformed file may have left the decoder in any state.
            last = nil
            throw error
        }
    }

    private func loudness(_ source: ByteSource, _ limits: ImageLimits) throws(ImageError) -> Loudness {
        let file = source.documentIdentity
        if let heard, heard.file == file { return heard.loudness }
        heard = nil
        let video = try OpenVideo(source, isRecording: true, limits: limits)
        let loudness = try video.loudness(seconds: Waveform.seconds)
        if let file { heard = (file, loudness) }
        return loudness
    }

    private func video(_ source: ByteSource, _ limits: ImageLimits) throws(ImageError) -> OpenVideo {
        let file = source.documentIdentity
        if let last, last.file == file {
            last.video.startClock(limits)
            return last.video
        }
        last = nil
        let video = try OpenVideo(source, limits: limits)
        if let file { last = (file, video) }
        return video
    }

    private static func image(
        _ video: OpenVideo, parameters: VideoParameters, limits: ImageLimits
    ) throws(ImageError) -> PixelImage {
        let taker = FrameTaker(video: video, rule: parameters.target.resizer(limits: limits))
        if parameters.prefersCover, video.hasCover, let cover = try? taker.cover() { return cover }
        guard video.hasVideo else { throw VideoFailure.noVideo.error }
        switch parameters.moment {
        case .poster:
            return try PosterSearch(taker).best()
        case .keyFrame, .exact:
            return try taker.frame(
                at: try second(parameters, duration: video.duration), isExact: parameters.moment == .exact,
                clampsToEnd: parameters.clampsToEnd)
        case .waveform:
            throw VideoFailure.noSound.error
        }
    }

    private static func second(_ parameters: VideoParameters, duration: Double) throws(ImageError) -> Double {
        guard duration > 0, parameters.second > duration else { return parameters.second }
        guard parameters.clampsToEnd else { throw VideoFailure.beyondEnd(duration: duration).error }
        return duration
    }
}

extension PixelImage {
    /// The pixels as a decoder's samples, for the client; without alpha in an opaque image.
    var samples: DecodedImage {
        let channels = hasAlpha ? 4 : 3
        let storage = PixelStorage(zeroedByteCount: size.pixelCount * channels)
        let target = storage.bytes
        withUnsafeBytes { pixels in
            for y in 0..<height {
                let from = y &* bytesPerRow
                let to = y &* width &* channels
                for x in 0..<width {
                    for channel in 0..<channels {
                        target[to &+ x &* channels &+ channel] = pixels[from &+ x &* 4 &+ channel]
                    }
                }
            }
        }
        let meaning: DecodedImage.Alpha =
            switch alpha {
            case .opaque: .none
            case .straight: .straight
            case .premultiplied: .premultiplied
            }
        return DecodedImage(
            planes: [PixelPlane(width: width, height: height, channels: channels, storage: storage)], model: .rgb,
            alpha: meaning)
    }
}
