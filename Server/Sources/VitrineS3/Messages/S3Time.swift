import VitrineNetwork

/// Dates of S3: the stamps of signatures, and ISO 8601 in bodies. All are times since 1970 in UTC.
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
