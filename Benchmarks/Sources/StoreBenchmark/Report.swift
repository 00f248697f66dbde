import Foundation

/// Runs blocks of all contenders alternately and prints the tables.
struct Report {
    let directory: String
    let count: Int
    let rounds: Int

    func run() throws {
        try saves()
        try listing()
    }

    private func saves() throws {
        let contenders: [Contender] = [.plain, .store, .awaited, .group]
        var found: [Contender: [Measurement]] = [:]
        let root = directory + "/saves"
        // All at the end: ext4 gives no inode again for a minute and more, and looks through all that are waiting for
        // each file it creates.
        defer { try? FileManager.default.removeItem(atPath: root) }
        for round in 0...rounds {
            for contender in round.isMultiple(of: 2) ? contenders : contenders.reversed() {
                let place = "\(root)/\(contender)-\(round)"
                try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
                let measurement = try block(contender, place, count)
                // What one block leaves unwritten is not the next one's work.
                sync()
                // The first round warms up.
                if round > 0 { found[contender, default: []].append(measurement) }
            }
        }
        print("| \(count) saves of 20 KB a block, \(rounds) blocks | µs a save | ratio of rates | CPU µs | peak MB |")
        print("|---|---:|---:|---:|---:|")
        for contender in contenders { row(contender, found[contender] ?? [], to: found[.plain] ?? []) }
        print("")
    }

    private func listing() throws {
        let place = directory + "/names"
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
        for number in 0..<100_000 {
            close(open("\(place)/picture-\(number).jpg", O_WRONLY | O_CREAT | O_CLOEXEC, 0o666))
        }
        defer { try? FileManager.default.removeItem(atPath: place) }
        var found: [Contender: [Measurement]] = [:]
        let contenders: [Contender] = [.plainNames, .names, .list]
        for round in 0...rounds {
            for contender in contenders {
                let measurement = try block(contender, place, 100_000)
                if round > 0 { found[contender, default: []].append(measurement) }
            }
        }
        print("| 100000 files, \(rounds) runs | ms | CPU ms | peak MB |\n|---|---:|---:|---:|")
        for contender in contenders {
            let all = found[contender] ?? []
            print("| \(contender) |", text(median(all.map(\.wall)) / 1000, 1), "|",
                text(median(all.map(\.cpu)) / 1000, 1), "|", text(median(all.map(\.peak)), 1), "|")
        }
    }

    private func row(_ contender: Contender, _ all: [Measurement], to plain: [Measurement]) {
        // Block against block of the same round.
        let ratios = zip(plain, all).map { $0.wall / $1.wall }
        print("| \(contender) |", text(median(all.map(\.wall)), 1), "|", text(median(ratios), 2), "|",
            text(median(all.map(\.cpu)), 1), "|", text(median(all.map(\.peak)), 1), "|")
    }

    private func block(_ contender: Contender, _ place: String, _ count: Int) throws -> Measurement {
        let process = Process(), output = Pipe()
        process.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = ["block", contender.rawValue, place, String(count)]
        process.standardOutput = output
        try process.run()
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard let measurement = Measurement(String(decoding: data, as: UTF8.self).trimmingCharacters(in: .newlines))
        else { throw CocoaError(.executableLoad) }
        return measurement
    }

    private func median(_ values: [Double]) -> Double {
        values.isEmpty ? 0 : values.sorted()[values.count / 2]
    }

    private func text(_ value: Double, _ digits: Int) -> String { String(format: "%.\(digits)f", value) }
}
