#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
import VitrineCache
public import VitrineCore
public import VitrineImaging

/// A request for a clip: a short animation that shows an animation or a video.
///
/// ```swift
/// let file = try await ImagePipeline.shared.clip(for: ClipRequest(.video("beach.mov"), resizing: .fit(320)))
/// ```
///
/// The result is a file without sound, of at most 300 frames. Of a video the helper `vitrine-video` decodes the frames
/// that are shown; where that has at least twice the rate, frames that no other builds on are left out.
public struct ClipRequest: Sendable {
    /// The part of a video or an animation that a clip shows.
    public enum Part: Sendable, Hashable {
        /// One stretch that begins at the poster of a video, or at the beginning of an animation.
        case beginning
        /// Parts of half a second of the default length from all over a video; all of an animation, faster if it is
        /// longer.
        case spread
    }

    /// The source: a file, bytes, a URL or a video.
    public internal(set) var source: any ImageSource
    /// The rule for the size of the frames, in pixels.
    public var resizing: ImageResizer
    /// The length in seconds. Default: 3.
    public var duration: Double
    /// Frames a second. A source with fewer gives those that it has. Default: 10.
    public var framesPerSecond: Double
    /// The file format, `webp` or `avif`. Default: WebP of quality 0.6.
    public var format: OutputFormat
    /// The part of the source that is shown. Default: one stretch.
    public var part: Part
    /// How urgent it is among all that waits. Default: normal.
    public var priority = RequestPriority.normal
    /// The levels of the pipeline's cache of clips that it may use. Default: all.
    public var cacheLevels = CacheLevels.all

    /// A request for a clip of any source.
    ///
    /// - Parameters:
    ///   - source: The source.
    ///   - resizing: The rule for the size of the frames, in pixels.
    ///   - duration: The length in seconds.
    ///   - framesPerSecond: Frames a second. Duration and rate give at most 300 frames.
    ///   - format: The file format, `webp` or `avif`.
    ///   - part: The part of the source that is shown.
    public init(
        _ source: any ImageSource, resizing: ImageResizer, duration: Double = 3, framesPerSecond: Double = 10,
        format: OutputFormat = .webp(quality: 0.6), part: Part = .beginning
    ) {
        self.source = (source as? BuiltInSource)?.base ?? source
        self.resizing = resizing
        self.duration = duration
        self.framesPerSecond = framesPerSecond
        self.format = format
        self.part = part
    }

    /// A request for a clip of the content of a URL.
    public init(
        _ url: URL, resizing: ImageResizer, duration: Double = 3, framesPerSecond: Double = 10,
        format: OutputFormat = .webp(quality: 0.6), part: Part = .beginning
    ) {
        self.init(
            URLImageSource(url), resizing: resizing, duration: duration, framesPerSecond: framesPerSecond, format: format,
            part: part)
    }

    var clip: ClipSpec {
        ClipSpec(seconds: duration, framesPerSecond: framesPerSecond, isSpread: part == .spread)
    }

    var spec: ResultSpec { ImageRequest(source, resizing: resizing).spec }

    /// The error of a request that no source can fulfil.
    var invalidity: ImageError? {
        let frames = duration * framesPerSecond
        guard duration > 0, framesPerSecond > 0, duration.isFinite, framesPerSecond.isFinite, frames <= 300 else {
            return .invalidRequest(reason: "a clip of \(duration) s at \(framesPerSecond) frames a second")
        }
        return nil
    }

    /// The key of the file in the cache.
    func key(for identity: CacheKey) -> CacheKey {
        let place = part == .spread ? "spread" : "beginning"
        return spec.key(for: identity).appending("clip", "\(duration) \(framesPerSecond) \(format) \(place)")
    }
}
