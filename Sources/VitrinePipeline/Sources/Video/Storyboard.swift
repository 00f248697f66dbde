import VitrineCore
import VitrineImaging

/// Small frames of a video at equal intervals, on one sheet: for previews beside a seek bar.
///
/// ```swift
/// let board = try Storyboard(of: .file("/videos/beach.mov"))
/// try AtomicFile.write(board.sheet.encoded(as: .jpeg(quality: 0.8)), to: "beach.jpg")
/// try AtomicFile.write(Array(board.webVTT(sheet: "beach.jpg").utf8), to: "beach.vtt")
/// ```
///
/// Only key frames are decoded, at the size of a cell. Where key frames are rarer than the interval, one cell stands for
/// several intervals.
public struct Storyboard: Sendable {
    /// One frame on the sheet.
    public struct Cell: Sendable, Hashable {
        /// The seconds for which it stands, from the first frame of the video.
        public let seconds: Range<Double>
        /// Its place on the sheet.
        public let place: PixelRect
    }

    /// All frames, row by row.
    public let sheet: PixelImage
    /// The frames in the order of time. They cover the video, except for parts that cannot be decoded.
    public let cells: [Cell]

    /// The most intervals of one video.
    package static let maximumIntervals = 1_000
    /// Intervals of the default.
    private static let usual = 100.0
    private static let steps: [Double] = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600]

    /// Decodes the frames of a video. Blocks: call it from a thread that may block.
    ///
    /// - Parameters:
    ///   - input: The file or the bytes.
    ///   - interval: Seconds between frames; nil for as many as give 100 frames at most, but at least 1.
    ///   - cellWidth: The width of a frame in pixels, from 16 to 1,024.
    ///   - columns: The frames in a row, at least 1.
    ///   - limits: Limits on the input, on the sheet, and on the work for each frame.
    ///   - cancellation: Ends it early.
    /// - Throws: ``ImagePipelineError``. It is ``ImagePipelineError/noVideo(source:)`` for sound only, and
    ///   ``ImagePipelineError/unsupported(source:reason:)`` for a video of unknown length. Numbers out of range, and more
    ///   than 1,000 intervals, are ``ImagePipelineError/underlying(source:error:)`` with `ImageError.invalidRequest`.
    public init(
        of input: ImageInput, interval: Double? = nil, cellWidth: Int = 160, columns: Int = 10,
        limits: ImageLimits = .standard, cancellation: CancellationToken = CancellationToken()
    ) throws(ImagePipelineError) {
        try self.init(
            VideoFrameSource(input, at: .poster), interval: interval, cellWidth: cellWidth, columns: columns,
            limits: limits, cancellation: cancellation)
    }

    package init(
        _ source: VideoFrameSource, interval: Double? = nil, cellWidth: Int = 160, columns: Int = 10,
        limits: ImageLimits = .standard, cancellation: CancellationToken = CancellationToken()
    ) throws(ImagePipelineError) {
        let name = source.input.name
        func invalid(_ reason: String) -> ImagePipelineError {
            .underlying(source: name, error: ImageError.invalidRequest(reason: reason))
        }
        guard (16...1_024).contains(cellWidth), columns >= 1 else {
            throw invalid("a storyboard has cells of 16 to 1,024 pixels, and 1 column or more")
        }
        let info = try source.info(limits: limits, cancellation: cancellation)
        guard info.hasVideo, !info.size.isEmpty else { throw .noVideo(source: name) }
        guard let duration = info.duration else { throw .unsupported(source: name, reason: "its length is unknown") }
        let step = interval ?? Self.steps.first { duration / $0 <= Self.usual } ?? duration / Self.usual
        guard step.isFinite, step > 0, duration / step <= Double(Self.maximumIntervals) else {
            throw invalid("the interval \(step) s gives more than \(Self.maximumIntervals) frames of \(duration) s")
        }
        let height = Double(cellWidth) * Double(info.size.height) / Double(info.size.width)
        let size = PixelSize(width: cellWidth, height: max(1, Int(min(height, 65_536).rounded())))
        let frames = try Self.frames(
            source, duration: duration, step: step,
            RenderRequest(size: size, mode: .stretch, limits: limits, cancellation: cancellation))

        let across = min(columns, frames.count), down = (frames.count - 1) / across + 1
        let whole = PixelSize(width: across * size.width, height: down * size.height)
        guard whole.longestSide <= limits.maximumOutputSide else {
            throw .limitExceeded(
                source: name, limit: .outputSide, actual: whole.longestSide, allowed: limits.maximumOutputSide)
        }
        var sheet = PixelImage(size: whole, color: .black)
        cells = frames.enumerated().map { index, frame in
            let place = PixelRect(
                x: index % across * size.width, y: index / across * size.height, width: size.width,
                height: size.height)
            sheet.compose(frame.image.converted(to: .premultiplied), x: place.x, y: place.y)
            return Cell(seconds: frame.seconds, place: place)
        }
        self.sheet = sheet
    }

    private struct Frame {
        var seconds: Range<Double>
        var image: PixelImage
    }

    /// The key frames nearest to the middle of each interval, without repetitions.
    private static func frames(
        _ source: VideoFrameSource, duration: Double, step: Double, _ request: RenderRequest
    ) throws(ImagePipelineError) -> [Frame] {
        var frames: [Frame] = []
        var failure: ImagePipelineError?
        for index in 0..<max(1, Int((duration / step).rounded(.up))) {
            let start = Double(index) * step
            // Rounding may place the last one at the end.
            guard start < duration else { break }
            let seconds = start..<min(duration, start + step)
            do throws(ImagePipelineError) {
                let image = try source.keyFrame(at: (seconds.lowerBound + seconds.upperBound) / 2, request)
                let isNext = frames.last.map { abs($0.seconds.upperBound - start) < step / 2 } ?? false
                if isNext, let last = frames.last, last.image.shows(image) {
                    frames[frames.count - 1].seconds = last.seconds.lowerBound..<seconds.upperBound
                } else {
                    frames.append(Frame(seconds: seconds, image: image))
                }
            } catch {
                switch error {
                // A part that is damaged has no cell.
                case .damaged: failure = error
                default: throw error
                }
            }
        }
        guard !frames.isEmpty else { throw failure ?? .noVideo(source: source.input.name) }
        return frames
    }

    /// Returns the times and places as WebVTT (W3C WebVTT; W3C Media Fragments 1.0 §4.2.2 for the places).
    ///
    /// - Parameter sheet: The URL of the sheet, absolute or relative to that of the text. Characters that no URL has are
    ///   percent-encoded.
    public func webVTT(sheet: String) -> String {
        let url = Self.encoded(sheet)
        var text = "WEBVTT\n"
        for cell in cells {
            let place = cell.place
            text += "\n\(Self.time(cell.seconds.lowerBound)) --> \(Self.time(cell.seconds.upperBound))\n"
            text += "\(url)#xywh=\(place.x),\(place.y),\(place.size.width),\(place.size.height)\n"
        }
        return text
    }

    private static func time(_ seconds: Double) -> String {
        let milliseconds = Int(min(seconds * 1_000, 1e12).rounded())
        func digits(_ number: Int, _ count: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        let (hours, minutes) = (milliseconds / 3_600_000, milliseconds / 60_000 % 60)
        return "\(digits(hours, 2)):\(digits(minutes, 2)):\(digits(milliseconds / 1_000 % 60, 2))"
            + ".\(digits(milliseconds % 1_000, 3))"
    }

    /// The characters of a URL without a fragment (RFC 3986 §2); others as bytes of UTF-8.
    private static func encoded(_ url: String) -> String {
        let plain = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:/?[]@!$&'()*+,;=%".utf8)
        return PercentEncoding.encoded(url.utf8, leaving: plain.contains)
    }
}

extension VideoFrameSource {
    /// Returns the key frame nearest to a second.
    fileprivate func keyFrame(at second: Double, _ request: RenderRequest) throws(ImagePipelineError) -> PixelImage {
        var source = self
        source.moment = .second(second)
        source.precision = .nearestKeyFrame
        source.clampsToEnd = true
        do {
            return try source.image(request)
        } catch let error as ImagePipelineError {
            throw error
        } catch let error as ImageError {
            throw ImagePipelineError(error, source: input.name)
        } catch {
            throw .underlying(source: input.name, error: error)
        }
    }
}

extension PixelImage {
    /// Whether two images have the same size and pixels.
    fileprivate func shows(_ other: PixelImage) -> Bool {
        guard size == other.size, alpha == other.alpha else { return false }
        return withUnsafeBytes { one in
            other.withUnsafeBytes { two in
                (0..<height).allSatisfy { y in
                    one[(y * bytesPerRow)...].prefix(4 * width)
                        .elementsEqual(two[(y * other.bytesPerRow)...].prefix(4 * width))
                }
            }
        }
    }
}
