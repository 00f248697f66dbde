/// When and how often a request is sent again.
///
/// The wait before the n-th repetition is any time from zero to `base · 2ⁿ⁻¹`, at most ``maximumDelay``:
/// exponential backoff with full jitter, which spreads those who failed together. A server that says `Retry-After` is
/// waited for as long as it says, by all requests to it.
public struct RetryPolicy: Sendable {
    /// How often a request is sent again. Default: 2.
    public var limit = 2
    /// The longest wait before the first repetition. Default: half a second.
    public var base: Duration = .milliseconds(500)
    /// The longest wait before any. Default: 30 seconds.
    public var maximumDelay: Duration = .seconds(30)
    /// The longest `Retry-After` that is waited for; beyond it the request fails at once, and the site is left alone for
    /// this long only. However large a number or far a date the server names, nothing waits longer. Default: a minute.
    public var maximumRetryAfter: Duration = .seconds(60)
    /// The statuses after which a request is sent again.
    public var statuses = RetryPolicy.transientStatuses
    /// Chooses a number from 0 to 1: the part of the wait that is waited.
    public var jitter: @Sendable () -> Double = { Double.random(in: 0...1) }

    public init() {}

    /// Nothing is sent twice.
    public static let never: RetryPolicy = {
        var policy = RetryPolicy()
        policy.limit = 0
        return policy
    }()

    /// 408, 429, 500, 502, 503 and 504: those that speak of now, not of the request.
    public static let transientStatuses: Set<Int> = [408, 429, 500, 502, 503, 504]

    /// No wait is longer, so that no sum overflows: some thirty thousand years.
    private static let longestDelay = Duration.seconds(Int64(1) << 40)

    /// The wait before a repetition, 1 for the first.
    package func delay(before repetition: Int) -> Duration {
        let limit = min(maximumDelay, Self.longestDelay)
        var delay = min(base, limit), rest = repetition
        while rest > 1, delay > .zero, limit > delay {
            delay = min(delay + delay, limit)
            rest -= 1
        }
        let part = jitter()
        return delay * (part >= 0 ? min(1, part) : 0)
    }
}
