import VitrineCore

/// A request to a decoder.
public struct DecodeRequest: Sendable {
    /// The header, checked against the limits.
    public var info: ImageInfo
    /// The size the result will be scaled to, in the orientation of the file; nil for every pixel.
    ///
    /// A decoder chooses the cheapest representation that is at least as good, usually 1.5 to 2 times this size.
    public var target: PixelSize?
    /// The part of the image that is wanted, in the orientation of the file; nil for all of it. ``target`` is the size
    /// of the whole image in any case.
    ///
    /// A decoder may deliver more, up to the whole image.
    package var region: PixelRect?
    /// The options of the decode. Their region is in the upright image; `region` is the same in the file's.
    public var options: DecodeOptions
    /// Bounds on the work.
    package var limits: ImageLimits
    /// Cancelled at the deadline or by the caller. Decoders that can stop poll it every few milliseconds.
    public var cancellation: CancellationToken
    /// Where a worker's decoder may put its planes, so that they need not be copied there; nil elsewhere.
    package var resultBuffer: SharedBuffer?
    /// Whether samples that are already scaled to exactly ``target`` will do: for a result that shows the whole image,
    /// from which all others can be made. A decoder then scales row by row, and a worker sends fewer bytes.
    package var allowsScaling = false
    /// How many threads a library may use.
    package var threads = 1

    package init(
        info: ImageInfo, target: PixelSize?, options: DecodeOptions = DecodeOptions(),
        limits: ImageLimits = .standard, cancellation: CancellationToken = CancellationToken()
    ) {
        self.info = info
        self.target = target
        self.options = options
        self.limits = limits
        self.cancellation = cancellation
    }

    /// The number of stored pixels per pixel of the result, along the side with fewer; at least 1. It is 1 if
    /// ``target`` is nil.
    package var reduction: Double { reduction(of: info.storedSize) }
}

/// Turns bytes into samples. Synchronous and blocking: the library calls it off the cooperative pool.
package protocol ImageDecoding: Sendable {
    /// The formats it reads.
    var formats: Set<ImageFormat> { get }
    /// The library it calls; nil, the default, for a decoder of this package.
    var library: String? { get }

    /// Decodes one frame at the requested size or above.
    ///
    /// - Throws: ``ImageError/unsupported(input:reason:)`` for a variety it does not read, whereupon the next decoder
    ///   of the format is asked; any other ``ImageError`` ends the decode.
    func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage

    /// Opens an animation to decode its frames in order; see the default.
    func frames(of source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> any FrameDecoding

    /// Loads the libraries that are otherwise loaded by the first ``decode(_:_:)``. A worker calls it before it enters
    /// its sandbox, which allows no loading. Does nothing by default.
    func loadLibraries()
}

extension ImageDecoding {
    package func loadLibraries() {}
}

extension ImageDecoding {
    package var library: String? { nil }
}

extension DecodeRequest {
    /// ``reduction`` for an image stored with `size`, by a parser other than the one that read ``info``.
    package func reduction(of size: PixelSize) -> Double {
        guard let target, !target.isEmpty else { return 1 }
        return max(1, min(Double(size.width) / Double(target.width), Double(size.height) / Double(target.height)))
    }

    /// Whether the decoder may reduce by `factor`, at which its samples are means of pixels. Edges of an image may be
    /// cut from one more pixel.
    package func acceptsMeans(of factor: Double) -> Bool { options.acceptsMeans && reduction >= 0.98 * factor }

    /// The side of the blocks to average of an image stored with `size`, which leaves at least twice the target.
    package func blockSide(for size: PixelSize) -> Int { max(1, Int(reduction(of: size) / 2)) }
}

/// Decoders of one format, in the order in which they are asked.
extension [any ImageDecoding] {
    /// Decodes by the first one that does not call the file unsupported.
    ///
    /// - Throws: The error of the last decoder that was called, or ``ImageError/limitExceeded(input:limit:actual:allowed:)``
    ///   if decoders would keep more pixels than the limits allow.
    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        try request.checkKeptPixels(input: source.name)
        return try first(for: source, reason: "this build has no decoder for \(request.info.format)") {
            decoder throws(ImageError) in try decoder.decode(source, request)
        }
    }

    /// Opens an animation by the first one that does not call it unsupported.
    ///
    /// - Throws: The error of the last decoder that was called.
    package func frames(of source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> any FrameDecoding {
        try first(for: source, reason: "this build has no decoder for animated \(request.info.format)") {
            decoder throws(ImageError) in try decoder.frames(of: source, request)
        }
    }

    /// - Parameter reason: Why there is no result if there is no decoder.
    private func first<R>(
        for source: ByteSource, reason: String, _ body: (any ImageDecoding) throws(ImageError) -> R
    ) throws(ImageError) -> R {
        var refusal = ImageError.unsupported(input: source.name, reason: reason)
        for decoder in self {
            do throws(ImageError) {
                return try body(decoder)
            } catch {
                guard case .unsupported = error else { throw error }
                refusal = error
            }
        }
        throw refusal
    }
}
