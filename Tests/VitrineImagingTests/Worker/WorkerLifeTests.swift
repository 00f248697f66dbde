import Foundation
import TestSupport
import Testing
import VitrineImaging

/// Workers that are the program itself, and when workers end or are replaced.
@Suite struct WorkerLifeTests {
    private static func pool(_ recycling: WorkerRecycling = WorkerRecycling()) -> WorkerPool {
        WorkerPool(
            program: "WorkerTestHost", location: .executable(WorkerFixture.host), maximumWorkers: 1,
            recycling: recycling, memory: HelperMemory(total: 64 << 30))
    }

    /// One picture from a decoder of the test host, and the worker that is idle after it.
    private func worker(of pool: WorkerPool, after decoder: String) throws -> Int32? {
        let source = ByteSource(bytes: [1], name: "any")
        let image = try pool.decode(source, WorkerFixture.request(.png, 1, 1), decoder: decoder)
        #expect(image.firstPlane == [0])
        return pool.idleIdentifiers.first
    }

    private func host(_ arguments: String...) throws -> String {
        let process = Process()
        process.executableURL = URL(filePath: WorkerFixture.host)
        process.arguments = arguments
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
        return text.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    @Test(arguments: ["leaf.png", "lake.jpg", "lake.webp"])
    func aProgramCanBeItsOwnWorker(_ name: String) throws {
        let source = try ByteSource(.file(Samples.path(name)))
        let info = try ImageInfo(reading: source, limits: .standard)
        let local = Codecs.standard.decoders(for: info.format)
        let plane = try local.decode(source, DecodeRequest(info: info, target: nil)).planes[0]
        // Workers hand rows over without gaps.
        var digest: UInt64 = 0
        plane.storage.withUnsafeBytes { bytes in
            for y in 0..<plane.height {
                for byte in bytes[(y * plane.bytesPerRow)...].prefix(plane.width * plane.channels) {
                    digest = digest &* 31 &+ UInt64(byte)
                }
            }
        }
        #expect(try host("decode", Samples.path(name)) == "\(plane.width) \(plane.height) \(digest) true")
    }

    @Test func aProgramIsItsOwnWorkerOnlyWhenItsMainSaysSo() throws {
        #expect(try host("locate") == "own\nnothing")
        #expect(WorkerPool.own == nil)
        #expect(WorkerLocation.automatic.resolve(program: "vitrine-absent") == nil)
    }

    @Test func aWorkerStartedByHandEndsAtOnce() throws {
        let process = Process()
        process.executableURL = URL(filePath: WorkerFixture.host)
        process.arguments = [WorkerProtocol.argument]
        try process.run()
        process.waitUntilExit()
        #expect(process.terminationStatus == WorkerExit.misused.rawValue)
    }

    @Test func aWorkerWhosePatienceIsAtAnEndIsReplaced() throws {
        #expect(WorkerServer.idleTimeout == 30)
        let pool = Self.pool()
        let first = try #require(try worker(of: pool, after: "LeakingDecoder"))
        _ = try worker(of: pool, after: "FinalDecoder")
        // Waits until it has ended, and leaves it to the pool to reap it. The pool may have done so by now.
        var status = siginfo_t()
        #expect(waitid(P_PID, id_t(first), &status, WEXITED | WNOWAIT) == 0 || errno == ECHILD)
        let second = try #require(try worker(of: pool, after: "LeakingDecoder"))
        #expect(second != first)
        #expect(kill(first, 0) == -1 && errno == ESRCH)
    }

    @Test func aWorkerThatHoldsTooMuchMemoryIsReplaced() throws {
        #expect(WorkerRecycling().maximumMemory == 300 << 20)
        var recycling = WorkerRecycling()
        recycling.maximumMemory = 60 << 20
        let (strict, lenient) = (Self.pool(recycling), Self.pool())
        let first = try #require(try worker(of: strict, after: "LeakingDecoder"))
        let kept = try #require(try worker(of: lenient, after: "LeakingDecoder"))
        // It tells what it holds with every fourth picture: four times 16 MB then.
        for _ in 2...3 { #expect(try worker(of: strict, after: "LeakingDecoder") == first) }
        #expect(try worker(of: strict, after: "LeakingDecoder") == nil)
        #expect(kill(first, 0) == -1 && errno == ESRCH)
        #expect(try #require(try worker(of: strict, after: "LeakingDecoder")) != first)
        for _ in 2...8 { #expect(try worker(of: lenient, after: "LeakingDecoder") == kept) }
    }

    @Test func aWorkerReturnsFreeMemoryAfterALargePicture() throws {
        let pool = Self.pool()
        func held() throws -> Int {
            let number = try #require(pool.idleIdentifiers.first)
            let words = try String(contentsOfFile: "/proc/\(number)/statm", encoding: .utf8).split(separator: " ")
            return (try #require(Int(words[1])) - (try #require(Int(words[2])))) * Int(getpagesize())
        }
        #expect(try worker(of: pool, after: "HoleyDecoder") != nil)
        // It is a picture of one pixel, for which nothing is measured.
        #expect(try held() > 60 << 20)
        let source = ByteSource(bytes: [1], name: "any")
        _ = try pool.decode(source, WorkerFixture.request(.png, 4_096, 4_096), decoder: "HoleyDecoder")
        try waitUntil("the worker holds less") { try held() < 32 << 20 }
    }

    @Test func aWorkerThatHasServedEnoughIsReplaced() throws {
        #expect(WorkerRecycling().maximumServed == 10_000)
        var recycling = WorkerRecycling()
        recycling.maximumServed = 3
        let pool = Self.pool(recycling)
        let first = try #require(try worker(of: pool, after: "LeakingDecoder"))
        #expect(try worker(of: pool, after: "LeakingDecoder") == first)
        #expect(try worker(of: pool, after: "LeakingDecoder") == nil)
        #expect(kill(first, 0) == -1 && errno == ESRCH)
        #expect(try #require(try worker(of: pool, after: "LeakingDecoder")) != first)
    }
}
