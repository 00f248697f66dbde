import CVitrineFFmpeg
import VitrineHelperProtocol
import VitrineImaging

/// A file that libavformat has open. It is closed when the object is released.
///
/// For one thread.
final class OpenVideo {
    private let handle: OpaquePointer
    /// Keeps the descriptor open as long as the handle.
    private let source: ByteSource
    private let facts: cffmpeg_description
    private let limits: ImageLimits
    /// Whether frames have been read: the first series needs no seek to the start.
    private var hasMoved = false

    /// The share of the deadline after which the work ends by itself. At the deadline, the client kills the process.
    private static let deadlineShare = 0.9

    /// - Parameter isRecording: Whether the client knows that it is a recording, so that the library need not be sure.
    /// - Throws: A ``VideoFailure``, ``ImageError/empty(input:)``, ``ImageError/corrupt(input:reason:)``,
    ///   ``ImageError/truncated(input:)``, ``ImageError/timedOut(input:)``.
    init(_ source: ByteSource, isRecording: Bool = false, limits: ImageLimits) throws(ImageError) {
        guard source.count > 0 else { throw .empty(input: source.name) }
        guard let descriptor = source.descriptor else {
            throw .unreadable(input: source.name, reason: "the request has no descriptor")
        }
        var opened: OpaquePointer?
        let status = cffmpeg_open(
            descriptor, Int64(source.count), Int64(max(1, limits.maximumWholeImagePixels)),
            Self.milliseconds(limits.deadline), isRecording, &opened)
        guard status == CFFMPEG_OK, let opened else { throw Self.error(status, limits: limits) }
        handle = opened
        self.source = source
        self.limits = limits
        var facts = cffmpeg_description()
        cffmpeg_describe(opened, &facts)
        self.facts = facts
    }

    deinit { cffmpeg_close(handle) }

    /// Starts the time limit of one request.
    func startClock(_ limits: ImageLimits) { cffmpeg_set_deadline(handle, Self.milliseconds(limits.deadline)) }

    var hasVideo: Bool { facts.has_video }
    var hasCover: Bool { facts.has_cover }
    /// Frames a second; 0 when unknown.
    var frameRate: Double { facts.frame_rate }
    /// Seconds; 0 when unknown.
    var duration: Double { facts.duration }
    var orientation: Orientation { Orientation(rawValue: Int(facts.orientation)) ?? .up }

    /// The video's shape according to its header.
    var shape: FrameShape {
        FrameShape(
            stored: PixelSize(width: Int(facts.width), height: Int(facts.height)),
            pixelShape: (Int(facts.sar_num), Int(facts.sar_den)), orientation: orientation)
    }

    /// The description for the client.
    var description: VideoDescription {
        var description = VideoDescription()
        description.duration = facts.duration
        description.hasVideo = facts.has_video
        description.hasAudio = facts.has_audio
        description.hasCover = facts.has_cover
        description.orientation = orientation
        description.frameRate = facts.frame_rate
        if facts.has_video, facts.width > 0, facts.height > 0 {
            description.storedSize = shape.stored
            description.size = shape.upright
        }
        description.container = Self.text(facts.container)
        description.videoCodec = Self.text(facts.video_codec)
        description.audioCodec = Self.text(facts.audio_codec)
        description.created = Self.text(facts.created)
        return description
    }

    // MARK: Frames

    /// Prepares to decode frames of the video or of the attached image.
    ///
    /// - Parameters:
    ///   - dropsUnneeded: Whether frames are left out that no other builds on.
    ///   - reduction: The reduction of their images.
    ///   - side: The least pixels of the longer side.
    func begin(
        cover: Bool = false, keyFrames: Bool, dropsUnneeded: Bool = false, reduction: Int, side: Int
    ) throws(ImageError) {
        let how = cffmpeg_decoding(
            cover: cover, key_frames: keyFrames, drops_unneeded: dropsUnneeded, side: Int32(clamping: side), reduction: Int32(clamping: reduction))
        let status = withUnsafePointer(to: how) { cffmpeg_begin(handle, $0) }
        guard status == CFFMPEG_OK else { throw error(status) }
        if hasMoved, !cover { seek(to: 0, nearest: false) }
        hasMoved = true
    }

    /// Releases the decoder.
    func finish() { cffmpeg_finish(handle) }

    /// Seeks to a key frame. In containers that cannot seek, the position does not change.
    func seek(to second: Double, nearest: Bool) {
        _ = cffmpeg_seek(handle, second, nearest)
    }

    /// Returns the next frame, or the one displayed at `second`; nil at the end. Valid until the next call.
    func next(at second: Double = .nan, budget: Int = .max) throws(ImageError) -> cffmpeg_frame? {
        var frame = cffmpeg_frame()
        let status = cffmpeg_next(handle, second, Int32(clamping: budget), &frame)
        switch status {
        case CFFMPEG_OK: return frame
        case CFFMPEG_END: return nil
        default: throw error(status)
        }
    }

    /// Returns the current frame in red, green and blue, for formats without planes.
    func convert(to size: PixelSize) throws(ImageError) -> PixelPlane {
        let storage = PixelStorage(zeroedByteCount: size.pixelCount * 3)
        let status = cffmpeg_rgb(
            handle, Int32(clamping: size.width), Int32(clamping: size.height),
            storage.bytes.baseAddress?.assumingMemoryBound(to: UInt8.self))
        guard status == CFFMPEG_OK else { throw error(status) }
        return PixelPlane(width: size.width, height: size.height, channels: 3, storage: storage)
    }

    // MARK: Sound

    /// Returns the loudness of the first `seconds` of sound. No frames may have been read before.
    func loudness(seconds: Double) throws(ImageError) -> Loudness {
        hasMoved = true
        let capacity = Int(CFFMPEG_INTERVALS)
        var (peaks, squares) = ([Float](repeating: 0, count: capacity), [Float](repeating: 0, count: capacity))
        var count: Int32 = 0
        let status = cffmpeg_listen(handle, seconds, &peaks, &squares, &count)
        switch status {
        case CFFMPEG_OK: break
        case CFFMPEG_NO_VIDEO: throw VideoFailure.noSound.error
        case CFFMPEG_UNSUPPORTED:
            throw .unsupported(
                input: source.name, reason: "the codec \(Self.text(facts.audio_codec)) is not supported")
        default: throw Self.error(status, limits: limits)
        }
        return Loudness(peaks: Array(peaks.prefix(Int(count))), squares: Array(squares.prefix(Int(count))))
    }

    // MARK: Errors

    private func error(_ status: cffmpeg_status) -> ImageError {
        if status == CFFMPEG_UNSUPPORTED {
            return .unsupported(input: source.name, reason: "the codec \(Self.text(facts.video_codec)) is not supported")
        }
        if status == CFFMPEG_PIXELS {
            let pixels = Int(facts.width).multipliedReportingOverflow(by: Int(facts.height)).partialValue
            return .limitExceeded(
                input: source.name, limit: .pixels, actual: pixels, allowed: limits.maximumWholeImagePixels)
        }
        return Self.error(status, limits: limits)
    }

    private static func error(_ status: cffmpeg_status, limits: ImageLimits) -> ImageError {
        switch status {
        case CFFMPEG_NOT_A_VIDEO: VideoFailure.notAVideo.error
        case CFFMPEG_NO_VIDEO: VideoFailure.noVideo.error
        case CFFMPEG_UNSUPPORTED: .unsupported(input: "input", reason: "its container format is not supported")
        case CFFMPEG_TRUNCATED: .truncated(input: "input")
        case CFFMPEG_TIMED_OUT: .timedOut(input: "input")
        case CFFMPEG_MEMORY:
            .limitExceeded(
                input: "input", limit: .memory, actual: limits.maximumWorkerMemory, allowed: limits.maximumWorkerMemory)
        default: .corrupt(input: "input", reason: "its streams cannot be read")
        }
    }

    private static func milliseconds(_ seconds: Double) -> Int64 {
        Int64(max(1, min(seconds * 1_000 * deadlineShare, 86_400_000)))
    }

    /// Returns the text in a fixed array of C characters.
    private static func text<T>(_ characters: T) -> String {
        withUnsafeBytes(of: characters) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}
