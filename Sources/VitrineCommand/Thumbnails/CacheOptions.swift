import ArgumentParser
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// Which caches the command uses.
struct CacheOptions: ParsableArguments {
    @Flag(help: "Make every thumbnail anew, and keep none.")
    var noCache = false

    @Flag(help: "Also use the thumbnails that file managers keep, and give them those made here.")
    var desktop = false

    func validate() throws {
        if noCache, desktop { throw ValidationError("--no-cache and --desktop exclude each other") }
    }

    /// A service that uses them.
    ///
    /// - Parameters:
    ///   - name: What the service's caches are told apart by; see ``ImagePipeline/Configuration/name``.
    ///   - root: The directory they are in.
    func service(name: String? = nil, root: String? = nil) -> ImagePipeline {
        var configuration = ImagePipeline.Configuration(name: name, root: root)
        configuration.usesMemoryCache = false
        configuration.usesDiskCache = !noCache
        configuration.memoryPressure = nil
        if desktop { configuration.shared = RecordedThumbnails(DesktopThumbnails()) }
        return ImagePipeline(configuration)
    }
}

/// Where a thumbnail came from.
enum ThumbnailOrigin: String, Sendable, Encodable {
    /// From the cache on disk.
    case disk
    /// From the cache of file managers.
    case desktop
    /// From the file itself, or from a larger thumbnail of it.
    case made
}

/// The desktop's thumbnails, with a note of those that were used.
final class RecordedThumbnails: ExternalThumbnailCache {
    private struct Use: Hashable {
        let identity: CacheKey
        let size: PixelSize
    }

    private let thumbnails: DesktopThumbnails
    private let uses = Locked<Set<Use>>([])

    init(_ thumbnails: DesktopThumbnails) { self.thumbnails = thumbnails }

    func thumbnail(of source: any ImageSource, for request: RenderRequest) -> Image? {
        guard let image = thumbnails.thumbnail(of: source, for: request) else { return nil }
        if let identity = try? source.identity() {
            uses.withLock { _ = $0.insert(Use(identity: identity, size: request.size)) }
        }
        return image
    }

    func store(_ image: Image, of source: any ImageSource, for request: RenderRequest) {
        thumbnails.store(image, of: source, for: request)
    }

    /// Whether a request's thumbnail came from the desktop.
    func gave(_ request: ImageRequest) -> Bool {
        guard let identity = try? request.source.identity() else { return false }
        return uses.withLock { $0.contains(Use(identity: identity, size: request.pixelSize)) }
    }
}
