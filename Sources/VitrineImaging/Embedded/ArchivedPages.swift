import VitrineContainers
import VitrineImageCore
import VitrineWorkers

/// Pages of comics that are compressed in archives, which `vitrine-worker` opens.
enum ArchivedPages {
    /// The file of a page, counted from 0; no bytes if there are fewer pages.
    static func page(_ number: Int, of source: ByteSource, _ limits: ImageLimits) throws(ImageError) -> [UInt8] {
        try WorkerPool.shared.describe(source, parameters: ArchivePages.parameters(page: number), limits: limits)
    }

    /// The pictures without damaged pages before the first sound one.
    ///
    /// - Throws: The error of the archive, or that there is no worker, as the first compressed page tells.
    static func opened(
        _ found: EmbeddedPictures, _ reader: ByteReader, _ limits: ImageLimits
    ) throws(ImageError) -> EmbeddedPictures {
        var found = found
        var failure: ImageError?
        while case .archived(let number)? = found.pictures.first?.content {
            do throws(ImageError) {
                let bytes = try page(number, of: reader.source, limits)
                guard !bytes.isEmpty else { return EmbeddedPictures() }
                found.pictures[0].content = .bytes(bytes)
                break
            } catch {
                guard error.concernsBytes else { throw error }
                failure = failure ?? error
                found.pictures.removeFirst()
            }
        }
        if found.pictures.isEmpty, let failure { throw failure }
        return found
    }
}
