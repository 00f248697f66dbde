import Foundation
import TestSupport
import Testing
import VitrineCore
@_spi(JPEGRows) import VitrineImaging
@_spi(JPEGRows) import VitrineJPEG

/// Workers that have been taken over. Whatever they answer, the client gets a picture or an error, and goes on.
@Suite struct LyingWorkerTests {
    private static let edges = [
        Int.max, .min, .max - 1, .min + 1, 1 << 62, -(1 << 62), 1 << 53, 1 << 32, 1 << 31, 1 << 24, 1 << 24 + 1, -1, 0,
    ]
    private static let source = ByteSource(bytes: [1], name: "any")

    private static let directory = Result { try TemporaryDirectory() }

    /// A pool of one liar, which is the test host by another name.
    private static func pool(_ state: String = "") throws -> WorkerPool {
        let path = try directory.get().file("\(UUID().uuidString)\(state)-liar")
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: WorkerFixture.host)
        return WorkerPool(
            program: "liar", location: .executable(path), maximumWorkers: 1, memory: HelperMemory(total: 64 << 30))
    }

    /// What comes of one lie.
    private func outcome(_ pool: WorkerPool, _ lie: String, deadline: Double = 60) -> Result<DecodedImage, ImageError> {
        var limits = ImageLimits()
        limits.deadline = deadline
        do throws(ImageError) {
            return .success(
                try pool.decode(Self.source, WorkerFixture.request(.png, 4, 4, limits: limits), decoder: lie))
        } catch {
            return .failure(error)
        }
    }

    /// That a lie is told for a failure of the worker, which is replaced.
    private func isCaught(_ pool: WorkerPool, _ lie: String) -> Bool {
        guard case .failure(.workerFailed) = outcome(pool, lie) else { return false }
        guard pool.idleIdentifiers.isEmpty, case .success(let image) = outcome(pool, "truth") else { return false }
        // The request's one byte of input stands in the shared memory where the liar says that its samples are.
        return image.firstPlane == [1] + [UInt8](repeating: 0, count: 47)
    }

    @Test(arguments: ["width", "height", "channels", "stride", "extent", "profile"])
    func sizesAtTheEdgesAreRefused(_ field: String) throws {
        let pool = try Self.pool()
        for edge in Self.edges {
            // What is possible is no lie: no profile, rows with gaps, four pixels of which two count.
            if field == "profile", edge == 0 { continue }
            if field == "stride", (12...1 << 27).contains(edge) { continue }
            let extent = Double(bitPattern: UInt64(bitPattern: Int64(edge)))
            if field == "extent", extent > 0, extent <= 4 { continue }
            #expect(isCaught(pool, "\(field) \(edge)"), "\(field) \(edge)")
        }
    }

    @Test func placesOutsideTheSharedMemoryAreRefused() throws {
        let pool = try Self.pool()
        for edge in Self.edges where !(0...1 << 25).contains(edge) { #expect(isCaught(pool, "offset \(edge)"), "\(edge)") }
    }

    @Test(arguments: ["other", "cut 1", "cut 40", "more 1", "more 20000", "encoded 0", "described", "close"])
    func repliesThatAreNoneAreRefused(_ lie: String) throws {
        #expect(isCaught(try Self.pool(), lie))
    }

    @Test func aSecondReplyIsNotTakenForThatOfTheNextRequest() throws {
        let pool = try Self.pool()
        _ = try outcome(pool, "twice").get()
        let liar = pool.idleIdentifiers
        switch outcome(pool, "truth") {
        case .success: #expect(pool.idleIdentifiers != liar)
        // The second reply came when the worker had been handed out already.
        case .failure(.workerFailed): #expect(pool.idleIdentifiers.isEmpty)
        case .failure(let error): Issue.record(error)
        }
    }

    @Test(arguments: [("-without-landlock", WorkerSandbox.systemCalls), ("-without-seccomp", .files), ("", .complete)])
    func theSandboxIsKnown(_ state: String, _ sandbox: WorkerSandbox) throws {
        #expect(try Self.pool(state).check() == sandbox)
    }

    @Test func aWorkerThatNeverAnswersIsEndedAtTheDeadline() throws {
        let pool = try Self.pool()
        guard case .failure(.timedOut) = outcome(pool, "never", deadline: 0.1) else {
            Issue.record("no end")
            return
        }
        #expect(pool.idleIdentifiers.isEmpty)
    }

    @Test func numbersOfErrorsAndOfMemoryMayBeAnything() throws {
        let pool = try Self.pool()
        for edge in Self.edges where edge != .min {
            guard case .failure(let error) = outcome(pool, "failed \(edge)") else {
                Issue.record("no error")
                return
            }
            #expect(!"\(error)".isEmpty)
            _ = try outcome(pool, "held \(edge)").get()
        }
    }

    @Test func mutatedRepliesGiveAPictureOrAnError() throws {
        let pool = try Self.pool()
        for seed in 0..<(60 * Rounds.factor) {
            guard case .success(let decoded) = outcome(pool, "mutated \(seed)") else { continue }
            _ = try? DecodedImageRenderer.image(
                from: decoded, size: PixelSize(8), orientation: .up, cancellation: CancellationToken(), inputName: "any")
        }
        _ = try outcome(pool, "truth").get()
    }

    @Test func liesOfHelpersForDocumentsAreErrors() throws {
        let pool = try Self.pool()
        for lie in ["width \(Int.max)", "described", "cut 3", "close", "other"] {
            #expect(throws: ImageError.self, "\(lie)") {
                try pool.render(Self.source, target: nil, parameters: Array(lie.utf8))
            }
        }
        for lie in ["truth", "cut 3", "close", "other", "encoded 1"] {
            #expect(throws: ImageError.self, "\(lie)") { try pool.describe(Self.source, parameters: Array(lie.utf8)) }
        }
    }

    /// Without a process for each: shapes of all sorts, of which those that are taken are drawn.
    @Test func picturesOfAnyShapeCanBeDrawn() throws {
        let memory = try SharedMemory(size: 1 << 20)
        var generator = SeededGenerator(20)
        let numbers = Self.edges + [1, 2, 3, 4, 5, 12, 100, 1_000, 4_096]
        let extents = [0.001, 1e-300, .ulpOfOne, 0.5, 1, 3.5, 4, 100, 1e18, .nan, .infinity, -1]
        let models: [DecodedImage.Model] = [
            .gray, .rgb, .cmyk(inverted: false), .cmyk(inverted: true), .yCbCr(.bt601, fullRange: true),
            .yCbCr(.bt2020, fullRange: false),
        ]
        var drawn = 0
        for _ in 0..<(20_000 * Rounds.factor) {
            let model = models.randomElement(using: &generator) ?? .gray
            let alpha: DecodedImage.Alpha = [.none, .straight, .premultiplied].randomElement(using: &generator) ?? .none
            let extra = alpha == .none ? 0 : 1
            let channels: [Int] =
                switch model {
                case .gray: [1 + extra]
                case .rgb: [3 + extra]
                case .cmyk: [4]
                case .yCbCr: [Int](repeating: 1, count: 3 + extra)
                }
            var shape = WorkerReply.DecodedShape(planes: [], model: model, alpha: alpha, profile: .none, isPartial: false)
            for count in channels {
                func pick(_ usual: Int) -> Int {
                    Int.random(in: 0..<4, using: &generator) == 0
                        ? numbers.randomElement(using: &generator) ?? usual : usual
                }
                let plane = PixelPlane(width: 4, height: 4, channels: count, storage: PixelStorage(zeroedByteCount: 64))
                var lie = WorkerReply.Plane(plane, bytesPerRow: pick(64), offset: pick(0))
                (lie.width, lie.height) = (pick(4), pick(4))
                if Bool.random(using: &generator) { lie.extentWidth = extents.randomElement(using: &generator) ?? 1 }
                if Bool.random(using: &generator) { lie.extentHeight = extents.randomElement(using: &generator) ?? 1 }
                shape.planes.append(lie)
            }
            guard let image = DecodedImage(shape, memory: memory, requestedProfile: nil, limits: .standard) else { continue }
            drawn += 1
            _ = try DecodedImageRenderer.image(
                from: image, size: PixelSize(width: 7, height: 3), orientation: .left,
                cancellation: CancellationToken(), inputName: "any")
        }
        #expect(drawn > 1_000)
    }

    @Test func picturesOfMorePixelsThanAllowedAreRefused() throws {
        let memory = try SharedMemory(size: 1 << 20)
        let plane = PixelPlane(width: 600, height: 600, channels: 1, storage: PixelStorage(zeroedByteCount: 360_000))
        let shape = WorkerReply.DecodedShape(
            planes: [WorkerReply.Plane(plane, bytesPerRow: 600, offset: 0)], model: .gray, alpha: .none, profile: .none,
            isPartial: false)
        var limits = ImageLimits()
        (limits.maximumPixels, limits.maximumOutputSide) = (360_000, 1)
        #expect(DecodedImage(shape, memory: memory, requestedProfile: nil, limits: limits) != nil)
        limits.maximumPixels = 359_999
        #expect(DecodedImage(shape, memory: memory, requestedProfile: nil, limits: limits) == nil)
    }

    /// The rows of a JPEG, of which every byte may be another one.
    @Test func rowsOfAnyFormCanBeUsed() throws {
        let memory = try SharedMemory(size: 1 << 20)
        let file = Array("\u{FFFD}".utf8) + [UInt8](repeating: 0xA5, count: 3_000)
        // Width, height, the height of a row, the rows, the first and the last byte of the data, and three rows.
        func word(_ value: Int) -> [UInt8] { withUnsafeBytes(of: Int64(value).littleEndian) { Array($0) } }
        var truth = [64, 48, 16, 3, 100, 2_900, 3].flatMap(word)
        for row in 0..<3 {
            truth += withUnsafeBytes(of: Int32(row).littleEndian) { Array($0) } + word(100 + 900 * row)
            truth += [UInt8](repeating: 0, count: 9)
        }
        let plane = PixelPlane(width: 4, height: 4, channels: 1, storage: PixelStorage(zeroedByteCount: 16))
        func index(_ bytes: [UInt8], offset: Int = 64, count: Int? = nil) -> JPEGRowIndex? {
            if offset == 64 { UnsafeMutableRawBufferPointer(rebasing: memory.payload[64...]).copyBytes(from: bytes) }
            var shape = WorkerReply.DecodedShape(
                planes: [WorkerReply.Plane(plane, bytesPerRow: 4, offset: 0)], model: .gray, alpha: .none,
                profile: .none, isPartial: false)
            shape.rows = (offset, count ?? bytes.count)
            let image = DecodedImage(shape, memory: memory, requestedProfile: nil, limits: .standard)
            return image?.rowIndex.flatMap { JPEGRowIndex(bytes: $0) }
        }
        #expect(index(truth)?.size == PixelSize(width: 64, height: 48))
        #expect(index(Array(truth.dropLast())) == nil && index(truth + [0]) == nil)
        for number in Self.edges where number != 0 {
            #expect(index(truth, count: number) == nil)
            #expect(index(truth, offset: number) == nil)
        }
        var generator = SeededGenerator(21)
        var taken = 0
        for _ in 0..<(5_000 * Rounds.factor) {
            var bytes = truth
            for _ in 0..<2 {
                let place = Int.random(in: bytes.indices, using: &generator)
                bytes[place] = .random(in: 0...255, using: &generator)
            }
            guard let index = index(bytes) else { continue }
            taken += 1
            _ = try? index.part(0..<48, of: .bytes(file))
        }
        #expect(taken > 100)
    }
}
