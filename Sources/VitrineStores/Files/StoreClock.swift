import VitrineCore

/// Makes names and times of change that no two saves of this process share.
enum StoreClock {
    private static let lastName = Locked(0)

    /// Microseconds since 1970, as 16 digits, and an extension (R109).
    static func name(fileExtension: String?) -> String {
        let now = WallClock.system.now / .microseconds(1)
        let microseconds = lastName.withLock { last in
            last = max(Int(now), last + 1)
            return last
        }
        return "\(microseconds)" + (fileExtension.map { $0.isEmpty ? "" : ".\($0)" } ?? "")
    }
}

extension StoreClock {
    private static let lastStamp = Locked(Duration.zero)

    /// A time of change that no file has had before: now, or later than `previous` where the clock went back.
    static func stamp(after previous: Duration?) -> Duration {
        lastStamp.withLock { last in
            last = max(WallClock.system.now, last + .nanoseconds(1), (previous ?? .zero) + .nanoseconds(1))
            return last
        }
    }
}
