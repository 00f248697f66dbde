import VitrineCore

/// Decodes plain HEIC pictures tile by tile in the helper `vitrine-video`, by the HEVC decoder of libavcodec.
///
/// The helper averages blocks of each tile at once, so that the whole picture is never in memory, and it decodes only
/// the tiles of a region. This takes about a third of the processor time of libheif with libde265.
///
/// Everything else is left to the next decoder, libheif in the worker:
///
/// - pictures that ``HEICTiles`` does not describe, and later pictures of a file
/// - files that end early
/// - systems without the helper, and its errors, except for an expired deadline and a cancellation
package struct TiledHEICDecoder: ImageDecoding {
    package let formats: Set<ImageFormat> = [.heic]
    /// False: it runs in a helper already.
    package var needsIsolation: Bool { false }
    private let pool: WorkerPool

    /// - Parameter pool: Processes of `vitrine-video`.
    package init(pool: WorkerPool = .video) { self.pool = pool }

    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        guard pool.isAvailable else { throw Self.refusal(source, "the helper is not installed") }
        guard request.page == 0 else { throw Self.refusal(source, "a later picture") }
        // Before a helper is started for it.
        let container: HEIFContainer
        let tiles: HEICTiles
        do throws(ImageError) {
            container = try HEIFContainer(ByteReader(source))
            tiles = try HEICTiles(container, limits: request.limits)
        } catch {
            throw Self.refusal(source, error.reason)
        }
        guard tiles.shown.size == request.info.storedSize else { throw Self.refusal(source, "another size") }
        var job = request
        // The next decoder knows how to fill a picture that ends early.
        job.allowPartial = false
        do throws(ImageError) {
            return try pool.decode(source, job)
        } catch {
            switch error {
            case .cancelled, .timedOut: throw error
            default: throw Self.refusal(source, error.reason)
            }
        }
    }

    private static func refusal(_ source: ByteSource, _ reason: String) -> ImageError {
        .unsupported(input: source.name, reason: reason)
    }
}

extension WorkerPool {
    /// The processes of `vitrine-video` of this process, one for each processor at most: frames of videos, and tiles of
    /// HEIC pictures.
    package static let video = WorkerPool(program: "vitrine-video")
}
