#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
import VitrineCore

/// The head of a stored response with the data for caching decisions. The body is stored separately.
///
/// A `ValueCache` keeps it as the validator of an entry, in the form of ``bytes()``.
@_spi(HTTPCacheEngine) public struct StoredResponse: Sendable, Hashable {
    /// The status code.
    public internal(set) var status: Int
    /// The header fields, without connection fields and fields that must not be stored.
    public internal(set) var headers: HTTPHeaders
    /// The time of the request, since 1970.
    public internal(set) var requestTime: Duration
    /// The time of the response's head, since 1970.
    public internal(set) var responseTime: Duration
    /// The length of the complete body, which the cache sets when it stores the body. Without it, no ranges can be
    /// served.
    public var bodyLength: Int?
    /// Whether a later request invalidated the response, so that it counts as stale.
    public internal(set) var isInvalidated = false
    /// The request fields that the response depends on.
    var selecting: [SelectingField]
    /// The redirects that led to the response; nil if there were none.
    var redirection: Redirection?

    /// Redirects between the requested URL and that of the response.
    struct Redirection: Sendable, Hashable {
        /// The digest of the response's URL, see ``SourceURL/digest``.
        var target: String
        /// The time since 1970 at which the first redirect stops being fresh; nil for never.
        var freshUntil: Duration?
        /// Whether one of them forbids its use when stale.
        var forbidsStale = false
    }

    init(
        status: Int, headers: HTTPHeaders, requestTime: Duration, responseTime: Duration, selecting: [SelectingField]
    ) {
        self.status = status
        self.headers = headers
        self.requestTime = requestTime
        self.responseTime = max(requestTime, responseTime)
        self.selecting = selecting
    }

    /// Returns the response marked for revalidation.
    public func invalidated() -> StoredResponse {
        var response = self
        response.isInvalidated = true
        return response
    }

    /// The entity tag as it was sent; nil if it cannot be sent in a request.
    public var entityTag: String? { headers["ETag"].flatMap { EntityTag.isSendable($0) ? $0 : nil } }

    /// The last modification as it was sent; nil if it is not a date.
    public var lastModified: String? {
        headers["Last-Modified"].flatMap { HTTPDate.seconds($0, now: responseTime) == nil ? nil : $0 }
    }

    /// The creation time in seconds since 1970: the value of `Date`, or the response time.
    var date: Int64 { headers["Date"].flatMap { HTTPDate.seconds($0, now: responseTime) } ?? responseSeconds }

    private var responseSeconds: Int64 { responseTime.components.seconds }
}

/// The reason why bytes are not a stored response.
@_spi(HTTPCacheEngine) public enum StoredResponseError: LocalizedError, Equatable, Sendable, CustomStringConvertible {
    /// The format is unknown.
    case unknownVersion(UInt8)
    /// The bytes are truncated, too long or invalid.
    case damaged

    /// The ``description``.
    public var errorDescription: String? { description }

    /// The error as a sentence.
    public var description: String {
        switch self {
        case .unknownVersion(let version):
            "The stored response has the unknown format \(version). Load it again."
        case .damaged: "The bytes are not a stored response. Load it again."
        }
    }
}

@_spi(HTTPCacheEngine) extension StoredResponse {
    private static let version: UInt8 = 2

    /// Encodes the response for ``init(bytes:)``. Times have a precision of milliseconds.
    ///
    /// Format 2, which differs from format 1 in the redirects. Format 1 is not read, because its validators may be
    /// those of another URL:
    /// - the version, one byte;
    /// - flags, one byte: 1 if the body length is known, 2 if the response is invalidated, 4 if redirects led to it;
    /// - in the same byte: 8 if the redirects have an end, 16 if one of them forbids its use when stale;
    /// - the status, both times in milliseconds, and the body length, if it is known;
    /// - the target of the redirects and their end in milliseconds, if there are any;
    /// - the number of fields, then the name and value of each;
    /// - the number of selecting fields, then name, presence of a value, and value of each.
    ///
    /// Numbers have 7 bits per byte, low bits first. Texts are UTF-8 after their length.
    public func bytes() -> [UInt8] {
        var writer = StoredResponseWriter()
        writer.bytes.append(StoredResponse.version)
        var flags: UInt8 = (bodyLength == nil ? 0 : 1) | (isInvalidated ? 2 : 0)
        if let redirection {
            flags |= 4 | (redirection.freshUntil == nil ? 0 : 8) | (redirection.forbidsStale ? 16 : 0)
        }
        writer.bytes.append(flags)
        writer.number(UInt64(clamping: status))
        writer.number(UInt64(clamping: requestTime.wholeMilliseconds))
        writer.number(UInt64(clamping: responseTime.wholeMilliseconds))
        if let bodyLength { writer.number(UInt64(clamping: bodyLength)) }
        if let redirection {
            writer.text(redirection.target)
            if let end = redirection.freshUntil { writer.number(UInt64(clamping: end.wholeMilliseconds)) }
        }
        writer.number(UInt64(headers.fields.count))
        for field in headers.fields {
            writer.text(field.name)
            writer.text(field.value)
        }
        writer.number(UInt64(selecting.count))
        for field in selecting {
            writer.text(field.name)
            writer.bytes.append(field.value == nil ? 0 : 1)
            if let value = field.value { writer.text(value) }
        }
        return writer.bytes
    }

    /// Decodes the result of ``bytes()``. Uses at most a small multiple of the memory of the bytes.
    ///
    /// - Parameter bytes: The bytes, which may be damaged.
    /// - Throws: The reason why the bytes are invalid.
    public init(bytes: [UInt8]) throws(StoredResponseError) {
        var reader = StoredResponseReader(bytes: bytes)
        let version = try reader.byte()
        guard version == StoredResponse.version else { throw .unknownVersion(version) }
        let flags = try reader.byte()
        let status = try reader.number()
        guard flags & ~31 == 0, flags & 4 != 0 || flags & 24 == 0, (100...999).contains(status) else { throw .damaged }
        let requestTime = try reader.time()
        let responseTime = try reader.time()
        let length = flags & 1 == 0 ? nil : try reader.number()
        var redirection: Redirection?
        if flags & 4 != 0 {
            redirection = Redirection(
                target: try reader.text(), freshUntil: flags & 8 == 0 ? nil : try reader.time(),
                forbidsStale: flags & 16 != 0)
        }
        var fields: [HTTPHeaders.Field] = []
        for _ in 0..<(try reader.count(ofAtLeast: 2)) {
            fields.append(HTTPHeaders.Field(name: try reader.text(), value: try reader.text()))
        }
        var selecting: [SelectingField] = []
        for _ in 0..<(try reader.count(ofAtLeast: 2)) {
            let name = try reader.text()
            let hasValue = try reader.byte()
            guard hasValue < 2 else { throw .damaged }
            selecting.append(SelectingField(name: name, value: hasValue == 0 ? nil : try reader.text()))
        }
        guard reader.isAtEnd, selecting.count <= SelectingField.limit else { throw .damaged }
        self.init(
            status: Int(status), headers: HTTPHeaders(fields), requestTime: requestTime, responseTime: responseTime,
            selecting: selecting)
        if let length {
            guard let bodyLength = Int(exactly: length) else { throw .damaged }
            self.bodyLength = bodyLength
        }
        isInvalidated = flags & 2 != 0
        self.redirection = redirection
    }
}

/// Encodes data for ``StoredResponseReader``.
struct StoredResponseWriter {
    var bytes: [UInt8] = []

    mutating func number(_ number: UInt64) {
        var rest = number
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    mutating func text(_ text: String) {
        number(UInt64(text.utf8.count))
        bytes.append(contentsOf: text.utf8)
    }
}

/// Decodes untrusted bytes. Declared sizes never make it use more memory than the bytes have.
struct StoredResponseReader {
    let bytes: [UInt8]
    var position = 0

    init(bytes: [UInt8]) { self.bytes = bytes }

    var isAtEnd: Bool { position == bytes.count }

    mutating func byte() throws(StoredResponseError) -> UInt8 {
        guard position < bytes.count else { throw .damaged }
        position += 1
        return bytes[position - 1]
    }

    mutating func number() throws(StoredResponseError) -> UInt64 {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 63, by: 7) {
            let byte = try byte()
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
        }
        throw .damaged
    }

    /// Decodes milliseconds up to the year 9999.
    mutating func time() throws(StoredResponseError) -> Duration {
        let milliseconds = try number()
        guard milliseconds < 253_402_300_800_000 else { throw .damaged }
        return .milliseconds(Int64(milliseconds))
    }

    /// Decodes the number of elements of a minimum size. It is limited by the remaining bytes.
    mutating func count(ofAtLeast size: Int) throws(StoredResponseError) -> Int {
        let count = try number()
        guard count <= UInt64((bytes.count - position) / size) else { throw .damaged }
        return Int(count)
    }

    mutating func text() throws(StoredResponseError) -> String {
        let length = try count(ofAtLeast: 1)
        defer { position += length }
        guard let text = String(validating: bytes[position..<(position + length)], as: UTF8.self) else {
            throw .damaged
        }
        return text
    }
}

extension Duration {
    /// The whole milliseconds, limited to `Int64`.
    fileprivate var wholeMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        return overflow ? (seconds < 0 ? .min : .max) : product &+ attoseconds / 1_000_000_000_000_000
    }
}

extension StoredResponse {
    /// A longer validator keeps only the fields that caching decisions need.
    private static let longestValidator = 8 << 10

    /// The fields that caching decisions need, in lowercase.
    private static let decisive: Set<String> = [
        "age", "cache-control", "content-encoding", "content-language", "content-length", "content-type", "date",
        "etag", "expires", "last-modified", "pragma", "vary", "cdn-cache-control",
    ]

    /// The head as the validator of a cache entry.
    var validator: [UInt8] {
        let validator = bytes()
        guard validator.count > Self.longestValidator else { return validator }
        var short = self
        short.headers = HTTPHeaders(headers.fields.filter { Self.decisive.contains($0.name.lowercased()) })
        return short.bytes()
    }
}

/// A request field that a stored response depends on according to `Vary` (RFC 9111, section 4.1).
struct SelectingField: Sendable, Hashable {
    /// The name, in lowercase.
    let name: String
    /// The normalized value; nil if the request had none. Credentials and long values are replaced by a digest.
    let value: String?

    /// More names than this are treated as `*`.
    static let limit = 64
    private static let longest = 96
    private static let credentials: Set<String> = ["authorization", "cookie", "proxy-authorization"]

    /// Returns the request fields that a response depends on; nil for `*`.
    static func all(of response: HTTPHeaders, in request: HTTPHeaders) -> [SelectingField]? {
        let names = Set(HTTPList.names(response.all("Vary")))
        guard !names.contains("*"), names.count <= limit else { return nil }
        return names.sorted().map { SelectingField($0, in: request) }
    }

    private init(_ name: String, in request: HTTPHeaders) {
        self.init(name: name, value: SelectingField.normalized(name, request))
    }

    init(name: String, value: String?) {
        self.name = name
        self.value = value
    }

    /// Returns whether a request has the same value.
    func matches(_ request: HTTPHeaders) -> Bool { SelectingField.normalized(name, request) == value }

    /// Returns the value of a request's field in a normalized form.
    private static func normalized(_ name: String, _ request: HTTPHeaders) -> String? {
        let lines = request.all(name)
        guard !lines.isEmpty else { return nil }
        let elements = lines.flatMap(HTTPList.elements)
        let text: String
        switch name {
        case "accept", "accept-encoding", "accept-language", "accept-charset":
            text = Set(elements.map { Preference($0).text }).sorted().joined(separator: ",")
        default:
            text = elements.map { String(decoding: $0, as: UTF8.self) }.joined(separator: ",")
        }
        guard text.utf8.count > longest || credentials.contains(name) else { return text }
        return "sha256:" + Hexadecimal.text(SHA256Digest.digest(of: text))
    }
}

/// An element of an `Accept` field with its weight (RFC 9110, section 12.4.2).
struct Preference {
    /// The element in lowercase without weight and white space.
    let name: String
    /// The weight in thousandths.
    let weight: Int

    init(_ element: ArraySlice<UInt8>) {
        var parts = element.split(separator: 0x3B).map { HTTPList.lowercased(HTTPList.trim($0)) }
        var weight = 1000
        if let index = parts.firstIndex(where: { $0.hasPrefix("q=") }) {
            weight = Preference.thousandths(parts[index].utf8.dropFirst(2))
            parts.removeSubrange(index...)
        }
        name = parts.joined(separator: ";")
        self.weight = weight
    }

    var text: String { weight == 1000 ? name : "\(name);q=\(weight)" }

    /// Parses `0.5` as 500. Invalid weights are 1000.
    private static func thousandths(_ text: Substring.UTF8View) -> Int {
        let bytes = Array(text)
        guard let first = bytes.first?.decimalDigit, bytes.count <= 5 else { return 1000 }
        if bytes.count == 1 { return first == 0 ? 0 : 1000 }
        guard first == 0, bytes[1] == 0x2E else { return 1000 }
        var value = 0
        for index in 2..<5 {
            guard index < bytes.count else {
                value *= 10
                continue
            }
            guard let digit = bytes[index].decimalDigit else { return 1000 }
            value = value * 10 + Int(digit)
        }
        return value
    }
}
