import VitrineCache
import VitrineCore

/// A part of a body that can stand for all of it, such as the preview in a raw file of a camera.
///
/// It takes two range requests: for the beginning of the body, and for the part that the beginning leads to. A server
/// that sends the whole body instead, or a beginning that leads nowhere, gives the whole body.
package struct BodyExcerpt: Sendable {
    /// A part of the body.
    package struct Part: Sendable {
        /// Where it stands.
        package var range: Range<Int>
        /// Makes the bytes of the value; nil if the part is not usable, which gives the whole body.
        package var value: @Sendable ([UInt8]) -> [UInt8]?

        package init(range: Range<Int>, value: @escaping @Sendable ([UInt8]) -> [UInt8]?) {
            self.range = range
            self.value = value
        }
    }

    /// Distinguishes the stored value from the whole body.
    package var name: String
    /// Bytes of the first request.
    package var beginning: Int
    /// Finds the part, from the beginning and the length of the whole; nil for the whole body.
    package var part: @Sendable (_ beginning: [UInt8], _ total: Int) -> Part?

    package init(
        name: String, beginning: Int = 64 << 10,
        part: @escaping @Sendable (_ beginning: [UInt8], _ total: Int) -> Part?
    ) {
        self.name = name
        self.beginning = beginning
        self.part = part
    }
}

extension CachedLoad {
    /// Loads an excerpt; nil if the whole body has to be loaded.
    func answer(_ excerpt: BodyExcerpt, _ context: FetchContext) async throws(NetworkError) -> Answer? {
        var sent = request
        sent.range = 0..<excerpt.beginning
        sent.acceptsCompression = false
        let requestTime = options.clock.now
        let first = try await options.loader.start(sent, checks: .nothing, progress: progress)
        let dated = DatedResponse(first, requestTime: requestTime, responseTime: options.clock.now)
        // The server sends everything at once.
        if first.head.status == 200 { return try await answer(dated, to: request, stored: nil, context: context) }
        guard let total = total(of: first.head, sent: sent), let validator = first.head.rangeValidator else {
            await first.body.discard()
            return nil
        }
        do throws(NetworkError) { try check(first.head) } catch {
            first.body.cancel()
            throw error
        }
        let beginning = try await first.body.collect()
        guard let part = excerpt.part(beginning, total), part.range.lowerBound >= 0, part.range.upperBound <= total,
            part.range.count <= request.maximumBodySize.bytes, !part.range.isEmpty
        else { return nil }
        var bytes: [UInt8]
        if part.range.upperBound <= beginning.count {
            bytes = Array(beginning[part.range])
        } else {
            if let willHold { try await willHold(part.range.count) }
            sent.range = part.range
            sent.ifRange = validator
            let second = try await options.loader.start(sent, checks: .nothing, progress: progress)
            // Another version, or another way of the server: from the beginning.
            guard self.total(of: second.head, sent: sent) == total,
                second.head.headers.contentRange?.range == part.range
            else {
                second.body.cancel()
                return nil
            }
            progress?.update { $0.total = part.range.count }
            let body = progress.map { second.body.counted(by: $0) } ?? second.body
            bytes = try await body.collect()
        }
        guard let value = part.value(bytes) else { return nil }
        // To the cache, it is a whole body with a length of its own.
        var headers = first.head.headers
        for name in ["Content-Range", "Content-Length"] { headers.remove(name) }
        var head = first.head
        (head.status, head.headers) = (200, headers)
        let exchange = exchange(
            head, redirects: first.redirects, requestTime: dated.requestTime, responseTime: dated.responseTime)
        return kept(value, cache.update(after: exchange))
    }

    /// The length of the whole body of a correct partial response; nil for any other response.
    private func total(of head: HTTPResponseHead, sent: HTTPRequest) -> Int? {
        guard head.status == 206, head.decodedFrom == nil,
            ResponseCheck.failure(head, to: sent, policy: options.loader.configuration.policy) == nil
        else { return nil }
        return head.headers.contentRange?.total
    }
}

extension HTTPResponseHead {
    /// The validator for parts of one version: a strong entity tag, or the date of the last change.
    fileprivate var rangeValidator: String? {
        if let tag = headers["ETag"] { return tag.hasPrefix("W/") ? nil : tag }
        return headers["Last-Modified"]
    }
}
