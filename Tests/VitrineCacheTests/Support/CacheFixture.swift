import TestSupport
import VitrineCache
import VitrineCore

/// A cache in a directory of its own, with a clock that stands still and a memory pressure of its own.
struct CacheFixture<Value: CacheableValue>: Sendable {
    let directory: TemporaryDirectory
    let clock = ManualClock()
    let pressure = MemoryPressure()
    let cache: ValueCache<Value>

    init(name: String = "test", _ change: (inout CacheConfiguration) -> Void = { _ in }) throws {
        directory = try TemporaryDirectory()
        var configuration = CacheConfiguration(root: directory.path)
        configuration.clock = .following(clock, from: .seconds(1_000_000))
        configuration.memoryPressure = pressure
        change(&configuration)
        cache = ValueCache(name: name, configuration: configuration)
    }

    /// Another cache on the same directory: another process, as far as memory is concerned.
    func another(name: String = "test", _ change: (inout CacheConfiguration) -> Void = { _ in }) -> ValueCache<Value> {
        var configuration = cache.configuration
        change(&configuration)
        return ValueCache(name: name, configuration: configuration)
    }
}

/// What a test's source throws.
struct SourceFailure: Error, Equatable {}

/// A value that lives in an object, for the index of what is alive elsewhere.
final class Portrait: Sendable {
    let text: String
    init(_ text: String) { self.text = text }
}

struct Portrayed: CacheableValue {
    let portrait: Portrait

    init(_ text: String) { portrait = Portrait(text) }
    init(cacheBytes: [UInt8]) throws { portrait = Portrait(try String(cacheBytes: cacheBytes)) }
    private init(_ portrait: Portrait) { self.portrait = portrait }
    func cacheBytes() -> [UInt8] { Array(portrait.text.utf8) }
    var cacheCost: Int { 100 }

    static var weakReference: (@Sendable (Portrayed) -> (@Sendable () -> Portrayed?)?)? {
        { value in { [weak portrait = value.portrait] in portrait.map { Portrayed($0) } } }
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
