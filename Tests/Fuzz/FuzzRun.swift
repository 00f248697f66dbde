import Foundation
import Synchronization
import TestSupport

/// Feeds one target, and ends the process when an input takes too long or too much memory.
final class FuzzRun: Sendable {
    /// Seconds one input may take; sanitizers need more.
    private static let patience = ProcessInfo.processInfo.environment["VITRINE_FUZZ_SECONDS"].flatMap { Int($0) } ?? 20
    /// How far the peak of resident memory may grow beyond where it was after the seeds, in MiB. A million trees of
    /// objects that lead back to themselves keep about 230.
    private static let growth = ProcessInfo.processInfo.environment["VITRINE_FUZZ_MEMORY"].flatMap { Int($0) } ?? 512

    private let target: FuzzTarget
    private let seed: UInt64
    private let record: String?
    private let begun = Atomic<Int>(0)
    private let accepted = Atomic<Int>(0)

    init(_ target: FuzzTarget, seed: UInt64, record: String?) {
        (self.target, self.seed, self.record) = (target, seed, record)
    }

    func run(_ runs: Int) {
        let seeds = target.seeds().filter { $0.count <= FuzzMutator.maximumCount }
        guard !seeds.isEmpty else { fail("has no seeds") }
        let record = self.record.flatMap { FuzzRecord(path: $0, capacity: 4 * FuzzMutator.maximumCount) }
        limitAddressSpace()
        watch()
        for bytes in seeds { feed(bytes, record) }
        let floor = Self.peak()
        var plan = FuzzPlan(seeds: seeds, kind: target.kind, runs: runs, seed: seed)
        for number in 0..<runs {
            var input = plan.input(number)
            if number & 1 == 0, let repair = target.repair { input = repair(input) }
            feed(input, record)
            if number & 15 == 0, Self.peak() - floor > Self.growth << 10 {
                fail("needs \((Self.peak() - floor) >> 10) MiB more than its seeds")
            }
        }
        let accepted = accepted.load(ordering: .relaxed)
        let memory = (Self.peak() - floor) >> 10
        print("\(target.name): \(runs) inputs of \(seeds.count) seeds, \(accepted) accepted, \(memory) MiB more")
    }

    func replay(_ bytes: [UInt8]) {
        watch()
        do {
            try target.parse(bytes)
            print("accepted")
        } catch {
            print("refused: \(error)")
        }
    }

    private func feed(_ input: [UInt8], _ record: FuzzRecord?) {
        record?.keep(input)
        begun.add(1, ordering: .relaxed)
        // Targets throw where a parser answers with an error; what is nil or absent counts as accepted.
        if (try? target.parse(input)) != nil { accepted.add(1, ordering: .relaxed) }
    }

    /// A thread that looks every second whether the input is still the same.
    private func watch() {
        Thread.detachNewThread { [self] in
            var last = -1
            var seconds = 0
            while true {
                sleep(1)
                let now = begun.load(ordering: .relaxed)
                seconds = now == last ? seconds + 1 : 0
                last = now
                if seconds >= Self.patience { fail("takes more than \(seconds) seconds for one input") }
            }
        }
    }

    /// Sanitizers reserve more than any limit.
    private func limitAddressSpace() {
        guard ProcessInfo.processInfo.environment["ASAN_OPTIONS"] == nil else { return }
        var limit = rlimit(rlim_cur: 8 << 30, rlim_max: 8 << 30)
        #if canImport(Glibc)
            setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit)
        #else
            setrlimit(RLIMIT_AS, &limit)
        #endif
    }

    /// The peak of resident memory, in KiB.
    private static func peak() -> Int {
        var usage = rusage()
        #if canImport(Glibc)
            getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
            return Int(usage.ru_maxrss)
        #else
            getrusage(RUSAGE_SELF, &usage)
            return Int(usage.ru_maxrss) >> 10
        #endif
    }

    private func fail(_ reason: String) -> Never {
        FileHandle.standardError.write(Data("\(target.name) \(reason)\n".utf8))
        abort()
    }
}
