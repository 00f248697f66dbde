import Foundation

/// Contenders that do the same, run alternately.
struct Comparison {
    /// Which clock counts.
    enum Clock {
        /// Processor time of the calling thread.
        case thread
        /// Time on the wall: for what waits for a disk or for other threads.
        case wall

        var nanoseconds: Double {
            var time = timespec()
            clock_gettime(self == .thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time)
            return Double(time.tv_sec) * 1e9 + Double(time.tv_nsec)
        }
    }

    let title: String
    /// How many things one run does: times are given for one.
    let count: Int
    let rounds: Int
    var clock = Clock.thread
    private var contenders: [(name: String, run: () async throws -> Double)] = []

    init(_ title: String, count: Int, rounds: Int, clock: Clock = .thread) {
        (self.title, self.count, self.rounds, self.clock) = (title, count, rounds, clock)
    }

    /// Adds a contender whose whole body counts.
    mutating func add(_ name: String, _ body: @escaping () throws -> Void) {
        let clock = clock
        contenders.append((name, {
            let start = clock.nanoseconds
            try body()
            return clock.nanoseconds - start
        }))
    }

    /// Adds a contender that waits.
    mutating func addWaiting(
        _ name: String, prepare: @escaping () async throws -> Void = {}, _ body: @escaping () async throws -> Void
    ) {
        contenders.append((name, {
            try await prepare()
            let start = Clock.wall.nanoseconds
            try await body()
            return Clock.wall.nanoseconds - start
        }))
    }

    /// Runs all rounds and prints the table. The first round warms up.
    func run() async throws {
        var times = [[Double]](repeating: [], count: contenders.count)
        for round in 0...rounds {
            let order = round.isMultiple(of: 2) ? Array(contenders.indices) : contenders.indices.reversed()
            for index in order {
                let time = try await contenders[index].run()
                if round > 0 { times[index].append(time) }
            }
        }
        print("| \(title), \(count), \(rounds) rounds | µs each | rate to the first's |\n|---|---:|---:|")
        for (index, contender) in contenders.enumerated() {
            let ratios = zip(times[0], times[index]).map { $0 / $1 }
            print("| \(contender.name) | \(text(median(times[index]) / Double(count) / 1e3)) | \(text(median(ratios))) |")
        }
        print("")
    }

    private func median(_ values: [Double]) -> Double { values.isEmpty ? 0 : values.sorted()[values.count / 2] }

    private func text(_ value: Double) -> String { String(format: "%.2f", value) }
}
