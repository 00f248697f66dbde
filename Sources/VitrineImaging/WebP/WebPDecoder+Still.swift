#if SystemCodecs
import CVitrineWebP

extension WebPDecoder.Context {
    /// A still picture, or a frame that needs no other.
    func still(_ chunk: WebPChunk, _ features: cwebp_features) throws(ImageError) -> DecodedImage {
        guard request.page == 0 || features.has_animation != 0 else {
            throw .invalidRequest(reason: "page \(request.page) of a still picture")
        }
        return try picture(chunk, features)
    }

    /// The picture in `chunk`, reduced as the request allows.
    func picture(_ chunk: WebPChunk, _ features: cwebp_features) throws(ImageError) -> DecodedImage {
        let size = PixelSize(width: Int(features.width), height: Int(features.height))
        return features.has_alpha == 0 && features.is_lossless == 0
            ? try planes(chunk, size) : try interleaved(chunk, size, hasAlpha: features.has_alpha != 0)
    }

    /// An opaque lossy picture: luma and chroma, averaged separately.
    private func planes(_ chunk: WebPChunk, _ size: PixelSize) throws(ImageError) -> DecodedImage {
        let chroma = PixelSize(width: (size.width + 1) / 2, height: (size.height + 1) / 2)
        let factor = request.blockSide(for: size)
        // Chroma has half the resolution already; halving the factor keeps both planes alike in size.
        var luma = BoxReducer(width: size.width, height: size.height, factor: factor)
        var u = BoxReducer(width: chroma.width, height: chroma.height, factor: max(1, factor / 2))
        var v = BoxReducer(width: chroma.width, height: chroma.height, factor: max(1, factor / 2))
        var yMemory = try ScratchMemory(byteCount: size.pixelCount, input: name)
        var uMemory = try ScratchMemory(byteCount: chroma.pixelCount, input: name)
        var vMemory = try ScratchMemory(byteCount: chroma.pixelCount, input: name)
        guard let y0 = yMemory.bytes.baseAddress?.assumingMemoryBound(to: UInt8.self),
            let u0 = uMemory.bytes.baseAddress?.assumingMemoryBound(to: UInt8.self),
            let v0 = vMemory.bytes.baseAddress?.assumingMemoryBound(to: UInt8.self),
            var feeder = WebPFeeder(
                cwebp_decoder_create_yuv(
                    Int32(size.width), Int32(size.height), y0, Int32(size.width), u0, v0, Int32(chroma.width),
                    isDraft(size) ? 1 : 0), chunk: chunk, size: size)
        else { throw .limitExceeded(input: name, limit: .memory, actual: size.pixelCount, allowed: 0) }

        while let rows = try feedPiece(&feeder) {
            // An odd last row of luma has its chroma only once the picture is complete.
            let chromaRows = rows == size.height ? chroma.height : rows / 2
            luma.add(rows: y0 + luma.row * size.width, count: rows - luma.row, bytesPerRow: size.width)
            u.add(rows: u0 + u.row * chroma.width, count: chromaRows - u.row, bytesPerRow: chroma.width)
            v.add(rows: v0 + v.row * chroma.width, count: chromaRows - v.row, bytesPerRow: chroma.width)
            yMemory.release(upTo: luma.row * size.width)
            uMemory.release(upTo: u.row * chroma.width)
            vMemory.release(upTo: v.row * chroma.width)
        }
        let isPartial = try finish(feeder.isComplete, rows: luma.row)
        // 128 is mid grey in all three planes.
        var planes = [luma.finish(fill: 128), u.finish(fill: 128), v.finish(fill: 128)]
        for i in 1...2 {
            // The last sample of an odd side covers one pixel, not two.
            planes[i].extentWidth = Double(size.width) / Double(2 * max(1, factor / 2))
            planes[i].extentHeight = Double(size.height) / Double(2 * max(1, factor / 2))
        }
        return DecodedImage(
            planes: planes, model: .yCbCr(.bt601, fullRange: false), isPartial: isPartial,
            samplesAreMeans: factor > 1)
    }

    /// A lossless picture, or one with alpha: one plane of pixels.
    private func interleaved(
        _ chunk: WebPChunk, _ size: PixelSize, hasAlpha: Bool
    ) throws(ImageError) -> DecodedImage {
        let factor = request.blockSide(for: size)
        let channels = hasAlpha ? 4 : 3
        let stride = size.width * channels
        let layout = !hasAlpha ? CWEBP_RGB : factor == 1 ? CWEBP_RGBA : CWEBP_RGBA_PREMULTIPLIED
        var reducer = BoxReducer(width: size.width, height: size.height, channels: channels, factor: factor)
        var memory = try ScratchMemory(byteCount: stride * size.height, input: name)
        guard let pixels = memory.bytes.baseAddress?.assumingMemoryBound(to: UInt8.self),
            var feeder = WebPFeeder(
                cwebp_decoder_create_rgb(
                    Int32(size.width), Int32(size.height), pixels, Int32(stride), Int32(layout),
                    isDraft(size) ? 1 : 0), chunk: chunk, size: size)
        else { throw .limitExceeded(input: name, limit: .memory, actual: size.pixelCount, allowed: 0) }

        while let rows = try feedPiece(&feeder) {
            reducer.add(rows: pixels + reducer.row * stride, count: rows - reducer.row, bytesPerRow: stride)
            memory.release(upTo: reducer.row * stride)
        }
        let isPartial = try finish(feeder.isComplete, rows: reducer.row)
        return DecodedImage(
            planes: [reducer.finish(fill: hasAlpha ? 0 : 128)], model: .rgb,
            alpha: !hasAlpha ? .none : factor == 1 ? .straight : .premultiplied, isPartial: isPartial,
            samplesAreMeans: factor > 1)
    }

    /// The next piece of a picture, or nil at its end; a broken one ends early when partial pictures are allowed.
    func feedPiece(_ feeder: inout WebPFeeder) throws(ImageError) -> Int? {
        try checkCancellation()
        return try feeder.next(input: name)
    }

    /// Whether the picture is partial, after all bytes were read.
    ///
    /// - Throws: ``ImageError/truncated(input:)`` when it is and must not be, or nothing of it is there.
    func finish(_ isComplete: Bool, rows: Int) throws(ImageError) -> Bool {
        guard !isComplete else { return false }
        guard request.allowPartial, rows > 0 else { throw .truncated(input: name) }
        return true
    }
}
#endif
