import VitrineCore

/// One of the successive images of a file that is still arriving.
public struct ProgressiveImage: Sendable {
    /// The part of the file that an image was made from.
    public enum Stage: Sendable, Hashable, Comparable {
        /// The small image that a camera stored in the file.
        case embeddedPreview
        /// The scans or rows that have arrived.
        case partial
        /// The whole file; the last image of every sequence that does not throw.
        case complete
    }

    /// The image.
    public var image: PixelImage
    /// The part of the file that it was made from.
    public var stage: Stage
    /// The number of bytes that had arrived.
    package var byteCount: Int
}

extension ImageDecoder {
    /// Returns successive images of a file, each better than the last, while its bytes arrive.
    ///
    /// ```swift
    /// for try await arriving in decoder.images(arrivingIn: chunks, at: .fit(800)) {
    ///     show(arriving.image)
    /// }
    /// ```
    ///
    /// - The first image is the preview that a camera stored in the file, if it has the shape of the image.
    /// - A progressive JPEG follows at an eighth of its resolution after about a twentieth of its bytes, then with
    ///   every scan. Any other JPEG follows with the rows that have arrived; those below are transparent.
    /// - The last image is always ``ProgressiveImage/Stage/complete``.
    ///
    /// All have the size of `resizer`; with ``ImageResizer/none``, earlier ones have the size of their decode. A
    /// consumer slower than the network misses images in between, never the last. Ending the iteration, or cancelling
    /// the task that iterates, stops the decoders and the reading of `chunks`.
    ///
    /// - Parameters:
    ///   - chunks: The bytes of the file in order, in pieces of any size. Their sum is bounded by
    ///     ``ImageLimits/maximumInputBytes``.
    ///   - name: The name of the input in errors.
    ///   - resizer: The size and mode of the images.
    ///   - options: As in ``image(from:at:options:)``.
    /// - Returns: A sequence that throws the errors of `chunks`, or ``ImageError``.
    public func images<Chunks: AsyncSequence & Sendable>(
        arrivingIn chunks: Chunks, name: String = "stream", at resizer: ImageResizer = .none,
        options: DecodeOptions = DecodeOptions()
    ) -> AsyncThrowingStream<ProgressiveImage, any Error> where Chunks.Element == [UInt8] {
        AsyncThrowingStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let token = CancellationToken()
            let task = Task {
                var arrival = ImageArrival(
                    decoder: self, name: name, resizer: resizer, options: options, cancellation: token)
                do {
                    for try await chunk in chunks {
                        try await arrival.append(chunk)
                        while let image = try await arrival.next() { continuation.yield(image) }
                    }
                    try Task.checkCancellation()
                    continuation.yield(try await arrival.complete())
                    continuation.finish()
                } catch ImageError.cancelled {
                    continuation.finish(throwing: CancellationError())
                } catch {
                    continuation.finish(throwing: error)
                }
            }
            continuation.onTermination = { _ in
                task.cancel()
                token.cancel()
            }
        }
    }
}
