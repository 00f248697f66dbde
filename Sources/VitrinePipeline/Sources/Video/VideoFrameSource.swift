import VitrineCore
import VitrineHelperProtocol
import VitrineImaging

/// The moment of a video whose frame is wanted.
public enum VideoMoment: Sendable, Hashable {
    /// The frame a number of seconds after the first one.
    case second(Double)
    /// The first frame that shows something: neither black nor of one color.
    case poster
}

/// One frame of a video as a source of images.
///
/// ```swift
/// let poster = VideoFrameSource(posterOf: "/videos/beach.mov")
/// let frame = VideoFrameSource(path: "/videos/beach.mov", second: 12.5)
/// let length = try poster.info().duration
/// ```
///
/// Frames are upright, with square pixels, in sRGB. They are taken by the helper `vitrine-video`, which has to be
/// installed. Calls block: make them from a thread that may block.
package struct VideoFrameSource: FileBackedSource, BlockingImageSource {
    /// How near the frame has to come to the second asked for.
    package enum Precision: Sendable, Hashable {
        /// The nearest frame that can be decoded by itself, which may be seconds away. Cheap.
        case nearestKeyFrame
        /// The frame seen at that second. Costs the decoding of all since the key frame before, five to ten times as
        /// much.
        case exact
    }

    /// The file, or bytes in memory.
    package let input: ImageInput
    /// Which frame.
    package var moment: VideoMoment
    /// Default ``Precision/nearestKeyFrame``. Posters know no other.
    package var precision = Precision.nearestKeyFrame
    /// Whether a second beyond the end gives the video's last frame instead of an error. Default false.
    package var clampsToEnd = false
    /// Whether an image attached to the file, such as a video's box or a record's cover, goes before the video, and
    /// makes up for none. Default false.
    ///
    /// Such images are found in this process. The helper is asked where that finds none.
    package var prefersCoverArt = false
    /// Whether an attached image makes up for a missing video, without going before one: for containers that hold
    /// both. Default false.
    package var coverReplacesNoVideo = false
    /// The attached image to show, if there are several. Default the front cover.
    package var cover = RecordingCover.Kind.front
    /// Whether an image beside a file, such as `cover.jpg` or `folder.png`, makes up for a missing one. Default false:
    /// no file but the named one is opened.
    package var allowsSiblingCover = false
    /// Whether the loudness of the sound is drawn where there is neither an image nor a video. Default false.
    package var drawsWaveform = false
    /// Identifies the frame instead of its file and second.
    package var identifier: CacheKey?
    private var workers = VideoWorkers.shared
    private let content: InputIdentity

    /// A frame of a file or of bytes.
    package init(_ input: ImageInput, at moment: VideoMoment) {
        self.input = input
        self.moment = moment
        content = InputIdentity(input)
    }

    /// The frame of a file at a second.
    package init(path: String, second: Double) {
        self.init(.file(path), at: .second(second))
    }

    /// The poster of a file.
    package init(posterOf path: String) {
        self.init(.file(path), at: .poster)
    }

    /// A frame taken by other workers, for tests.
    package init(_ input: ImageInput, at moment: VideoMoment, workers: WorkerPool) {
        self.init(input, at: moment)
        self.workers = workers
    }

    /// Returns the identity of the file, with the second and all options that change the result.
    package func identity(_ lookup: FileIdentity.Lookup) throws(ImagePipelineError) -> CacheKey {
        if let identifier { return identifier }
        var key = try content.key(lookup)
        switch moment {
        case .second(let second): key = key.appending("-\(second)")
        case .poster: key = key.appending("-poster")
        }
        if case .second = moment {
            if precision == .exact { key = key.appending("exact") }
            if clampsToEnd { key = key.appending("clamped") }
        }
        if prefersCoverArt { key = key.appending("cover") }
        if cover != .front { key = key.appending("cover \(cover.rawValue)") }
        if allowsSiblingCover {
            // Which file it is takes a look at the directory.
            if lookup == .remembered { throw .unreadable(source: input.name, reason: "its cover may be another file") }
            if let path = siblingCover { key = key.appending(try FileIdentity.key(of: path).description) }
        }
        if drawsWaveform { key = key.appending("waveform") }
        return key
    }

    /// Returns facts about the video.
    ///
    /// - Throws: ``ImagePipelineError``; a file with sound only is no error.
    package func info(
        limits: ImageLimits = .standard, cancellation: CancellationToken = CancellationToken()
    ) throws(ImagePipelineError) -> VideoInfo {
        let answer = try ask { source throws(ImageError) in
            try workers.describe(source, parameters: [], limits: limits, cancellation: cancellation)
        }
        guard let description = VideoDescription(answer) else {
            throw .malformedDescription(source: input.name)
        }
        return VideoInfo(description)
    }

    /// The frame.
    ///
    /// - Throws: ``ImagePipelineError``: ``ImagePipelineError/noVideo(source:)`` for sound only,
    ///   ``ImagePipelineError/beyondEnd(source:second:duration:)``, ``ImagePipelineError/damaged(source:reason:)`` for
    ///   a file that ends early, ``ImagePipelineError/unsupported(source:reason:)`` for other content or a codec that
    ///   is not read, ``ImagePipelineError/underlying(source:error:)`` with `ImageError.invalidRequest` for a second
    ///   that is negative or no number.
    package func image(_ request: RenderRequest) throws -> PixelImage {
        if prefersCoverArt, let picture = try attachedPicture(request) { return picture }
        do {
            return try frame(request)
        } catch ImagePipelineError.noVideo where coverReplacesNoVideo && !prefersCoverArt {
            var recording = self
            recording.prefersCoverArt = true
            return try recording.image(request)
        } catch let error as ImagePipelineError where allowsSiblingCover || drawsWaveform {
            // A recording needs no helper to be shown by a file beside it; whether a video has images, only it knows.
            let hasSoundOnly = if case .noVideo = error { true } else { prefersCoverArt && !workers.isAvailable }
            guard hasSoundOnly else { throw error }
            if allowsSiblingCover, let path = siblingCover { return try ImageFileSource(path: path).image(request) }
            guard drawsWaveform else { throw error }
            return try drawn(parameters(request, drawsWaveform: true), request)
        }
    }

    /// The image attached to the file; nil for none that can be read.
    private func attachedPicture(_ request: RenderRequest) throws -> PixelImage? {
        let found: RecordingCover?
        do throws(ImageError) {
            found = try ImageDecoder(limits: request.limits).cover(
                of: ByteSource(input), preferring: cover, cancellation: request.cancellation)
        } catch {
            throw ImagePipelineError(error, source: input.name)
        }
        guard let found else { return nil }
        do {
            return try ImageFileSource(.bytes(found.bytes, name: input.name)).image(request)
        } catch let error as ImagePipelineError where !error.isCancellation {
            // The helper may read what is damaged for others.
            return nil
        }
    }

    /// A file beside the recording whose name says that it is its image; links are none.
    private var siblingCover: String? {
        guard case .file(let path) = input else { return nil }
        let directory = path.lastIndex(of: "/").map { path[...$0].count > 1 ? String(path[..<$0]) : "/" } ?? "."
        guard let names = try? Directory.names(ofFilesIn: directory) else { return nil }
        var best: (rank: Int, name: String)?
        for name in names {
            let lower = name.lowercased()
            guard let dot = lower.lastIndex(of: "."),
                ["jpg", "jpeg", "png", "webp"].contains(lower[lower.index(after: dot)...])
            else { continue }
            let stem = lower[..<dot]
            let rank = ["cover", "folder", "front"].firstIndex { $0 == stem } ?? (stem.hasPrefix("albumart") ? 3 : 4)
            if rank < 4, best.map({ (rank, name) < ($0.rank, $0.name) }) ?? true { best = (rank, name) }
        }
        return best.map { FilePath.join(directory, $0.name) }
    }

    private func frame(_ request: RenderRequest) throws -> PixelImage { try drawn(parameters(request), request) }

    private func drawn(_ parameters: VideoParameters, _ request: RenderRequest) throws -> PixelImage {
        let parameters = parameters.encoded()
        let drawn = try ask { source throws(ImageError) in
            try workers.render(
                source, target: nil, parameters: parameters, limits: request.limits, cancellation: request.cancellation)
        }
        return try request.image(from: drawn, source: input.name)
    }

    /// Returns the frames of a short clip.
    ///
    /// - Throws: ``ImagePipelineError`` as ``image(_:)``.
    func clip(_ clip: ClipSpec, _ request: RenderRequest) throws -> VideoClip {
        var parameters = ClipParameters()
        parameters.seconds = clip.seconds
        parameters.framesPerSecond = clip.framesPerSecond
        parameters.isSpread = clip.isSpread
        parameters.target = DocumentTarget(request.size, request.mode, allowsUpscaling: request.allowsUpscaling)
        let sent = parameters.encoded()
        let answer = try ask { source throws(ImageError) in
            try workers.describe(source, parameters: sent, limits: request.limits, cancellation: request.cancellation)
        }
        guard let clip = VideoClip(answer, limits: request.limits) else { throw ImagePipelineError.malformedDescription(source: input.name) }
        return clip
    }

    private func parameters(
        _ request: RenderRequest, drawsWaveform: Bool = false
    ) throws(ImagePipelineError) -> VideoParameters {
        var parameters = VideoParameters()
        switch moment {
        case .poster: parameters.moment = .poster
        case .second(let second):
            guard second.isFinite, second >= 0 else {
                throw .underlying(
                    source: input.name,
                    error: ImageError.invalidRequest(reason: "a second must be a number, and not negative: \(second)"))
            }
            parameters.moment = precision == .exact ? .exact : .keyFrame
            parameters.second = second
        }
        parameters.clampsToEnd = clampsToEnd
        parameters.prefersCover = prefersCoverArt
        if drawsWaveform { parameters.moment = .waveform }
        parameters.target = DocumentTarget(request.size, request.mode, allowsUpscaling: request.allowsUpscaling)
        return parameters
    }

    // MARK: The helper

    private func ask<Answer>(
        _ body: (ByteSource) throws(ImageError) -> Answer
    ) throws(ImagePipelineError) -> Answer {
        let source: ByteSource
        do throws(ImageError) {
            source = try ByteSource(input)
        } catch {
            throw ImagePipelineError(error, source: input.name)
        }
        guard workers.isAvailable else { throw VideoWorkers.missing(for: input.name) }
        do throws(ImageError) {
            return try body(source)
        } catch {
            throw failure(error)
        }
    }

    private func failure(_ error: ImageError) -> ImagePipelineError {
        switch VideoFailure(error) {
        case .notAVideo:
            // Of short recordings, the library is not sure.
            if prefersCoverArt, case .media? = try? FileKind(of: input) { return .noVideo(source: input.name) }
            return .unsupported(source: input.name, reason: "it is not a video")
        case .noVideo: return .noVideo(source: input.name)
        case .noSound: return .unsupported(source: input.name, reason: "it has no sound")
        case .beyondEnd(let duration):
            guard case .second(let second) = moment else { return .noVideo(source: input.name) }
            return .beyondEnd(source: input.name, second: second, duration: duration)
        case nil where error.reason == WorkerServer.readsNoDocuments: return VideoWorkers.missing(for: input.name)
        case nil: return ImagePipelineError(error, source: input.name)
        }
    }
}

/// The helper that reads videos.
package enum VideoWorkers {
    package static let program = "vitrine-video"

    /// Processes for everybody, one for each processor at most.
    package static let shared = WorkerPool(program: program)

    /// The error of a system without it.
    static func missing(for source: String) -> ImagePipelineError { .helperMissing(program, source: source) }
}
