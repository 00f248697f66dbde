import Foundation
import VitrineNetwork

/// The state of a result against the conditions of a request (RFC 9110, section 13).
package enum Precondition {
    /// Whether the client has the result already.
    ///
    /// - Parameter quotedTag: The entity tag with its quotes.
    package static func isNotModified(
        _ fields: RequestFields, quotedTag: String, lastModified: Int64?, now: Int64
    ) -> Bool {
        if let list = fields.ifNoneMatch { return EntityTagList.contains(quotedTag, in: list) }
        if let text = fields.ifModifiedSince, let lastModified, let date = HTTPDate.seconds(text, now: .seconds(now)) {
            return lastModified <= date
        }
        return false
    }

    /// The part to send; nil for all of it.
    package static func range(
        _ fields: RequestFields, quotedTag: String, lastModified: Int64?, count: Int
    ) -> ByteRange? {
        guard let text = fields.range else { return nil }
        if let condition = fields.ifRange {
            // Weak tags never match; a date must be the very one that was sent.
            guard condition == quotedTag || lastModified.map({ HTTPDate.text($0) == condition }) == true else {
                return nil
            }
        }
        return ByteRange(text, count: count)
    }
}

/// The list of tags in `If-None-Match`.
package enum EntityTagList {
    /// Whether the list is `*` or names the tag, strong or weak. Members after a malformed one are ignored.
    package static func contains(_ quotedTag: String, in list: String) -> Bool {
        if list == quotedTag { return true }
        let bytes = Array(list.utf8)
        let tag = Array(quotedTag.utf8)
        var position = 0
        func skipSpace() {
            while position < bytes.count, bytes[position] == 0x20 || bytes[position] == 0x09 { position += 1 }
        }
        skipSpace()
        if position < bytes.count, bytes[position] == 0x2A {
            position += 1
            skipSpace()
            return position == bytes.count
        }
        while position < bytes.count {
            skipSpace()
            if position < bytes.count, bytes[position] == 0x2C {
                position += 1
                continue
            }
            if position + 1 < bytes.count, bytes[position] == 0x57, bytes[position + 1] == 0x2F { position += 2 }
            let start = position
            guard position < bytes.count, bytes[position] == 0x22,
                let end = bytes[(position + 1)...].firstIndex(of: 0x22)
            else { return false }
            if bytes[start...end].elementsEqual(tag) { return true }
            position = end + 1
            skipSpace()
            guard position == bytes.count || bytes[position] == 0x2C else { return false }
        }
        return false
    }
}

/// A single range of bytes (RFC 9110, section 14.1.2).
package enum ByteRange: Equatable, Sendable {
    case part(Range<Int>)
    case unsatisfiable

    /// Parses `bytes=0-99`, `bytes=100-` or `bytes=-100`. Other units, several ranges and malformed ranges are nil, and
    /// the whole is sent.
    package init?(_ text: String, count: Int) {
        let bytes = Array(text.utf8)
        guard bytes.count > 6, bytes[..<6].map({ (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }) == Self.unit else {
            return nil
        }
        let value = String(decoding: bytes[6...], as: UTF8.self).trimmingCharacters(in: .whitespaces)
        guard let dash = value.firstIndex(of: "-") else { return nil }
        guard let first = Self.number(value[..<dash]), let last = Self.number(value[value.index(after: dash)...]) else {
            return nil
        }
        switch (first, last) {
        case (nil, nil): return nil
        case (nil, .some(let suffix)):
            self = suffix == 0 || count == 0 ? .unsatisfiable : .part(max(0, count - suffix)..<count)
        case (.some(let start), nil):
            self = start < count ? .part(start..<count) : .unsatisfiable
        case (.some(let start), .some(let end)):
            guard start <= end else { return nil }
            self = start < count ? .part(start..<(min(end, count - 1) + 1)) : .unsatisfiable
        }
    }

    private static let unit = Array("bytes=".utf8)

    /// Parses a number. An empty text gives the inner nil, other text the outer one. Large numbers are limited.
    private static func number(_ text: Substring) -> Int??  {
        if text.isEmpty { return .some(nil) }
        var value = 0
        for byte in text.utf8 {
            guard (0x30...0x39).contains(byte) else { return nil }
            let (product, isTooLarge) = value.multipliedReportingOverflow(by: 10)
            value = isTooLarge || product > Int.max - 9 ? Int.max - 1 : product + Int(byte - 0x30)
        }
        return .some(value)
    }
}
