/// Reads `Retry-After` (RFC 9110, section 10.2.3).
package enum RetryAfter {
    /// How long to wait.
    ///
    /// - Parameters:
    ///   - value: Seconds, or a date.
    ///   - now: The time of day, since 1970.
    /// - Returns: nil for what is neither. A date that has passed is zero.
    package static func delay(_ value: String, now: Duration) -> Duration? {
        if !value.isEmpty, value.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            return value.utf8.count < 10 ? Int(value).map { .seconds($0) } : .seconds(1_000_000_000)
        }
        guard let date = HTTPDate.seconds(value, now: now) else { return nil }
        return max(.zero, .seconds(date) - now)
    }
}
