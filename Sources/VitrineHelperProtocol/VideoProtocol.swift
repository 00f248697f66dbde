import VitrineImaging

/// Which frame `vitrine-video` is asked for, and how large.
package struct VideoParameters: Sendable, Equatable {
    /// Which frame.
    package enum Moment: UInt8, Sendable {
        /// The first that shows something.
        case poster = 0
        /// The key frame nearest to ``VideoParameters/second``.
        case keyFrame = 1
        /// The frame that is seen at ``VideoParameters/second``.
        case exact = 2
    }

    package var moment = Moment.poster
    /// Seconds from the first frame.
    package var second = 0.0
    /// Whether the last frame stands for all that would come after it.
    package var clampsToEnd = false
    /// Whether a picture that the file has attached goes before the film.
    package var prefersCover = false
    package var size = PixelSize.zero
    package var fit = DocumentFit.none
    package var allowsUpscaling = true

    package init() {}

    package func encoded() -> [UInt8] {
        var wire = WireWriter()
        wire.write(moment.rawValue)
        wire.write(second)
        wire.write(clampsToEnd)
        wire.write(prefersCover)
        wire.write(size.width)
        wire.write(size.height)
        wire.write(fit.rawValue)
        wire.write(allowsUpscaling)
        return wire.bytes
    }

    /// Reads what ``encoded()`` wrote; nil when it is anything else.
    package init?(_ bytes: [UInt8]) {
        var wire = WireReader(bytes)
        moment = wire.enumeration(Moment.self, or: .poster)
        second = wire.double()
        clampsToEnd = wire.bool()
        prefersCover = wire.bool()
        size = PixelSize(width: wire.int(), height: wire.int())
        fit = wire.enumeration(DocumentFit.self, or: .none)
        allowsUpscaling = wire.bool()
        guard wire.isComplete else { return nil }
    }

    /// ``size``, ``fit`` and ``allowsUpscaling`` as a rule for pictures.
    package func resizer(limits: ImageLimits) -> ImageResizer {
        var resizer = ImageResizer(size: size, mode: fit.mode, allowsUpscaling: allowsUpscaling)
        resizer.maximumSide = limits.maximumOutputSide
        return resizer
    }
}

/// What `vitrine-video` tells about a file.
package struct VideoDescription: Sendable, Equatable {
    /// Seconds; 0 when the container does not tell.
    package var duration = 0.0
    package var hasVideo = false
    package var hasAudio = false
    package var hasCover = false
    /// Pixels as stored; 0 by 0 without video.
    package var storedSize = PixelSize.zero
    /// Pixels as shown: square, upright; 0 by 0 without video.
    package var size = PixelSize.zero
    package var orientation = Orientation.up
    /// Frames a second; 0 when unknown.
    package var frameRate = 0.0
    /// Short names such as `mov`, `h264`, `aac`; empty for none.
    package var container = ""
    package var videoCodec = ""
    package var audioCodec = ""
    /// As the container has it, ISO 8601 as a rule; empty for none.
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

    /// Reads what ``encoded()`` wrote; nil when it is anything else, or tells what no film has.
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

/// Why a video was not described or a frame not taken, where ``ImageError`` has no word for it.
///
/// It crosses from the helper as the reason of ``ImageError/unsupported(input:reason:)``.
package enum VideoFailure: Sendable, Equatable {
    case notAVideo
    /// Sound only, or nothing at all.
    case noVideo
    /// The film is `duration` seconds long, and the second asked for lies behind that.
    case beyondEnd(duration: Double)

    private static let endPrefix = "no frame after second "

    /// The error that carries it.
    package var error: ImageError {
        let reason =
            switch self {
            case .notAVideo: "not a video"
            case .noVideo: "no video stream"
            case .beyondEnd(let duration): "\(Self.endPrefix)\(duration)"
            }
        return .unsupported(input: "input", reason: reason)
    }

    /// The failure that `error` carries; nil when it carries none.
    package init?(_ error: ImageError) {
        guard case .unsupported(_, let reason) = error else { return nil }
        switch reason {
        case "not a video": self = .notAVideo
        case "no video stream": self = .noVideo
        default:
            guard reason.hasPrefix(Self.endPrefix), let duration = Double(reason.dropFirst(Self.endPrefix.count)),
                duration.isFinite
            else { return nil }
            self = .beyondEnd(duration: duration)
        }
    }
}
