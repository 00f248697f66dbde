import Foundation
import Testing
import VitrineCore
import VitrineImaging

/// What helpers may hold, each and all together.
@Suite struct HelperMemoryTests {
    private static let source = ByteSource(bytes: [1], name: "any")

    /// Limits whose helpers share 64 MB and a little with their client, and hold 128 MB of their own.
    private static var limits: ImageLimits {
        var limits = ImageLimits()
        limits.maximumPixels = 1
        limits.maximumWorkerMemory = 128 << 20
        return limits
    }

    private static func pool(_ workers: Int, _ memory: HelperMemory) -> WorkerPool {
        WorkerPool(
            program: "WorkerTestHost", location: .executable(WorkerFixture.host), maximumWorkers: workers, memory: memory)
    }

    private static func request(_ token: CancellationToken = CancellationToken()) -> DecodeRequest {
        WorkerFixture.request(.png, 1, 1, limits: limits, cancellation: token)
    }

    @Test func aWorkerCannotRaiseItsLimits() throws {
        let pool = Self.pool(1, HelperMemory(total: 1 << 30))
        let samples = try pool.decode(Self.source, Self.request(), decoder: "RaisingDecoder").firstPlane
        #expect(samples.count == 10)
        #expect(samples.prefix(7).allSatisfy { $0 == UInt8(EPERM) }, "\(samples)")
        #expect(samples[7] == UInt8(EACCES))
        // The hard limit in megabytes: the stack of the first thread counts for the 128.
        #expect(samples[8] == 120 && samples[9] == 0)
    }

    @Test func aWorkerGetsTheMemoryItsLimitsAllowAndNoMore() throws {
        let pool = Self.pool(1, HelperMemory(total: 1 << 30))
        let blocks = try pool.decode(Self.source, Self.request(), decoder: "HungryDecoder").firstPlane[0]
        #expect(blocks > 10 && Int(blocks) * 4 <= 128)
        // A request that allows more is served by another worker, which may hold more.
        var more = Self.request()
        more.limits.maximumWorkerMemory = 256 << 20
        let worker = pool.idleIdentifiers
        #expect(try pool.decode(Self.source, more, decoder: "HungryDecoder").firstPlane[0] > blocks)
        #expect(pool.idleIdentifiers != worker)
        // And one that allows less is held to that by the same.
        let larger = pool.idleIdentifiers
        #expect(try pool.decode(Self.source, Self.request(), decoder: "HungryDecoder").firstPlane[0] <= blocks + 1)
        #expect(pool.idleIdentifiers == larger)
    }

    @Test func allWorkersTogetherStayBelowTheTotal() throws {
        let memory = HelperMemory(total: HelperMemory.minimumTotal)
        let pools = [Self.pool(8, memory), Self.pool(8, memory)]
        let share = memory.share(for: Self.limits)
        #expect(share.privateBytes == 128 << 20 && (64 << 20...65 << 20).contains(share.sharedBytes))
        let isDone = Locked(false)
        let peak = Locked((workers: 0, bytes: 0, reserved: 0))
        let watcher = DispatchGroup()
        DispatchQueue.global().async(group: watcher) {
            while !isDone.withLock({ $0 }) {
                let held = Self.residentBytesOfWorkers(named: memory)
                peak.withLock {
                    $0 = (max($0.workers, held.count), max($0.bytes, held.reduce(0, +)), max($0.reserved, memory.reserved))
                }
                usleep(1_000)
            }
        }
        let failures = Locked<[ImageError]>([])
        DispatchQueue.concurrentPerform(iterations: 16) { index in
            do throws(ImageError) {
                _ = try pools[index % 2].decode(Self.source, Self.request(), decoder: "HungryDecoder")
            } catch {
                failures.withLock { $0.append(error) }
            }
        }
        isDone.withLock { $0 = true }
        watcher.wait()
        #expect(failures.withLock { $0 }.isEmpty)
        let most = peak.withLock { $0 }
        #expect(most.reserved <= memory.total)
        #expect(most.bytes <= memory.total, "\(most)")
        for pool in pools { pool.endIdleWorkers() }
        #expect(memory.reserved == 0)
    }

    /// What the children of this process that run the test host hold in memory (proc(5)).
    private static func residentBytesOfWorkers(named memory: HelperMemory) -> [Int] {
        let children = (try? String(contentsOfFile: "/proc/self/task/\(getpid())/children", encoding: .utf8)) ?? ""
        var numbers = children.split(separator: " ").compactMap { Int32($0) }
        // Each thread has the children that it has started.
        for thread in (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? [] {
            let more = (try? String(contentsOfFile: "/proc/self/task/\(thread)/children", encoding: .utf8)) ?? ""
            numbers += more.split(separator: " ").compactMap { Int32($0) }
        }
        return Set(numbers).compactMap { number in
            guard (try? String(contentsOfFile: "/proc/\(number)/comm", encoding: .utf8))?.hasPrefix("WorkerTestHost") == true,
                let text = try? String(contentsOfFile: "/proc/\(number)/statm", encoding: .utf8)
            else { return nil }
            let pages = text.split(separator: " ").compactMap { Int($0) }
            return pages.count > 2 ? (pages[1] - pages[2]) * Int(sysconf(Int32(_SC_PAGESIZE))) : nil
        }
    }

    /// With room for two of the workers.
    private static func small() -> HelperMemory {
        let memory = HelperMemory(total: HelperMemory.minimumTotal)
        #expect(memory.total / memory.share(for: limits).total == 2)
        return memory
    }

    @Test func idleWorkersGiveWayToThoseOfOtherPools() throws {
        let memory = Self.small()
        let (first, second) = (Self.pool(2, memory), Self.pool(2, memory))
        DispatchQueue.concurrentPerform(iterations: 2) { _ in
            _ = try? first.decode(Self.source, Self.request(), decoder: "HungryDecoder")
        }
        for _ in 0..<3 { _ = try second.decode(Self.source, Self.request(), decoder: "LeakingDecoder") }
        for _ in 0..<3 { _ = try first.decode(Self.source, Self.request(), decoder: "LeakingDecoder") }
        #expect(memory.reserved <= memory.total)
    }

    @Test func aPoolWithoutWorkersGetsTheNextShareOfABusyOne() throws {
        let memory = Self.small()
        let (busy, other) = (Self.pool(2, memory), Self.pool(2, memory))
        let tokens = [CancellationToken(), CancellationToken()]
        let ended = DispatchGroup()
        for token in tokens {
            DispatchQueue.global().async(group: ended) {
                _ = try? busy.decode(Self.source, Self.request(token), decoder: "EndlessDecoder")
            }
        }
        while memory.reserved < 2 * memory.share(for: Self.limits).total { usleep(1_000) }
        // More work than workers, so that none of them is ever idle.
        let waiting = CancellationToken()
        DispatchQueue.global().async(group: ended) {
            _ = try? busy.decode(Self.source, Self.request(waiting), decoder: "EndlessDecoder")
        }
        while busy.waitingCount < 1 { usleep(1_000) }
        let answer = Locked<Bool>(false)
        DispatchQueue.global().async(group: ended) {
            let image = try? other.decode(Self.source, Self.request(), decoder: "LeakingDecoder")
            answer.withLock { $0 = image != nil }
        }
        while other.waitingCount < 1 { usleep(1_000) }
        for token in tokens { token.cancel() }
        while !answer.withLock({ $0 }) { usleep(1_000) }
        waiting.cancel()
        ended.wait()
        #expect(memory.reserved <= memory.total)
    }

    @Test func aWaitForMemoryCanBeCancelled() throws {
        let memory = Self.small()
        let (busy, other) = (Self.pool(2, memory), Self.pool(2, memory))
        let running = CancellationToken(), waiting = CancellationToken()
        let ended = DispatchGroup()
        for _ in 0..<2 {
            DispatchQueue.global().async(group: ended) {
                _ = try? busy.decode(Self.source, Self.request(running), decoder: "EndlessDecoder")
            }
        }
        while memory.reserved < 2 * memory.share(for: Self.limits).total { usleep(1_000) }
        DispatchQueue.global().async(group: ended) {
            while other.waitingCount < 1 { usleep(1_000) }
            waiting.cancel()
        }
        #expect(throws: ImageError.cancelled(input: "any")) {
            try other.decode(Self.source, Self.request(waiting), decoder: "LeakingDecoder")
        }
        running.cancel()
        ended.wait()
    }

    @Test func sharesAreCutToTheTotalAndSurviveAnyLimits() {
        let memory = HelperMemory(total: 0)
        #expect(memory.total == 512 << 20)
        for value in [Int.min, -1, 0, 1, 1 << 40, .max] {
            var limits = ImageLimits()
            (limits.maximumWorkerMemory, limits.maximumPixels) = (value, value)
            let share = memory.share(for: limits)
            #expect(share.total <= memory.total && share.privateBytes >= 64 << 20 && share.sharedBytes >= 64 << 20)
            let ample = HelperMemory(total: .max).share(for: limits)
            #expect(ample.privateBytes >= 64 << 20 && ample.sharedBytes <= 1 << 30)
        }
        let standard = HelperMemory(total: 1 << 40).share(for: .standard)
        #expect(standard.privateBytes == 1_500 << 20)
        #expect(standard.sharedBytes >= 110_000_000 * 4 && standard.total <= 2 << 30)
        #expect(WorkerPool.maximumTotalMemory >= 512 << 20)
    }

    @Test func theSmallestTotalLetsARealWorkerRun() throws {
        let pool = WorkerPool(
            program: "vitrine-worker", location: .executable(WorkerFixture.executable),
            memory: HelperMemory(total: HelperMemory.minimumTotal))
        for (name, format) in [("quadrants.tif", ImageFormat.tiff), ("quadrants.svg", .svg), ("quadrants.jxl", .jxl)] {
            let image = try pool.decode(WorkerFixture.source(name), WorkerFixture.request(format, 96, 64))
            #expect(image.shows(DecodedImage.quadrants, tolerance: 8))
        }
    }
}
