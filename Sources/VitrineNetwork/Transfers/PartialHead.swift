import VitrineCore

/// What is known of the body in a ``PartialFile``: kept in a file beside it.
package struct PartialHead: Sendable, Hashable {
    /// What the body is of, in the words of who loads it.
    package let identity: String
    /// Where it came from in the end, without the query: validators of different places say nothing about each other.
    package let source: String
    /// The response the body came with.
    package let response: StoredResponse
    /// The ``BootSession`` in which it was written; empty if the system does not tell.
    package var session: String
    /// How many bytes are on the medium, so that they outlive the session.
    package var durableLength = 0
    /// The same of each piece, if the body comes in pieces; else empty.
    package var durablePieces: [Int] = []

    /// Whether nothing can have been lost since it was written.
    var isOfThisSession: Bool { !session.isEmpty && session == BootSession.identifier }

    /// Whether it promises bytes that outlive the session.
    var isDurable: Bool { durableLength > 0 || durablePieces.contains { $0 > 0 } }

    /// How many bytes of a file are the body's for sure: all that were written in this session, and of those written
    /// in an earlier one what had been synchronized.
    package func trustedLength(ofFileWith size: Int) -> Int {
        isOfThisSession ? size : min(size, durableLength)
    }

    private static let magic: [UInt8] = [0x56, 0x50, 0x48, 2]

    /// The head as bytes that ``init(bytes:)`` reads.
    ///
    /// Format 2: `VPH` and the version; the ``StableHash`` of what follows, 8 bytes, low ones first; the durable
    /// length; how many pieces there are, and the durable length of each; identity, source and session as texts;
    /// ``StoredResponse/bytes()``.
    package func bytes() -> [UInt8] {
        var writer = StoredResponseWriter()
        writer.number(UInt64(clamping: durableLength))
        for number in [durablePieces.count] + durablePieces { writer.number(UInt64(clamping: number)) }
        for text in [identity, source, session] { writer.text(text) }
        let content = writer.bytes + response.bytes()
        let hash = StableHash.hash(content)
        return Self.magic + (0..<8).map { UInt8(truncatingIfNeeded: hash >> ($0 * 8)) } + content
    }

    package init(identity: String, source: String, response: StoredResponse) {
        self.identity = identity
        self.source = source
        self.response = response
        session = BootSession.identifier ?? ""
    }

    /// Reads what ``bytes()`` wrote; nil for anything else, and for what has been damaged.
    package init?(bytes: [UInt8]) {
        guard bytes.count > 12, bytes.starts(with: Self.magic) else { return nil }
        let content = Array(bytes[12...])
        let hash = (0..<8).reduce(UInt64(0)) { $0 | UInt64(bytes[4 + $1]) << UInt64($1 * 8) }
        guard hash == StableHash.hash(content) else { return nil }
        do throws(StoredResponseError) {
            var reader = StoredResponseReader(bytes: content)
            let length = try reader.number()
            let count = try reader.number()
            // Each has a byte at least.
            guard count <= UInt64(content.count) else { return nil }
            for _ in 0..<count { durablePieces.append(Int(clamping: try reader.number())) }
            identity = try reader.text()
            source = try reader.text()
            session = try reader.text()
            response = try StoredResponse(bytes: Array(content[reader.position...]))
            durableLength = Int(clamping: length)
        } catch {
            return nil
        }
    }
}
