import TestSupport
import VitrineCache
import VitrineCore

/// A cache in a directory of its own, with a memory pressure of its own.
struct CacheFixture: Sendable {
    let directory: TemporaryDirectory
    let cache: ValueCache<String>

    init() throws {
        directory = try TemporaryDirectory()
        var configuration = CacheConfiguration(root: directory.path)
        configuration.memoryPressure = MemoryPressure()
        cache = ValueCache(name: "test", configuration: configuration)
    }
}

/// The code of the cache error a body throws; nil if it throws none.
func code(of body: () async throws -> Void) async -> Int? {
    do {
        try await body()
        return nil
    } catch {
        return (error as? CacheError)?.code
    }
}
