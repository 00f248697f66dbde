#if os(Linux)
import Synchronization
import Testing
import VitrineServer

/// Objects that something still references.
private final class Remnants: Sendable {
    private struct Remnant: Sendable {
        let name: String
        weak var object: (any AnyObject & Sendable)?
    }

    private let remnants = Mutex<[Remnant]>([])

    func add(_ name: String, _ object: any AnyObject & Sendable) {
        remnants.withLock { $0.append(Remnant(name: name, object: object)) }
    }

    var names: [String] { remnants.withLock { $0.filter { $0.object != nil }.map(\.name) } }
}

/// Parts of servers, each of which has threads, descriptors and memory of its own.
@Suite struct ReleaseTests {
    @Test func stoppedServersReleaseTheirParts() async throws {
        let origin = try await Origin.samples()
        let remnants = Remnants()
        try await RunningServer.run { (server: RunningServer) async throws in
            remnants.add("server", server.server)
            remnants.add("backend", server.backend)
            remnants.add("renderer", server.renderer)
            #expect(try await server.get(origin.url("lake.jpg")).status == 200)
        }
        try await eventually("the parts are released") { remnants.names.isEmpty }
    }

    @Test func routesReleaseTheRenderersThatTheyNoLongerUse() async throws {
        let remnants = Remnants()
        do {
            var configuration = ServerConfiguration()
            configuration.localRoot = Samples.directory
            let images = try ImageRoutes(configuration)
            for quality in [60, 70, 80] {
                let url = RenderingFixture.url("local:///lake.jpg") { $0.width = quality }
                #expect(try await images.renderer.image(for: url).origin == .made)
                remnants.add("renderer of quality \(quality)", images.renderer)
                configuration.quality = quality
                try images.reload(configuration)
            }
            remnants.add("last renderer", images.renderer)
            try await eventually("earlier renderers are released") { remnants.names == ["last renderer"] }
        }
        try await eventually("the last renderer is released") { remnants.names.isEmpty }
    }
}
#endif
