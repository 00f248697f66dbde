import Foundation
import Hummingbird
package import HummingbirdCore
import Synchronization

/// The images of a configuration, which a reload replaces as a whole: keys, presets, limits, and the fields of answers.
/// The caches and the work under way go on.
package final class ReloadableImages: HTTPResponder {
    package typealias Context = ServerRequestContext

    private struct Current: Sendable {
        let backend: ServerBackend
        let service: ImageService<ServerBackend>

        init(
            _ configuration: ServerConfiguration, _ observation: ServerObservation, continuing old: Renderer?
        ) throws {
            let rendering = try configuration.rendering { observation.received($0) }
            backend = try ServerBackend(configuration, Renderer(rendering, continuing: old))
            var http = try configuration.http()
            http.observe = { observation.observe($0) }
            service = ImageService(backend, configuration: http)
        }
    }

    private let current: Mutex<Current>
    private let observation: ServerObservation

    /// - Throws: ``ConfigurationError`` for presets that no URL could use, and for a picture that cannot be read.
    package init(_ configuration: ServerConfiguration, _ observation: ServerObservation) throws {
        let first = try Current(configuration, observation, continuing: nil)
        observation.watch(first.backend.renderer)
        self.observation = observation
        current = Mutex(first)
    }

    /// The service in use.
    package var service: ImageService<ServerBackend> { current.withLock { $0.service } }
    /// The renderer in use.
    package var renderer: Renderer { current.withLock { $0.backend.renderer } }

    /// Applies a configuration to requests that follow. An error changes nothing.
    package func reload(_ configuration: ServerConfiguration) throws {
        let new = try Current(configuration, observation, continuing: renderer)
        current.withLock { $0 = new }
        observation.watch(new.backend.renderer)
    }

    package func respond(to request: Request, context: ServerRequestContext) async -> Response {
        await service.respond(to: request, mountLength: 0, context: context)
    }

    /// Removes results and the bytes of their sources. Returns the number of results.
    package func purge(_ request: PurgeRequest) async throws(RequestError) -> Int {
        let renderer = renderer
        return switch request {
        case .source(let address): try await renderer.purge(source: address)
        case .prefix(let beginning): try await renderer.purge(prefix: beginning)
        case .tag(let tag): try await renderer.purge(tag: tag)
        case .all: try await renderer.purgeAll()
        }
    }

    /// Work under way, for `/debug`.
    package var facts: [String: SettingValue] {
        let (renders, loads) = (renderer.admission.renders, renderer.admission.loads)
        return [
            "renders_waiting": .integer(renders.waiting), "renders_running": .integer(renders.running),
            "loads_waiting": .integer(loads.waiting), "loads_running": .integer(loads.running),
        ]
    }
}

extension ServerCommand.Parts {
    /// The image server.
    package static let images = ServerCommand.Parts(
        hooks: { configuration, metrics, _ in
            let images = try ReloadableImages(configuration, ServerObservation(metrics))
            return ImageServer.Hooks(
                responder: images, immediate: { images.service.immediate($0) },
                purge: { try await images.purge($0) }, reload: { try images.reload($0) },
                facts: { images.facts })
        },
        explain: { path, configuration in
            Explanation(path: path, native: try configuration.grammar()).json
        })
}
