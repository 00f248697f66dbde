import VitrineImaging

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
