import Foundation
import TestSupport
import Testing
import VitrineCore
@_spi(HTTPCacheEngine) import VitrineNetwork

struct NetworkErrorTextTests {
    private static let url = "https://example.org/lake.jpg"
    private let url = Self.url

    private struct Refusal: LocalizedError {
        var errorDescription: String? { "The token has expired." }
    }

    @Test func networkErrorsDescribeThemselvesInOneLine() {
        let head = HTTPResponseHead(status: 404, url: URL(filePath: "/"))
        let errors: [NetworkError] = [
            .invalidURL(url: url, reason: "it has no host"), .invalidRequest(url: url, reason: "its method is empty"),
            .refused(url: url, reason: "the address is private."), .unsupportedScheme(url: url, scheme: "gopher"),
            .handler(url: url, underlying: Refusal()),
            .handler(url: url, underlying: NetworkError.timedOut(url: url, .idle)),
            .nameNotResolved(url: url, host: "example"), .notConnected(url: url, reason: "refused"),
            .insecure(url: url, reason: "the certificate has expired"), .timedOut(url: url, .connect),
            .tookTooLong(url: url), .truncated(url: url, received: 10, reason: "the connection was closed"),
            .invalidResponse(url: url, reason: "it has no status"), .headerTooLarge(url: url),
            .bodyTooLarge(url: url, limit: 10), .status(url: url, head), .contentType(url: url, type: "text/html"),
            .contentType(url: url, type: nil), .tooManyRedirects(url: url, reason: "they form a loop"),
            .busy(url: url, path: "/data/a"), .cancelled(url: url), .unavailable(url: url, reason: "it was shut down"),
        ]
        for error in errors {
            #expect(ErrorTextRule.violations(of: error, input: url).isEmpty)
            #expect(error.description.contains(url))
            #expect(!error.textWithoutInput.contains(url) && !error.reason.hasSuffix("."))
        }
        let file = NetworkError.file(.noSpace(path: "/data/a"))
        #expect(ErrorTextRule.violations(of: file, input: "/data/a").isEmpty)
        #expect(file.url == "/data/a" && !file.reason.contains("/data/a"))
    }

    @Test func errorsOfHandlersHaveOneStop() {
        let error = NetworkError.handler(url: url, underlying: Refusal())
        #expect(error.description == "\(url) could not be loaded: The token has expired.")
    }

    @Test func bodiesAndHeadersAboveALimitSayWhatToDo() {
        #expect(NetworkError.bodyTooLarge(url: url, limit: 10).description.contains("Raise maximumBodySize"))
        #expect(NetworkError.headerTooLarge(url: url).description.contains("The server must send fewer"))
        // The command adds options of its own to the reason.
        #expect(!NetworkError.bodyTooLarge(url: url, limit: 10).reason.contains("maximumBodySize"))
    }

    @Test func longURLsAreShortenedByCharacters() {
        let umlauts = "data:," + String(repeating: "ü", count: 194)
        #expect(NetworkError.cancelled(url: umlauts).description == "Loading \(umlauts) was cancelled.")
        let long = NetworkError.cancelled(url: umlauts + "ü").description
        #expect(long.count == "Loading  was cancelled.".count + 200 && long.contains("ü… was"))
    }

    @Test func errorsOfStoredResponsesDescribeThemselvesInOneLine() {
        for error in [StoredResponseError.unknownVersion(9), .damaged] {
            #expect(ErrorTextRule.violations(of: error, input: "stored response").isEmpty)
            #expect(error.description.hasSuffix("Load it again."))
        }
    }
}
