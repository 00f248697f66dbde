public import Foundation
public import VitrineCore
import VitrineNetwork

/// The description of an object.
public struct S3Object: Sendable, Hashable {
    /// The name.
    public var key: String
    /// The number of bytes; nil if the server does not say it.
    public var size: Int?
    /// The entity tag, with its quotes, which differs if the bytes do.
    public var entityTag: String?
    /// When it was stored, since 1970.
    public var lastModified: Duration?
    /// The media type; nil in listings.
    public var contentType: String?
    /// The metadata of the user, with names in lowercase; empty in listings.
    public var metadata: [String: String] = [:]

    package init(key: String) { self.key = key }

    init(key: String, _ head: HTTPResponseHead) {
        self.key = key
        size = head.contentLength
        entityTag = head.headers["ETag"]
        lastModified = head.headers["Last-Modified"]
            .flatMap { HTTPDate.seconds($0, now: WallClock.system.now) }.map { .seconds($0) }
        contentType = head.headers["Content-Type"]
        for (name, value) in head.headers {
            let name = name.lowercased()
            if name.hasPrefix("x-amz-meta-") { metadata[String(name.dropFirst(11))] = value }
        }
    }
}

/// An object and its bytes, or a part of them.
public struct S3Contents: Sendable {
    /// The object.
    public var object: S3Object
    /// The bytes.
    public var bytes: [UInt8]

    /// The head of the answer.
    var head: HTTPResponseHead
}

/// The objects of a bucket.
///
/// Keys are texts of up to 1,024 bytes of UTF-8 without segments `.` and `..`. A call whose task is cancelled throws
/// ``S3Error/cancelled(_:)``; whether a write took place is then unknown.
public struct S3Bucket: Sendable {
    /// The client.
    public let client: S3Client
    /// The name.
    public let name: String

    func address(_ key: String) -> String { S3Address.text(name, key) }

    // MARK: Reading

    /// Loads an object into memory.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - range: The part to load, as offsets of bytes. An upper bound beyond the end means the end. Default: all.
    /// - Throws: ``S3Error/notFound(_:)``, ``S3Error/tooLarge(_:limit:)``, ``S3Error/invalidRange(_:)`` and others.
    public func get(_ key: String, range: Range<Int>? = nil) async throws(S3Error) -> S3Contents {
        try await contents(key, range: range, [], limit: client.configuration.maximumBytes)
    }

    /// Loads an object unless it has an entity tag.
    ///
    /// - Returns: nil if the object has this entity tag.
    /// - Throws: As ``get(_:range:)``.
    public func get(_ key: String, unless entityTag: String) async throws(S3Error) -> S3Contents? {
        try await contents(key, unless: entityTag, limit: client.configuration.maximumBytes, isDecoded: false)
    }

    func contents(
        _ key: String, unless entityTag: String?, limit: ByteCount, isDecoded: Bool
    ) async throws(S3Error) -> S3Contents? {
        var call = S3Call(bucket: name, key: key, isDecoded: isDecoded, limit: limit)
        if let entityTag { call.headers = [("if-none-match", entityTag)] }
        try S3Address.check(key: key)
        let answer = try await client.send(call)
        if answer.head.status == 304 {
            guard entityTag != nil else { throw unasked(key) }
            return nil
        }
        // A server may ignore the condition.
        if let entityTag, answer.head.headers["ETag"] == entityTag { return nil }
        guard answer.head.status == 200 else { throw unasked(key) }
        return S3Contents(object: S3Object(key: key, answer.head), bytes: answer.body, head: answer.head)
    }

    func contents(
        _ key: String, range: Range<Int>?, _ headers: [(name: String, value: String)], limit: ByteCount
    ) async throws(S3Error) -> S3Contents {
        try S3Address.check(key: key)
        var call = S3Call(bucket: name, key: key, headers: headers, limit: limit)
        call.range = range
        let answer = try await client.send(call)
        var object = S3Object(key: key, answer.head)
        guard let range else {
            guard answer.head.status == 200 else { throw unasked(key) }
            return S3Contents(object: object, bytes: answer.body, head: answer.head)
        }
        guard answer.head.status == 206, let part = Self.part(answer.head.headers["Content-Range"]),
            part.range.lowerBound == range.lowerBound, part.range.count == answer.body.count,
            part.range.upperBound == range.upperBound || part.range.upperBound == min(part.total, range.upperBound)
        else { throw .invalidResponse(address(key), reason: "it is not the requested part") }
        object.size = part.total
        return S3Contents(object: object, bytes: answer.body, head: answer.head)
    }

    private func unasked(_ key: String) -> S3Error {
        .invalidResponse(address(key), reason: "it has a status that was not asked for")
    }

    /// Parses `bytes 0-9/100`.
    private static func part(_ text: String?) -> (range: Range<Int>, total: Int)? {
        guard let text, text.hasPrefix("bytes ") else { return nil }
        let numbers = text.dropFirst(6).split(omittingEmptySubsequences: false) { $0 == "-" || $0 == "/" }
        let parts = numbers.compactMap { part in
            part.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int(part) : nil
        }
        guard numbers.count == 3, parts.count == 3, parts[0] <= parts[1], parts[1] < parts[2] else { return nil }
        return (parts[0]..<(parts[1] + 1), parts[2])
    }

    /// Returns an object without its bytes.
    ///
    /// - Throws: ``S3Error/notFound(_:)``, also if there is no such bucket, and others.
    public func head(_ key: String) async throws(S3Error) -> S3Object {
        try S3Address.check(key: key)
        let answer = try await client.send(S3Call(method: "HEAD", bucket: name, key: key))
        return S3Object(key: key, answer.head)
    }

    /// Returns the bytes of an object in chunks, which are loaded on demand. At most one chunk is in memory. All chunks
    /// are of the same version: if the object is replaced meanwhile, the next chunk throws ``S3Error/changed(_:)``.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - size: The length of the chunks; the last one may be shorter. Default: 8 MiB.
    public func chunks(of key: String, size: ByteCount = .mebibytes(8)) -> S3Chunks {
        S3Chunks(bucket: self, key: key, size: max(1, size.bytes))
    }

    // MARK: Writing

    /// Stores bytes. The object has all of them or does not change.
    ///
    /// - Parameters:
    ///   - bytes: The contents.
    ///   - key: The key.
    ///   - type: The media type. Default: `application/octet-stream`.
    ///   - metadata: Names and values in ASCII to store with the object, up to 2 KB.
    ///   - replacing: Whether to replace an existing object. If false, the server decides in one step whether there is
    ///     one. Default: true.
    /// - Returns: The entity tag.
    /// - Throws: ``S3Error/alreadyExists(_:)`` if there is an object that must not be replaced;
    ///   ``S3Error/notSupported(_:reason:)`` if the server cannot decide that in one step, and others.
    @discardableResult
    public func put(
        _ bytes: [UInt8], as key: String, type: String? = nil, metadata: [String: String] = [:],
        replacing: Bool = true
    ) async throws(S3Error) -> String? {
        try S3Address.check(key: key)
        var call = S3Call(method: "PUT", bucket: name, key: key, headers: try Self.fields(type, metadata), body: bytes)
        guard !replacing else { return try await client.send(call).head.headers["ETag"] }
        guard client.supportsConditions(name) else { throw withoutConditions(key) }
        let mark = Self.mark()
        call.headers += [("if-none-match", "*"), ("x-amz-meta-" + Self.markName, mark)]
        let (result, isUncertain) = try await client.run(call)
        switch result {
        case .success(let answer): return answer.head.headers["ETag"]
        case .failure(.alreadyExists(let address)):
            // An attempt whose answer was lost may have stored it.
            if isUncertain, let object = try? await head(key), object.metadata[Self.markName] == mark {
                return object.entityTag
            }
            throw .alreadyExists(address)
        case .failure(.notSupported):
            client.rememberNoConditions(name)
            throw withoutConditions(key)
        case .failure(let error): throw error
        }
    }

    /// The metadata that tells the writes of this client apart.
    static let markName = "vitrine-write"

    static func mark() -> String { String(UInt64.random(in: .min ... .max), radix: 36) }

    func withoutConditions(_ key: String) -> S3Error {
        .notSupported(address(key), reason: "it has no conditional writes")
    }

    static func fields(
        _ type: String?, _ metadata: [String: String]
    ) throws(S3Error) -> [(name: String, value: String)] {
        var fields = [(name: "content-type", value: type ?? "application/octet-stream")]
        for (name, value) in metadata.sorted(by: { $0.key < $1.key }) {
            let name = name.lowercased()
            let isName = name.utf8.allSatisfy {
                (0x30...0x39).contains($0) || (0x61...0x7A).contains($0) || $0 == UInt8(ascii: "-")
            }
            guard isName, !name.isEmpty else {
                throw .invalidName(
                    S3Error.line(name), reason: "names of metadata have letters, digits and hyphens only")
            }
            fields.append(("x-amz-meta-" + name, value))
        }
        return fields
    }

    /// Deletes an object. It is not an error if there is none.
    public func delete(_ key: String) async throws(S3Error) {
        try S3Address.check(key: key)
        do throws(S3Error) {
            _ = try await client.send(S3Call(method: "DELETE", bucket: name, key: key))
        } catch .notFound {
            // Some servers say so.
        }
    }

    /// Copies an object with its type and metadata, of up to 5 GB, in the server.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - newKey: The key of the copy, which replaces an existing object.
    public func copy(_ key: String, to newKey: String) async throws(S3Error) {
        try S3Address.check(key: key)
        try S3Address.check(key: newKey)
        let source = "/" + name + "/" + RequestSigner.encoded(key, keepsSlashes: true)
        let call = S3Call(
            method: "PUT", bucket: name, key: newKey, headers: [("x-amz-copy-source", source)], body: [])
        do throws(S3Error) {
            _ = try await client.send(call)
        } catch .notFound {
            throw .notFound(address(key))
        }
    }

    /// Creates the bucket, for tests.
    package func create() async throws(S3Error) {
        _ = try await client.send(S3Call(method: "PUT", bucket: name, body: []))
    }

    // MARK: Addresses

    /// Returns a URL that anyone may use until it expires.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - method: The method to permit. Default: `GET`.
    ///   - duration: How long the URL is valid, from one second to seven days.
    public func presignedURL(
        for key: String, method: String = "GET", expiresIn duration: Duration
    ) async throws(S3Error) -> URL {
        try S3Address.check(bucket: name)
        try S3Address.check(key: key)
        let seconds = duration.components.seconds
        guard (1...604_800).contains(seconds) else {
            throw .invalidName(address(key), reason: "a URL is valid for a second to seven days")
        }
        guard let keys = try await client.currentCredentials() else {
            throw .noCredentials(reason: "the client is anonymous")
        }
        let target = client.endpoint.target(name, key)
        let query = RequestSigner(keys, region: client.configuration.region).presignedQuery(
            for: .init(method: method, host: target.host, path: target.path), seconds: Int(seconds),
            at: client.serverTime)
        guard let url = URL(string: target.origin + target.path + "?" + query) else {
            throw .invalidName(address(key), reason: "it has no address at the server")
        }
        return url
    }
}

/// The bytes of an object in chunks.
public struct S3Chunks: AsyncSequence, Sendable {
    let bucket: S3Bucket
    let key: String
    let size: Int

    public func makeAsyncIterator() -> Iterator { Iterator(bucket: bucket, key: key, size: size) }

    /// Loads one chunk after the other.
    public struct Iterator: AsyncIteratorProtocol {
        let bucket: S3Bucket
        let key: String
        let size: Int
        private var offset = 0
        private var known: (total: Int, entityTag: String?)?

        init(bucket: S3Bucket, key: String, size: Int) {
            (self.bucket, self.key, self.size) = (bucket, key, size)
        }

        /// Returns the next chunk; nil at the end.
        public mutating func next() async throws(S3Error) -> [UInt8]? {
            try await next(isolation: nil)
        }

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(S3Error) -> [UInt8]? {
            if let known, offset >= known.total { return nil }
            // Some servers refuse every range of an empty object.
            if known == nil {
                let object = try await bucket.head(key)
                guard let size = object.size else {
                    throw .invalidResponse(bucket.address(key), reason: "it has no length")
                }
                known = (size, object.entityTag)
                if size == 0 { return nil }
            }
            guard let known else { return nil }
            let range = offset..<Swift.min(known.total, offset + size)
            let condition = known.entityTag.map { [(name: "if-match", value: $0)] } ?? []
            let part = try await bucket.contents(key, range: range, condition, limit: ByteCount(range.count))
            guard part.object.size == known.total, part.object.entityTag == known.entityTag else {
                throw .changed(bucket.address(key))
            }
            offset = range.upperBound
            return part.bytes
        }
    }
}
