import Foundation
import Synchronization
import TestSupport
import VitrineCore
import VitrineImaging

/// Feeds one target, and ends the process when it accepts none of its seeds, when an input takes too long or too much
/// memory, and when a picture depends on what fresh memory held.
final class FuzzRun: Sendable {
    /// Seconds one input may take; sanitizers need more.
    private static let patience = ProcessInfo.processInfo.environment["VITRINE_FUZZ_SECONDS"].flatMap { Int($0) } ?? 20
    /// How far the peak of resident memory may grow beyond where it was after the seeds, in MiB. A million trees of
    /// objects that lead back to themselves keep about 230.
    private static let growth = ProcessInfo.processInfo.environment["VITRINE_FUZZ_MEMORY"].flatMap { Int($0) } ?? 512

    /// The processor time that any input may take, that a byte may, and that a pixel may, in nanoseconds. The first is
    /// for tables of a fixed size. Work that is not linear in the bytes exceeds the sum with a few thousand of them.
    private static let (fixedCost, byteCost, pixelCost) = (50_000_000, 2_000, 500)
    /// How many times slower a sanitizer is.
    private static let slowness = isSanitized ? 12 : 1
    private static let isSanitized = ProcessInfo.processInfo.environment["ASAN_OPTIONS"] != nil

    private let target: FuzzTarget
    private let seed: UInt64
    private let record: String?
    private let begun = Atomic<Int>(0)
    private let accepted = Atomic<Int>(0)
    private let slowest = Atomic<Int>(0)

    init(_ target: FuzzTarget, seed: UInt64, record: String?) {
        (self.target, self.seed, self.record) = (target, seed, record)
        // A worker would hide a crash of its parsers, and the oracles of time and memory would not see it.
        Isolation.standard = .inProcess
    }

    func run(_ runs: Int) {
        let seeds = target.beginnings(generated: 24)
        guard !seeds.isEmpty else { fail("has no seeds") }
        let record = self.record.flatMap { FuzzRecord(path: $0, capacity: 4 * FuzzMutator.maximumCount) }
        limitAddressSpace()
        watch()
        for bytes in seeds { feed(bytes, record) }
        let acceptedSeeds = accepted.load(ordering: .relaxed)
        guard acceptedSeeds > 0 else { fail("accepts none of its \(seeds.count) seeds") }
        let floor = Self.peak()
        var random = FuzzRandom(seed)
        var plan = FuzzPlan(seeds: seeds, kind: target.kind, runs: runs, seed: seed)
        for number in 0..<runs {
            var input = next(number, &plan, &random)
            // A part of what a network brings: half of the decodes allow it.
            if target.givesPictures, random.chance(6), !input.isEmpty {
                input.removeLast(random.below(input.count))
            } else if number & 1 == 0, let repair = target.repair {
                input = repair(input)
            }
            feed(input, record)
            if number & 15 == 0, Self.peak() - floor > Self.growth << 10 {
                fail("needs \((Self.peak() - floor) >> 10) MiB more than its seeds")
            }
        }
        let accepted = accepted.load(ordering: .relaxed)
        let memory = (Self.peak() - floor) >> 10
        let slowest = slowest.load(ordering: .relaxed) / 1_000_000
        print(
            "\(target.name): \(runs) inputs, \(accepted) accepted; \(seeds.count) seeds, \(acceptedSeeds) accepted;",
            "\(slowest) ms the slowest, \(memory) MiB more")
    }

    /// Half of the inputs are made where the target has a generator, and a quarter of those has a few wrong bits.
    private func next(_ number: Int, _ plan: inout FuzzPlan, _ random: inout FuzzRandom) -> [UInt8] {
        guard number & 1 == 1, let generate = target.generate else { return plan.input(number) }
        var input = generate(&random)
        if random.chance(4), !input.isEmpty {
            for _ in 0..<(1 + random.below(3)) { input[random.below(input.count)] ^= 1 << UInt8(random.below(8)) }
        }
        return input
    }

    func replay(_ bytes: [UInt8]) {
        watch()
        for fill in FreshMemory.fills {
            FreshMemory.fill(fill)
            let start = Self.processorTime()
            do {
                let digest = try target.parse(bytes).map { StableHash.hash($0.flatMap(\.self)) }
                print("accepted", digest.map { "with the digest \($0)" } ?? "", terminator: "; ")
            } catch {
                print("refused: \(error)", terminator: "; ")
            }
            print((Self.processorTime() - start) / 1_000_000, "ms of", allowance(bytes) / 1_000_000)
        }
    }

    private func feed(_ input: [UInt8], _ record: FuzzRecord?) {
        record?.keep(input)
        begun.add(1, ordering: .relaxed)
        FreshMemory.fill(FreshMemory.fills[0])
        let start = Self.processorTime()
        let result = Result { try target.parse(input) }
        let cost = Self.processorTime() - start
        slowest.max(cost, ordering: .relaxed)
        if cost > allowance(input) { checkCost(input) }
        // Targets throw where a parser answers with an error; what is nil or absent counts as accepted.
        guard case .success(let samples) = result else { return }
        accepted.add(1, ordering: .relaxed)
        guard let samples, !Self.isSanitized else { return }
        FreshMemory.fill(FreshMemory.fills[1])
        guard case .success(samples) = Result(catching: { try target.parse(input) }) else {
            fail("gives another picture when fresh memory holds other bytes")
        }
    }

    /// Fails when the input is too expensive each time. The first time, tables were made.
    private func checkCost(_ input: [UInt8]) {
        var least = Int.max
        for _ in 0..<5 where least > allowance(input) {
            let start = Self.processorTime()
            _ = try? target.parse(input)
            least = min(least, Self.processorTime() - start)
        }
        guard least > allowance(input) else { return }
        fail("takes \(least / 1_000_000) ms for \(input.count) bytes, of \(allowance(input) / 1_000_000) allowed")
    }

    /// Nanoseconds of the processor that an input may take.
    private func allowance(_ input: [UInt8]) -> Int {
        (Self.fixedCost + input.count * Self.byteCost + target.pixels * Self.pixelCost) * Self.slowness
    }

    /// Nanoseconds of the processor that this process has had.
    private static func processorTime() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
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
        guard !Self.isSanitized else { return }
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
