/// Dates of the Gregorian calendar as seconds.
enum CivilTime {
    /// Seconds from 1 January 1970, 00:00, to a date and time of day of the same zone.
    static func seconds(year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int) -> Double {
        Double(((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second)
    }

    /// Days from 1 January 1970. Years begin with March, so that leap days come last.
    private static func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
        let y = month <= 2 ? year - 1 : year
        let m = month <= 2 ? month + 9 : month - 3
        let leapDays = y / 4 - y / 100 + y / 400
        // 719,468 days lie between 1 March of the year 0 and 1 January 1970.
        return y * 365 + leapDays + (153 * m + 2) / 5 + day - 1 - 719_468
    }
}
