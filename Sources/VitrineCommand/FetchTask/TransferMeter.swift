/// How fast a transfer goes, and how long it will still take.
struct TransferMeter {
    /// Bytes a second, the last few seconds counting most; nil until there is something to tell from.
    private(set) var speed: Double?

    private var last: (time: ContinuousClock.Instant, received: Int)?
    /// How fast the past is forgotten, in seconds.
    private static let memory = 3.0

    /// Takes note of how many bytes are there. Fewer than before mean that it began anew.
    mutating func add(_ received: Int, at time: ContinuousClock.Instant) {
        defer { last = (time, received) }
        guard let last, received >= last.received else {
            speed = nil
            return
        }
        let seconds = (time - last.time) / .seconds(1)
        guard seconds > 0 else { return }
        let current = (Double(received) - Double(last.received)) / seconds
        guard let speed else {
            self.speed = current
            return
        }
        // A moving average for steps of any length.
        let weight = min(1, seconds / Self.memory)
        self.speed = speed + (current - speed) * weight
    }

    /// Seconds until `rest` more bytes are there; nil if that cannot be told, or is no use to know.
    func secondsLeft(for rest: Int) -> Int? {
        guard let speed, speed > 1 else { return nil }
        let seconds = Double(max(0, rest)) / speed
        return seconds < 360_000 ? Int(seconds.rounded(.up)) : nil
    }

    /// `0:05`, `12:34`, `1:02:03`.
    static func text(seconds: Int) -> String {
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let (minutes, hours) = (seconds / 60 % 60, seconds / 3600)
        return hours > 0
            ? "\(hours):\(two(minutes)):\(two(seconds % 60))" : "\(minutes):\(two(seconds % 60))"
    }
}
