import Foundation
import Tracing
import VitrineCache
import VitrineCore
import VitrineNetwork

/// Fetches a source from its server: in a span of its own, counted, and with the tags by which it is purged.
struct SourceFetcher: Fetcher {
    private let network: NetworkFetcher<[UInt8]>
    private let progress = TransferProgress()
    private let tags: [String]
    private let didReceive: (@Sendable (_ bytes: Int) -> Void)?

    init(
        _ request: HTTPRequest, options: FetchOptions, tags: [String], held: SourceReservation,
        didReceive: (@Sendable (Int) -> Void)?
    ) {
        var network = NetworkFetcher<[UInt8]>(request: request, options: options, progress: progress)
        let url = request.url.absoluteString
        network.reserve { bytes throws(NetworkError) in
            do throws(RequestError) {
                try await held.reserve(bytes)
            } catch {
                throw error.code == RequestError.cancelled.code
                    ? .cancelled(url: url) : .unavailable(url: url, reason: "its bytes have no place in memory")
            }
        }
        self.network = network
        (self.tags, self.didReceive) = (tags, didReceive)
    }

    var key: CacheKey { network.key }
    var storesOriginal: Bool { network.storesOriginal }
    var levels: CacheLevels { network.levels }
    var revalidates: Bool { network.revalidates }
    var bounds: String { network.bounds }

    func fetch(_ context: FetchContext) async throws -> FetchResult<[UInt8]> {
        defer { didReceive?(progress.current.received) }
        guard let current = InstrumentationContext.current, let tracer = current.tracer else {
            return try await tagged(network.fetch(context))
        }
        let span = tracer.startSpan("fetch", context: current, ofKind: .client)
        defer { span.end() }
        do {
            let result = try await InstrumentationContext.$current.withValue(span.context) {
                try await network.fetch(context)
            }
            return tagged(result)
        } catch {
            // Not the error itself: it may contain the address of the source.
            span.setStatus(SpanStatus(code: .error))
            throw error
        }
    }

    private func tagged(_ result: FetchResult<[UInt8]>) -> FetchResult<[UInt8]> {
        var result = result
        let head = SourceHead(validator: result.validator)
        result.tags = tags + (head.map { PurgeTag.named(in: $0.headers) } ?? [])
        return result
    }

    /// Adds the position in the trace to a request (W3C Trace Context).
    static let traced: @Sendable (HTTPRequest) async throws -> HTTPRequest = { request in
        guard let trace = InstrumentationContext.current?.trace else { return request }
        var request = request
        request.headers.append("traceparent", trace.traceparent)
        if !trace.state.isEmpty { request.headers.append("tracestate", trace.state) }
        return request
    }
}
