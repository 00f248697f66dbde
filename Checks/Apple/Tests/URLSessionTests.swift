import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineNetwork

/// The loader for Apple's platforms, on the URLSession of Linux's Foundation.
struct URLSessionTests {
    private let loader = URLSessionLoader()

    private func error(_ request: HTTPRequest) async -> NetworkError? {
        do throws(NetworkError) {
            _ = try await loader.load(request).body.collect()
            return nil
        } catch { return error }
    }

    @Test func bringsHeadAndBody() async throws {
        let content = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 >> 3) }
        let server = try LoopbackServer { _ in [.reply(200, ["Content-Type: image/jpeg", "ETag: \"a\""], body: content)] }
        var request = HTTPRequest(url: server.url("/a.jpg?q"))
        request.headers.append("X-A", "1")
        let response = try await loader.load(request)
        #expect(response.head.status == 200 && response.head.contentType == "image/jpeg")
        #expect(response.head.headers["ETag"] == "\"a\"" && response.head.contentLength == 300_000)
        #expect(try await response.body.collect() == content)
        #expect(server.requests.map(\.target) == ["/a.jpg?q"] && server.requests[0].header("X-A") == "1")
    }

    @Test(arguments: [404, 500])
    func aStatusIsAResponse(_ status: Int) async throws {
        let server = try LoopbackServer { _ in [.reply(status, body: Array("no".utf8))] }
        #expect(try await loader.load(HTTPRequest(url: server.url("/"))).head.status == status)
    }

    @Test func redirectsAreNotFollowed() async throws {
        let server = try LoopbackServer { _ in [.reply(302, ["Location: /other"])] }
        let response = try await loader.load(HTTPRequest(url: server.url("/")))
        #expect(response.head.status == 302 && response.head.headers["Location"] == "/other")
        #expect(server.requests.count == 1)
    }

    @Test func aBodyThatIsTooLargeIsRefused() async throws {
        let server = try LoopbackServer { request in
            request.target == "/said"
                ? [.reply(body: [UInt8](repeating: 1, count: 5000))]
                : [.text("HTTP/1.1 200 OK\r\n\r\n"), .endless([UInt8](repeating: 1, count: 1000))]
        }
        for target in ["/said", "/unsaid"] {
            var request = HTTPRequest(url: server.url(target))
            request.maximumBodySize = ByteCount(4000)
            guard case .bodyTooLarge(_, let limit) = await error(request) else {
                Issue.record("\(target) is not refused")
                continue
            }
            #expect(limit == ByteCount(4000))
        }
    }

    @Test func aServerThatIsNotThereIsSaidToBe() async throws {
        let reserved = try ReservedPort()
        let url = try #require(URL(string: "http://127.0.0.1:\(reserved.number)/"))
        guard case .notConnected = await error(HTTPRequest(url: url)) else {
            Issue.record("another error")
            return
        }
        withExtendedLifetime(reserved) {}
    }

    @Test func lettingGoOfTheBodyEndsTheTransfer() async throws {
        let server = try LoopbackServer { _ in [.text("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"), .hang] }
        let response = try await loader.load(HTTPRequest(url: server.url("/")))
        response.body.cancel()
        // The server sees that the client disconnects.
        await server.waitUntilUnused()
        await #expect(throws: NetworkError.self) { try await response.body.collect() }
    }
}
