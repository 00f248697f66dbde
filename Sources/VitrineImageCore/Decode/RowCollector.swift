import VitrineCore

/// Rows of samples on their way into a plane. They are averaged over square blocks when the result is to be smaller
/// than half the image, so that memory does not grow with the image.
///
/// A decoder writes a row at ``row`` or ``wideRow`` and calls ``advance(by:)``. Alpha is multiplied in before
/// averaging.
package struct RowCollector: ~Copyable {
    let size: PixelSize
    let channels: Int
    /// Side of the blocks; 1 for every pixel.
    let factor: Int
    /// Rows taken so far.
    package private(set) var count = 0
    /// Bytes of a row in memory.
    package let bytesPerRow: Int
    private let hasAlpha: Bool
    private let isPremultiplied: Bool
    private let isWide: Bool
    private let maximum: Int
    private let capacity: Int
    private var filled = 0
    private let memory: PixelStorage
    private var reducer: BoxReducer
    private let cancellation: CancellationToken
    private let name: String

    /// Checks the limits, then allocates.
    ///
    /// - Parameters:
    ///   - channels: Interleaved channels; alpha is the last one.
    ///   - maximum: The value of full intensity, at most 65,535. Samples are words if it exceeds 255.
    ///   - alpha: Whether the last channel is alpha, and whether colours are multiplied by it already.
    package init(
        _ source: ByteSource, _ request: DecodeRequest, size: PixelSize, channels: Int, maximum: Int = 255,
        alpha: DecodedImage.Alpha = .none
    ) throws(ImageError) {
        guard !size.isEmpty else { throw .corrupt(input: source.name, reason: "a side of zero pixels") }
        try request.limits.check(storedSize: size, input: source.name)
        self.size = size
        self.channels = channels
        hasAlpha = alpha != .none
        isPremultiplied = alpha == .premultiplied
        self.maximum = maximum
        isWide = maximum > 255
        factor = request.blockSide(for: size)
        bytesPerRow = size.width * channels * (isWide ? 2 : 1)
        // Whole groups of four rows, which the reducer adds at once.
        capacity = max(4, min(32, (64 << 10) / bytesPerRow) & ~3)
        memory = PixelStorage(zeroedByteCount: capacity * bytesPerRow + 16)
        reducer = BoxReducer(
            width: size.width, height: size.height, channels: channels, factor: factor,
            scale: maximum == 255 ? .identity : BoxReducer.Scale(multiplier: 255, bias: 0, divisor: maximum))
        cancellation = request.cancellation
        name = source.name
    }

    /// Where the next row of bytes belongs; ``availableRows`` rows follow one another.
    package var row: UnsafeMutablePointer<UInt8> { rawRow.assumingMemoryBound(to: UInt8.self) }

    /// Where the next row of words belongs, in native byte order.
    package var wideRow: UnsafeMutablePointer<UInt16> { rawRow.assumingMemoryBound(to: UInt16.self) }

    private var rawRow: UnsafeMutableRawPointer {
        memory.bytes.baseAddress! + filled * bytesPerRow
    }

    /// Rows that fit at ``row`` and are still missing.
    package var availableRows: Int { min(capacity - filled, size.height - count) }

    /// Whether all rows are there.
    package var isComplete: Bool { count >= size.height }

    /// Takes the rows that were written.
    package mutating func advance(by rows: Int = 1) throws(ImageError) {
        filled += rows
        count += rows
        if filled >= capacity { try flush() }
    }

    private mutating func flush() throws(ImageError) {
        if cancellation.isCancelled { throw .cancelled(input: name) }
        guard filled > 0, let base = memory.bytes.baseAddress else { return }
        if hasAlpha, !isPremultiplied, factor > 1 { premultiply(base) }
        if isWide {
            reducer.add(
                rows: UnsafePointer(base.assumingMemoryBound(to: UInt16.self)), count: filled,
                bytesPerRow: bytesPerRow)
        } else {
            reducer.add(
                rows: UnsafePointer(base.assumingMemoryBound(to: UInt8.self)), count: filled, bytesPerRow: bytesPerRow)
        }
        filled = 0
    }

    private func premultiply(_ base: UnsafeMutableRawPointer) {
        let pixels = size.width * filled
        if !isWide, maximum == 255, channels == 4 {
            AlphaMath.premultiply(base.assumingMemoryBound(to: UInt8.self), count: pixels)
        } else if isWide {
            RowCollector.premultiply(
                base.assumingMemoryBound(to: UInt16.self), pixels: pixels, channels: channels, maximum: UInt32(maximum))
        } else {
            RowCollector.premultiply(
                base.assumingMemoryBound(to: UInt8.self), pixels: pixels, channels: channels, maximum: UInt32(maximum))
        }
    }

    private static func premultiply<T: FixedWidthInteger & UnsignedInteger>(
        _ samples: UnsafeMutablePointer<T>, pixels: Int, channels: Int, maximum: UInt32
    ) {
        var p = samples
        for _ in 0..<pixels {
            let alpha = min(UInt32(truncatingIfNeeded: p[channels &- 1]), maximum)
            for c in 0..<(channels &- 1) {
                let value = min(UInt32(truncatingIfNeeded: p[c]), maximum)
                p[c] = T(truncatingIfNeeded: (value &* alpha &+ maximum / 2) / maximum)
            }
            p += channels
        }
    }

    /// Whether a decode that ended with `error` still has an image to show.
    package func excuses(_ error: ImageError, _ request: DecodeRequest) -> Bool {
        if case .truncated = error { return request.options.allowsPartial && count > 0 }
        return false
    }

    /// The result. Rows that did not come are transparent.
    ///
    /// - Parameter model: nil for grey or RGB, by the number of channels.
    package consuming func finish(
        isPartial: Bool = false, model: DecodedImage.Model? = nil, colorProfile: [UInt8]? = nil
    ) throws(ImageError) -> DecodedImage {
        try flush()
        let alpha: DecodedImage.Alpha = !hasAlpha ? .none : factor > 1 || isPremultiplied ? .premultiplied : .straight
        let model = model ?? (channels <= 2 ? .gray : .rgb)
        let isReduced = factor > 1
        let filledHeight = Double(min(count, size.height)) / Double(size.height)
        var image = DecodedImage(
            planes: [reducer.finish()], model: model, alpha: alpha, colorProfile: colorProfile, isPartial: isPartial,
            samplesAreMeans: isReduced)
        image.filledHeight = filledHeight
        return image
    }
}

/// The bytes of a part of an input, in order, through a window.
package struct ByteStream {
    private let source: ByteSource
    private let window: PixelStorage
    private let base: UnsafeMutablePointer<UInt8>
    private var at = 0
    private var end = 0
    /// Offset of the byte behind the window.
    private var next: Int
    private let limit: Int

    /// - Parameter end: Where the stream ends at the latest; nil for the end of the input.
    package init(_ source: ByteSource, from offset: Int, to end: Int? = nil, capacity: Int = 64 << 10) {
        self.source = source
        next = max(0, offset)
        limit = min(end ?? source.count, source.count)
        window = PixelStorage(zeroedByteCount: capacity)
        base = window.bytes.baseAddress!.assumingMemoryBound(to: UInt8.self)
    }

    /// Bytes that are left.
    package var remaining: Int { max(0, limit - next) + end - at }

    /// The next byte.
    ///
    /// - Throws: ``ImageError/truncated(input:)`` at the end.
    @inline(__always)
    package mutating func byte() throws(ImageError) -> UInt8 {
        if at == end { try fill() }
        let value = base[at]
        at &+= 1
        return value
    }

    /// Copies the next bytes.
    ///
    /// - Returns: How many there were.
    package mutating func read(_ count: Int, into target: UnsafeMutableRawPointer) throws(ImageError) -> Int {
        var done = min(count, end - at)
        if done > 0 {
            target.copyMemory(from: base + at, byteCount: done)
            at += done
        }
        while done < count {
            let left = min(count - done, limit - next)
            if left <= 0 { return done }
            if left < window.count {
                try fill()
                let piece = min(left, end - at)
                (target + done).copyMemory(from: base + at, byteCount: piece)
                at += piece
                done += piece
            } else {
                // Long runs need no window.
                let read = try source.read(
                    into: UnsafeMutableRawBufferPointer(start: target + done, count: left), at: next)
                if read == 0 { return done }
                next += read
                done += read
            }
        }
        return done
    }

    /// Copies exactly so many bytes.
    ///
    /// - Throws: ``ImageError/truncated(input:)`` if there are fewer.
    package mutating func take(_ count: Int, into target: UnsafeMutableRawPointer) throws(ImageError) {
        guard try read(count, into: target) == count else { throw .truncated(input: source.name) }
    }

    private mutating func fill() throws(ImageError) {
        let wanted = min(window.count, limit - next)
        guard wanted > 0 else { throw .truncated(input: source.name) }
        let read = try source.read(
            into: UnsafeMutableRawBufferPointer(rebasing: window.bytes[0..<wanted]), at: next)
        // A file can shrink while it is read.
        guard read > 0 else { throw .truncated(input: source.name) }
        next += read
        at = 0
        end = read
    }
}

/// Memory for rows of a stored format, freed with its owner.
package struct RowBuffer {
    private let storage: PixelStorage
    package let count: Int
    package var bytes: UnsafeMutablePointer<UInt8> { storage.bytes.baseAddress!.assumingMemoryBound(to: UInt8.self) }

    /// Zeros.
    package init(_ count: Int) {
        storage = PixelStorage(zeroedByteCount: count + 16)
        self.count = count
    }
}

extension DecodeRequest {
    /// Throws unless a still image is wanted.
    package func requireFirstPage() throws(ImageError) {
        guard options.page == 0 else { throw .invalidRequest(reason: "page \(options.page) of a still image") }
    }

    /// Throws before anything is allocated if an input cannot hold all pixels.
    package func require(_ needed: Int, of source: ByteSource, at offset: Int) throws(ImageError) {
        guard source.count > offset, options.allowsPartial || source.count - offset >= needed else {
            throw .truncated(input: source.name)
        }
    }
}
