import Crypto
import Foundation
public import VitrineCore

/// Keeps results, such as rendered images, in a bucket, so that they survive the loss of every server and cache.
///
/// An object has the bytes; its metadata have the time of creation and a checksum. The checksum covers the key, the
/// media type and the time too. An object that was damaged, written by another program or moved to another key is
/// therefore never returned.
///
/// Objects are named by a digest of their key, because keys may contain secrets or be long. The store removes nothing
/// by itself: let the bucket expire objects by a rule.
public struct S3ResultStore: Sendable {
    /// A result.
    public struct Entry: Sendable, Hashable {
        /// The contents.
        public var bytes: [UInt8]
        /// The media type.
        public var contentType: String
        /// When it was made, since 1970, in milliseconds: smaller parts are lost.
        public var created: Duration

        /// Creates a result.
        public init(bytes: [UInt8], contentType: String, created: Duration) {
            (self.bytes, self.contentType, self.created) = (bytes, contentType, created)
        }
    }

    private static let format = "1"

    private let bucket: S3Bucket
    private let prefix: String
    private let maximumBytes: ByteCount

    /// Creates a store.
    ///
    /// - Parameters:
    ///   - bucket: The bucket.
    ///   - prefix: The beginning of all object names. Default: `results/`.
    ///   - maximumBytes: The most bytes of a result. Default: 100 MB.
    public init(_ bucket: S3Bucket, prefix: String = "results/", maximumBytes: ByteCount = .megabytes(100)) {
        (self.bucket, self.prefix, self.maximumBytes) = (bucket, prefix, maximumBytes)
    }

    /// Returns the result of a key; nil if there is none.
    ///
    /// - Throws: ``S3Error/damaged(_:reason:)`` if this store did not write the object under the key, and others.
    ///   A cache treats each error as a miss.
    public func get(_ key: String) async throws(S3Error) -> Entry? { try await find(key)?.entry }

    /// Returns the result of a key as ``get(_:)``, with the time at which it was stored, since 1970 by the clock of
    /// the server; nil if the server does not tell it.
    ///
    /// - Throws: As ``get(_:)``.
    public func find(_ key: String) async throws(S3Error) -> (entry: Entry, stored: Duration?)? {
        let name = objectName(of: key)
        let address = bucket.address(name)
        guard let contents = try await contents(name) else { return nil }
        let metadata = contents.object.metadata
        guard metadata["vitrine-format"] == Self.format else {
            throw .damaged(address, reason: "it has another format")
        }
        guard let created = metadata["vitrine-created"].flatMap({ Int64($0) }),
            let type = contents.object.contentType
        else { throw .damaged(address, reason: "its metadata are incomplete") }
        let entry = Entry(bytes: contents.bytes, contentType: type, created: .milliseconds(created))
        guard metadata["vitrine-sha256"] == Self.checksum(of: entry, key) else {
            throw .damaged(address, reason: "its checksum is wrong")
        }
        return (entry, contents.object.lastModified)
    }

    private func contents(_ name: String) async throws(S3Error) -> S3Contents? {
        do throws(S3Error) {
            return try await bucket.contents(name, unless: nil, limit: maximumBytes, isDecoded: false)
        } catch .notFound {
            return nil
        }
    }

    /// Stores a result.
    ///
    /// - Parameter replacing: Whether to replace another result of its key. If false, the server decides in one step
    ///   whether there is one. Default: true.
    /// - Throws: ``S3Error/tooLarge(_:limit:)``, ``S3Error/alreadyExists(_:)`` and ``S3Error/notSupported(_:reason:)``
    ///   as `S3Bucket.put`, and others.
    public func put(_ entry: Entry, for key: String, replacing: Bool = true) async throws(S3Error) {
        let name = objectName(of: key)
        guard entry.bytes.count <= maximumBytes.bytes else {
            throw .tooLarge(bucket.address(name), limit: maximumBytes)
        }
        let metadata = [
            "vitrine-format": Self.format, "vitrine-created": String(Self.milliseconds(entry)),
            "vitrine-sha256": Self.checksum(of: entry, key)
        ]
        try await bucket.put(
            entry.bytes, as: name, type: entry.contentType, metadata: metadata, replacing: replacing)
    }

    /// Removes the result of a key. It is not an error if there is none.
    public func remove(_ key: String) async throws(S3Error) { try await bucket.delete(objectName(of: key)) }

    package func objectName(of key: String) -> String {
        let digest = RequestSigner.digest(Array(key.utf8))
        return prefix + digest.prefix(2) + "/" + digest.dropFirst(2)
    }

    private static func milliseconds(_ entry: Entry) -> Int64 {
        let (seconds, attoseconds) = entry.created.components
        // The last times of this clock: no sum overflows.
        return max(-(1 << 50), min(1 << 50, seconds)) * 1_000 + attoseconds / 1_000_000_000_000_000
    }

    private static func checksum(of entry: Entry, _ key: String) -> String {
        var hash = SHA256()
        // Lengths before the parts, so that no part can take over bytes of the next.
        for part in [Array(key.utf8), Array(entry.contentType.utf8), Array(String(milliseconds(entry)).utf8)] {
            hash.update(data: Array("\(part.count):".utf8) + part)
        }
        hash.update(data: entry.bytes)
        return RequestSigner.hexadecimal(hash.finalize())
    }
}
