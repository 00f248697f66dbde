import VitrineCore
import VitrineNetwork

/// Another loader, whose bodies pass no faster than the limits of the task that asks.
struct LimitedLoader: DataLoading {
    /// The limits of what the current task loads.
    @TaskLocal static var limits: [RateLimit] = []

    let base: any DataLoading

    var capabilities: LoadingCapabilities { base.capabilities }

    func load(_ request: DataRequest, allowing guardian: AddressGuard?) async throws(NetworkError) -> DataResponse {
        let response = try await base.load(request, allowing: guardian)
        let limits = Self.limits
        guard !limits.isEmpty else { return response }
        let url = response.head.url.absoluteString
        return DataResponse(head: response.head, body: ResponseBody(LimitedBody(response.body, limits, url: url)))
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
        guard let chunk = try await body.next(reusing: spare) else { return nil }
        for limit in limits {
            do { try await limit.pass(chunk.count) } catch {
                body.cancel()
                throw .cancelled(url: url)
            }
        }
        return chunk
    }

    func collect(upTo limit: ByteCount) async throws(NetworkError) -> [UInt8] {
        var bytes: [UInt8] = []
        while let chunk = try await next() {
            guard bytes.count + chunk.count <= limit.bytes else {
                cancel()
                throw .bodyTooLarge(url: url, limit: limit)
            }
            bytes += chunk
        }
        return bytes
    }

    func cancel() { body.cancel() }
}
