import Foundation
import TestSupport
import VitrineCache
import VitrineCore
import VitrineViews

/// A target without a toolkit: remembers what it was told to show.
@MainActor
final class HeadlessTarget<Value: Sendable>: ImageTarget {
    private(set) var shown: [(value: Value?, transition: ImageTransition)] = []
    var targetGeometry: TargetGeometry?

    func show(_ image: Value?, transition: ImageTransition) { shown.append((image, transition)) }

    /// What it shows now.
    var value: Value? { shown.last?.value }
    var transition: ImageTransition? { shown.last?.transition }
}

extension HeadlessTarget<String> {
    var texts: [String?] { shown.map(\.value) }
}

/// A cache whose sources answer when a test lets them.
struct ViewFixture<Value: CacheableValue>: Sendable {
    let directory: TemporaryDirectory
    let cache: Cache<Value>

    init(_ change: (inout CacheConfiguration) -> Void = { _ in }) throws {
        directory = try TemporaryDirectory()
        var configuration = CacheConfiguration(root: directory.path)
        configuration.memoryPressure = MemoryPressure()
        change(&configuration)
        cache = Cache(name: "views", configuration: configuration)
    }
}

extension ViewFixture<String> {
    /// A source that gives a text when its gate is opened, and its content.
    func slow(_ key: CacheKey, _ text: String) -> (gate: Gate, content: ImageContent<String>) {
        let gate = Gate()
        let fetcher = SlowFetcher(key: key, gate: gate, text: text)
        return (gate, .fetcher(fetcher, in: cache, format: .original))
    }
}

/// What a test's source throws.
struct SourceFailure: Error, Equatable {}

struct SlowFetcher: Fetcher {
    let key: CacheKey
    let gate: Gate
    /// nil to fail.
    let text: String?

    func fetch(_ context: FetchContext) async throws -> FetchResult<String> {
        await gate.wait()
        guard let text else { throw SourceFailure() }
        return FetchResult(value: text)
    }
}

/// Lets the main actor do other things until something is so.
@MainActor
func wait(until isSo: () -> Bool) async {
    while !isSo() { await Task.yield() }
}
