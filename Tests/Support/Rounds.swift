import Foundation

/// How long the tests that live by repetition run.
package enum Rounds {
    /// Kills of a writing child: `VITRINE_ROUNDS`, or 200.
    package static let kills = ProcessInfo.processInfo.environment["VITRINE_ROUNDS"].flatMap { Int($0) } ?? 200
    /// How many times longer than in continuous integration everything else runs.
    package static let factor = max(1, kills / 200)
}
