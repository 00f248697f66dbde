import VitrineCore

extension RecordingCover {
    /// Finds the picture of a recording or a film.
    ///
    /// - Parameters:
    ///   - source: The recording.
    ///   - kind: The subject of the picture. Without such a picture the front cover is taken, then one of no
    ///     particular kind, then any, icons last.
    ///   - limits: The deadline of the search, and bounds on the picture.
    ///   - cancellation: Stops the search.
    ///   - picture: Opens a picture that the recording names; nil for one of no known format.
    /// - Returns: nil if the input has no picture that can be read, or is no recording.
    /// - Throws: ``ImageError/unreadable(input:reason:)``, ``ImageError/timedOut(input:)`` and
    ///   ``ImageError/cancelled(input:)`` only: damage ends the search.
    init?(
        of source: ByteSource, preferring kind: Kind, limits: ImageLimits, cancellation: CancellationToken,
        picture: (EmbeddedPicture, ByteReader, ImageLimits) -> HeldPicture?
    ) throws(ImageError) {
        let cover = try Deadline.run(seconds: limits.deadline, input: source.name, cancellation: cancellation) {
            token throws(ImageError) -> RecordingCover? in
            let reader = ByteReader(ByteSource(source, polling: token))
            for media in Codecs.standard.media {
                for found in try media.pictures(reader, preferring: kind) {
                    guard let held = picture(found.picture, reader, limits) else { continue }
                    return RecordingCover(kind: found.kind, bytes: try held.source.allBytes())
                }
            }
            return nil
        }
        guard let cover else { return nil }
        self = cover
    }
}
