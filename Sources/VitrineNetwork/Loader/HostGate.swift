import VitrineCore

/// Until when each site has asked to be left alone.
final class HostGate<Time: Clock>: Sendable where Time.Duration == Duration {
    private let clock: Time
    /// Beyond this many sites those that may be asked again are forgotten.
    private static var limit: Int { 256 }
    private let openings = Locked<[String: Time.Instant]>([:])

    init(_ clock: Time) { self.clock = clock }

    /// Nobody passes for so long.
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

    /// Returns when the site may be asked again.
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
