/// Reads the parts of a date from its first byte to its last.
struct HTTPDateReader {
    let bytes: [UInt8]
    var position = 0

    init(bytes: [UInt8]) { self.bytes = bytes }

    var isAtEnd: Bool { position == bytes.count }

    /// Steps over a text that has to come next, in any case of letters.
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

    /// Exactly `count` digits.
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

    /// The name of a day, whole or of three letters.
    mutating func weekday() -> (index: Int, isShort: Bool)? {
        for (index, name) in HTTPDate.weekdays.enumerated() {
            if accept(name) { return (index, false) }
            if accept(String(name.prefix(3))) { return (index, true) }
        }
        return nil
    }

    private mutating func month() -> Int64? {
        for (index, name) in HTTPDate.months.enumerated() where accept(name) { return Int64(index + 1) }
        return nil
    }

    /// `08:49:37` as seconds of the day. A leap second counts as the one before it.
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

    /// `06 Nov 1994 08:49:37 GMT`
    mutating func fixdate() -> Int64? {
        guard let day = number(2), accept(" "), let month = month(), accept(" "), let year = number(4), accept(" "),
            let time = time(), accept(" GMT")
        else { return nil }
        return seconds(year: year, month: month, day: day, time: time)
    }

    /// `06-Nov-94 08:49:37 GMT`
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

    /// ` Nov  6 08:49:37 1994`
    mutating func asctime() -> Int64? {
        guard accept(" "), let month = month(), accept(" ") else { return nil }
        let day = accept(" ") ? number(1) : number(2)
        guard let day, accept(" "), let time = time(), accept(" "), let year = number(4) else { return nil }
        return seconds(year: year, month: month, day: day, time: time)
    }
}
