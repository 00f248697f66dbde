// The snippets of Documentation/Fleet.md, which Scripts/check-snippets compares. They are compiled and not run.
import NIOCore
import VitrineFleet

/// The application of the guide.
private protocol Application {
    func render() async throws -> ByteBuffer
    func store(_ image: ByteBuffer, under lease: Lease) async throws
    func keepLocally(_ image: ByteBuffer)
    func serve(_ image: ByteBuffer)
}

extension Application {
    private func answer(source: String, options: String) async throws {
        let redis = try RedisConfiguration(url: "rediss://images:PASSWORD@cache.internal:6379")
        let tier = try RemoteTier(.init(redis: redis, namespace: "images"))

        switch await tier.lookup(RemoteKey(group: source, name: options)) {
        case .value(let value, let refresh):
            serve(value.contents)
            if let refresh { try await store(render(), under: refresh) }
        case .lease(let lease):
            let image = try await render()
            if !lease.isRevoked { keepLocally(image) }
            lease.store(image, contentType: "image/webp", freshFor: .seconds(3_600), staleFor: .seconds(600))
        case .bypass:
            serve(try await render())
        }
    }
}

/// The images that a node of the guide keeps.
private protocol Results {
    func remove(_ key: RemoteKey) async
    func removeAll(tag: String) async throws
    func removeAll() async throws
}

private func follow(_ tier: RemoteTier, _ results: some Results) async throws {
    for await invalidation in tier.invalidations {
        switch invalidation {
        case .key(let key): await results.remove(key)
        case .group(let digest): try await results.removeAll(tag: digest)
        case .tag(let digest): try await results.removeAll(tag: digest)
        case .all: try await results.removeAll()
        }
    }
}
