public import VitrineCore

extension ImageInfo {
    /// Reads the header of `input` and no pixels. Blocks, usually for some microseconds and a few KiB of reading.
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
    ///   ``ImageLimits/deadline`` seconds, or ``ImageError/cancelled(input:)``.
    public init(
        of input: ImageInput, limits: ImageLimits = .standard, cancellation: CancellationToken = CancellationToken()
    ) throws(ImageError) {
        let source = try ByteSource(input)
        self = try ImageHeader.read(source, limits, cancellation).info
    }

    /// Reads the header of an opened input within the deadline of the caller; see ``init(of:limits:cancellation:)``.
    package init(reading source: ByteSource, limits: ImageLimits = .standard) throws(ImageError) {
        self = try ImageHeader(ByteReader(source), limits).info
    }
}

extension ImageHeader {
    /// Reads the header of an opened input within the deadline of `limits`.
    package static func read(
        _ source: ByteSource, _ limits: ImageLimits, _ cancellation: CancellationToken
    ) throws(ImageError) -> ImageHeader {
        try Deadline.run(seconds: limits.deadline, input: source.name, cancellation: cancellation) {
            token throws(ImageError) in
            try ImageHeader(ByteReader(ByteSource(source, polling: token)), limits)
        }
    }

    /// Finds the format by content and reads its header.
    package init(_ reader: ByteReader, _ limits: ImageLimits, codecs: Codecs = .standard) throws(ImageError) {
        guard reader.count > 0 else { throw .empty(input: reader.name) }
        if let decoder = try RegisteredDecoders.shared.decoder(recognizing: reader) {
            self = try decoder.header(reader, limits)
        } else {
            guard let format = try codecs.format(of: reader) else { throw codecs.unrecognized(reader.name) }
            let codec = codecs[format]
            if let locator = codec?.locator {
                self = try ImageHeader(held: locator, format, reader, limits)
            } else if let header = codec?.header {
                self = try header.read(reader, limits)
            } else {
                throw .notAnImage(input: reader.name)
            }
        }
        // Readers pass over damage, and so over reads that failed because the time is over.
        try reader.source.poll()
        guard !info.storedSize.isEmpty else { throw reader.corrupt("a side of zero pixels") }
        sortPreviews()
    }
}
