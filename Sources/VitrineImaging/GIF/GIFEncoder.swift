/// Writes GIF89a: one picture, or an animation. Pure Swift.
///
/// Pictures of at most 256 colours keep them exactly; others get a palette by variance (``GIFQuantizer``) and, unless
/// it is turned off, Floyd–Steinberg dithering. Alpha from 128 on becomes opaque, below that transparent.
///
/// Source: GIF89a specification; the Netscape application extension for loops.
package struct GIFEncoder: ImageEncoding {
    package let format = ImageFormat.gif
    /// Whether colours the palette lacks are mixed from neighbouring pixels. Default true.
    package var isDithered: Bool

    package init(isDithered: Bool = true) {
        self.isDithered = isDithered
    }

    package func encode(_ image: Image, quality: Double, options: EncodeOptions) throws(ImageError) -> [UInt8] {
        try encode(frames: [(image: image, delay: 0)], loopCount: 1)
    }

    /// An animation of frames of one size.
    ///
    /// - Parameters:
    ///   - frames: Pictures and how many seconds each stays, to a hundredth, at most 655.35.
    ///   - loopCount: How often it is shown; 0 for ever, at most 65,536.
    /// - Throws: ``ImageError/encodingFailed(format:reason:)`` without frames, for frames of different sizes, or a side
    ///   above 65,535.
    package func encode(frames: [(image: Image, delay: Double)], loopCount: Int) throws(ImageError) -> [UInt8] {
        guard let size = frames.first?.image.size else { throw failure("an animation needs a frame") }
        guard size.longestSide <= 0xFFFF else { throw failure("a GIF has at most 65,535 pixels a side") }
        guard frames.allSatisfy({ $0.image.size == size }) else { throw failure("frames must have one size") }
        var file = GIFWriter(size)
        if frames.count > 1, loopCount != 1 { file.writeLoops(loopCount) }
        var previous: Image?
        for (i, frame) in frames.enumerated() {
            // A frame that can be transparent must not lie on the one before; an opaque one only covers what changed.
            let next = i + 1 < frames.count ? frames[i + 1].image : nil
            let area = previous.map { GIFEncoder.changedArea(from: $0, to: frame.image) } ?? GIFArea(size)
            let indexed = GIFQuantizer.index(frame.image, area, isDithered: isDithered)
            let clears = next.map(\.hasAlpha) ?? false
            file.writeFrame(
                indexed, area, delay: GIFEncoder.hundredths(frame.delay), isAnimated: frames.count > 1, clears: clears)
            previous = clears ? nil : frame.image
        }
        return file.finished()
    }

    private func failure(_ reason: String) -> ImageError { .encodingFailed(format: .gif, reason: reason) }

    private static func hundredths(_ seconds: Double) -> Int {
        seconds.isFinite ? Int(min(max((seconds * 100).rounded(), 0), 65_535)) : 0
    }

    /// The smallest rectangle outside of which two pictures are equal; one pixel when they are equal.
    private static func changedArea(from old: Image, to new: Image) -> GIFArea {
        // Different meanings of the fourth channel cannot be compared byte by byte; transparency cannot be painted
        // over.
        guard old.alpha == new.alpha, !new.hasAlpha else { return GIFArea(new.size) }
        var (left, right, top, bottom) = (new.width, -1, new.height, -1)
        old.withUnsafeBytes { a in
            new.withUnsafeBytes { b in
                for y in 0..<new.height {
                    let p = a.baseAddress! + y * old.bytesPerRow
                    let q = b.baseAddress! + y * new.bytesPerRow
                    func differs(_ x: Int) -> Bool {
                        p.loadUnaligned(fromByteOffset: 4 * x, as: UInt32.self)
                            != q.loadUnaligned(fromByteOffset: 4 * x, as: UInt32.self)
                    }
                    guard let first = (0..<new.width).first(where: differs) else { continue }
                    var last = new.width - 1
                    while last > first, !differs(last) { last -= 1 }
                    (left, right) = (min(left, first), max(right, last))
                    (top, bottom) = (min(top, y), y)
                }
            }
        }
        guard right >= 0 else { return GIFArea(x: 0, y: 0, width: 1, height: 1) }
        return GIFArea(x: left, y: top, width: right - left + 1, height: bottom - top + 1)
    }
}
