/// Why bytes are not a stored response.
public enum StoredResponseError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Written by a version this one does not know.
    case unknownVersion(UInt8)
    /// They end early, go on too long, or hold what cannot be.
    case damaged

    public var description: String {
        switch self {
        case .unknownVersion(let version):
            "The stored response has format \(version), which this version does not read; load it again."
        case .damaged: "The bytes are not a stored response; load it again."
        }
    }
}

extension StoredResponse {
    private static let version: UInt8 = 1

    /// The response as bytes that ``init(bytes:)`` reads; times are kept to the millisecond.
    ///
    /// Format 1: the version; flags (1: body length follows the times, 2: invalidated); status, both times in
    /// milliseconds and the body length as numbers of 7 bits a byte, low ones first; the fields as count and pairs of
    /// texts; the selecting fields as count, name, whether there is a value, value. Texts are UTF-8 after their length.
    public func bytes() -> [UInt8] {
        var writer = StoredResponseWriter()
        writer.bytes.append(StoredResponse.version)
        writer.bytes.append((bodyLength == nil ? 0 : 1) | (isInvalidated ? 2 : 0))
        writer.number(UInt64(clamping: status))
        writer.number(UInt64(clamping: requestTime.wholeMilliseconds))
        writer.number(UInt64(clamping: responseTime.wholeMilliseconds))
        if let bodyLength { writer.number(UInt64(clamping: bodyLength)) }
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

    /// Reads what ``bytes()`` wrote.
    ///
    /// - Throws: For bytes that are anything else; never takes more memory than a few times their count.
    public init(bytes: [UInt8]) throws(StoredResponseError) {
        var reader = StoredResponseReader(bytes: bytes)
        let version = try reader.byte()
        guard version == StoredResponse.version else { throw .unknownVersion(version) }
        let flags = try reader.byte()
        let status = try reader.number()
        guard flags & ~3 == 0, (100...999).contains(status) else { throw .damaged }
        let requestTime = try reader.time()
        let responseTime = try reader.time()
        let length = flags & 1 == 0 ? nil : try reader.number()
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
    }
}

/// Writes what ``StoredResponseReader`` reads.
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

/// Reads bytes from anywhere: nothing it is told makes it take more memory than they have.
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

    /// Milliseconds up to the year 9999.
    mutating func time() throws(StoredResponseError) -> Duration {
        let milliseconds = try number()
        guard milliseconds < 253_402_300_800_000 else { throw .damaged }
        return .milliseconds(Int64(milliseconds))
    }

    /// A count of things that take some bytes each: not more than can follow.
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
    /// Without its fraction of a millisecond, at most what an `Int64` holds.
    fileprivate var wholeMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        return overflow ? (seconds < 0 ? .min : .max) : product &+ attoseconds / 1_000_000_000_000_000
    }
}
