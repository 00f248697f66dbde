import Foundation

/// The state of a result against the conditions of a request (RFC 9110, section 13).
package enum Precondition {
    /// Whether the client has the result already.
    ///
    /// - Parameter quotedTag: The entity tag with its quotes.
    package static func isNotModified(
        _ fields: RequestFields, quotedTag: String, lastModified: Int64?, now: Int64
    ) -> Bool {
        if let list = fields.ifNoneMatch { return EntityTagList.contains(quotedTag, in: list) }
        if let text = fields.ifModifiedSince, let lastModified, let date = HTTPTime.seconds(text, now: now) {
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
            guard condition == quotedTag || lastModified.map({ HTTPTime.text($0) == condition }) == true else {
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

/// Dates of HTTP (RFC 9110, section 5.6.7).
package enum HTTPTime {
    private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// Returns for example `Sun, 06 Nov 1994 08:49:37 GMT`. The year is limited to 1970…9999.
    package static func text(_ seconds: Int64) -> String {
        let limited = min(max(seconds, 0), 253_402_300_799)
        let (day, time) = (limited / 86400, limited % 86400)
        let date = civil(fromDay: day)
        func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "\(weekdays[Int((day + 4) % 7)]), \(two(date.day)) \(months[Int(date.month - 1)]) \(date.year) "
            + "\(two(time / 3600)):\(two(time / 60 % 60)):\(two(time % 60)) GMT"
    }

    /// Parses any of the three forms as seconds since 1970; nil if the text has none of them.
    ///
    /// - Parameter now: Decides the century of two-digit years.
    package static func seconds(_ text: String, now: Int64) -> Int64? {
        var parts = text.split(whereSeparator: { $0 == " " || $0 == "," || $0 == "-" }).map(String.init)
        guard text.utf8.count <= 40, let weekday = parts.first, weekday.utf8.count >= 3,
            weekdays.contains(String(weekday.prefix(3)))
        else { return nil }
        parts.removeFirst()
        if text.contains(",") {
            // `06 Nov 1994 08:49:37 GMT` and `06-Nov-94 08:49:37 GMT`.
            guard parts.count == 5, parts[4] == "GMT", let short = number(parts[2], 2, 4), parts[2].utf8.count != 3
            else { return nil }
            let year = parts[2].utf8.count == 2 ? century(of: short, now: now) : short
            return seconds(year: year, parts[1], parts[0], parts[3])
        }
        // `Nov  6 08:49:37 1994`.
        guard parts.count == 4, let year = number(parts[3], 4, 4) else { return nil }
        return seconds(year: year, parts[0], parts[1], parts[2])
    }

    private static func century(of short: Int64, now: Int64) -> Int64 {
        let thisYear = civil(fromDay: max(0, now) / 86400).year
        let year = thisYear - thisYear % 100 + short
        return year > thisYear + 50 ? year - 100 : year
    }

    private static func seconds(year: Int64, _ month: String, _ day: String, _ time: String) -> Int64? {
        let clock = time.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        guard let month = months.firstIndex(of: month), let day = number(day, 1, 2), (1...31).contains(day),
            clock.count == 3, let hour = number(clock[0], 2, 2), hour < 24, let minute = number(clock[1], 2, 2),
            minute < 60, let second = number(clock[2], 2, 2), second <= 60
        else { return nil }
        let start = self.day(year: year, month: Int64(month + 1), day: day)
        // Days that the month does not have would be those of the next one.
        guard civil(fromDay: start).day == day else { return nil }
        return start * 86400 + hour * 3600 + minute * 60 + min(second, 59)
    }

    private static func number(_ text: String, _ least: Int, _ most: Int) -> Int64? {
        guard (least...most).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return Int64(text)
    }

    /// Days since 1970-01-01 (H. Hinnant, "chrono-compatible low-level date algorithms").
    private static func day(year: Int64, month: Int64, day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    private static func civil(fromDay day: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = day + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let month = (5 * dayOfYear + 2) / 153
        let monthOfYear = month < 10 ? month + 3 : month - 9
        return (
            yearOfEra + era * 400 + (monthOfYear <= 2 ? 1 : 0), monthOfYear, dayOfYear - (153 * month + 2) / 5 + 1
        )
    }
}
