/// Reads `Retry-After` (RFC 9110, section 10.2.3).
package enum RetryAfter {
    /// How long to wait.
    ///
    /// - Parameters:
    ///   - value: Seconds, or a date.
    ///   - now: The time of day, since 1970.
    ///   - ceiling: The most it can be, whatever the server says.
    /// - Returns: nil for what is neither. A date that has passed is zero.
    package static func delay(_ value: String, now: Duration, upTo ceiling: Duration = longest) -> Duration? {
        if !value.isEmpty, value.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            // What has more digits is more than thirty years.
            return min(.seconds(value.utf8.count < 10 ? Int64(value) ?? 0 : 1_000_000_000), ceiling)
        }
        guard let date = HTTPDate.seconds(value, now: now) else { return nil }
        return min(max(.zero, .seconds(date) - now), ceiling)
    }

    /// A day: who has been away for longer than that is better asked.
    package static let longest = Duration.seconds(86_400)
}
