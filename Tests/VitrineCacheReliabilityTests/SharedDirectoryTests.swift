import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore

/// Several processes use one directory at the same time.
struct SharedDirectoryTests {
    @Test(arguments: [2, 4])
    func processesShareADirectoryFairlyAndWithinItsCapacity(processes: Int) async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            let path = directory.file("cache")
            let capacity = 1_500_000
            let children = try (0..<processes).map { index in
                try ChildProcess(
                    ["compete", path, String(index + 1), "300", String(capacity), String(1500 * Rounds.factor)],
                    holdsInput: true)
            }
            for child in children { #expect(child.line() == "ready 1") }
            for child in children { child.closeInput() }
            var largest = 0, samples = 0
            let watcher = DiskCache(directory: path, configuration: .init(capacity: ByteCount(capacity))).blocking
            let end = ContinuousClock.now + .milliseconds(1300 * Rounds.factor)
            while samples < 4 || ContinuousClock.now < end {
                largest = max(largest, try watcher.size.bytes)
                samples += 1
                usleep(5_000)
            }
            let findings = children.map { $0.findings() }
            for (child, finding) in zip(children, findings) {
                #expect(child.wait() == .exit(0), "\(finding)")
                #expect(finding["error"] == nil)
                #expect(finding.number("wrong") == 0)
                #expect(finding.number("hits") > 5, "\(finding)")
            }
            let turns = findings.map { $0.number("turns") }
            let fair = turns.reduce(0, +) / processes
            // Run alone, each has at least half of its share; beside other tests one may get less processor time. A lock
            // without turns gave 420 against 5,048.
            #expect((turns.min() ?? 0) * 4 >= fair, "turns \(turns): less than a quarter of the share")
            #expect(largest <= capacity + SampleEntry.largestAccountedSize, "of \(capacity)")
            let report = try watcher.verify(removingDamage: false)
            #expect(report.damaged.isEmpty)
            #expect(report.orphans.isEmpty)
            #expect(try CacheFiles.damage(in: path) == [])
        }
    }
}
