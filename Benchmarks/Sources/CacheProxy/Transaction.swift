import Foundation
@_spi(HTTPCacheEngine) import VitrineNetwork

/// One request's way through the cache.
struct Transaction: Sendable {
    let proxy: Proxy
    let request: CacheRequest
    let target: String
    let body: [UInt8]

    private var key: String { HTTPCache.identity(of: request.url) }
    private var cache: HTTPCache { proxy.cache }

    /// The response to the request, wherever it comes from.
    func answer(interim: (Message) throws -> Void) -> Response {
        let entries = proxy.store.entries(key)
        let now = proxy.clock.now
        switch cache.decide(request, stored: entries.map(\.head), now: now) {
        case .serve(let index, _):
            return serve(entries[index], now)
        case .serveAndRevalidate(let index, _, let headers):
            Thread.detachNewThread { _ = load(headers, entries, revalidating: index) { _ in } }
            return serve(entries[index], now)
        case .revalidate(let index, let headers):
            return load(headers, entries, revalidating: index, interim)
        case .forward:
            return load(request.headers, entries, revalidating: nil, interim)
        case .unavailable:
            return Response(status: 504, reason: "Gateway Timeout", headers: HTTPHeaders(), body: [])
        }
    }

    /// Asks the origin, and does with its response what the engine says.
    private func load(
        _ headers: HTTPHeaders, _ entries: [ResponseStore.Entry], revalidating index: Int?,
        _ interim: (Message) throws -> Void
    ) -> Response {
        let requestTime = proxy.clock.now
        let response: Response
        do {
            response = try proxy.origin.send(request.method, target, headers, body, interim: interim)
        } catch {
            let now = proxy.clock.now
            if let index, cache.canServeStale(entries[index].head, to: request, afterFailureAt: now) {
                return serve(entries[index], now)
            }
            return Response(status: 502, reason: "Bad Gateway", headers: HTTPHeaders(), body: [])
        }
        var exchange = CacheExchange(
            request: request, status: response.status, headers: response.headers, requestTime: requestTime,
            responseTime: proxy.clock.now, stored: entries.map(\.head))
        exchange.revalidated = index
        return apply(cache.update(after: exchange), response, entries, interim)
    }

    private func apply(
        _ update: CacheUpdate, _ response: Response, _ entries: [ResponseStore.Entry],
        _ interim: (Message) throws -> Void
    ) -> Response {
        let refreshed = update.refreshed.map { (entries[$0.key].number, $0.value) }
        proxy.store.change(
            key, refreshed: Dictionary(uniqueKeysWithValues: refreshed),
            removed: Set(update.removed.map { entries[$0].number }))
        for url in update.invalidated { proxy.store.removeAll(HTTPCache.identity(of: url)) }
        switch update.answer {
        case .response:
            return response
        case .storing(let head):
            proxy.store.add(head, reason: response.reason, body: response.body, key: key)
            return response
        case .confirmed(let index):
            var entry = entries[index]
            entry.head = update.refreshed[index] ?? entry.head
            return serve(entry, proxy.clock.now)
        case .stale(let index):
            return serve(entries[index], proxy.clock.now)
        case .repetition:
            return load(request.headers, [], revalidating: nil, interim)
        }
    }

    private func serve(_ entry: ResponseStore.Entry, _ now: Duration) -> Response {
        let head = cache.head(of: entry.head, for: request, now: now)
        let reasons = [206: "Partial Content", 304: "Not Modified", 416: "Range Not Satisfiable"]
        let body: [UInt8] =
            switch head.body {
            case .none: []
            case .whole: entry.body
            case .part(let range): Array(entry.body[range])
            }
        let reason = head.status == entry.head.status ? entry.reason : reasons[head.status] ?? ""
        return Response(status: head.status, reason: reason, headers: head.headers, body: body)
    }
}
