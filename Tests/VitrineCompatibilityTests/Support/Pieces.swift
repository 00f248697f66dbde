import Foundation
import TestSupport
import VitrineCache
import VitrineCompatibility
import VitrineCore
import VitrineNetwork

/// A value that counts how often it is decoded, and that lives in an object.
struct Piece: CacheableValue {
    final class Body: Sendable {
        let text: String
        init(_ text: String) { self.text = text }
    }

    struct Unreadable: Error {}

    /// How often each text was decoded, in all tests: texts are those of one test.
    private static let decodes = Locked<[String: Int]>([:])

    let body: Body
    var text: String { body.text }

    init(_ text: String) { body = Body(text) }
    private init(_ body: Body) { self.body = body }

    init(cacheBytes: [UInt8]) throws {
        let text = try String(cacheBytes: cacheBytes)
        Self.decodes.withLock { $0[text, default: 0] += 1 }
        guard !text.hasPrefix("damaged") else { throw Unreadable() }
        body = Body(text)
    }

    func cacheBytes() -> [UInt8] { Array(text.utf8) }
    var cacheCost: Int { 100 }

    static func decodes(of text: String) -> Int { decodes.withLock { $0[text] ?? 0 } }

    static var weakReference: (@Sendable (Piece) -> (@Sendable () -> Piece?)?)? {
        { piece in { [weak body = piece.body] in body.map { Piece($0) } } }
    }
}

/// A network that answers when a test lets it, and says what becomes of what it was asked.
final class SlowNetwork: Sendable {
    /// One request.
    final class Exchange: Sendable {
        let url: URL
        private let progress: TransferProgress
        private let end = Gate()
        private let answer = Locked<Result<FetchResult<Piece>, any Error>?>(nil)
        /// Opened when the exchange was cancelled, or has answered.
        let isOver = Gate()
        private let cancelled = Locked(false)

        init(_ url: URL, _ progress: TransferProgress) {
            self.url = url
            self.progress = progress
        }

        var isCancelled: Bool { cancelled.withLock { $0 } }

        func sendHead() { progress.update { $0.isAnswered = true } }

        func sendBytes() {
            progress.update { step in
                step.isAnswered = true
                step.received = 1
            }
        }

        func finish(_ text: String, levels: CacheLevels = .all) {
            sendBytes()
            answer.withLock { $0 = .success(FetchResult(bytes: Array(text.utf8), levels: levels)) }
            end.open()
        }

        func fail(_ error: any Error) {
            answer.withLock { $0 = .failure(error) }
            end.open()
        }

        func cancel() {
            cancelled.withLock { $0 = true }
            end.open()
        }

        func wait() async throws -> FetchResult<Piece> {
            await end.wait()
            isOver.open()
            guard !isCancelled, let answer = answer.withLock({ $0 }) else { throw CancellationError() }
            return try answer.get()
        }
    }

    private struct FetchTask: Fetcher {
        let url: URL
        let progress: TransferProgress
        let network: SlowNetwork
        var key: CacheKey { CacheKey(url.absoluteString) }

        func fetch(_ context: FetchContext) async throws -> FetchResult<Piece> {
            let exchange = Exchange(url, progress)
            return try await withTaskCancellationHandler {
                network.add(exchange)
                return try await exchange.wait()
            } onCancel: {
                exchange.cancel()
            }
        }
    }

    private struct State {
        var exchanges: [Exchange] = []
        var waiters: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Locked(State())

    private func add(_ exchange: Exchange) {
        let ready = state.withLock { state in
            state.exchanges.append(exchange)
            let ready = state.waiters.filter { $0.count <= state.exchanges.count }
            state.waiters.removeAll { $0.count <= state.exchanges.count }
            return ready.map(\.continuation)
        }
        for waiter in ready { waiter.resume() }
    }

    /// What was asked so far, in order.
    var exchanges: [Exchange] { state.withLock { $0.exchanges } }

    /// The request of a number, from 0, once it has been made.
    func request(_ index: Int = 0) async -> Exchange {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                guard state.exchanges.count <= index else { return true }
                state.waiters.append((index + 1, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
        return exchanges[index]
    }

    /// The request for a URL, once it has been made.
    func request(for url: URL) async -> Exchange {
        while true {
            if let exchange = exchanges.last(where: { $0.url == url }) { return exchange }
            await Task.yield()
        }
    }

    func fetcher(_ url: URL, _ progress: TransferProgress) -> any Fetcher<Piece> {
        FetchTask(url: url, progress: progress, network: self)
    }
}

/// One who asks, and writes down what it is told.
nonisolated final class Watcher: LoadObserver {
    let events = Recorder<String>()
    private let told = Gate()

    func resourceDidLoad(_ value: Piece, from url: URL) {
        MainActor.assertIsolated()
        add(value.text)
    }

    func resourceDidFail(_ error: CacheError, from url: URL) {
        MainActor.assertIsolated()
        add("\(error.code)")
    }

    private func add(_ event: String) {
        events.add(event)
        told.open()
    }

    /// What it has been told, when the main actor has done what was on its way before.
    func heard() async -> [String] {
        await MainActor.run {}
        return events.all
    }

    /// What it is told, once it is told something.
    func wait() async -> [String] {
        await told.wait()
        return events.all
    }
}

/// Resources in a directory of their own over a network that answers when it is let.
struct ResourceFixture: Sendable {
    let directory: TemporaryDirectory
    let network = SlowNetwork()
    let resources: ObservedCache<Piece>

    init(_ change: (inout CacheConfiguration) -> Void = { _ in }) throws {
        directory = try TemporaryDirectory()
        var configuration = CacheConfiguration(root: directory.path)
        configuration.memoryPressure = MemoryPressure()
        change(&configuration)
        let network = network
        resources = ObservedCache(ValueCache(name: "test", configuration: configuration)) { network.fetcher($0, $1) }
    }

    var cache: ValueCache<Piece> { resources.cache }

    /// A URL and a text nobody else has.
    static func url(_ name: String = "a") -> URL { URL(string: "http://\(UUID().uuidString).test/\(name)")! }

    /// Returns when no load runs.
    func settle() async { while resources.runningLoads > 0 { await Task.yield() } }

    /// Lets an exchange answer and returns when what follows from that is done.
    func finish(_ exchange: SlowNetwork.Exchange, _ text: String) async throws {
        exchange.finish(text)
        await settle()
        try await cache.flush()
    }
}

/// Keeps the main actor busy until a condition holds, so that observers are told afterwards.
@MainActor
func holdMainActor(until condition: () -> Bool) { while !condition() { sched_yield() } }

/// An executor of one thread that does nothing until it is let.
final class HeldExecutor: Sendable {
    let executor = BlockingExecutor(threads: 1, name: "held")
    private let barrier = AsyncPromise<Bool>()

    init() { executor.submit { [barrier] in _ = barrier.wait() } }

    func release() { barrier.fulfill(true) }
}
