/// Reads and writes dates of HTTP header fields, in the three forms of RFC 9110, section 5.6.7.
///
/// ```swift
/// let field = HTTPDate.text(784_111_777)  // Sun, 06 Nov 1994 08:49:37 GMT
/// let seconds = HTTPDate.seconds(field, now: .seconds(1_800_000_000))  // 784111777
/// ```
public enum HTTPDate {
    /// Parses a date as seconds since 1970-01-01 00:00 UTC; nil if the text has none of the three forms.
    ///
    /// Names of days and months and `GMT` are accepted in any case. Everything else is strict, because a cache treats
    /// an invalid date as one in the past (RFC 9111, section 5.3).
    ///
    /// - Parameters:
    ///   - text: The text.
    ///   - now: The current time, which decides the century of two-digit years (RFC 850).
    public static func seconds(_ text: String, now: Duration) -> Int64? {
        let bytes = Array(text.utf8)
        // The longest is `Wednesday, 09-Nov-94 08:49:37 GMT`.
        guard (24...33).contains(bytes.count) else { return nil }
        var reader = HTTPDateReader(bytes: bytes)
        guard let isShort = reader.weekday() else { return nil }
        let date: Int64? =
            if reader.accept(", ") {
                isShort ? reader.fixdate() : reader.obsolete(now: now.components.seconds)
            } else {
                isShort ? reader.asctime() : nil
            }
        return reader.isAtEnd ? date : nil
    }

    /// Returns the preferred form of seconds since 1970, such as `Sun, 06 Nov 1994 08:49:37 GMT`. The year is limited
    /// to 1…9999.
    public static func text(_ seconds: Int64) -> String {
        let limited = min(max(seconds, -62_135_596_800), 253_402_300_799)
        let day = (limited - (limited % 86400 + 86400) % 86400) / 86400
        let time = limited - day * 86400
        let (year, month, dayOfMonth) = civil(fromDay: day)
        let weekday = weekdays[Int(((day + 4) % 7 + 7) % 7)]
        func padded(_ number: Int64, _ width: Int) -> String {
            let digits = String(number)
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        return "\(weekday.short), \(padded(dayOfMonth, 2)) \(months[Int(month - 1)]) \(padded(year, 4)) "
            + "\(padded(time / 3600, 2)):\(padded(time / 60 % 60, 2)):\(padded(time % 60, 2)) GMT"
    }

    /// The short name of a day, and the rest of the long one.
    fileprivate static let weekdays: [(short: String, rest: String)] = [
        ("Sun", "day"), ("Mon", "day"), ("Tue", "sday"), ("Wed", "nesday"), ("Thu", "rsday"), ("Fri", "day"),
        ("Sat", "urday"),
    ]
    fileprivate static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// Returns the days since 1970-01-01 of a date in the proleptic Gregorian calendar (H. Hinnant, "chrono-compatible
    /// low-level date algorithms").
    public static func day(year: Int64, month: Int64, day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    /// Returns the date of a day since 1970-01-01, as the inverse of ``day(year:month:day:)``.
    public static func civil(fromDay day: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = day + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthOfYear = (5 * dayOfYear + 2) / 153
        let month = monthOfYear < 10 ? monthOfYear + 3 : monthOfYear - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * monthOfYear + 2) / 5 + 1)
    }
}

/// Parses the parts of a date in order.
private struct HTTPDateReader {
    let bytes: [UInt8]
    var position = 0

    init(bytes: [UInt8]) { self.bytes = bytes }

    var isAtEnd: Bool { position == bytes.count }

    /// Consumes a text, in any case.
    mutating func accept(_ text: String) -> Bool {
        let wanted = text.utf8
        guard bytes.count - position >= wanted.count else { return false }
        var index = position
        for byte in wanted {
            guard bytes[index].asciiLowercased == byte.asciiLowercased else { return false }
            index += 1
        }
        position = index
        return true
    }

    /// Parses exactly `count` digits.
    mutating func number(_ count: Int) -> Int64? {
        guard bytes.count - position >= count else { return nil }
        var value: Int64 = 0
        for _ in 0..<count {
            guard let digit = bytes[position].decimalDigit else { return nil }
            value = value * 10 + Int64(digit)
            position += 1
        }
        return value
    }

    /// Parses the name of a day, and returns whether it is the short one; nil for other texts.
    mutating func weekday() -> Bool? {
        for (short, rest) in HTTPDate.weekdays where accept(short) { return !accept(rest) }
        return nil
    }

    private mutating func month() -> Int64? {
        for (index, name) in HTTPDate.months.enumerated() where accept(name) { return Int64(index + 1) }
        return nil
    }

    /// Parses `08:49:37` as seconds of the day. A leap second counts as the second before it.
    private mutating func time() -> Int64? {
        guard let hour = number(2), hour < 24, accept(":"), let minute = number(2), minute < 60, accept(":"),
            let second = number(2), second <= 60
        else { return nil }
        return hour * 3600 + minute * 60 + min(second, 59)
    }

    private func seconds(year: Int64, month: Int64, day: Int64, time: Int64) -> Int64? {
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let days: [Int64] = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        guard year >= 1, day >= 1, day <= days[Int(month - 1)] else { return nil }
        return HTTPDate.day(year: year, month: month, day: day) * 86400 + time
    }

    /// Parses `06 Nov 1994 08:49:37 GMT`.
    mutating func fixdate() -> Int64? {
        guard let day = number(2), accept(" "), let month = month(), accept(" "), let year = number(4), accept(" "),
            let time = time(), accept(" GMT")
        else { return nil }
        return seconds(year: year, month: month, day: day, time: time)
    }

    /// Parses `06-Nov-94 08:49:37 GMT`.
    mutating func obsolete(now: Int64) -> Int64? {
        guard let day = number(2), accept("-"), let month = month(), accept("-"), let short = number(2), accept(" "),
            let time = time(), accept(" GMT")
        else { return nil }
        let thisDay = min(max(now / 86400, 0), 2_932_896)
        let thisYear = HTTPDate.civil(fromDay: thisDay).year
        var year = thisYear - thisYear % 100 + short
        if year > thisYear + 50 { year -= 100 } else if year < thisYear - 49 { year += 100 }
        return seconds(year: year, month: month, day: day, time: time)
    }

    /// Parses ` Nov  6 08:49:37 1994`.
    mutating func asctime() -> Int64? {
        guard accept(" "), let month = month(), accept(" ") else { return nil }
        let day = accept(" ") ? number(1) : number(2)
        guard let day, accept(" "), let time = time(), accept(" "), let year = number(4) else { return nil }
        return seconds(year: year, month: month, day: day, time: time)
    }
}

/// Whole seconds in header fields (RFC 9111, section 1.2.2).
enum DeltaSeconds {
    /// The limit that the RFC defines for larger values: 68 years.
    static let most: Int64 = 2_147_483_648

    /// Parses seconds, limited to ``most``; nil unless all bytes are digits.
    static func parse(_ bytes: ArraySlice<UInt8>) -> Int64? {
        guard !bytes.isEmpty else { return nil }
        var value: Int64 = 0
        for byte in bytes {
            guard let digit = byte.decimalDigit else { return nil }
            value = min(value * 10 + Int64(digit), most)
        }
        return value
    }

    /// Returns the first element of the first `Age` line; nil if it is not a number (RFC 9111, section 5.1).
    static func age(_ headers: HTTPHeaders) -> Int64? {
        guard let line = headers["Age"], let first = HTTPList.elements(line).first else { return nil }
        return parse(first)
    }
}

/// Parses `Retry-After` (RFC 9110, section 10.2.3).
public enum RetryAfter {
    /// Returns the time to wait; nil if the value is invalid, and zero for a date in the past.
    ///
    /// - Parameters:
    ///   - value: Seconds, or a date.
    ///   - now: The time of day, since 1970.
    ///   - ceiling: The longest result; nil for one day.
    public static func delay(_ value: String, now: Duration, upTo ceiling: Duration? = nil) -> Duration? {
        let ceiling = ceiling ?? longest
        if !value.isEmpty, value.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            // Ten digits are more than thirty years.
            return min(.seconds(value.utf8.count < 10 ? Int64(value) ?? 0 : 1_000_000_000), ceiling)
        }
        guard let date = HTTPDate.seconds(value, now: now) else { return nil }
        return min(max(.zero, .seconds(date) - now), ceiling)
    }

    /// The default limit of ``delay(_:now:upTo:)``: one day.
    package static let longest = Duration.seconds(86_400)
}
