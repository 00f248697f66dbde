package import HTTPTypes
import NIOHTTP1

/// The header fields of a request that matter here, found in one pass.
package struct RequestFields {
    var accept: String?
    var ifNoneMatch: String?
    var ifModifiedSince: String?
    var ifRange: String?
    var range: String?
    var origin: String?
    package private(set) var requestID: String?
    /// All values of X-Forwarded-For, in their order.
    package private(set) var forwardedFor: [String] = []
    var pixelRatio: String?
    var width: String?
    var saveData: String?
    /// Whether the client does not wait: an urgency of 7 (RFC 9218).
    var isBackground = false
    /// Whether the request announces a body.
    var hasBody = false
    /// The number of Host fields. Fields that were read already have none.
    var hostCount = 0
    /// Whether a field is about the connection, other than to keep it.
    var changesConnection = false

    package init(_ fields: HTTPFields) {
        for field in fields { add(field.name.canonicalName, field.value) }
    }

    /// Reads fields as a client sent them.
    init(_ headers: HTTPHeaders) {
        for (name, value) in headers {
            let count = name.utf8.count
            if count < 64, Self.lengths >> UInt64(count) & 1 == 1 { add(name.lowercased(), value) }
        }
    }

    /// The lengths of the names below, one bit for each.
    private static let lengths: UInt64 = [3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 17].reduce(0) { $0 | 1 << $1 }

    /// - Parameter name: In lowercase.
    private mutating func add(_ name: String, _ value: String) {
        // The length decides most comparisons.
        switch name.utf8.count {
        case 3:
            if name == "dpr", pixelRatio == nil { pixelRatio = value }
        case 4:
            if name == "host" { hostCount += 1 }
        case 5:
            // A repeated range is no single one.
            if name == "range" { range = range == nil ? value : "" }
            if name == "width", width == nil { width = value }
        case 6:
            if name == "accept" { accept = Self.joined(accept, value) }
            if name == "origin" { origin = value }
            if name == "expect" { changesConnection = true }
        case 7:
            if name == "upgrade" { changesConnection = true }
        case 8:
            if name == "if-range" { ifRange = value }
            if name == "priority" {
                isBackground = value.split(separator: ",").contains { $0.drop { $0 == " " } == "u=7" }
            }
        case 9:
            if name == "save-data" { saveData = value }
        case 10:
            if name == "sec-ch-dpr" { pixelRatio = value }
            if name == "connection", value != "keep-alive", value != "Keep-Alive" { changesConnection = true }
        case 12:
            if name == "x-request-id" { requestID = value }
            if name == "sec-ch-width" { width = value }
        case 13:
            if name == "if-none-match" { ifNoneMatch = Self.joined(ifNoneMatch, value) }
        case 14:
            if name == "content-length", value != "0" { hasBody = true }
        case 15:
            if name == "x-forwarded-for" { forwardedFor.append(value) }
        case 17:
            if name == "if-modified-since" { ifModifiedSince = value }
            if name == "transfer-encoding" { hasBody = true }
        default: break
        }
    }

    private static func joined(_ first: String?, _ second: String) -> String {
        guard let first else { return second }
        return first + "," + second
    }

    /// The client's request identifier, if it consists of at most 128 letters, digits and `-_.:=+/`.
    var validRequestID: String? {
        guard let requestID, (1...128).contains(requestID.utf8.count) else { return nil }
        let isValid = requestID.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x5F, 0x2E, 0x3A, 0x3D, 0x2B, 0x2F: true
            default: false
            }
        }
        return isValid ? requestID : nil
    }
}

/// Comparisons of bytes in header fields.
enum FieldText {
    /// The range without spaces and tabs at its ends.
    static func trimmed(_ bytes: UnsafeBufferPointer<UInt8>, _ range: Range<Int>) -> Range<Int> {
        var (start, end) = (range.lowerBound, range.upperBound)
        while start < end, bytes[start] == 0x20 || bytes[start] == 0x09 { start += 1 }
        while start < end, bytes[end - 1] == 0x20 || bytes[end - 1] == 0x09 { end -= 1 }
        return start..<end
    }

    /// Whether the bytes are those of a lowercase name, in any case.
    static func equal(_ bytes: UnsafeBufferPointer<UInt8>, _ lowercase: [UInt8]) -> Bool {
        guard bytes.count == lowercase.count else { return false }
        for index in bytes.indices {
            let byte = bytes[index]
            guard (0x41...0x5A).contains(byte) ? byte | 0x20 == lowercase[index] : byte == lowercase[index] else {
                return false
            }
        }
        return true
    }
}
