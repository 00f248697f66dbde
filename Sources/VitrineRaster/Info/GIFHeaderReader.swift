import VitrineImageCore

/// Walks all blocks of a GIF: canvas, frames, duration, loops.
package enum GIFHeaderReader: HeaderReading {
    package static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        var walker = try GIFWalker(reader)
        guard let first = try walker.next() else {
            if walker.isTruncated { throw .truncated(input: reader.name) }
            throw reader.corrupt("a GIF without a frame")
        }
        var header = ImageHeader(info: ImageInfo(format: .gif, storedSize: walker.canvas))
        var seconds = FrameTiming.seconds(Double(first.delay) / 100)
        header.addFrame(seconds: Double(first.delay) / 100, limits)
        var count = 1
        // Later frames that keep the canvas cannot make it transparent again. What is cleared is transparent, and so is
        // what the first frame restores; what a later one restores is as opaque as the frames before.
        var hasAlpha = first.transparentIndex != nil || !covers(first, walker.canvas)
        var disposal = first.disposal
        while let frame = try walker.next() {
            if disposal == .clear || count == 1 && disposal == .restore { hasAlpha = true }
            disposal = frame.disposal
            count += 1
            seconds += FrameTiming.seconds(Double(frame.delay) / 100)
            header.addFrame(seconds: Double(frame.delay) / 100, limits)
        }
        header.info.hasAlpha = hasAlpha
        header.info.colorModel = .palette
        header.info.isProgressive = first.isInterlaced
        header.info.frameCount = count
        if count > 1 {
            header.info.duration = seconds
            header.info.loopCount = walker.plays
        }
        header.xmp = walker.xmp
        return header
    }

    private static func covers(_ frame: GIFFrame, _ canvas: PixelSize) -> Bool {
        frame.x == 0 && frame.y == 0 && frame.width >= canvas.width && frame.height >= canvas.height
    }
}
