import VitrineNetwork

/// Dates of S3: the stamps of signatures, ISO 8601 in bodies, and dates of HTTP in header fields. All are times since
/// 1970 in UTC.
package enum S3Time {
    /// Returns `20130524T000000Z`.
    package static func stamp(_ time: Duration) -> String {
        let seconds = time.components.seconds
        let day = seconds >= 0 ? seconds / 86_400 : (seconds - 86_399) / 86_400
        let rest = seconds - day * 86_400
        let date = HTTPDate.civil(fromDay: day)
        func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let year = String(date.year)
        return String(repeating: "0", count: max(0, 4 - year.count)) + year + two(date.month) + two(date.day) + "T"
            + two(rest / 3_600) + two(rest / 60 % 60) + two(rest % 60) + "Z"
    }

    /// Parses `2009-10-12T17:50:30.000Z`, whose fraction may be missing, or `20091012T175030Z`; nil for others.
    package static func parse(iso text: String) -> Duration? {
        var rest = text.utf8[...]
        func number(_ count: Int) -> Int64? {
            guard rest.count >= count, rest.prefix(count).allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            defer { rest = rest.dropFirst(count) }
            return Int64(String(decoding: rest.prefix(count), as: UTF8.self))
        }
        func skip(_ byte: Unicode.Scalar, required: Bool = false) -> Bool {
            guard rest.first == UInt8(ascii: byte) else { return !required }
            rest = rest.dropFirst()
            return true
        }
        guard let year = number(4), skip("-"), let month = number(2), skip("-"), let day = number(2),
            skip("T", required: true), let hour = number(2), skip(":"), let minute = number(2), skip(":"),
            let second = number(2)
        else { return nil }
        var fraction: Int64 = 0
        if rest.first == UInt8(ascii: ".") {
            rest = rest.dropFirst()
            let digits = rest.prefix { (0x30...0x39).contains($0) }
            rest = rest.dropFirst(digits.count)
            let text = String(decoding: digits.prefix(9), as: UTF8.self)
            guard !digits.isEmpty, let value = Int64(text) else { return nil }
            fraction = value
            for _ in text.utf8.count..<9 { fraction *= 10 }
        }
        guard rest.elementsEqual("Z".utf8),
            let seconds = seconds(year: year, month: month, day: day, hour: hour, minute: minute, second: second)
        else {
            return nil
        }
        return .seconds(seconds) + .nanoseconds(fraction)
    }

    /// Parses `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7); nil for others.
    package static func parse(http text: String) -> Duration? {
        let words = text.split(separator: " ")
        guard words.count == 6, words[0].hasSuffix(","), words[5] == "GMT",
            let month = months.firstIndex(of: String(words[2])), let day = digits(words[1], 2),
            let year = digits(words[3], 4)
        else { return nil }
        let clock = words[4].split(separator: ":", omittingEmptySubsequences: false)
        guard clock.count == 3, let hour = digits(clock[0], 2), let minute = digits(clock[1], 2),
            let second = digits(clock[2], 2)
        else { return nil }
        return seconds(year: year, month: Int64(month + 1), day: day, hour: hour, minute: minute, second: second).map {
            .seconds($0)
        }
    }

    /// Parses the value of a `Retry-After` field: a number of seconds, or a date.
    package static func delay(_ text: String, now: Duration) -> Duration? {
        if !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            return .seconds(min(Int64(text) ?? .max, 1 << 40))
        }
        return parse(http: text).map { max(.zero, $0 - now) }
    }

    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    private static func digits(_ text: Substring, _ count: Int) -> Int64? {
        guard text.utf8.count == count, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int64(text)
    }

    private static func seconds(
        year: Int64, month: Int64, day: Int64, hour: Int64, minute: Int64, second: Int64
    ) -> Int64? {
        guard (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60, second <= 60 else { return nil }
        let number = HTTPDate.day(year: year, month: month, day: day)
        let back = HTTPDate.civil(fromDay: number)
        guard back.month == month, back.day == day else { return nil }
        return number * 86_400 + hour * 3_600 + minute * 60 + min(second, 59)
    }
}
