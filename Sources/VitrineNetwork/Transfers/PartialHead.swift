#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCore

/// The URL that sent a body. Validators of different URLs cannot be compared.
package struct PartSource: Sendable, Hashable {
    /// The URL without its query, and behind a question mark the digest of the query, which can contain secrets.
    package let text: String

    init(_ url: URL) {
        let text = url.absoluteString
        let place: String, query: Substring
        if let url = try? SourceURL(text) {
            (place, query) = (url.origin + url.target.prefix { $0 != "?" }, url.target.drop { $0 != "?" })
        } else {
            place = String(text.prefix { $0 != "?" && $0 != "#" })
            query = text.drop { $0 != "?" }.prefix { $0 != "#" }
        }
        self.text = query.isEmpty ? place : place + "?" + Hexadecimal.text(SHA256Digest.digest(of: String(query)))
    }

    /// Creates a source from its text.
    package init(text: String) { self.text = text }

    /// Returns whether only the queries can differ. They do if the addresses of a file are signed for a time.
    func isSamePlace(as other: PartSource?) -> Bool {
        guard let other else { return false }
        return text.prefix { $0 != "?" } == other.text.prefix { $0 != "?" }
    }
}

/// The metadata of the body in a ``PartialFile``, stored in a file beside it.
package struct PartialHead: Sendable, Hashable {
    /// The identity of the body, as the caller defines it.
    package let identity: String
    /// The final URL.
    package let source: PartSource
    /// The response of the body.
    package let response: StoredResponse
    /// The ``BootSession`` that wrote it; empty if it is unknown.
    package var session: String
    /// The number of synchronized bytes, which survive a crash of the system.
    package var durableLength = 0
    /// The synchronized bytes of each piece; empty if the body is not divided.
    package var durablePieces: [Int] = []
    /// The checksums of the last synchronized block of the body, or of each piece; see ``PartChecksums``.
    package var durableSums: [UInt32] = []
    /// The number of pieces of a whole body that was received in pieces, as its checksums know it; otherwise 0.
    package var joinedPieces = 0

    /// Whether no crash of the system can have lost bytes.
    var isOfThisSession: Bool { !session.isEmpty && session == BootSession.identifier }

    /// Whether it declares bytes that survive a crash of the system.
    var isDurable: Bool { durableLength > 0 || durablePieces.contains { $0 > 0 } }

    /// Returns the number of valid bytes in a file: all bytes of this session, or the synchronized bytes of an earlier
    /// one.
    package func trustedLength(ofFileWith size: Int) -> Int {
        isOfThisSession ? size : min(size, durableLength)
    }

    private static let magic: [UInt8] = [0x56, 0x50, 0x48, 3]

    /// Encodes the head for ``init(bytes:)``.
    ///
    /// Format 3:
    /// - `VPH` and the version;
    /// - the ``StableHash`` of the rest, 8 bytes, low byte first;
    /// - the durable length;
    /// - the number of pieces and the durable length of each;
    /// - the number of durable checksums and each of them, and the number of joined pieces;
    /// - identity, source and session as texts;
    /// - ``StoredResponse/bytes()``.
    package func bytes() -> [UInt8] {
        var writer = StoredResponseWriter()
        writer.number(UInt64(clamping: durableLength))
        for number in [durablePieces.count] + durablePieces { writer.number(UInt64(clamping: number)) }
        for number in [durableSums.count] + durableSums.map(Int.init) { writer.number(UInt64(clamping: number)) }
        writer.number(UInt64(clamping: joinedPieces))
        for text in [identity, source.text, session] { writer.text(text) }
        let content = writer.bytes + response.bytes()
        let hash = StableHash.hash(content)
        return Self.magic + (0..<8).map { UInt8(truncatingIfNeeded: hash >> ($0 * 8)) } + content
    }

    package init(identity: String, source: PartSource, response: StoredResponse) {
        self.identity = identity
        self.source = source
        self.response = response
        session = BootSession.identifier ?? ""
    }

    /// Decodes the result of ``bytes()``, or returns nil for damaged bytes.
    package init?(bytes: [UInt8]) {
        guard bytes.count > 12, bytes.starts(with: Self.magic) else { return nil }
        let content = Array(bytes[12...])
        let hash = bytes[4..<12].reversed().reduce(0) { (hash: UInt64, byte) in hash << 8 | UInt64(byte) }
        guard hash == StableHash.hash(content) else { return nil }
        do throws(StoredResponseError) {
            var reader = StoredResponseReader(bytes: content)
            let length = try reader.number()
            let count = try reader.number()
            // Each piece has at least one byte.
            guard count <= UInt64(content.count) else { return nil }
            for _ in 0..<count { durablePieces.append(Int(clamping: try reader.number())) }
            let sums = try reader.number()
            guard sums <= UInt64(content.count) else { return nil }
            for _ in 0..<sums { durableSums.append(UInt32(clamping: try reader.number())) }
            joinedPieces = Int(clamping: try reader.number())
            identity = try reader.text()
            source = PartSource(text: try reader.text())
            session = try reader.text()
            response = try StoredResponse(bytes: Array(content[reader.position...]))
            durableLength = Int(clamping: length)
        } catch {
            return nil
        }
    }
}
