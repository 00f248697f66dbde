import VitrineCore
import VitrineImageCore

extension RecordingCover {
    /// Finds in this process the image of a recording or a video.
    ///
    /// - Parameters:
    ///   - source: The recording.
    ///   - kind: The subject of the image. Without such an image the front cover is taken, then one of no
    ///     particular kind, then any, icons last.
    ///   - limits: The deadline of the search, and bounds on the image.
    ///   - cancellation: Stops the search.
    /// - Returns: nil if the input has no image that can be read, or is no recording.
    /// - Throws: ``ImageError/unreadable(input:reason:)``, ``ImageError/timedOut(input:)`` and
    ///   ``ImageError/cancelled(input:)`` only: damage ends the search.
    package init?(
        of source: ByteSource, preferring kind: Kind = .front, limits: ImageLimits = .standard,
        cancellation: CancellationToken = CancellationToken()
    ) throws(ImageError) {
        let cover = try Deadline.run(seconds: limits.deadline, input: source.name, cancellation: cancellation) {
            token throws(ImageError) in
            try RecordingCover(in: ByteReader(ByteSource(source, polling: token)), preferring: kind, limits)
        }
        guard let cover else { return nil }
        self = cover
    }

    /// Finds the image within the deadline of the caller.
    init?(in reader: ByteReader, preferring kind: Kind, _ limits: ImageLimits) throws(ImageError) {
        for media in Codecs.standard.media {
            for found in try media.pictures(reader, preferring: kind) {
                guard let held = HeldPicture(found.picture, in: reader, limits: limits, archive: nil) else { continue }
                self.init(kind: found.kind, bytes: try held.source.allBytes())
                return
            }
        }
        return nil
    }
}
