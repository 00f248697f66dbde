import VitrineImaging

/// The clip that a client requests of `vitrine-video`, as the parameters of a description.
package struct ClipParameters: Sendable, Equatable {
    /// The most frames of a clip.
    package static let maximumFrames = 300
    /// The most bytes of a clip's frames.
    package static let maximumBytes = 64 << 20

    /// The length in seconds, above 0.
    package var seconds = 3.0
    /// Frames a second, above 0. A film with fewer gives those that it has.
    package var framesPerSecond = 10.0
    /// Whether the clip has parts from all over the film instead of one that begins at its poster.
    package var isSpread = false
    package var target = DocumentTarget()

    package init() {}

    package func encoded() -> [UInt8] {
        var wire = WireWriter()
        wire.write(seconds)
        wire.write(framesPerSecond)
        wire.write(isSpread)
        target.write(to: &wire)
        return wire.bytes
    }

    /// Reads the bytes of ``encoded()``; nil for other bytes and impossible numbers.
    package init?(_ bytes: [UInt8]) {
        var wire = WireReader(bytes)
        seconds = wire.double()
        framesPerSecond = wire.double()
        isSpread = wire.bool()
        target = DocumentTarget(&wire)
        guard wire.isComplete, isValid else { return nil }
    }

    /// Whether the numbers are possible, and give at most ``maximumFrames``.
    package var isValid: Bool {
        seconds.isFinite && framesPerSecond.isFinite && seconds > 0 && framesPerSecond > 0
            && seconds * framesPerSecond <= Double(Self.maximumFrames)
    }

    /// Returns ``target`` as a rule for pictures.
    package func resizer(limits: ImageLimits) -> ImageResizer {
        var resizer = ImageResizer(
            size: target.size, mode: target.fit.mode, allowsUpscaling: target.allowsUpscaling)
        resizer.maximumSide = limits.maximumOutputSide
        return resizer
    }
}

/// The frames of a clip, as `vitrine-video` sends them: opaque, in sRGB, of one size.
package struct VideoClip: Sendable, Equatable {
    package var size = PixelSize.zero
    /// Seconds each frame is shown.
    package var seconds: [Double] = []
    /// Red, green and blue of all pixels, row by row, frame by frame.
    private var pixels: [UInt8] = []

    package init() {}

    package var frameCount: Int { seconds.count }

    /// Adds a frame of ``size``. Transparent pixels become black.
    package mutating func append(_ image: Image, seconds: Double) {
        self.seconds.append(seconds)
        image.converted(to: image.hasAlpha ? .premultiplied : .opaque).appendColors(to: &pixels)
    }

    /// Returns a frame.
    ///
    /// - Precondition: The frame exists.
    package func image(at frame: Int) -> Image {
        Image(size: size, colors: pixels[(frame * size.pixelCount * 3)...])
    }

    package func encoded() -> [UInt8] {
        var wire = WireWriter()
        wire.write(size.width)
        wire.write(size.height)
        wire.write(seconds.count)
        for second in seconds { wire.write(second) }
        wire.write(pixels)
        return wire.bytes
    }

    /// Reads the bytes of ``encoded()``; nil for other bytes, and for more than a clip may have.
    package init?(_ bytes: [UInt8], limits: ImageLimits) {
        var wire = WireReader(bytes)
        size = PixelSize(width: wire.int(), height: wire.int())
        let count = wire.int()
        let sides = 1...max(1, min(limits.maximumOutputSide, 1 << 16))
        guard sides.contains(size.width), sides.contains(size.height), (1...ClipParameters.maximumFrames).contains(count)
        else { return nil }
        seconds = (0..<count).map { _ in wire.double() }
        pixels = wire.byteArray()
        let (total, overflow) = (size.pixelCount * 3).multipliedReportingOverflow(by: count)
        guard wire.isComplete, !overflow, pixels.count == total, total <= ClipParameters.maximumBytes,
            seconds.allSatisfy({ $0.isFinite && $0 > 0 })
        else { return nil }
    }
}
