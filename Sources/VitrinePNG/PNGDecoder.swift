import VitrineCore
import VitrineImageCore

/// Decodes PNG and animated PNG, in pure Swift, in the memory of a few rows and the result.
///
/// When the result is to be smaller than half the image, rows are averaged over square blocks as they are inflated,
/// so that a 200-pixel thumbnail of any image needs less than 4 MB. All colour types, depths, transparency chunks and Adam7
/// are read. Alpha is straight at full size and premultiplied in a reduced image.
///
/// Samples are in the colour space of cICP, or else in ``ImageInfo/colorProfile``. Without them, a gAMA chunk that
/// differs clearly from sRGB is corrected for; cHRM without a profile is not.
///
/// Page n of an animation is frame n composed as a viewer shows it, which decodes the frames it stands on as well. A
/// default image that is no frame is shown only when there is no animation.
package struct PNGDecoder: ImageDecoding {
    /// The longest stored row, in bytes; three of them are kept.
    private static let maximumRowBytes = 1 << 28
    /// Rows around a region that scaling looks at.
    private static let regionMargin = 64
    /// The most bytes of a result, for any limits.
    private static let maximumResultBytes = 1 << 34

    package init() {}

    package var formats: Set<ImageFormat> { [.png] }

    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        guard request.options.page >= 0 else {
            throw .invalidRequest(reason: "page \(request.options.page) does not exist")
        }
        let file = try PNGFile(source, cancellation: request.cancellation, isLenient: request.options.allowsPartial)
        try Self.check(file, request: request, source: source)
        let isStill = file.frameCount == nil || (request.options.page == 0 && file.firstFrame != nil)
        if !isStill, let image = try PNGAnimation(source, file: file, request: request).decode() { return image }
        guard request.options.page == 0 else {
            throw .invalidRequest(reason: "page \(request.options.page) does not exist")
        }
        return try still(file, source: source, request: request)
    }

    package func frames(of source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> any FrameDecoding {
        let file = try PNGFile(source, cancellation: request.cancellation, isLenient: request.options.allowsPartial)
        try Self.check(file, request: request, source: source)
        return try PNGFrames(source, file: file, request: request)
    }

    private func still(
        _ file: PNGFile, source: ByteSource, request: DecodeRequest
    ) throws(ImageError) -> DecodedImage {
        var decoder = PNGImageDecoder(
            source: source, file: file, allowsPartial: request.options.allowsPartial, cancellation: request.cancellation
        )
        let header = file.header
        if header.depth == 16, !file.hasTransparency {
            decoder.colors = request.info.samplesProfile.flatMap { ColorProfile($0) }?.highRange
        }
        let reduction = Self.reduction(header, request)
        let factor = Self.factor(reduction)
        let size = PixelSize(width: header.width, height: header.height)
        var rows = 0..<header.height
        if !header.isInterlaced, let region = request.region?.clipped(to: size) {
            // Whole blocks, so that their means are those of a whole decode.
            let end = region.y + region.size.height + Self.regionMargin
            let begin = max(0, region.y - Self.regionMargin)
            rows = begin / factor * factor..<min(header.height, (end + factor - 1) / factor * factor)
        }
        let result = try decoder.decode(
            file.data, width: header.width, height: header.height, factor: factor,
            passes: PNGInterlacing.passCount(reduction: reduction, header: header), rows: rows)
        var image = Self.image(
            result.plane, file: file, request: request, isPremultiplied: factor > 1, isPartial: result.isPartial)
        if decoder.colors != nil { image.colorProfile = nil }
        image.filledHeight = result.filledHeight
        if rows.count < header.height {
            image.region = PixelRect(x: 0, y: rows.lowerBound, width: header.width, height: rows.count)
        }
        return image
    }

    /// Stored pixels on one of the result, by the file's own header.
    static func reduction(_ header: PNGHeader, _ request: DecodeRequest) -> Double {
        var request = request
        request.info.storedSize = PixelSize(width: header.width, height: header.height)
        return request.reduction
    }

    /// The side of blocks that leaves at least twice the pixels asked for.
    static func factor(_ reduction: Double) -> Int {
        max(1, min(PNGBlockMeans.maximumFactor, Int(reduction / 2)))
    }

    /// The plane as the request wants it, with gamma corrected.
    static func image(
        _ plane: PixelPlane, file: PNGFile, request: DecodeRequest, isPremultiplied: Bool, isPartial: Bool
    ) -> DecodedImage {
        let profile = request.info.samplesProfile
        if profile == nil, !file.hasColorSpace, let gamma = file.gamma, let table = PNGGamma.table(gamma) {
            PNGGamma.apply(table, to: plane, isPremultiplied: isPremultiplied)
        }
        let hasAlpha = plane.channels & 1 == 0
        return DecodedImage(
            planes: [plane], model: plane.channels <= 2 ? .gray : .rgb,
            alpha: hasAlpha ? (isPremultiplied ? .premultiplied : .straight) : .none, colorProfile: profile,
            isPartial: isPartial, samplesAreMeans: plane.width < file.header.width)
    }

    private static func check(_ file: PNGFile, request: DecodeRequest, source: ByteSource) throws(ImageError) {
        let size = PixelSize(width: file.header.width, height: file.header.height)
        let limits = request.limits
        func check(_ limit: ImageLimits.Kind, actual: Int, allowed: Int) throws(ImageError) {
            guard actual <= allowed else {
                throw .limitExceeded(input: source.name, limit: limit, actual: actual, allowed: allowed)
            }
        }
        try check(.side, actual: size.longestSide, allowed: limits.maximumSide)
        try check(.pixels, actual: size.pixelCount, allowed: limits.maximumPixels)
        if file.header.isInterlaced {
            try check(.pixels, actual: size.pixelCount, allowed: limits.maximumInterlacedPixels)
        }
        try check(.memory, actual: file.header.rowBytes(width: size.width), allowed: maximumRowBytes)
        try check(.memory, actual: size.pixelCount, allowed: maximumResultBytes / 4)
    }
}

/// Decodes one image of a PNG file: the image itself, or one frame of an animation.
struct PNGImageDecoder {
    /// The result of a decode.
    struct Result {
        var plane: PixelPlane
        var isPartial: Bool
        /// How much of the height of the plane has samples of the file, 0 to 1.
        var filledHeight = 1.0
    }

    /// The part of an image that is decoded.
    private struct Extent {
        let width: Int
        let height: Int
        /// The number of passes of an interlaced image.
        var passes = 7
        /// The rows of an image that is not interlaced.
        let rows: Range<Int>
    }

    /// How far the stream got.
    private struct Progress {
        var pass = 0
        var row = 0
        var hasPixels: Bool { pass > 0 || row > 0 }
    }

    let source: ByteSource
    let file: PNGFile
    let allowsPartial: Bool
    let cancellation: CancellationToken
    /// How samples of 16 bits are shown in sRGB, of images of high dynamic range; nil to cut them to bytes.
    var colors: HighRangeColors?

    /// Decodes the image whose data starts with `data`.
    ///
    /// - Parameters:
    ///   - width: Its size, which for a frame can be less than the header says.
    ///   - factor: Side of the blocks whose means are wanted, premultiplied; 1 for every pixel, with straight alpha.
    ///   - passes: How many passes of an interlaced image to decode.
    ///   - rows: The rows to decode, of an image that is not interlaced; nil for all of them. Nothing is read behind
    ///     them.
    func decode(
        _ data: PNGChunk, width: Int, height: Int, factor: Int, passes: Int = 7, rows: Range<Int>? = nil
    ) throws(ImageError) -> Result {
        let rows = rows ?? 0..<height
        var reader = PNGRowReader(PNGDataSource(source, first: data), file.header, width: width)
        var sampler = PNGSampler(file, width: width, premultiplies: factor > 1, colors: colors)
        let isScattered = file.header.isInterlaced
        let channels = sampler.channels
        if factor > 1 {
            var box = PNGBlockMeans(
                width: width, height: rows.count, channels: channels, factor: factor, isScattered: isScattered)
            let extent = Extent(width: width, height: height, passes: passes, rows: rows)
            let (progress, isPartial) = try read(&reader, sampler: &sampler, sink: &box, extent: extent)
            let filled = isPartial ? filledHeight(progress, rows) : 1
            return Result(plane: box.finish(), isPartial: isPartial, filledHeight: filled)
        }
        var plane = FullPlane(width: width, height: rows.count, channels: channels, isScattered: isScattered)
        let extent = Extent(width: width, height: height, rows: rows)
        let (progress, isPartial) = try read(&reader, sampler: &sampler, sink: &plane, extent: extent)
        if isPartial && isScattered { PNGInterlacing.fill(&plane, pass: progress.pass, row: progress.row) }
        let filled = isPartial ? filledHeight(progress, rows) : 1
        return Result(plane: plane.finish(), isPartial: isPartial, filledHeight: filled)
    }

    /// How much of the height of `rows` is there. The first pass of an interlaced image has a pixel for each 8 × 8 of
    /// the image.
    private func filledHeight(_ progress: Progress, _ rows: Range<Int>) -> Double {
        guard progress.pass == 0 else { return 1 }
        let end = min(rows.upperBound, file.header.isInterlaced ? 8 * progress.row : progress.row)
        guard end < rows.upperBound else { return 1 }
        return Double(max(0, end - rows.lowerBound)) / Double(rows.count)
    }

    private func read<Sink: PNGRowSink & ~Copyable>(
        _ reader: inout PNGRowReader, sampler: inout PNGSampler, sink: inout Sink, extent: Extent
    ) throws(ImageError) -> (Progress, isPartial: Bool) {
        var progress = Progress()
        let failure: InflateError
        do throws(InflateError) {
            if file.header.isInterlaced {
                try readPasses(&reader, sampler: &sampler, sink: &sink, extent: extent, progress: &progress)
            } else {
                try readRows(&reader, sampler: &sampler, sink: &sink, extent: extent, progress: &progress)
            }
            return (progress, false)
        } catch {
            failure = error
        }
        switch failure {
        case .source(let error):
            throw error
        case .truncated, .invalid:
            if allowsPartial && progress.hasPixels { return (progress, true) }
            if case .invalid(let reason) = failure { throw .corrupt(input: source.name, reason: reason) }
            if reader.isTruncated { throw .truncated(input: source.name) }
            throw .corrupt(input: source.name, reason: "the image data ends before the last row")
        }
    }

    private func checkCancellation() throws(InflateError) {
        if cancellation.isCancelled { throw .source(.cancelled(input: source.name)) }
    }

    private func readRows<Sink: PNGRowSink & ~Copyable>(
        _ reader: inout PNGRowReader, sampler: inout PNGSampler, sink: inout Sink, extent: Extent,
        progress: inout Progress
    ) throws(InflateError) {
        let (width, wanted) = (extent.width, extent.rows)
        reader.begin(width: width)
        for y in 0..<wanted.upperBound {
            if y & 3 == 0 { try checkCancellation() }
            let row = try reader.next()
            guard y >= wanted.lowerBound else { continue }
            sink.add(sampler.convert(row, width: width))
            progress.row = y + 1
        }
        if wanted.upperBound == extent.height { try finish(&reader) }
    }

    private func readPasses<Sink: PNGRowSink & ~Copyable>(
        _ reader: inout PNGRowReader, sampler: inout PNGSampler, sink: inout Sink, extent: Extent,
        progress: inout Progress
    ) throws(InflateError) {
        let passes = extent.passes
        for index in 0..<min(passes, 7) {
            progress = Progress(pass: index, row: 0)
            let pass = PNGInterlacing.passes[index]
            let columns = pass.columns(of: extent.width)
            let rowCount = pass.rows(of: extent.height)
            guard columns > 0, rowCount > 0 else { continue }
            reader.begin(width: columns)
            for row in 0..<rowCount {
                if row & 3 == 0 { try checkCancellation() }
                let samples = sampler.convert(try reader.next(), width: columns)
                sink.add(
                    samples, y: pass.y + row * pass.rowStep, x: pass.x, step: pass.columnStep, count: columns)
                progress.row = row + 1
            }
        }
        progress = Progress(pass: 7, row: 0)
        if passes >= 7 { try finish(&reader) }
    }

    /// Has the checksum of the stream checked. Every row is there: a file cut off before its checksum is still whole.
    private func finish(_ reader: inout PNGRowReader) throws(InflateError) {
        do throws(InflateError) {
            try reader.finish()
        } catch .truncated {
            return
        }
    }
}
