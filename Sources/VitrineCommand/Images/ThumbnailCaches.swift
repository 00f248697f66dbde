import ArgumentParser
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// The options for the caches of thumbnails.
struct CacheOptions: ParsableArguments {
    @Flag(help: "Neither read nor fill the cache of thumbnails.")
    var noCache = false

    @Flag(help: "Also read and fill the thumbnail cache of file managers.")
    var desktop = false

    func validate() throws {
        if noCache, desktop { throw ValidationError("use either --no-cache or --desktop") }
    }

    /// Returns a pipeline that uses these caches.
    ///
    /// - Parameters:
    ///   - name: The name of the cache; see ``ImagePipeline/Configuration/name``.
    ///   - root: The directory of the caches.
    func service(name: String? = nil, root: String? = nil) -> ImagePipeline {
        var configuration = ImagePipeline.Configuration(name: name, root: root)
        configuration.usesMemoryCache = false
        configuration.usesDiskCache = !noCache
        // Each entry is read once, and the pages of many would stay.
        configuration.mapsDiskCache = false
        configuration.memoryPressure = nil
        configuration.limits = CommandLimits.current
        if desktop { configuration.externalThumbnails = RecordedThumbnails(DesktopThumbnails()) }
        return ImagePipeline(configuration)
    }
}

/// The origin of a thumbnail.
enum ThumbnailOrigin: String, Sendable, Encodable {
    /// From the cache on disk.
    case disk
    /// From the cache of file managers.
    case desktop
    /// From the file itself, or from a larger thumbnail of it.
    case made
}

/// The thumbnails of file managers. It records which requests they answered.
final class RecordedThumbnails: ExternalThumbnailCache {
    private struct Use: Hashable {
        let identity: CacheKey
        let size: PixelSize
    }

    private let thumbnails: DesktopThumbnails
    private let uses = Locked<Set<Use>>([])

    init(_ thumbnails: DesktopThumbnails) { self.thumbnails = thumbnails }

    func thumbnail(of source: any ImageSource, for request: RenderRequest) -> PixelImage? {
        guard let image = thumbnails.thumbnail(of: source, for: request) else { return nil }
        if let identity = (try? source.identityBlocking()) ?? nil {
            uses.withLock { _ = $0.insert(Use(identity: identity, size: request.size)) }
        }
        return image
    }

    func store(_ image: PixelImage, of source: any ImageSource, for request: RenderRequest) {
        thumbnails.store(image, of: source, for: request)
    }

    /// Whether the thumbnail of a request came from the cache of file managers.
    func gave(_ request: ImageRequest) -> Bool {
        guard let identity = (try? request.source.identityBlocking()) ?? nil else { return false }
        return uses.withLock { $0.contains(Use(identity: identity, size: request.pixelSize)) }
    }
}
