import Foundation
package import Hummingbird
package import HummingbirdCore
package import Logging
import Synchronization
import VitrineFleet

/// The image server as routes of a Hummingbird application.
///
/// ```swift
/// var configuration = ServerConfiguration()
/// configuration.localRoot = "/srv/pictures"
/// let images = try ImageRoutes(configuration)
/// let router = Router(context: ImageRequestContext.self)
/// router.addImages(images, at: "/images")
/// ```
///
/// Below the mount are the URLs of the program `vitrine-server`: `/images/SIGNATURE/OPTIONS…/plain/URL@EXTENSION`,
/// `/images/thumbor/…`, `/images/info/…`, and `/images/health`. Signatures are of the path without the mount. Without
/// ``ServerConfiguration/keys``, URLs need no signature on any address of the application.
///
/// Decoders run in processes of the helper programs `vitrine-worker`, `vitrine-pdf`, `vitrine-video` and `vitrine-text`,
/// which lie beside the application's program.
public final class ImageRoutes: ImageAnswering {
    private struct Current: Sendable {
        let backend: ServerBackend
        let service: ImageService<ServerBackend>

        init(
            _ configuration: ServerConfiguration, observation: ServerObservation, continuing old: Renderer?,
            shared: SharedParts
        ) throws {
            var rendering = try configuration.rendering { observation.received($0) }
            rendering.sources.buckets = shared.buckets
            backend = try ServerBackend(configuration, Renderer(rendering, continuing: old, remote: shared.results))
            var http = try configuration.http()
            http.observe = { observation.observe($0) }
            service = ImageService(backend, configuration: http)
        }
    }

    private let current: Mutex<Current>
    private let observation: ServerObservation
    private let shared: SharedParts

    /// Creates the images.
    ///
    /// - Throws: ``ConfigurationError`` for values that contradict each other, for presets that no URL could use, and
    ///   for files and directories that cannot be used.
    public convenience init(_ configuration: ServerConfiguration) throws {
        try configuration.validate()
        try configuration.checkFiles()
        try self.init(configuration, observation: ServerObservation(ServerMetrics()), logger: Logger(label: "vitrine"))
    }

    package init(
        _ configuration: ServerConfiguration, observation: ServerObservation, logger: Logger
    ) throws {
        let shared = try SharedParts(configuration, logger)
        let first = try Current(configuration, observation: observation, continuing: nil, shared: shared)
        observation.watch(first.backend.renderer)
        self.observation = observation
        self.shared = shared
        current = Mutex(first)
        shared.results?.follow { [weak self] invalidation in
            guard let self, await !renderer.apply(invalidation) else { return }
            logger.error("A purge by another node could not be applied to the disk")
        }
    }

    /// Completes writes to the tier and the store, for some seconds.
    package func end() async { await shared.results?.shutDown() }

    /// The service in use.
    package var service: ImageService<ServerBackend> { current.withLock { $0.service } }
    /// The backend in use.
    var backend: ServerBackend { current.withLock { $0.backend } }
    /// The renderer in use.
    package var renderer: Renderer { current.withLock { $0.backend.renderer } }

    /// Applies a configuration to requests that follow: keys, presets, limits, and the fields of answers. The caches
    /// and the work under way go on.
    ///
    /// - Throws: As ``init(_:)``. An error changes nothing.
    public func reload(_ configuration: ServerConfiguration) throws {
        try configuration.validate()
        try configuration.checkFiles()
        let new = try Current(configuration, observation: observation, continuing: renderer, shared: shared)
        current.withLock { $0 = new }
        shared.results?.tier?.authenticate(by: configuration.tierSecrets)
        observation.watch(new.backend.renderer)
    }

    package func respond<Context: RequestContext>(
        to request: Request, mountLength: Int, context: Context
    ) async -> Response {
        await service.respond(to: request, mountLength: mountLength, context: context)
    }

    /// Removes the results of a source and its stored bytes. Work under way for it does not store its results.
    ///
    /// - Parameter address: The address as in a URL, not percent-encoded.
    /// - Returns: The number of removed results.
    /// - Throws: 400 for an address that is not loaded, 500 if the disk cannot be changed.
    @discardableResult
    public func purge(source address: String) async throws(RequestError) -> Int {
        try await renderer.purge(source: address)
    }

    /// Removes the results of the sources whose addresses begin with a text, like ``purge(source:)``.
    ///
    /// - Parameter prefix: A scheme, a host and up to 6 directories with a slash at the end, for example
    ///   `https://example.org/pictures/` or `local:///a/`.
    /// - Throws: 400 for another text, 500 if the disk cannot be changed.
    @discardableResult
    public func purge(prefix: String) async throws(RequestError) -> Int { try await renderer.purge(prefix: prefix) }

    /// Removes the results of the sources whose servers named a tag in `Surrogate-Key` or `Cache-Tag`, like
    /// ``purge(source:)``. Of a source, its first 8 tags count.
    ///
    /// - Throws: 400 for a text that is no tag, 500 if the disk cannot be changed.
    @discardableResult
    public func purge(tag: String) async throws(RequestError) -> Int { try await renderer.purge(tag: tag) }

    /// Removes all results, and the stored bytes of all sources.
    ///
    /// - Returns: The number of removed results.
    @discardableResult
    public func purgeAll() async throws(RequestError) -> Int { try await renderer.purgeAll() }

    package func purge(_ request: PurgeRequest) async throws(RequestError) -> Int {
        switch request {
        case .source(let address): try await purge(source: address)
        case .prefix(let beginning): try await purge(prefix: beginning)
        case .tag(let tag): try await purge(tag: tag)
        case .all: try await purgeAll()
        }
    }

    /// Work under way, for `/debug`.
    package var facts: [String: SettingValue] {
        let (renders, loads) = (renderer.admission.renders, renderer.admission.loads)
        return [
            "renders_waiting": .integer(renders.waiting), "renders_running": .integer(renders.running),
            "loads_waiting": .integer(loads.waiting), "loads_running": .integer(loads.running),
            "tier": .text(renderer.remote?.status ?? "off"),
        ]
    }
}

extension ServerCommand.Parts {
    /// The image server.
    package static let images = ServerCommand.Parts(
        hooks: { configuration, metrics, logger in
            let images = try ImageRoutes(configuration, observation: ServerObservation(metrics), logger: logger)
            let gallery = configuration.gallery ? try Gallery(configuration, images) : nil
            let responder = ImageResponder(images, context: ServerRequestContext.self)
            var hooks = ImageServer.Hooks(
                responder: responder,
                immediate: { images.service.immediate($0) },
                purge: { try await images.purge($0) },
                reload: { configuration in
                    try images.reload(configuration)
                    try gallery?.reload(configuration, images)
                },
                facts: { images.facts })
            if let gallery {
                hooks.responder = GalleryResponder(gallery: gallery, images: responder)
                hooks.stop = { gallery.stop() }
            }
            hooks.end = { await images.end() }
            return hooks
        },
        explain: { path, configuration in
            Explanation(path: path, native: try configuration.grammar()).json
        },
        warm: { try await WarmCommand(arguments: $0, environment: $1).run() })
}
