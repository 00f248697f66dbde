import Foundation
import TestSupport
import VitrineCache
import VitrineCore
import VitrineNetwork

/// A cache in a directory of its own, over a loader of its own, with one clock that stands still.
struct FetchFixture<Value: CacheableValue>: Sendable {
    let directory: TemporaryDirectory
    let clock = ManualClock()
    let cache: ValueCache<Value>
    var options: FetchOptions

    init(
        _ change: (inout CacheConfiguration) -> Void = { _ in },
        loading configure: (inout NetworkLoader.Configuration) -> Void = { _ in }
    ) throws {
        directory = try TemporaryDirectory()
        var configuration = CacheConfiguration(root: directory.path)
        configuration.clock = .following(clock, from: .seconds(1_700_000_000))
        configuration.memoryPressure = MemoryPressure()
        change(&configuration)
        cache = ValueCache(name: "test", configuration: configuration)
        var loading = NetworkLoader.Configuration()
        loading.retries.limit = 0
        configure(&loading)
        options = FetchOptions(loader: NetworkLoader(makeLoader(), loading, wallClock: configuration.clock))
        options.clock = configuration.clock
        options.partialDirectory = directory.file("partial")
    }

    /// Another cache on the same directory, once everything is there: another process, as far as memory is concerned.
    func another() async throws -> ValueCache<Value> {
        try await cache.flush()
        return ValueCache(name: "test", configuration: cache.configuration)
    }

    func fetcher(_ url: URL, id: String? = nil) -> NetworkFetcher<Value> {
        NetworkFetcher(request: patient(url), id: id, options: options)
    }

    func value(_ url: URL, format: FormatName = .original) async throws -> Value {
        try await cache.value(from: fetcher(url), format: format)
    }

    /// Returns when nothing is asked for behind values that were given.
    func settle() async {
        while cache.runningRefreshes > 0 { await Task.yield() }
    }
}

/// What a loopback server has at its addresses; can be changed while it runs.
final class Pages: Sendable {
    struct Page: Sendable {
        var status = 200
        var fields: [String] = ["Content-Type: image/png"]
        var body: [UInt8] = []
        /// Answers 304 to who has this.
        var tag: String?
        /// In place of everything else.
        var steps: [LoopbackServer.Step]?

        init(_ text: String, tag: String? = nil, _ fields: [String] = []) {
            body = Array(text.utf8)
            self.tag = tag
            self.fields += fields
        }

        init(steps: [LoopbackServer.Step]) { self.steps = steps }
    }

    private let pages = Locked<[String: Page]>([:])

    subscript(target: String) -> Page? {
        get { pages.withLock { $0[target] } }
        set { pages.withLock { $0[target] = newValue } }
    }

    func serve(port: Int = 0) throws -> LoopbackServer {
        try LoopbackServer(port: port) { [self] request in
            guard let page = self[request.target] else { return [.reply(404, body: Array("nothing".utf8))] }
            if let steps = page.steps { return steps }
            guard let tag = page.tag else { return [.reply(page.status, page.fields, body: page.body)] }
            let fields = page.fields + ["ETag: \(tag)"]
            if request.header("If-None-Match") == tag { return [.reply(304, fields)] }
            return [.reply(page.status, fields, body: page.body)]
        }
    }
}

/// The network's error below a cache's; nil if the body throws none.
func networkFailure(_ body: () async throws -> Void) async -> NetworkError? {
    do { try await body() } catch { return (error as? CacheError)?.underlying as? NetworkError }
    return nil
}

/// The code of the cache error a body throws; nil if it throws none.
func cacheCode(_ body: () async throws -> Void) async -> Int? {
    do { try await body() } catch { return (error as? CacheError)?.code }
    return nil
}
