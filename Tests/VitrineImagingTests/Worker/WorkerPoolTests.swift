import Foundation
import Synchronization
import TestSupport
import Testing
import VitrineCore
import VitrineImaging

@Suite struct WorkerPoolTests {
    @Test func decodesBytesAsItDecodesAFile() throws {
        let pool = WorkerFixture.pool(1)
        let request = WorkerFixture.request(.tiff, 96, 64)
        let file = try pool.decode(WorkerFixture.source("quadrants.tif"), request)
        let bytes = try pool.decode(
            ByteSource(bytes: Fixture.bytes("worker/quadrants.tif"), name: "memory"), request)
        #expect(file.firstPlane == bytes.firstPlane)
        #expect(file.firstPlane.count == 96 * 64 * 3)
    }

    /// The program's own worker has no libvips to load. What it calls damaged, libheif may read.
    @Test func theRunningProgramDecodesWhatItCan() throws {
        let pool = WorkerFixture.pool(1)
        let own = WorkerPool(
            program: "WorkerTestHost", arguments: [WorkerProtocol.argument], location: .executable(WorkerFixture.host),
            maximumWorkers: 1, memory: HelperMemory(total: 64 << 30))
        var decoder = ImageDecoder(limits: .standard, isolation: .automatic, codecs: .standard, pool: pool)
        decoder.ownPool = own
        let bytes = try Fixture.bytes("Info/turned-6.avif")
        let image = try decoder.decode(.bytes(bytes, name: "turned"))
        #expect(own.idleIdentifiers.count == 1 && pool.idleIdentifiers.isEmpty)

        // libavif wants the handler first. It changes places with the box behind it.
        var other = bytes
        let name = try #require(bytes.firstRange(of: Array("hdlr".utf8))).lowerBound
        let (handler, next) = (name - 4, name - 4 + Int(bytes[name - 1]))
        let end = next + Int(bytes[next + 3])
        other.replaceSubrange(handler..<end, with: Array(bytes[next..<end] + bytes[handler..<next]))
        #expect(try decoder.decode(.bytes(other, name: "other")).size == image.size)
        #expect(pool.idleIdentifiers.count == 1)
        #expect(throws: ImageError.self) { try decoder.decode(.bytes(Array(bytes.prefix(300)), name: "cut")) }

        decoder.isolation = .always
        #expect(try decoder.decode(.file(Fixture.path("worker/quadrants.tif"))).size == PixelSize(width: 96, height: 64))
        // Alone, it decodes what it has decoders for.
        decoder.pool = WorkerPool(location: .executable("/nowhere"))
        #expect(try decoder.decode(.bytes(bytes, name: "turned")).size == image.size)
        #expect(decoder.canDecode(.avif) && decoder.canDecode(.png) && !decoder.canDecode(.tiff))
        #expect(throws: ImageError.self) { try decoder.decode(.bytes(other, name: "other")) }
        #expect(throws: ImageError.self) { try decoder.decode(.file(Fixture.path("worker/quadrants.tif"))) }
    }

    #if os(Linux)
    @Test func namesTheLibraryOfAnotherVersionThatAHelperNeeds() throws {
        let folder = try TemporaryDirectory()
        var program = [UInt8](try Data(contentsOf: URL(filePath: WorkerFixture.executable)))
        let library = try #require(program.firstRange(of: Array("libtiff.so.".utf8)))
        program[library.upperBound] = UInt8(ascii: "0")
        let path = folder.file("vitrine-worker")
        try Data(program).write(to: URL(filePath: path))
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
        let pool = WorkerPool(location: .executable(path))
        let error = #expect(throws: ImageError.self) {
            try pool.decode(WorkerFixture.source("quadrants.tif"), WorkerFixture.request(.tiff, 96, 64))
        }
        #expect("\(try #require(error))".contains("libtiff.so.0"))
    }
    #endif

    @Test func keepsOneWorkerForManyRequests() throws {
        let pool = WorkerFixture.pool(1)
        let request = WorkerFixture.request(.tiff, 96, 64)
        _ = try pool.decode(WorkerFixture.source("quadrants.tif"), request)
        let first = pool.idleIdentifiers
        for _ in 0..<20 { _ = try pool.decode(WorkerFixture.source("quadrants.tif"), request) }
        #expect(pool.idleIdentifiers == first)
        #expect(first.count == 1)
    }

    @Test func returnsTheProfileOfTheRequest() throws {
        var request = WorkerFixture.request(.tiff, 96, 64)
        request.info.colorProfile = (0..<3_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let image = try WorkerFixture.pool(1).decode(WorkerFixture.source("quadrants.tif"), request)
        #expect(image.colorProfile == request.info.colorProfile)
        request.info.format = .tiff
        let lab = try WorkerFixture.pool(1).decode(WorkerFixture.source("lab.tif"), request)
        #expect(lab.colorProfile == nil, "Lab has been converted to sRGB")
    }

    @Test func tellsWhetherSamplesAreMeans() throws {
        let pool = WorkerFixture.pool(1)
        for (target, areMeans) in [(nil, false), (PixelSize(width: 12, height: 8), true)] {
            let image = try pool.decode(
                WorkerFixture.source("quadrants.png"), WorkerFixture.request(.png, 96, 64, target: target),
                decoder: "PNGDecoder")
            #expect(image.samplesAreMeans == areMeans)
        }
    }

    @Test func cancelsRunningWorkByEndingItsWorker() throws {
        let pool = WorkerFixture.pool(1)
        _ = try pool.decode(WorkerFixture.source("quadrants.tif"), WorkerFixture.request(.tiff, 96, 64))
        let worker = try #require(pool.idleIdentifiers.first)
        let token = CancellationToken()
        let told = DispatchSemaphore(value: 0)
        let thread = Thread {
            // The worker is busy as soon as it is no longer idle; some milliseconds of work lie behind it then.
            while !pool.idleIdentifiers.isEmpty { usleep(1_000) }
            usleep(20_000)
            token.cancel()
            told.signal()
        }
        thread.start()
        let source = try WorkerFixture.source("slow.svg")
        #expect(throws: ImageError.cancelled(input: source.name)) {
            try pool.decode(source, WorkerFixture.slowRequest(cancellation: token))
        }
        // Whoever cancels may be the last to have the worker.
        told.wait()
        // How soon is measured in Benchmarks; here it is enough that nothing goes on.
        #expect(kill(worker, 0) == -1 && errno == ESRCH)
        // And the pool goes on.
        _ = try pool.decode(WorkerFixture.source("quadrants.tif"), WorkerFixture.request(.tiff, 96, 64))
    }

    @Test func cancelsAWaitingRequestWithoutTouchingTheRunningOne() throws {
        let pool = WorkerFixture.pool(1)
        let running = CancellationToken(), waiting = CancellationToken()
        let slow = try WorkerFixture.source("slow.svg")
        let done = DispatchSemaphore(value: 0)
        let outcome = Locked<ImageError?>(nil)
        Thread {
            do throws(ImageError) {
                _ = try pool.decode(slow, WorkerFixture.slowRequest(cancellation: running))
            } catch { outcome.withLock { $0 = error } }
            done.signal()
        }.start()
        while pool.busyCount == 0 { usleep(1_000) }
        Thread {
            while pool.waitingCount == 0 { usleep(1_000) }
            waiting.cancel()
        }.start()
        let source = try WorkerFixture.source("quadrants.tif")
        #expect(throws: ImageError.cancelled(input: source.name)) {
            try pool.decode(source, WorkerFixture.request(.tiff, 96, 64, cancellation: waiting))
        }
        #expect(pool.waitingCount == 0)
        #expect(outcome.withLock { $0 } == nil)
        running.cancel()
        done.wait()
        #expect(outcome.withLock { $0 } == .cancelled(input: slow.name))
    }

    @Test func endsAtTheDeadline() throws {
        let pool = WorkerFixture.pool(1)
        let source = try WorkerFixture.source("slow.svg")
        // The work takes far longer: without a deadline the test would not end for a minute, and then differently.
        #expect(throws: ImageError.timedOut(input: source.name)) {
            try pool.decode(source, WorkerFixture.slowRequest(deadline: 0.2))
        }
        _ = try pool.decode(WorkerFixture.source("quadrants.tif"), WorkerFixture.request(.tiff, 96, 64))
    }

    /// How long a process has worked, in ticks of 10 ms (proc(5)).
    private static func work(of process: Int32) -> Int {
        let text = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? ""
        let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
        return fields.dropFirst(11).prefix(2).compactMap { Int($0) }.reduce(0, +)
    }

    @Test func namesTheSignalThatEndedAWorkerMidDecode() throws {
        let pool = WorkerFixture.pool(1)
        _ = try pool.decode(WorkerFixture.source("quadrants.tif"), WorkerFixture.request(.tiff, 96, 64))
        let worker = try #require(pool.idleIdentifiers.first)
        let before = Self.work(of: worker)
        Thread {
            // It has taken the request when it works: one that is idle uses no time.
            while Self.work(of: worker) < before + 2 { usleep(1_000) }
            kill(worker, SIGKILL)
        }.start()
        let source = try WorkerFixture.source("slow.svg")
        #expect(throws: ImageError.workerFailed(
            input: source.name, reason: "the worker was ended by SIGKILL while it read the image")
        ) {
            try pool.decode(source, WorkerFixture.slowRequest())
        }
        _ = try pool.decode(WorkerFixture.source("quadrants.tif"), WorkerFixture.request(.tiff, 96, 64))
    }

    @Test func replacesAWorkerThatDiedWhileIdle() throws {
        let pool = WorkerFixture.pool(1)
        let request = WorkerFixture.request(.tiff, 96, 64)
        for _ in 0..<5 {
            let image = try pool.decode(WorkerFixture.source("quadrants.tif"), request)
            #expect(image.shows(DecodedImage.quadrants, tolerance: 0))
            kill(try #require(pool.idleIdentifiers.first), SIGKILL)
        }
    }

    @Test func answersTwoHundredRequestsOfTwoPoolsAtOnce() throws {
        let pools = [WorkerFixture.pool(2), WorkerFixture.pool(2)]
        let expected = try pools[0].decode(
            WorkerFixture.source("quadrants.tif"), WorkerFixture.request(.tiff, 96, 64)).firstPlane
        let right = Atomic<Int>(0)
        DispatchQueue.concurrentPerform(iterations: 200) { index in
            let token = CancellationToken()
            let isCancelled = index % 10 == 9
            if isCancelled { DispatchQueue.global().async { token.cancel() } }
            do {
                let image = try pools[index % 2].decode(
                    WorkerFixture.source("quadrants.tif"), WorkerFixture.request(.tiff, 96, 64, cancellation: token))
                if image.firstPlane == expected { right.add(1, ordering: .relaxed) }
            } catch ImageError.cancelled where isCancelled {
                right.add(1, ordering: .relaxed)
            } catch {
                Issue.record(error)
            }
        }
        #expect(right.load(ordering: .relaxed) == 200)
    }

    @Test func locksItsWorkersIn() throws {
        let pool = WorkerFixture.pool(1)
        _ = try pool.decode(WorkerFixture.source("quadrants.tif"), WorkerFixture.request(.tiff, 96, 64))
        let worker = try #require(pool.idleIdentifiers.first)
        let status = try String(contentsOfFile: "/proc/\(worker)/status", encoding: .utf8)
        #expect(status.contains("Seccomp:\t2\n"))
        #expect(status.contains("NoNewPrivs:\t1\n"))
        let limits = try String(contentsOfFile: "/proc/\(worker)/limits", encoding: .utf8)
        #expect(limits.contains(#/Max file size +0 +0 /#))
        #expect(limits.contains(#/Max core file size +0 +0 /#))
        #expect(!limits.contains(#/Max address space +unlimited/#))
        // Of a worker that cannot be dumped, only a privileged user may look at these.
        if let open = try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(worker)/fd") {
            #expect(open.sorted() == ["0", "1", "2", "3", "4", "5"])
        }
        if let bytes = FileManager.default.contents(atPath: "/proc/\(worker)/environ") {
            #expect(!String(decoding: bytes, as: UTF8.self).contains("VITRINE_SHARED"))
        }
    }

    @Test func decodesThroughTheDecoderProtocol() throws {
        let decoder = IsolatedDecoder(formats: [.tiff], pool: WorkerFixture.pool(1), decoder: "VipsDecoder")
        let image = try decoder.decode(WorkerFixture.source("quadrants.tif"), WorkerFixture.request(.tiff, 96, 64))
        #expect(image.shows(DecodedImage.quadrants, tolerance: 0))
        #expect(throws: ImageError.self) {
            try IsolatedDecoder(pool: WorkerFixture.pool(1), decoder: "Nobody").decode(
                WorkerFixture.source("quadrants.tif"), WorkerFixture.request(.tiff, 96, 64))
        }
    }

    @Test func deliversWholePicturesLargerThanWhatIsKept() throws {
        let pool = WorkerFixture.pool(1)
        let side = 3_000
        let image = try pool.decode(
            WorkerFixture.source("quadrants.svg"),
            WorkerFixture.request(.svg, 96, 64, target: PixelSize(width: side, height: side * 2 / 3)))
        #expect(image.planes[0].width == side && image.planes[0].storage.count == side * side * 2 / 3 * 4)
        #expect(image.shows(DecodedImage.quadrants, tolerance: 0))
        // The memory that was given back reads as new pixels afterwards, not as old ones.
        let next = try pool.decode(WorkerFixture.source("quadrants.tif"), WorkerFixture.request(.tiff, 96, 64))
        #expect(next.shows(DecodedImage.quadrants, tolerance: 0))
    }

    @Test func endsItsWorkersWhenReleased() throws {
        var pool: WorkerPool? = WorkerFixture.pool(1)
        _ = try pool?.decode(WorkerFixture.source("quadrants.tif"), WorkerFixture.request(.tiff, 96, 64))
        let worker = try #require(pool?.idleIdentifiers.first)
        pool = nil
        #expect(kill(worker, 0) == -1 && errno == ESRCH)
    }

    @Test func saysWhatToDoWithoutAWorker() throws {
        let pool = WorkerPool(location: .executable("/nowhere/vitrine-worker"))
        #expect(!pool.isAvailable)
        #expect {
            try pool.decode(WorkerFixture.source("quadrants.tif"), WorkerFixture.request(.tiff, 96, 64))
        } throws: { error in
            guard case .workerFailed(_, let reason) = error as? ImageError else { return false }
            return reason.contains("VITRINE_WORKER")
        }
    }

    @Test func refusesAProgramThatIsNoWorker() throws {
        let pool = WorkerPool(location: .executable("/bin/true"), maximumWorkers: 1)
        #expect {
            try pool.decode(WorkerFixture.source("quadrants.tif"), WorkerFixture.request(.tiff, 96, 64))
        } throws: { ($0 as? ImageError).map { isSameCase($0, .workerFailed(input: "", reason: "")) } ?? false }
    }

    @Test func writesJPEGXLThatReadsBackTheSame() throws {
        let pool = WorkerFixture.pool(1)
        var image = PixelImage(size: PixelSize(width: 40, height: 24), color: PixelColor(red: 200, green: 30, blue: 60))
        image.withUnsafeMutableBytes { $0[4] = 0 }
        let file = try WorkerEncoder(pool: pool).encode(image, quality: 1, options: EncodeOptions())
        let back = try pool.decode(ByteSource(bytes: file, name: "jxl"), WorkerFixture.request(.jxl, 40, 24))
        var pixels: [UInt8] = []
        image.withUnsafeBytes { bytes in
            for (index, byte) in bytes.enumerated() where index % 4 < 3 { pixels.append(byte) }
        }
        #expect(back.firstPlane == pixels)
    }

    @Test func writesTranslucentPicturesAsJPEGXL() throws {
        let pool = WorkerFixture.pool(1)
        let color = PixelColor(red: 200, green: 40, blue: 80, alpha: 128)
        let image = PixelImage(size: PixelSize(width: 16, height: 8), color: color)
        let encoder = WorkerEncoder(pool: pool)
        let file = try encoder.encode(image.converted(to: .premultiplied), quality: 1, options: EncodeOptions())
        let back = try pool.decode(ByteSource(bytes: file, name: "jxl"), WorkerFixture.request(.jxl, 16, 8))
        #expect(back.planes[0].channels == 4 && back.alpha == .straight)
        #expect(zip(back.firstPlane.prefix(4), [200, 40, 80, 128]).allSatisfy { abs(Int($0) - $1) <= 2 })
    }
}
