import VitrineImaging

/// The frame and size of requests to `vitrine-video`.
package struct VideoParameters: Sendable, Equatable {
    /// The choice of a frame.
    package enum Moment: UInt8, Sendable {
        /// The first frame with visible content.
        case poster = 0
        /// The key frame nearest to ``VideoParameters/second``.
        case keyFrame = 1
        /// The frame displayed at ``VideoParameters/second``.
        case exact = 2
        /// No frame: the loudness of the sound.
        case waveform = 3
    }

    package var moment = Moment.poster
    /// Seconds from the first frame.
    package var second = 0.0
    /// Whether requests behind the end get the last frame.
    package var clampsToEnd = false
    /// Whether an attached image takes precedence over frames.
    package var prefersCover = false
    package var target = DocumentTarget()

    package init() {}

    package func encoded() -> [UInt8] {
        var wire = WireWriter()
        wire.write(moment.rawValue)
        wire.write(second)
        wire.write(clampsToEnd)
        wire.write(prefersCover)
        target.write(to: &wire)
        return wire.bytes
    }

    /// Reads the bytes of ``encoded()``; nil for other bytes.
    package init?(_ bytes: [UInt8]) {
        var wire = WireReader(bytes)
        moment = wire.enumeration(Moment.self, or: .poster)
        second = wire.double()
        clampsToEnd = wire.bool()
        prefersCover = wire.bool()
        target = DocumentTarget(&wire)
        guard wire.isComplete else { return nil }
    }
}

/// The description of a file by `vitrine-video`.
package struct VideoDescription: Sendable, Equatable {
    /// Seconds; 0 when unknown.
    package var duration = 0.0
    package var hasVideo = false
    package var hasAudio = false
    package var hasCover = false
    /// The size of coded pixels; 0 by 0 without video.
    package var storedSize = PixelSize.zero
    /// The displayed size: square pixels, upright; 0 by 0 without video.
    package var size = PixelSize.zero
    package var orientation = Orientation.up
    /// Frames a second; 0 when unknown.
    package var frameRate = 0.0
    /// Short names such as `mov`, `h264`, `aac`; empty for none.
    package var container = ""
    package var videoCodec = ""
    package var audioCodec = ""
    /// The container's date, usually in ISO 8601; empty for none.
    package var created = ""

    package init() {}

    package func encoded() -> [UInt8] {
        var wire = WireWriter()
        wire.write(duration)
        wire.write(hasVideo)
        wire.write(hasAudio)
        wire.write(hasCover)
        for side in [storedSize.width, storedSize.height, size.width, size.height] { wire.write(side) }
        wire.write(UInt8(truncatingIfNeeded: orientation.rawValue))
        wire.write(frameRate)
        for text in [container, videoCodec, audioCodec, created] { wire.write(text, limit: 100) }
        return wire.bytes
    }

    /// Reads the bytes of ``encoded()``; nil for other bytes and impossible values.
    package init?(_ bytes: [UInt8]) {
        var wire = WireReader(bytes)
        duration = wire.double()
        hasVideo = wire.bool()
        hasAudio = wire.bool()
        hasCover = wire.bool()
        storedSize = PixelSize(width: wire.int(), height: wire.int())
        size = PixelSize(width: wire.int(), height: wire.int())
        let turned = Orientation(rawValue: Int(wire.integer(UInt8.self)))
        frameRate = wire.double()
        container = wire.text()
        videoCodec = wire.text()
        audioCodec = wire.text()
        created = wire.text()
        let sides = 0...(1 << 24)
        guard wire.isComplete, let turned, duration.isFinite, duration >= 0, frameRate.isFinite, frameRate >= 0,
            [storedSize.width, storedSize.height, size.width, size.height].allSatisfy(sides.contains)
        else { return nil }
        orientation = turned
    }
}

/// An error of videos without a case of its own in ``ImageError``.
///
/// The helper sends it as the reason of ``ImageError/unsupported(input:reason:)``.
package enum VideoFailure: Sendable, Equatable {
    case notAVideo
    /// The file has sound only, or no stream.
    case noVideo
    /// The file has no sound, where its waveform is wanted.
    case noSound
    /// The requested second lies behind the end of the video at `duration` seconds.
    case beyondEnd(duration: Double)

    private static let endPrefix = "no frame after second "

    /// The error that contains the failure.
    package var error: ImageError {
        let reason =
            switch self {
            case .notAVideo: "not a video"
            case .noVideo: "no video stream"
            case .noSound: "no sound"
            case .beyondEnd(let duration): "\(Self.endPrefix)\(duration)"
            }
        return .unsupported(input: "input", reason: reason)
    }

    /// The failure in `error`; nil for other errors.
    package init?(_ error: ImageError) {
        guard case .unsupported(_, let reason) = error else { return nil }
        switch reason {
        case "not a video": self = .notAVideo
        case "no video stream": self = .noVideo
        case "no sound": self = .noSound
        default:
            guard reason.hasPrefix(Self.endPrefix), let duration = Double(reason.dropFirst(Self.endPrefix.count)),
                duration.isFinite
            else { return nil }
            self = .beyondEnd(duration: duration)
        }
    }
}
