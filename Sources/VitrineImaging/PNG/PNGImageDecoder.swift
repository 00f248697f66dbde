import VitrineCore

/// Decodes one image of a PNG file: the picture itself, or one frame of an animation.
struct PNGImageDecoder {
    /// What was decoded.
    struct Result {
        var plane: PixelPlane
        var isPartial: Bool
    }

    /// How far the stream got.
    private struct Progress {
        var pass = 0
        var row = 0
        var hasPixels: Bool { pass > 0 || row > 0 }
    }

    let source: ByteSource
    let file: PNGFile
    let allowPartial: Bool
    let cancellation: CancellationToken

    /// Decodes the image whose data starts with `data`.
    ///
    /// - Parameters:
    ///   - width: Its size, which for a frame can be less than the header says.
    ///   - factor: Side of the blocks whose means are wanted, premultiplied; 1 for every pixel, with straight alpha.
    ///   - passes: How many passes of an interlaced image to decode.
    func decode(_ data: PNGChunk, width: Int, height: Int, factor: Int, passes: Int = 7) throws(ImageError) -> Result {
        var reader = PNGRowReader(PNGDataSource(source, first: data), file.header, width: width)
        var sampler = PNGSampler(file, width: width, premultiplies: factor > 1)
        let isScattered = file.header.isInterlaced
        let channels = sampler.channels
        if factor > 1 {
            var box = PNGBlockMeans(
                width: width, height: height, channels: channels, factor: factor, isScattered: isScattered)
            let (_, isPartial) = try run(&reader, &sampler, &box, width, height, passes)
            return Result(plane: box.finish(), isPartial: isPartial)
        }
        var plane = FullPlane(width: width, height: height, channels: channels, isScattered: isScattered)
        let (progress, isPartial) = try run(&reader, &sampler, &plane, width, height, 7)
        if isPartial && isScattered { PNGInterlacing.fill(&plane, pass: progress.pass, row: progress.row) }
        return Result(plane: plane.finish(), isPartial: isPartial)
    }

    private func run<Sink: PNGRowSink & ~Copyable>(
        _ reader: inout PNGRowReader, _ sampler: inout PNGSampler, _ sink: inout Sink, _ width: Int, _ height: Int,
        _ passes: Int
    ) throws(ImageError) -> (Progress, isPartial: Bool) {
        var progress = Progress()
        let failure: InflateError
        do throws(InflateError) {
            if file.header.isInterlaced {
                try passRows(&reader, &sampler, &sink, width, height, passes, &progress)
            } else {
                try rows(&reader, &sampler, &sink, width, height, &progress)
            }
            return (progress, false)
        } catch {
            failure = error
        }
        switch failure {
        case .source(let error):
            throw error
        case .truncated, .invalid:
            if allowPartial && progress.hasPixels { return (progress, true) }
            if case .invalid(let reason) = failure { throw .corrupt(input: source.name, reason: reason) }
            if reader.isTruncated { throw .truncated(input: source.name) }
            throw .corrupt(input: source.name, reason: "the image data ends before the last row")
        }
    }

    private func checkCancellation() throws(InflateError) {
        if cancellation.isCancelled { throw .source(.cancelled(input: source.name)) }
    }

    private func rows<Sink: PNGRowSink & ~Copyable>(
        _ reader: inout PNGRowReader, _ sampler: inout PNGSampler, _ sink: inout Sink, _ width: Int, _ height: Int,
        _ progress: inout Progress
    ) throws(InflateError) {
        reader.begin(width: width)
        for y in 0..<height {
            if y & 3 == 0 { try checkCancellation() }
            sink.add(sampler.convert(try reader.next(), width: width))
            progress.row = y + 1
        }
        try finish(&reader)
    }

    private func passRows<Sink: PNGRowSink & ~Copyable>(
        _ reader: inout PNGRowReader, _ sampler: inout PNGSampler, _ sink: inout Sink, _ width: Int, _ height: Int,
        _ passes: Int, _ progress: inout Progress
    ) throws(InflateError) {
        for index in 0..<min(passes, 7) {
            progress = Progress(pass: index, row: 0)
            let pass = PNGInterlacing.passes[index]
            let columns = pass.columns(of: width)
            let rowCount = pass.rows(of: height)
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
