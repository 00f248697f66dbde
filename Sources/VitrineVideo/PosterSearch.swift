import CVitrineFFmpeg
import VitrineImaging

/// Searches for a good poster: usually the first key frame, or a later one after a black or plain beginning.
///
/// Examines at most ``firstFrames`` key frames from the beginning, one at each of ``places`` of the video, and two
/// frames between if these repeat one key frame. Takes the best of them when none is good.
struct PosterSearch {
    private let taker: FrameTaker
    private var image: PixelImage?
    /// The second of the image.
    private var second = 0.0
    private var score = -1.0
    private var seconds: Set<Double> = []

    private static let firstFrames = 3
    private static let places = [0.1, 0.25, 0.5, 0.75]
    private static let placesBetween = [1.0 / 3, 2.0 / 3]
    /// The number of different key frames after which the search ends.
    private static let enough = 4

    init(_ taker: FrameTaker) {
        self.taker = taker
    }

    /// The second of the poster, from the video's first frame; 0 when no frame can be decoded.
    func bestSecond() -> Double {
        var search = self
        // Damage may lie behind the best one.
        try? search.look()
        return search.second.isFinite ? max(0, search.second) : 0
    }

    /// The poster.
    ///
    /// - Throws: An error when no frame can be decoded.
    func best() throws(ImageError) -> PixelImage {
        var search = self
        var failure: ImageError?
        do throws(ImageError) {
            try search.look()
        } catch {
            failure = error
        }
        if let image = search.image { return image }
        if let failure { throw failure }
        return try taker.frame(at: 0, isExact: false, clampsToEnd: true)
    }

    private mutating func look() throws(ImageError) {
        try taker.begin(keyFrames: true)
        for _ in 0..<Self.firstFrames {
            guard let frame = try taker.video.next() else { break }
            if try consider(frame) { return }
        }
        let duration = taker.video.duration
        guard duration > 0 else { return }
        for place in Self.places {
            taker.video.seek(to: duration * place, nearest: false)
            guard let frame = try taker.video.next(), !seconds.contains(frame.second) else { continue }
            if try consider(frame) { return }
        }
        guard seconds.count < Self.enough else { return }
        try taker.begin(keyFrames: false)
        for place in Self.placesBetween {
            taker.video.seek(to: duration * place, nearest: false)
            guard let frame = try taker.video.next(at: duration * place, budget: FrameTaker.budget) else { continue }
            if try consider(frame) { return }
        }
    }

    /// Keeps the frame if it is the best so far.
    ///
    /// - Returns: Whether it is good enough to end the search.
    private mutating func consider(_ frame: cffmpeg_frame) throws(ImageError) -> Bool {
        seconds.insert(frame.second)
        let content = try FrameReader(frame: frame, video: taker.video).content()
        // A partly concealed frame ranks behind every whole one.
        let merit = frame.is_damaged ? content.score / 10_000 : content.score
        if merit > score {
            image = try taker.picture(frame)
            second = frame.second
            score = merit
        }
        return content.isGood && !frame.is_damaged
    }
}

/// The visible content of a frame, from a grid of samples.
struct FrameContent {
    static let columns = 64
    static let rows = 36

    /// The standard deviation of brightness, of 255.
    let deviation: Double
    /// The brightness that only a twentieth of the samples exceeds, of 255.
    let highlight: Double

    /// The least deviation of a good frame. Measured deviations of encoded plain frames stay below 2.
    private static let leastDeviation = 6.0
    /// The least highlight of a good frame: black with a camera's noise stays below.
    private static let leastHighlight = 36.0

    /// - Parameter luma: Brightness from 0 to 255 at a column and a row.
    init(_ luma: (_ column: Int, _ row: Int) -> Double) {
        var values: [Double] = []
        values.reserveCapacity(Self.columns * Self.rows)
        for row in 0..<Self.rows {
            for column in 0..<Self.columns { values.append(luma(column, row)) }
        }
        let mean = values.reduce(0, +) / Double(values.count)
        deviation = (values.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / Double(values.count)).squareRoot()
        values.sort()
        highlight = values[values.count - values.count / 20]
    }

    /// Reads rows of red, green and blue.
    init(rgb: UnsafeRawBufferPointer) {
        self.init { column, row in
            let start = 3 * (row * Self.columns + column)
            guard start + 2 < rgb.count else { return 0 }
            return 0.2126 * Double(rgb[start]) + 0.7152 * Double(rgb[start + 1]) + 0.0722 * Double(rgb[start + 2])
        }
    }

    /// Whether the frame suits as a poster: neither nearly black nor nearly of one colour.
    var isGood: Bool { deviation >= Self.leastDeviation && highlight >= Self.leastHighlight }

    /// The rank of the frame; larger is better.
    var score: Double { deviation + (isGood ? 1_000 : 0) }
}
