import Testing
import VitrineImaging

/// Workers whose memory may be damaged serve nobody, and the file in hand is named for a crash, no later one.
@Suite struct WorkerCrashTests {
    private static func pool() -> WorkerPool {
        WorkerPool(
            program: "WorkerTestHost", location: .executable(WorkerFixture.host), maximumWorkers: 1,
            memory: HelperMemory(total: 64 << 30))
    }

    private func decode(_ pool: WorkerPool, _ decoder: String, deadline: Double = 60) throws(ImageError) -> [UInt8] {
        var limits = ImageLimits()
        limits.deadline = deadline
        let source = ByteSource(bytes: [1], name: decoder)
        return try pool.decode(source, WorkerFixture.request(.png, 1, 1, limits: limits), decoder: decoder).firstPlane
    }

    @Test func aSoundFileIsNotNamedForTheDamageOfAnEarlierOne() throws {
        let pool = Self.pool()
        #expect(try decode(pool, "DamagingDecoder") == [0])
        let first = try #require(pool.idleIdentifiers.first)
        for _ in 0..<3 { #expect(try decode(pool, "DamagingDecoder") == [0]) }
        #expect(!pool.idleIdentifiers.contains(first))
    }

    @Test func theFileInHandIsNamedForACrash() throws {
        let pool = Self.pool()
        // In a new worker, and in one that has served.
        for _ in 0..<2 {
            #expect(throws: ImageError.workerFailed(input: "CrashingDecoder", reason: "the decoder crashed")) {
                try decode(pool, "CrashingDecoder")
            }
            #expect(pool.idleIdentifiers.isEmpty)
            #expect(try decode(pool, "LeakingDecoder") == [0])
        }
    }

    @Test func aWorkerEndsAfterAnInternalErrorOfALibrary() throws {
        let pool = Self.pool()
        #expect(throws: ImageError.corrupt(input: "InconsistentDecoder", reason: "Internal error: 7")) {
            try decode(pool, "InconsistentDecoder")
        }
        #expect(pool.idleIdentifiers.isEmpty)
    }

    @Test func aWorkerServesOnAfterDamageOfAFile() throws {
        let pool = Self.pool()
        #expect(throws: ImageError.corrupt(input: "RefusingDecoder", reason: "a wrong checksum")) {
            try decode(pool, "RefusingDecoder")
        }
        #expect(pool.idleIdentifiers.count == 1)
    }

    @Test func waitingIsNoWorkOfAWorker() throws {
        #expect(try decode(Self.pool(), "WaitingDecoder", deadline: 0.2) == [0])
    }

    @Test func workWithoutEndEndsAtTheDeadline() throws {
        let pool = Self.pool()
        #expect(throws: ImageError.timedOut(input: "BusyDecoder")) { try decode(pool, "BusyDecoder", deadline: 0.2) }
        #expect(pool.idleIdentifiers.isEmpty)
    }
}
