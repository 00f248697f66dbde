#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCore
import VitrineNetwork

/// Another loader, whose bodies pass no faster than the limits of the task that asks, and only if it admits them.
struct LimitedLoader: FilteringTransport {
    /// What holds for what the current task loads.
    @TaskLocal static var rules: Rules?

    /// What holds for one transfer.
    final class Rules: Sendable {
        let limits: [RateLimit]
        /// Says of bodies, by their heads, whether they are to come.
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

/// A body that is read no faster than limits allow. As what is not read is not received, the server slows down too.
private final class LimitedBody: BodySource {
    private let body: ResponseBody
    private let limits: [RateLimit]
    private let url: String

    init(_ body: ResponseBody, _ limits: [RateLimit], url: String) {
        self.body = body
        self.limits = limits
        self.url = url
    }

    func next() async throws(NetworkError) -> [UInt8]? { try await next(reusing: []) }

    func next(reusing spare: consuming [UInt8]) async throws(NetworkError) -> [UInt8]? {
        // For what came before, also at the end.
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

    func collect(upTo limit: ByteCount) async throws(NetworkError) -> [UInt8] {
        try await collectChunks(upTo: limit, url: url)
    }

    func cancel() { body.cancel() }
}
