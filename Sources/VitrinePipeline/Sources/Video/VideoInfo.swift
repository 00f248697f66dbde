import VitrineCore
import VitrineHelperProtocol
import VitrineImaging

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Facts about a video file.
public struct VideoInfo: Sendable, Hashable {
    /// Length of the video, or of the sound where there is no video, in seconds; nil when the file does not tell.
    public var duration: Double?
    /// Whether there is a video stream. An attached image is none.
    public var hasVideo: Bool
    package var hasAudio: Bool
    /// Whether an image is attached, as to music.
    package var hasCoverArt: Bool
    /// Pixels as the video is shown: square ones, upright. 0 by 0 without video.
    public var size: PixelSize
    /// Pixels as the codec has them, before their shape and ``orientation`` are applied. 0 by 0 without video.
    package var storedSize: PixelSize
    /// How stored frames are turned to be upright. Frames of ``VideoFrameSource`` are so already.
    package var orientation: Orientation
    /// Frames a second; nil when unknown.
    package var frameRate: Double?
    /// FFmpeg's short names of the containers it could be, such as `matroska,webm`.
    package var container: String
    /// FFmpeg's short name, such as `h264`; nil for none.
    package var videoCodec: String?
    /// FFmpeg's short name, such as `aac`; nil for none.
    package var audioCodec: String?
    /// When the video was made, as the file says; nil when it does not. Cameras that do not know their time zone write
    /// local time as if it were UTC.
    package var creationDate: Date?

    /// Reads the facts about a video. Blocks: call it from a thread that may block.
    ///
    /// - Parameters:
    ///   - input: The file or the bytes.
    ///   - limits: Limits on the input and the work.
    ///   - cancellation: Ends it early.
    /// - Throws: ``ImagePipelineError``; a file with sound only is no error.
    public init(
        of input: ImageInput, limits: ImageLimits = .standard, cancellation: CancellationToken = CancellationToken()
    ) throws(ImagePipelineError) {
        self = try VideoFrameSource(input, at: .poster).info(limits: limits, cancellation: cancellation)
    }

    package init(_ description: VideoDescription) {
        func known(_ text: String) -> String? { text.isEmpty ? nil : text }
        duration = description.duration > 0 ? description.duration : nil
        hasVideo = description.hasVideo
        hasAudio = description.hasAudio
        hasCoverArt = description.hasCover
        size = description.size
        storedSize = description.storedSize
        orientation = description.orientation
        frameRate = description.frameRate > 0 ? description.frameRate : nil
        container = description.container
        videoCodec = known(description.videoCodec)
        audioCodec = known(description.audioCodec)
        creationDate = Self.date(description.created)
    }

    /// A date such as `2026-11-21T15:40:46.000000Z` or `2026-11-21 15:40:46`; nil for anything else, and for the
    /// years before 1971, which stand for a clock that was never set.
    package static func date(_ text: String) -> Date? {
        let bytes = Array(text.utf8)
        guard bytes.count >= 19 else { return nil }
        func number(_ range: Range<Int>) -> Int? {
            var value = 0
            for byte in bytes[range] {
                guard (48...57).contains(byte) else { return nil }
                value = value * 10 + Int(byte) - 48
            }
            return value
        }
        guard bytes[4] == 45, bytes[7] == 45, bytes[10] == 84 || bytes[10] == 32, bytes[13] == 58, bytes[16] == 58,
            let year = number(0..<4), let month = number(5..<7), let day = number(8..<10),
            let hour = number(11..<13), let minute = number(14..<16), let second = number(17..<19),
            year > 1970, (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60, second < 61
        else { return nil }
        return Date(
            timeIntervalSince1970: CivilTime.seconds(
                year: year, month: month, day: day, hour: hour, minute: minute, second: second))
    }
}
