import Foundation
import VitrineCore
package import VitrineNetwork
package import VitrineS3

/// Sources in buckets, `s3://bucket/key`, under the limits and the caching rules of sources on the web.
///
/// Requests carry an address of `http` whose host does not exist. Only this transport sees it.
package struct BucketSources: HTTPTransport {
    /// The buckets that may be loaded from.
    package let names: Set<String>
    private let source: S3Source

    private static let beginning = "http://s3.invalid/"

    /// - Parameter buckets: The buckets by the names that addresses have.
    package init(_ buckets: [String: S3Bucket]) {
        names = Set(buckets.keys)
        source = S3Source(buckets: buckets, maximumBytes: .gigabytes(1_000))
    }

    /// The address by which this transport knows a source; nil if it is not valid.
    static func url(bucket: String, key: String) -> URL? { URL(string: beginning + bucket + "/" + key) }

    /// The name of a source in the cache of sources, which no source on the web has.
    static func identity(_ url: URL) -> String { "s3 " + url.absoluteString.dropFirst(beginning.count) }

    package func load(_ request: HTTPRequest) async throws(NetworkError) -> HTTPResponse {
        let address = "s3://" + request.url.absoluteString.dropFirst(Self.beginning.count)
        guard let url = URL(string: address) else { throw .invalidURL(url: address, reason: "it is not a URL") }
        var own = request
        own.url = url
        var response = try await response(to: own)
        // The cache compares it with the address of the request.
        response.head.url = request.url
        return response
    }

    /// The response, within the time of the request.
    private func response(to request: HTTPRequest) async throws(NetworkError) -> HTTPResponse {
        let source = source
        let load = Task { () -> Result<HTTPResponse, NetworkError> in
            do throws(NetworkError) {
                return .success(try await source.load(request))
            } catch {
                return .failure(error)
            }
        }
        let address = request.url.absoluteString
        let result = await withTaskCancellationHandler {
            await load.value(within: request.totalTimeout ?? .seconds(86_400))
        } onCancel: {
            load.cancel()
        }
        guard let result else {
            load.cancel()
            throw .tookTooLong(url: address)
        }
        return try result.get()
    }
}
