import VitrineImaging

/// The clip that a client requests of `vitrine-video`, as the parameters of a description.
package struct ClipParameters: Sendable, Equatable {
    /// The most frames of a clip.
    package static let maximumFrames = 300
    /// The most bytes of a clip's frames.
    package static let maximumBytes = 64 << 20

    /// The length in seconds, above 0.
    package var seconds = 3.0
    /// Frames a second, above 0. A video with fewer gives those that it has.
    package var framesPerSecond = 10.0
    /// Whether the clip has parts from all over the video instead of one that begins at its poster.
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
    package mutating func append(_ image: PixelImage, seconds: Double) {
        self.seconds.append(seconds)
        image.converted(to: image.hasAlpha ? .premultiplied : .opaque).appendColors(to: &pixels)
    }

    /// Returns a frame.
    ///
    /// - Precondition: The frame exists.
    package func image(at frame: Int) -> PixelImage {
        PixelImage(size: size, colors: pixels[(frame * size.pixelCount * 3)...])
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

extension PixelImage {
    /// Appends red, green and blue of all pixels, row by row.
    fileprivate func appendColors(to bytes: inout [UInt8]) {
        let count = 3 * size.pixelCount
        let row = bytesPerRow
        withUnsafeBytes { pixels in
            bytes.append(contentsOf: [UInt8](unsafeUninitializedCapacity: count) { target, initialized in
                for y in 0..<height {
                    for x in 0..<width {
                        let (from, to) = (y &* row &+ 4 &* x, 3 &* (y &* width &+ x))
                        target[to] = pixels[from]
                        target[to &+ 1] = pixels[from &+ 1]
                        target[to &+ 2] = pixels[from &+ 2]
                    }
                }
                initialized = count
            })
        }
    }

    /// An opaque image of red, green and blue of all pixels, row by row.
    ///
    /// - Precondition: There are bytes for all pixels; further ones do not count.
    fileprivate init(size: PixelSize, colors: ArraySlice<UInt8>) {
        precondition(colors.count >= 3 * size.pixelCount, "the colors must fill the image")
        self.init(width: size.width, height: size.height, alpha: .opaque) { target in
            colors.withUnsafeBytes { source in
                for pixel in 0..<size.pixelCount {
                    target[4 &* pixel] = source[3 &* pixel]
                    target[4 &* pixel &+ 1] = source[3 &* pixel &+ 1]
                    target[4 &* pixel &+ 2] = source[3 &* pixel &+ 2]
                    target[4 &* pixel &+ 3] = 255
                }
            }
        }
    }
}
