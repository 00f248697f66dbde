import Crypto
import Foundation
package import NIOCore
import VitrineCore
package import VitrineImaging

/// A result: the bytes of a file with all that its answer says about them.
package struct RenderedImage: Sendable, Hashable {
    /// The state of a source for which a result was made or confirmed.
    package struct SourceState: Sendable, Hashable {
        /// The version that the result was made from.
        package let version: String
        /// When the source is to be looked at again, since 1970.
        package var freshUntil: Duration
        /// The date of the source's last change as its server sent it; nil if it did not.
        package var lastModified: String?
        /// When the result was made or confirmed, since 1970.
        package var confirmed: Duration

        package init(version: String, freshUntil: Duration, lastModified: String?, confirmed: Duration) {
            self.version = version
            self.freshUntil = freshUntil
            self.lastModified = lastModified
            self.confirmed = confirmed
        }
    }

    /// The file. Copies share its memory.
    package private(set) var bytes: ByteBuffer
    /// The media type.
    package let mediaType: String
    /// The format of an image; nil for content that is answered as it is, and for summaries.
    package let format: ImageFormat?
    /// The size in pixels; nil where nothing was decoded.
    package let size: PixelSize?
    /// A strong entity tag of the bytes, with its quotes.
    package let entityTag: String
    /// The source that it was made from.
    package var source: SourceState
    /// The rules for caches by the source's server.
    var sourceCaching = SourceCaching()
    /// The last four segments of its canonical path in the grammar of IIIF; nil in others.
    var canonicalPath: String?
    /// Whether a better format is on its way, so that no cache is to keep this one for long.
    package var isProvisional = false

    package init(bytes: [UInt8], mediaType: String, format: ImageFormat?, size: PixelSize?, source: SourceState) {
        self.bytes = ByteBuffer(bytes: bytes)
        self.mediaType = mediaType
        self.format = format
        self.size = size
        entityTag = Self.entityTag(of: bytes)
        self.source = source
    }

    fileprivate init(
        bytes: ByteBuffer, mediaType: String, format: ImageFormat?, size: PixelSize?, entityTag: String,
        source: SourceState
    ) {
        self.bytes = bytes
        self.mediaType = mediaType
        self.format = format
        self.size = size
        self.entityTag = entityTag
        self.source = source
    }

    /// 120 bits of the SHA-256 digest in base64url.
    private static func entityTag(of bytes: [UInt8]) -> String {
        let text = Data(SHA256.hash(data: bytes).prefix(15)).base64EncodedString().utf8.map { byte in
            byte == UInt8(ascii: "+") ? UInt8(ascii: "-") : byte == UInt8(ascii: "/") ? UInt8(ascii: "_") : byte
        }
        return "\"" + String(decoding: text, as: UTF8.self) + "\""
    }

    /// The same with other bytes.
    func holding(_ bytes: ByteBuffer) -> RenderedImage {
        var image = self
        image.bytes = bytes
        return image
    }

    /// The same bytes, of a source that has not changed.
    ///
    /// - Parameter caching: Nil for the known rules.
    func confirmed(
        until freshUntil: Duration, at now: Duration, lastModified: String?, caching: SourceCaching? = nil
    ) -> RenderedImage {
        var image = self
        if let caching { image.sourceCaching = caching }
        image.source.freshUntil = freshUntil
        image.source.confirmed = now
        image.source.lastModified = lastModified ?? source.lastModified
        return image
    }
}

/// The rules for caches by the server of a source.
struct SourceCaching: Sendable, Hashable {
    /// The directives of `Cache-Control`; nil if there are none.
    var control: String?
    /// Whether it says how long the source is fresh.
    var hasLifetime = false
}

extension RenderedImage: CacheableValue {
    fileprivate static let version = "vitrine-result-3"

    /// The bytes are not those of a result.
    package struct Damaged: Error {}

    package init(cacheBytes: [UInt8]) throws {
        let head = try StoredHead(cacheBytes)
        self = head.image.holding(ByteBuffer(bytes: cacheBytes[head.count...]))
    }

    /// Thirteen lines, then the file.
    package func cacheBytes() -> [UInt8] {
        let lines = [
            Self.version, mediaType, format?.rawValue ?? "", size.map { "\($0.width)" } ?? "",
            size.map { "\($0.height)" } ?? "", entityTag, source.version, "\(source.freshUntil.milliseconds)",
            source.lastModified ?? "", "\(source.confirmed.milliseconds)", sourceCaching.control ?? "",
            sourceCaching.hasLifetime ? "1" : "", canonicalPath ?? "",
        ]
        // A line break in a field of a server would end its line.
        let head = lines.map { String($0.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7F }) }
            .joined(separator: "\n") + "\n"
        var all: [UInt8] = []
        all.reserveCapacity(head.utf8.count + bytes.readableBytes)
        all.append(contentsOf: head.utf8)
        all.append(contentsOf: bytes.readableBytesView)
        return all
    }

    package var cacheCost: Int { bytes.readableBytes + 512 }
}

/// The lines before the file in the bytes of a stored result, parsed.
final class StoredHead: Sendable {
    private static let lineCount = 13

    private let bytes: [UInt8]
    /// The result, without its file.
    let image: RenderedImage
    /// Its length.
    var count: Int { bytes.count }

    /// Parses the beginning of ``RenderedImage/cacheBytes()``.
    init(_ stored: [UInt8]) throws {
        var lines: [String] = []
        var start = 0
        while lines.count < Self.lineCount {
            guard let end = stored[start...].firstIndex(of: 10), end - start <= 4_096 else {
                throw RenderedImage.Damaged()
            }
            // No field of an answer has a control character, least of all one that ends its line.
            guard stored[start..<end].allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
                throw RenderedImage.Damaged()
            }
            lines.append(String(decoding: stored[start..<end], as: UTF8.self))
            start = end + 1
        }
        guard Self.isEntityTag(lines[5]), !lines[12].contains(where: { "<>\"".contains($0) }) else {
            throw RenderedImage.Damaged()
        }
        guard lines[0] == RenderedImage.version, let freshUntil = Int64(lines[7]), let confirmed = Int64(lines[9])
        else { throw RenderedImage.Damaged() }
        let sides = (Int(lines[3]), Int(lines[4]))
        var image = RenderedImage(
            bytes: ByteBuffer(), mediaType: lines[1],
            format: lines[2].isEmpty ? nil : ImageFormat(rawValue: lines[2]),
            size: sides.0.flatMap { width in sides.1.map { PixelSize(width: width, height: $0) } },
            entityTag: lines[5],
            source: RenderedImage.SourceState(
                version: lines[6], freshUntil: .milliseconds(freshUntil),
                lastModified: lines[8].isEmpty ? nil : lines[8], confirmed: .milliseconds(confirmed)))
        image.sourceCaching = SourceCaching(control: lines[10].isEmpty ? nil : lines[10], hasLifetime: lines[11] == "1")
        image.canonicalPath = lines[12].isEmpty ? nil : lines[12]
        self.image = image
        bytes = Array(stored[..<start])
    }

    /// Whether a text is quoted and has no quote within (RFC 9110, section 8.8.3).
    private static func isEntityTag(_ text: String) -> Bool {
        let inner = text.utf8.dropFirst().dropLast()
        return text.utf8.count > 2 && text.utf8.first == 0x22 && text.utf8.last == 0x22
            && inner.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x22 }
    }

    /// Whether the bytes of a stored result begin with this head.
    func begins(_ stored: [UInt8]) -> Bool {
        guard stored.count >= bytes.count else { return false }
        return stored.withUnsafeBytes { stored in
            bytes.withUnsafeBytes { bytes in
                guard let one = bytes.baseAddress, let other = stored.baseAddress else { return false }
                return memcmp(one, other, bytes.count) == 0
            }
        }
    }
}

extension Duration {
    /// Whole milliseconds.
    fileprivate var milliseconds: Int64 {
        components.seconds.multipliedReportingOverflow(by: 1_000).partialValue
            &+ components.attoseconds / 1_000_000_000_000_000
    }
}

/// An image as it is answered, and where it comes from.
package struct Rendering: Sendable {
    /// Where a result comes from.
    package enum Origin: String, Sendable, CaseIterable {
        /// The cache of results in memory.
        case memory
        /// The cache of results on disk.
        case disk
        /// Made for this request.
        case made
        /// Made for another request that wanted the same at the same time.
        case coalesced
        /// The cache, after the source was found unchanged.
        case confirmed
        /// Another node of the fleet.
        case shared
        /// The store of results.
        case store
    }

    /// The time of each step; zero for steps that were not needed.
    package struct Times: Sendable, Hashable {
        /// A step with its beginning.
        package struct Step: Sendable, Hashable {
            package var began: ContinuousClock.Instant
            package var duration: Duration
        }

        /// The steps but the fetch, each by its name, in their order.
        package var steps: [(name: String, step: Step)] {
            waits.map { ("queue", $0) } + (decoding.map { [("decode", $0)] } ?? [])
                + (encoding.map { [("encode", $0)] } ?? [])
        }
        var waits: [Step] = []
        var decoding: Step?
        var encoding: Step?

        /// The wait for places.
        package var queue = Duration.zero
        /// The load of the source.
        package var fetch = Duration.zero
        /// Decoding and processing, with the wait for a thread.
        package var decode = Duration.zero
        /// Encoding.
        package var encode = Duration.zero
    }

    /// The result.
    package var image: RenderedImage
    /// Where it comes from.
    package var origin: Origin
    /// Whether its source was to be looked at again. It is, in the background, or could not be.
    package var isStale = false
    /// The times of the work, also if another request had started it.
    package var times = Times()
}
