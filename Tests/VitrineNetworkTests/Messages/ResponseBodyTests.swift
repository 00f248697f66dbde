import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineNetwork

struct ResponseBodyTests {
    private func body(_ chunks: [[UInt8]]) -> ResponseBody {
        let rest = Locked(chunks)
        return ResponseBody { () async throws(NetworkError) in
            rest.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        }
    }

    @Test func aClosureProducesChunksAndEmptyOnesAreSkipped() async throws {
        var chunks: [[UInt8]] = []
        for try await chunk in body([[1, 2], [], [3]]) { chunks.append(chunk) }
        #expect(chunks == [[1, 2], [3]])
        #expect(try await body([[1, 2], [], [3]]).collect() == [1, 2, 3])
        #expect(try await body([]).collect().isEmpty)
    }

    @Test func aProducedBodyKeepsTheLimitAndEndsWhenItIsCancelled() async throws {
        await #expect(throws: NetworkError.self) { try await body([[1, 2], [3]]).collect(upTo: ByteCount(2)) }
        let cancelled = body([[1]])
        cancelled.cancel()
        let error = await failure { _ = try await cancelled.collect() }
        guard case .cancelled = error else { Issue.record("\(String(describing: error))"); return }
    }

    private final class Chunks: BodySource {
        private let rest: Locked<[[UInt8]]>

        init(_ chunks: [[UInt8]]) { rest = Locked(chunks) }

        func next() async throws(NetworkError) -> [UInt8]? { rest.withLock { $0.isEmpty ? nil : $0.removeFirst() } }

        func cancel() {}
    }

    @Test(arguments: [nil, 0, 1, 999, 65_536, 600_000, 1 << 20, .max])
    func theAnnouncedLengthIsOnlyAHint(announced: Int?) async throws {
        let bytes = (0..<600_000).map { UInt8(truncatingIfNeeded: $0 >> 7) }
        let chunks = stride(from: 0, to: bytes.count, by: 65_536).map { Array(bytes[$0...].prefix(65_536)) }
        let body = ResponseBody(Chunks(chunks), announced: announced)
        let found = try await body.counted(by: TransferProgress()).collect()
        #expect(found == bytes)
        // Grown by doubling it would have room for 1,048,576.
        if announced == bytes.count { #expect(found.capacity < 700_000) }
        let other = ResponseBody(Chunks(chunks), announced: announced)
        let error = await failure { _ = try await other.collect(upTo: ByteCount(599_999)) }
        guard case .bodyTooLarge = error else { Issue.record("\(String(describing: error))"); return }
        #expect(try await ResponseBody(Chunks([]), announced: announced).collect().isEmpty)
    }

    @Test func bytesAreReadOnce() async throws {
        let body = ResponseBody([1, 2, 3])
        #expect(try await body.collect() == [1, 2, 3])
        #expect(try await body.collect().isEmpty)
    }
}

/// A transport of one method, as a program writes it.
struct TransportTests {
    private struct FixedTransport: HTTPTransport {
        func load(_ request: HTTPRequest) async throws(NetworkError) -> HTTPResponse {
            HTTPResponse(head: HTTPResponseHead(url: request.url), body: ResponseBody([7]))
        }
    }

    @Test func aTransportServesRequestsAndSchemes() async throws {
        let url = try #require(URL(string: "http://example.org/a"))
        let loader = NetworkLoader(FixedTransport())
        loader.register(FixedTransport(), for: "fixed")
        for text in ["http://example.org/a", "fixed:x"] {
            let url = try #require(URL(string: text))
            let response = try await loader.load(HTTPRequest(url: url))
            #expect(response.head.status == 200 && response.head.url == url)
            #expect(try await response.body.collect() == [7])
        }
        var configuration = NetworkLoader.Configuration()
        configuration.policy = .publicOnly
        let error = await failure {
            _ = try await NetworkLoader(FixedTransport(), configuration).load(HTTPRequest(url: url))
        }
        guard case .refused(_, PolicyViolation.addressesUnknown.description) = error else { Issue.record("\(String(describing: error))"); return }
        #expect(error?.localizedDescription == error?.description)
    }
}
