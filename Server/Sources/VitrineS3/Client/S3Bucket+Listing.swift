import Foundation
import VitrineCore
import VitrineNetwork

/// A part of the keys of a bucket.
package struct S3Page: Sendable {
    package var objects: [S3Object] = []
    /// The beginnings of further keys, up to the delimiter.
    package var prefixes: [String] = []
    /// Continues the listing; nil at the end.
    package var next: String?
}

extension S3Bucket {
    /// Returns the objects whose keys begin with a prefix, in the order of the server, which is mostly that of the
    /// bytes. A page of up to 1,000 is in memory at once.
    ///
    /// - Parameter prefix: The beginning of the keys. Default: empty, which means all.
    public func list(prefix: String = "") -> S3Listing { S3Listing(bucket: self, prefix: prefix) }

    /// Returns one page.
    ///
    /// - Parameters:
    ///   - prefix: The beginning of the keys.
    ///   - delimiter: Ends the part of longer keys that is listed once as a prefix; nil for none.
    ///   - token: The ``S3Page/next`` of the page before.
    ///   - count: The most objects of the page.
    package func page(
        prefix: String, delimiter: String? = nil, after token: String? = nil, count: Int = 1_000
    ) async throws(S3Error) -> S3Page {
        var query = [
            (name: "list-type", value: "2"), ("encoding-type", "url"), ("max-keys", String(min(1_000, max(1, count))))
        ]
        if !prefix.isEmpty { query.append(("prefix", prefix)) }
        if let delimiter { query.append(("delimiter", delimiter)) }
        if let token { query.append(("continuation-token", token)) }
        let answer = try await client.send(S3Call(bucket: name, query: query, limit: .mebibytes(8)))
        let page = try page(try xml(answer, key: prefix, name: "ListBucketResult"), prefix)
        guard page.next == nil || page.next != token else {
            throw .invalidResponse(address(prefix), reason: "its next page is the same one")
        }
        return page
    }

    private func page(_ root: XMLElement, _ prefix: String) throws(S3Error) -> S3Page {
        let isEncoded = root.text(of: "EncodingType") == "url"
        func key(_ element: XMLElement, _ name: String) throws(S3Error) -> String {
            let text = element.text(of: name) ?? ""
            let blanks = text.utf8.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 }
            let key = isEncoded ? String(decoding: blanks, as: UTF8.self).removingPercentEncoding : text
            guard let key, key.utf8.starts(with: prefix.utf8), !key.isEmpty, key.utf8.count <= S3Address.longestKey
            else { throw .invalidResponse(address(prefix), reason: "it lists a key that was not asked for") }
            return key
        }
        var page = S3Page()
        for element in root.children {
            switch element.name {
            case "Contents":
                var object = S3Object(key: try key(element, "Key"))
                object.size = element.text(of: "Size").flatMap { Int($0) }.flatMap { $0 < 0 ? nil : $0 }
                object.entityTag = element.text(of: "ETag")
                object.lastModified = element.text(of: "LastModified").flatMap(S3Time.parse(iso:))
                page.objects.append(object)
            case "CommonPrefixes": page.prefixes.append(try key(element, "Prefix"))
            default: break
            }
        }
        if root.text(of: "IsTruncated") == "true" {
            guard let next = root.text(of: "NextContinuationToken"), !next.isEmpty else {
                throw .invalidResponse(address(prefix), reason: "it ends early")
            }
            page.next = next
        }
        return page
    }
}

/// The objects of a listing, page by page.
public struct S3Listing: AsyncSequence, Sendable {
    let bucket: S3Bucket
    let prefix: String

    public func makeAsyncIterator() -> Iterator { Iterator(bucket: bucket, prefix: prefix) }

    /// Loads one page after the other.
    public struct Iterator: AsyncIteratorProtocol {
        /// Servers may send empty pages, for example of deleted objects, but not for ever.
        private static let mostEmptyPages = 1_000

        private let bucket: S3Bucket
        private let prefix: String
        private var objects: ArraySlice<S3Object> = []
        private var token: String?
        private var isLast = false
        private var emptyPages = 0

        init(bucket: S3Bucket, prefix: String) { (self.bucket, self.prefix) = (bucket, prefix) }

        /// Returns the next object; nil at the end.
        public mutating func next() async throws(S3Error) -> S3Object? {
            try await next(isolation: nil)
        }

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(S3Error) -> S3Object? {
            while objects.isEmpty, !isLast {
                let page = try await bucket.page(prefix: prefix, after: token)
                objects = page.objects[...]
                token = page.next
                isLast = page.next == nil
                emptyPages = objects.isEmpty ? emptyPages + 1 : 0
                guard emptyPages < Self.mostEmptyPages else {
                    throw .invalidResponse(bucket.address(prefix), reason: "it has too many empty pages")
                }
            }
            return objects.popFirst()
        }
    }
}
