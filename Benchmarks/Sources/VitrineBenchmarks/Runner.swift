import Foundation

/// Runs measurements in child processes, contenders alternating, and keeps medians.
struct Runner {
    var rounds: Int
    var minimumSeconds: Double

    /// The median measurement of each contender; nil for one that failed.
    func compare(_ contenders: [Contender], size: Int, files: [String]) -> [Contender: Measurement] {
        var all: [Contender: [Measurement]] = [:]
        for _ in 0..<rounds {
            for contender in contenders.shuffled() {
                if let m = measure(contender, size: size, files: files) { all[contender, default: []].append(m) }
            }
        }
        return all.mapValues { list in
            Measurement(
                cpu: median(list.map(\.cpu)), peak: median(list.map(\.peak)), childPeak: median(list.map(\.childPeak)))
        }
    }

    private func measure(_ contender: Contender, size: Int, files: [String]) -> Measurement? {
        let process = Process()
        process.executableURL = URL(filePath: CommandLine.arguments[0])
        process.arguments =
            ["child", "--contender", contender.rawValue, "--size", "\(size)", "--minimum-seconds", "\(minimumSeconds)"]
            + files
        let pipe = Pipe()
        process.standardOutput = pipe
        guard (try? process.run()) != nil, let data = try? pipe.fileHandleForReading.readToEnd() else { return nil }
        process.waitUntilExit()
        return try? JSONDecoder().decode(Measurement.self, from: data)
    }
}

func median(_ values: [Double]) -> Double {
    let sorted = values.sorted()
    guard !sorted.isEmpty else { return .nan }
    return sorted.count % 2 == 1
        ? sorted[sorted.count / 2] : (sorted[sorted.count / 2 - 1] + sorted[sorted.count / 2]) / 2
}
