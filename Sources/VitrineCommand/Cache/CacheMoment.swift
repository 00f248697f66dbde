import ArgumentParser
import Foundation
import VitrineCore

/// Times and ages of entries, as people read and write them.
enum CacheMoment {
    /// A time since 1970 as ISO 8601 in UTC, to the second.
    static func text(_ time: Duration) -> String {
        Date(timeIntervalSince1970: TimeInterval(time.components.seconds)).formatted(.iso8601)
    }
}

/// An age on the command line: `90s`, `15m`, `12h`, `30d`, `4w`; plain numbers are days.
struct AgeArgument: ExpressibleByArgument {
    let duration: Duration

    init?(argument: String) {
        let units: [Character: Double] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800]
        var number = argument[...]
        var unit = 86_400.0
        if let last = number.last, let factor = units[last] {
            unit = factor
            number.removeLast()
        }
        guard let value = Double(number), value >= 0, value * unit <= 1e12 else { return nil }
        duration = .seconds(value * unit)
    }
}

/// A size on the command line: `4096`, `64k`, `1.5GiB`.
struct ByteCountArgument: ExpressibleByArgument {
    let size: ByteCount

    init?(argument: String) {
        guard let size = ByteCount(argument) else { return nil }
        self.size = size
    }
}
