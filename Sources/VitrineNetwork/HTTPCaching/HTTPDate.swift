/// Dates as HTTP writes them, in the three forms of RFC 9110 section 5.6.7.
package enum HTTPDate {
    /// Seconds since 1970-01-01 00:00 UTC, or nil when the text is none of the three forms to the letter (names of
    /// days and months and `GMT` in any case, as many servers disagree on it).
    ///
    /// Strict on purpose: a cache has to take a date it does not understand as one in the past (RFC 9111 section 5.3).
    ///
    /// - Parameter now: decides the century of the two-digit years of RFC 850: none is more than 50 years ahead.
    package static func seconds(_ text: String, now: Duration) -> Int64? {
        let bytes = Array(text.utf8)
        // The longest is `Wednesday, 09-Nov-94 08:49:37 GMT`.
        guard (24...33).contains(bytes.count) else { return nil }
        var reader = HTTPDateReader(bytes: bytes)
        guard let day = reader.weekday() else { return nil }
        let date: Int64? =
            if reader.accept(", ") {
                day.isShort ? reader.fixdate() : reader.obsolete(now: now.components.seconds)
            } else {
                day.isShort ? reader.asctime() : nil
            }
        return reader.isAtEnd ? date : nil
    }

    /// The preferred form, `Sun, 06 Nov 1994 08:49:37 GMT`, of seconds since 1970; years outside 1 to 9999 are taken
    /// to the nearest that can be written.
    package static func text(_ seconds: Int64) -> String {
        let limited = min(max(seconds, -62_135_596_800), 253_402_300_799)
        let day = (limited - (limited % 86400 + 86400) % 86400) / 86400
        let time = limited - day * 86400
        let (year, month, dayOfMonth) = civil(fromDay: day)
        let weekday = weekdays[Int(((day + 4) % 7 + 7) % 7)]
        func padded(_ number: Int64, _ width: Int) -> String {
            let digits = String(number)
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        return "\(weekday.prefix(3)), \(padded(dayOfMonth, 2)) \(months[Int(month - 1)]) \(padded(year, 4)) "
            + "\(padded(time / 3600, 2)):\(padded(time / 60 % 60, 2)):\(padded(time % 60, 2)) GMT"
    }

    static let weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
    static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// Days since 1970-01-01 of a date in the proleptic Gregorian calendar (H. Hinnant, "chrono-compatible low-level
    /// date algorithms").
    static func day(year: Int64, month: Int64, day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    /// The date of a day since 1970-01-01: the reverse of ``day(year:month:day:)``.
    static func civil(fromDay day: Int64) -> (year: Int64, month: Int64, day: Int64) {
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
