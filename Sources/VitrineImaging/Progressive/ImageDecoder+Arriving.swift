import VitrineCore

extension ImageDecoder {
    /// Better and better pictures of a file while its bytes arrive.
    ///
    /// ```swift
    /// for try await arriving in decoder.images(arrivingIn: chunks, at: .fit(800)) {
    ///     show(arriving.image)
    /// }
    /// ```
    ///
    /// The first is the preview a camera stored in the file, if it has the picture's shape. A progressive JPEG follows
    /// with an eighth of its resolution after about a twentieth of its bytes, then with every scan; any other JPEG with
    /// the rows that are there. The last one is always ``ProgressiveImage/Stage/complete``. All have the size `resizer`
    /// asks for; with ``ImageResizer/none`` the earlier ones have the size they were decoded at.
    ///
    /// A consumer that is slower than the network misses pictures in between, never the last. Ending the iteration, or
    /// cancelling the task that iterates, stops the decoders and the reading of `chunks`.
    ///
    /// - Parameters:
    ///   - chunks: The bytes of the file in order, in pieces of any size. Their sum is bounded by
    ///     ``ImageLimits/maximumInputBytes``.
    ///   - name: What errors call the input.
    ///   - resizer: The size and mode of the pictures.
    ///   - options: As in ``image(from:at:options:)``.
    /// - Returns: A sequence that throws what `chunks` throws, or ``ImageError``.
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
