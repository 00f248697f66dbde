public import VitrineCore

extension ImageInfo {
    /// Reads the header of `input` and no pixels, where ``Isolation/standard`` says.
    ///
    /// Blocks, usually for some microseconds and a few KiB of reading. A worker takes a tenth of a millisecond, and its
    /// start tens of them.
    ///
    /// Only the deadline and the limits of profiles and documents apply here. ``ImageDecoder`` checks all others before
    /// it decodes.
    ///
    /// - Parameters:
    ///   - input: A file or bytes.
    ///   - limits: Bounds on the work.
    ///   - cancellation: Stops the reading.
    /// - Throws: ``ImageError/unreadable(input:reason:)``, ``ImageError/empty(input:)``,
    ///   ``ImageError/notAnImage(input:)``, ``ImageError/corrupt(input:reason:)``, ``ImageError/truncated(input:)``,
    ///   ``ImageError/timedOut(input:)`` after
    ///   ``ImageLimits/deadline`` seconds, ``ImageError/workerFailed(input:reason:)``, or
    ///   ``ImageError/cancelled(input:)``.
    public init(
        of input: ImageInput, limits: ImageLimits = .standard, cancellation: CancellationToken = CancellationToken()
    ) throws(ImageError) {
        self = try ImageDecoder(limits: limits).header(of: ByteSource(input), cancellation: cancellation).info
    }

    /// Reads in this process the header of an opened input, within the deadline of the caller; see
    /// ``init(of:limits:cancellation:)``.
    package init(reading source: ByteSource, limits: ImageLimits = .standard) throws(ImageError) {
        self = try InputReader().header(of: source, limits: limits).info
    }
}
