#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCore
import VitrineNetwork

/// Limits the bytes per second of all its users together. The limit can change while they wait.
///
/// Bytes are accounted for after they passed: users then wait until the rate is below the limit again. After a pause,
/// the bytes of a quarter of a second pass at once.
final class RateLimit: Sendable {
    private struct State {
        var bytesPerSecond: Int?
        /// The time at which the bytes so far comply with the limit.
        var compliantFrom: ContinuousClock.Instant
    }

    private let state: Locked<State>
    private static let burst = Duration.milliseconds(250)
    /// The maximum duration of one wait, after which a changed limit is noticed.
    private static let longestSleep = Duration.milliseconds(200)

    /// - Parameter bytesPerSecond: The limit; nil for none.
    init(_ bytesPerSecond: Int?) {
        state = Locked(State(bytesPerSecond: bytesPerSecond, compliantFrom: .now - Self.burst))
    }

    /// The limit in bytes per second; nil for none.
    var bytesPerSecond: Int? {
        get { state.withLock { $0.bytesPerSecond } }
        set {
            state.withLock { state in
                state.bytesPerSecond = newValue
                // Bytes that passed under the old limit do not count under the new one.
                state.compliantFrom = min(state.compliantFrom, .now)
            }
        }
    }

    /// Accounts for received bytes.
    func take(_ count: Int) {
        state.withLock { state in
            guard let rate = state.bytesPerSecond, rate > 0 else { return }
            state.compliantFrom = max(state.compliantFrom, .now - Self.burst) + .seconds(Double(count) / Double(rate))
        }
    }

    /// Returns once the bytes so far comply with the limit.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    func wait() async throws {
        while true {
            let (rate, wait) = state.withLock { ($0.bytesPerSecond, $0.compliantFrom - .now) }
            guard let rate, wait > .zero || rate <= 0 else { return }
            try await Task.sleep(for: min(max(wait, .milliseconds(1)), Self.longestSleep))
        }
    }
}

/// A transport whose bodies obey the rate limits of the current task, and which refuses bodies that its watcher
/// rejects.
struct LimitedLoader: FilteringTransport {
    /// The rules of the current task.
    @TaskLocal static var rules: Rules?

    /// The rules of one transfer.
    final class Rules: Sendable {
        let limits: [RateLimit]
        /// Accepts or rejects bodies by their heads.
        let watcher = Locked<DownloadWatcher?>(nil)

        init(_ limits: [RateLimit]) { self.limits = limits }
    }

    let base: any HTTPTransport

    func showsAddresses(for url: URL) -> Bool { (base as? any FilteringTransport)?.showsAddresses(for: url) ?? false }

    func load(_ request: HTTPRequest, allowing filter: ConnectFilter?) async throws(NetworkError) -> HTTPResponse {
        let response = try await send(request, allowing: filter)
        guard let rules = Self.rules else { return response }
        let url = response.head.url.absoluteString
        if let watcher = rules.watcher.withLock({ $0 }), await !watcher.admits(response.head) {
            response.body.cancel()
            throw .cancelled(url: url)
        }
        return HTTPResponse(head: response.head, body: ResponseBody(LimitedBody(response.body, rules.limits, url: url)))
    }

    private func send(
        _ request: HTTPRequest, allowing filter: ConnectFilter?
    ) async throws(NetworkError) -> HTTPResponse {
        guard let base = base as? any FilteringTransport else { return try await base.load(request) }
        return try await base.load(request, allowing: filter)
    }
}

/// A body that is read no faster than its limits allow. Flow control slows the server down.
private final class LimitedBody: BodySource {
    private let body: ResponseBody
    private let limits: [RateLimit]
    let url: String

    init(_ body: ResponseBody, _ limits: [RateLimit], url: String) {
        self.body = body
        self.limits = limits
        self.url = url
    }

    func next() async throws(NetworkError) -> [UInt8]? { try await next(reusing: []) }

    func next(reusing spare: consuming [UInt8]) async throws(NetworkError) -> [UInt8]? {
        // For the chunks before, also at the end.
        for limit in limits {
            do { try await limit.wait() } catch {
                body.cancel()
                throw .cancelled(url: url)
            }
        }
        guard let chunk = try await body.next(reusing: spare) else { return nil }
        for limit in limits { limit.take(chunk.count) }
        return chunk
    }

    func cancel() { body.cancel() }
}
