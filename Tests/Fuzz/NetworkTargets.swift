import Foundation
import VitrineCore
import VitrineDownloads
@_spi(HTTPCacheEngine) import VitrineNetwork

extension FuzzTargets {
    static var network: [FuzzTarget] {
        [head, storedResponse, partialHead, pieces, inlineData, sourceURL, address, date, contentRange, directives]
    }

    private static let now = Duration.seconds(1_700_000_000)
    private static let page = "https://example.com/a/b.jpg?c"

    private static let responses: [[UInt8]] = [
        """
        Content-Type: image/jpeg; charset=x\r\nContent-Length: 1234\r\nDate: Tue, 14 Nov 2023 22:13:20 GMT\r
        Cache-Control: max-age=60, stale-while-revalidate=30, no-cache="set-cookie, x"\r\nAge: 12\r\nETag: W/"a"\r
        Last-Modified: Sun Nov  6 08:49:37 1994\r\nVary: accept-encoding, accept-language\r
        Content-Disposition: attachment; filename="a.jpg"; filename*=UTF-8''%e2%82%ac.jpg\r\n\r\n
        """,
        """
        Content-Range: bytes 0-499/1234\r\nContent-Length: 500\r\nAccept-Ranges: bytes\r\nETag: "b"\r
        Expires: Sunday, 06-Nov-94 08:49:37 GMT\r\nCDN-Cache-Control: max-age=600;a=1, must-revalidate=?1\r
        Retry-After: 120\r\nPragma: no-cache\r\n folded\r\nContent-Encoding: gzip\r\nContent-Language: en, de\r\n\r\n
        """,
        "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT\r\nLocation: ../x?y#z\r\nConnection: close, age\r\n\r\n",
    ].map { Array($0.utf8) }

    /// A head, by way of everything that reads fields: the cache's rules, downloads, names of files, waiting times.
    private static let head = FuzzTarget("http-head", .text, seeds: { responses }) { bytes in
        let headers = try HTTPHeaders(lines: bytes)
        guard let url = URL(string: page) else { return }
        let response = HTTPResponseHead(
            status: [200, 206, 301, 304, 416, 503][bytes.count % 6], headers: headers, url: url)
        _ = (response.contentLength, response.contentType, DownloadName.name(for: response, from: url))
        _ = headers["Retry-After"].map { RetryAfter.delay($0, now: now) }
        let asking = CacheRequest(url: url, headers: headers)
        let range = CacheRequest(url: url, headers: ["Range": headers["Content-Range"] ?? "bytes=-1"])
        for cache in [HTTPCache(), HTTPCache(policy: shared)] {
            var exchange = CacheExchange(
                request: CacheRequest(url: url), status: response.status, headers: headers, requestTime: now,
                responseTime: now + .seconds(1))
            guard case .storing(let stored) = cache.update(after: exchange).answer else { continue }
            for time in [Duration.zero, now, now + .seconds(1 << 33)] {
                _ = cache.decide(asking, stored: [stored], now: time)
                _ = cache.head(of: stored, for: range, now: time)
                _ = cache.canServeStale(stored, to: asking, afterFailureAt: time)
            }
            _ = ResumableDownload(length: 100, of: stored, comparing: 4)?.continuation(status: 206, headers: headers)
            exchange.stored = [stored]
            exchange.revalidated = 0
            _ = cache.update(after: exchange)
            _ = try StoredResponse(bytes: stored.bytes())
        }
    }

    private static let shared: HTTPCachePolicy = {
        var policy = HTTPCachePolicy.standard
        policy.isShared = true
        return policy
    }()

    /// Heads as they lie on disk.
    private static let heads: [[UInt8]] = responses.compactMap { lines in
        guard let url = URL(string: page), let headers = try? HTTPHeaders(lines: lines) else { return nil }
        var fields = headers
        for name in ["Content-Range", "Pragma", "Content-Encoding"] { fields.remove(name) }
        let exchange = CacheExchange(
            request: CacheRequest(url: url), status: 200, headers: fields, requestTime: now, responseTime: now)
        guard case .storing(var stored) = HTTPCache().update(after: exchange).answer else { return nil }
        stored.bodyLength = 1_234
        return stored.bytes()
    }

    private static let storedResponse = FuzzTarget("stored-response", seeds: { heads }) { bytes in
        let stored = try StoredResponse(bytes: bytes)
        guard let url = URL(string: page) else { return }
        for time in [Duration.zero, now, now + .seconds(1 << 40)] {
            _ = HTTPCache().decide(CacheRequest(url: url), stored: [stored], now: time)
            _ = HTTPCache().head(of: stored, for: CacheRequest(url: url, headers: ["Range": "bytes=1-"]), now: time)
            var exchange = CacheExchange(
                request: CacheRequest(url: url), status: 304, headers: stored.headers, requestTime: time,
                responseTime: time, stored: [stored])
            exchange.revalidated = 0
            _ = HTTPCache().update(after: exchange)
        }
    }

    private static let partialHead = FuzzTarget(
        "partial-head",
        seeds: {
            heads.compactMap { try? StoredResponse(bytes: $0) }.map { response in
                var head = PartialHead(
                    identity: "a", source: PartSource(text: "https://example.com/a"), response: response)
                head.durablePieces = [3, 0, 200]
                head.durableLength = 1_000
                return head.bytes()
            }
        },
        repair: { bytes in
            guard bytes.count > 12 else { return bytes }
            let hash = StableHash.hash(Array(bytes[12...]))
            let digest = (0..<8).map { UInt8(truncatingIfNeeded: hash >> UInt64($0 * 8)) }
            return bytes[..<4] + digest + bytes[12...]
        }
    ) { bytes in
        guard let head = PartialHead(bytes: bytes) else { throw FuzzRefusal() }
        _ = head.trustedLength(ofFileWith: 4_096)
        if let total = head.response.bodyLength { _ = PieceTable(total: total, lengths: head.durablePieces) }
        _ = ResumableDownload(length: head.durableLength, of: head.response, comparing: 16)
    }

    private static let pieces = FuzzTarget("piece-table", seeds: { [[UInt8](repeating: 1, count: 40)] }) { bytes in
        let numbers = stride(from: 0, to: bytes.count - 7, by: 8).map { at in
            bytes[at..<(at + 8)].reduce(0) { $0 << 8 | Int($1) }
        }
        guard let total = numbers.first else { throw FuzzRefusal() }
        let tables = [
            PieceTable(dividing: total, among: numbers.last ?? 0),
            PieceTable(total: total, lengths: Array(numbers.dropFirst())),
        ]
        for table in tables.compactMap({ $0 }) {
            for piece in 0..<table.count { _ = table.missing(of: piece) }
            _ = table.isComplete
        }
    }

    private static let inlineData = FuzzTarget(
        text: "data-url",
        ["data:image/png;base64,iVBORw0KGgo=", "data:,a%20b#c", "data:text/plain;charset=x;a,%ff", "DATA:;base64,,"]
    ) { text in
        guard let url = URL(string: text), url.scheme?.lowercased() == "data" else { throw FuzzRefusal() }
        try waiting {
            var request = HTTPRequest(url: url)
            request.maximumBodySize = .kilobytes(4)
            _ = try await InlineDataLoader().load(request)
        }
    }

    /// Waits on this thread for what runs on others.
    static func waiting(_ body: @escaping @Sendable () async throws -> Void) throws {
        let done = DispatchSemaphore(value: 0)
        let failure = Locked<(any Error)?>(nil)
        Task.detached {
            do { try await body() } catch { failure.withLock { $0 = error } }
            done.signal()
        }
        done.wait()
        if let error = failure.withLock({ $0 }) { throw error }
    }

    private static let sourceURL = FuzzTarget(
        text: "source-url",
        [
            "https://user:pass@example.com:8443/a/../b?c#d", "http://[::ffff:192.0.2.1%25eth0]:80/", "http://0x7f.1/",
            "https://b\u{FC}cher.example/\u{E9}", "http://xn--bcher-kva.example", "//host/path", "../../a?b",
            "http://1.2.3.4:99999/",
            "http://%62%C3%BC.example/", "http://\u{3042}\u{3044}.\u{4E2D}\u{6587}/",
        ]
    ) { text in
        let base = try SourceURL("https://example.com/a/b?c")
        let resolved = try? base.resolve(text)
        _ = SourceURL.withoutCredentials(text)
        _ = ProxySettings { _ in text }.proxy(for: base)
        let url = try SourceURL(text)
        _ = (url.host.text, url.origin, url.target, resolved?.text)
        if case .address(let address) = url.host { _ = (address.class, address.embeddedIPv4) }
    }

    private static let address = FuzzTarget(
        text: "ip-address",
        ["192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1", "10.0.0.0/8", "fc00::/7", "64:ff9b:1::1/48"]
    ) { text in
        if let range = AddressRange(text) {
            _ = range.contains(range.base)
            _ = range.contains(.v6(.max)) || range.contains(.v4(.max))
        }
        guard let address = IPAddress(text) else { throw FuzzRefusal() }
        _ = (address.class, address.embeddedIPv4, address.description)
    }

    private static let date = FuzzTarget(
        text: "http-date",
        [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "120",
            "Thu, 29 Feb 2024 23:59:60 GMT",
        ]
    ) { text in
        _ = RetryAfter.delay(text, now: now)
        for time in [Duration.zero, now, .seconds(Int64.max), .seconds(Int64.min)] {
            guard let seconds = HTTPDate.seconds(text, now: time) else { throw FuzzRefusal() }
            _ = HTTPDate.text(seconds)
        }
    }

    private static let contentRange = FuzzTarget(
        text: "content-range",
        ["bytes 0-499/1234", "bytes 0-499/*", "bytes */1234", "BYTES 9223372036854775806-9223372036854775807/*"]
    ) { text in
        guard let range = ContentRange(text) else { throw FuzzRefusal() }
        _ = range.range.count
        _ = range.range.fieldValue
    }

    private static let directives = FuzzTarget(
        text: "cache-control",
        [
            "max-age=60, s-maxage=\"30\", no-cache=\"a, b\", private, stale-if-error=9", "max-stale, min-fresh=1,,;",
            "a=\"\\\"\", max-age = 5, max-age=00000000000000000000000000000001",
        ]
    ) { text in
        let directives = CacheDirectives(lines: [text, text])
        if directives.isEmpty { throw FuzzRefusal() }
    }
}
