import VitrineCore

/// The number and timing of retries.
///
/// The wait before the n-th retry is a random time from zero to 0.5 · 2ⁿ⁻¹ seconds, at most 30 seconds: exponential
/// backoff with full jitter. Statuses 408, 429, 500, 502, 503 and 504 and failed connections are retried. After a
/// response with `Retry-After`, all requests to the origin wait for that time.
public struct RetryPolicy: Sendable {
    /// The most retries of a request; 0 for none. The default is 2.
    public var limit = 2
    /// Whether a download into a file that has made progress resumes even where ``limit`` allows no retry, for callers
    /// that count the attempts without progress. The default is false.
    package var resumesAfterProgress = false
    /// The longest wait before the first retry. The default is 0.5 seconds.
    package var base: Duration = .milliseconds(500)
    /// The longest wait before any retry. The default is 30 seconds.
    package var maximumDelay: Duration = .seconds(30)
    /// The longest `Retry-After` to wait for. If the server demands more, the request fails at once, and further
    /// requests to the origin wait for this time. The default is 60 seconds.
    public var maximumRetryAfter: Duration = .seconds(60)
    /// The status codes that are retried. The default is 408, 429, 500, 502, 503 and 504.
    package var statuses = RetryPolicy.transientStatuses
    /// Returns the random part of a wait, from 0 to 1.
    package var jitter: @Sendable () -> Double = { Double.random(in: 0...1) }

    /// Creates the default policy.
    public init() {}

    /// The status codes that may change without a change of the request.
    static let transientStatuses: Set<Int> = [408, 429, 500, 502, 503, 504]

    /// The limit of all waits, so that no sum overflows: about 30,000 years.
    private static let longestDelay = Duration.seconds(Int64(1) << 40)

    /// Returns the wait before a retry; 1 is the first.
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

/// Delays requests to origins that demanded a wait by `Retry-After`.
final class HostGate<Time: Clock>: Sendable where Time.Duration == Duration {
    private let clock: Time
    /// Beyond this number of origins, expired entries are removed.
    private static var limit: Int { 256 }
    private let openings = Locked<[String: Time.Instant]>([:])

    init(_ clock: Time) { self.clock = clock }

    /// Delays all requests to an origin.
    func close(_ origin: String, for duration: Duration) {
        let opening = clock.now.advanced(by: duration)
        openings.withLock { openings in
            if openings.count >= Self.limit {
                let now = clock.now
                openings = openings.filter { $0.value > now }
            }
            if let known = openings[origin], known > opening { return }
            openings[origin] = opening
        }
    }

    /// Returns as soon as requests to the origin are permitted.
    ///
    /// - Throws: `CancellationError`.
    func wait(for origin: String) async throws {
        while let opening = openings.withLock({ $0[origin] }) {
            guard opening > clock.now else {
                openings.withLock { openings in
                    if openings[origin] == opening { openings[origin] = nil }
                }
                return
            }
            try await clock.sleep(until: opening, tolerance: nil)
        }
    }
}
