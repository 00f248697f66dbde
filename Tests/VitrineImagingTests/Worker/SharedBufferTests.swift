import Foundation
import Testing
import VitrineImaging
import VitrineJPEG

/// What crosses in the shared memory instead of through the socket: small inputs there, planes back.
struct SharedRoomTests {
    @Test func roomIsGivenOutOnceAndNotBeyondItsEnd() throws {
        let memory = try SharedMemory()
        let buffer = SharedBuffer(memory)
        #expect(buffer.take(100) == 0)
        #expect(buffer.take(1) == 128)
        #expect(buffer.take(-1) == nil)
        #expect(buffer.take(memory.payload.count) == nil)
        #expect(buffer.take(memory.payload.count - 192) == 192)
        #expect(buffer.take(1) == nil)
        #expect(buffer.take(0) != nil)
    }

    @Test func onlyStorageFromTheRoomHasAPlaceInIt() throws {
        let buffer = SharedBuffer(try SharedMemory())
        let first = buffer.storage(byteCount: 100)
        let second = buffer.storage(byteCount: 100)
        #expect(buffer.offset(of: first) == 0 && buffer.offset(of: second) == 128)
        #expect(buffer.offset(of: PixelStorage(zeroedByteCount: 100)) == nil)
        #expect(SharedBuffer(try SharedMemory()).offset(of: first) == nil)
        let tooLarge = buffer.storage(byteCount: SharedMemory.memorySize)
        #expect(buffer.offset(of: tooLarge) == nil && tooLarge.count == SharedMemory.memorySize)
    }

    /// A worker's memory still holds the pictures of earlier requests.
    @Test func planesOfTheRoomAreZero() throws {
        let memory = try SharedMemory()
        memory.payload[..<4_096].initializeMemory(as: UInt8.self, repeating: 0xC0)
        let buffer = SharedBuffer(memory)
        for count in [100, 1_000] {
            let isZero = buffer.storage(byteCount: count).withUnsafeBytes { $0.allSatisfy { $0 == 0 } }
            #expect(isZero)
        }
    }

    /// 64 KB of a file cross in the shared memory, 8 MB of bytes; what is larger as a descriptor.
    @Test(arguments: [0, 64 << 10, 1 << 20, 8 << 20])
    func inputsOfEverySizeDecodeAlike(padding: Int) throws {
        let pool = WorkerFixture.pool(1)
        let picture = try ByteSource(.file(Fixture.path("worker/quadrants.tif"))).allBytes()
        let bytes = picture + [UInt8](repeating: 0, count: padding)
        let file = FileManager.default.temporaryDirectory.appending(path: "\(UUID().uuidString).tif")
        try Data(bytes).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        for source in [ByteSource(bytes: bytes, name: "bytes"), try ByteSource(.file(file.path))] {
            let image = try pool.decode(source, WorkerFixture.request(.tiff, 96, 64))
            #expect(image.shows(DecodedImage.quadrants, tolerance: 0))
        }
    }

    #if SystemCodecs
    @Test func aLargePictureThatFailsLeavesNoPagesBehind() throws {
        var limits = ImageLimits()
        // Gives the shared memory a size that no other test has.
        limits.maximumPixels = 77 << 20
        let size = HelperMemory(total: 64 << 30).share(for: limits).sharedBytes
        let whole = try PixelImage(size: PixelSize(width: 6_000, height: 4_000), color: .black).encoded(as: .jpeg())
        let cut = ByteSource(bytes: Array(whole.prefix(whole.count * 19 / 20)), name: "cut")
        let pool = WorkerFixture.pool(1)
        let request = WorkerFixture.request(.jpeg, 6_000, 4_000, limits: limits)
        #expect(throws: ImageError.self) { try pool.decode(cut, request, decoder: "LibJPEGDecoder") }
        let held = (0..<Int32(getdtablesize())).compactMap { descriptor -> Int? in
            var status = stat()
            guard fstat(descriptor, &status) == 0, status.st_size == size else { return nil }
            return Int(status.st_blocks) * 512
        }
        #expect(held.count == 1 && held[0] <= SharedMemory.headerSize + SharedMemory.keptPayload, "\(held)")
        pool.endIdleWorkers()
    }

    @Test(arguments: [1.0, 2.0, 4.0])
    func planesDecodedInPlaceAreThoseOfThisProcess(reduction: Double) throws {
        let pixels = (0..<(150 * 90 * 4)).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 13) }
        let image = try PixelImage(width: 150, height: 90, layout: .rgba8, alpha: .opaque, bytes: pixels)
        let source = ByteSource(bytes: try image.encoded(as: .jpeg(quality: 0.9)), name: "noise")
        let target = reduction == 1 ? nil : PixelSize(width: Int(150 / reduction), height: Int(90 / reduction))
        let request = WorkerFixture.request(.jpeg, 150, 90, target: target)
        let expected = try LibJPEGDecoder().decode(source, request)
        let decoded = try WorkerFixture.pool(1).decode(source, request, decoder: "LibJPEGDecoder")
        #expect(decoded.planes.count == expected.planes.count)
        for (plane, other) in zip(decoded.planes, expected.planes) {
            #expect(plane.width == other.width && plane.height == other.height)
            #expect(rows(of: plane) == rows(of: other))
        }
    }
    #endif

    /// The samples without what stands between the rows.
    private func rows(of plane: PixelPlane) -> [UInt8] {
        plane.storage.withUnsafeBytes { bytes in
            (0..<plane.height).flatMap { bytes[($0 * plane.bytesPerRow)...].prefix(plane.width * plane.channels) }
        }
    }
}
