import Foundation
public import VitrineCore
public import VitrineNetwork

/// Loads `s3://bucket/key` addresses from a table of buckets. Other buckets are refused.
///
/// A server asks for the bytes of an address and keeps their version, so that it can ask again whether they changed:
///
/// ```swift
/// let source = S3Source(buckets: ["pictures": client.bucket("pictures")])
/// if let original = try await source.load("s3://pictures/cats/1.jpeg", unless: known) { render(original.bytes) }
/// ```
///
/// A source is also a transport, which makes the addresses known to every pipeline over a loader:
///
/// ```swift
/// loader.register(source, for: "s3")
/// ```
///
/// Keys in addresses are percent-encoded where they contain `%`, `?` or `#`.
public struct S3Source: Sendable {
    /// The bytes of an address.
    public struct Original: Sendable {
        /// The bytes, whose content coding is decoded.
        public var bytes: [UInt8]
        /// Differs if the bytes do; an empty text if the server names no version.
        public var version: String
        /// The media type that the server names.
        public var contentType: String?
        /// As the server sent it.
        public var lastModified: String?
    }

    private let buckets: [String: S3Bucket]
    private let maximumBytes: ByteCount

    /// Creates a source.
    ///
    /// - Parameters:
    ///   - buckets: The buckets by the names that addresses have. They may belong to different clients, and have other
    ///     names at their servers.
    ///   - maximumBytes: The most bytes of an object. Default: 100 MB.
    public init(buckets: [String: S3Bucket], maximumBytes: ByteCount = .megabytes(100)) {
        (self.buckets, self.maximumBytes) = (buckets, maximumBytes)
    }

    /// Loads the bytes of an address, unless they have a known version.
    ///
    /// - Parameters:
    ///   - address: The address.
    ///   - version: The ``Original/version`` of bytes that are known. Default: none.
    /// - Returns: nil if the known bytes are still current.
    /// - Throws: ``S3Error/invalidName(_:reason:)`` for addresses that are malformed or of another bucket,
    ///   ``S3Error/notFound(_:)``, ``S3Error/tooLarge(_:limit:)`` and others.
    public func load(_ address: String, unless version: String? = nil) async throws(S3Error) -> Original? {
        let (bucket, key) = try place(address)
        let known = version.flatMap { $0.isEmpty ? nil : $0 }
        guard let contents = try await bucket.contents(key, unless: known, limit: maximumBytes, isDecoded: true)
        else { return nil }
        return Original(
            bytes: contents.bytes, version: contents.object.entityTag ?? "", contentType: contents.object.contentType,
            lastModified: contents.head.headers["Last-Modified"])
    }

    /// Returns the bucket and key of an address.
    package func place(_ address: String) throws(S3Error) -> (bucket: S3Bucket, key: String) {
        let shown = S3Error.line(address)
        guard address.prefix(5).lowercased() == "s3://" else {
            throw .invalidName(shown, reason: "it does not begin with s3://")
        }
        let rest = address.dropFirst(5)
        guard let slash = rest.utf8.firstIndex(of: UInt8(ascii: "/")) else {
            throw .invalidName(shown, reason: "it has no key")
        }
        let path = rest[slash...].dropFirst()
        guard !path.utf8.contains(UInt8(ascii: "?")), !path.utf8.contains(UInt8(ascii: "#")) else {
            throw .invalidName(shown, reason: "? and # in keys must be written %3F and %23")
        }
        guard let key = String(path).removingPercentEncoding else {
            throw .invalidName(shown, reason: "it is not percent-encoded correctly")
        }
        try S3Address.check(key: key)
        guard let bucket = buckets[String(rest[..<slash])] else {
            throw .invalidName(shown, reason: "the bucket is not configured")
        }
        return (bucket, key)
    }
}

extension S3Source: HTTPTransport {
    /// Loads a request for an `s3` URL with method `GET` or `HEAD`. Errors of the server have its status.
    public func load(_ request: HTTPRequest) async throws(NetworkError) -> HTTPResponse {
        let url = request.url.absoluteString
        do throws(S3Error) {
            return try await response(to: request, url)
        } catch {
            if let status = error.status {
                return Self.response(HTTPResponseHead(status: status, url: request.url), [])
            }
            switch error {
            case .invalidName(_, let reason): throw .invalidURL(url: url, reason: reason)
            case .tooLarge(_, let limit): throw .bodyTooLarge(url: url, limit: limit)
            case .invalidRange: return Self.response(HTTPResponseHead(status: 416, url: request.url), [])
            case .cancelled: throw .cancelled(url: url)
            case .network(_, let error): throw error
            default: throw .handler(url: url, underlying: error)
            }
        }
    }

    private func response(to request: HTTPRequest, _ url: String) async throws(S3Error) -> HTTPResponse {
        let (bucket, key) = try place(url)
        let limit = min(maximumBytes, request.maximumBodySize)
        switch request.method {
        case "HEAD":
            let answer = try await bucket.client.send(S3Call(method: "HEAD", bucket: bucket.name, key: key))
            return Self.response(answer.head, [], at: request)
        case "GET": break
        default: throw .notSupported(url, reason: "the method \(S3Error.line(request.method)) of an s3 URL")
        }
        if let range = request.range,
            let contents = try await part(bucket, key: key, range: range, validator: request.ifRange, limit: limit)
        {
            return Self.response(contents.head, contents.bytes, at: request)
        }
        let known = request.headers["If-None-Match"]
        guard
            let contents = try await bucket.contents(key, unless: known, limit: limit, isDecoded: request.range == nil)
        else {
            let headers: HTTPHeaders = known.map { ["ETag": $0] } ?? [:]
            return Self.response(HTTPResponseHead(status: 304, headers: headers, url: request.url), [])
        }
        return Self.response(contents.head, contents.bytes, at: request)
    }

    /// Returns a part of an object; nil if the object is no longer the one that a validator names.
    private func part(
        _ bucket: S3Bucket, key: String, range: Range<Int>, validator: String?, limit: ByteCount
    ) async throws(S3Error) -> S3Contents? {
        // A date is no strong validator for all servers.
        if let validator, !validator.hasPrefix("\"") { return nil }
        let condition = validator.map { [(name: "if-match", value: $0)] } ?? []
        do throws(S3Error) {
            return try await bucket.contents(key, range: range, condition, limit: limit)
        } catch .changed where validator != nil {
            return nil
        }
    }

    private static func response(
        _ head: HTTPResponseHead, _ bytes: [UInt8], at request: HTTPRequest? = nil
    ) -> HTTPResponse {
        var head = head
        if let request { head.url = request.url }
        return HTTPResponse(head: head, body: ResponseBody(bytes))
    }
}
