import Foundation
import Testing
import VitrineCore
import VitrineImaging

/// Every hostile file of the formats that the worker reads: a picture or a typed error, and a pool that goes on.
@Suite(.serialized) struct WorkerHostileTests {
    @Test(
        .enabled(if: Corpus.isAvailable, "needs the shared corpus"),
        arguments: [
            "libheif-fuzz", "tiff", "gofuzz-tiff", "imagetestsuite-tif", "svg", "truncated", "bombs", "pillow",
        ])
    func survivesEveryFile(folder: String) throws {
        let pool = WorkerFixture.pool(2)
        let outcomes = Locked<[String: Int]>([:])
        let files = Corpus.files(in: "hostile/\(folder)")
        #expect(!files.isEmpty)
        DispatchQueue.concurrentPerform(iterations: files.count) { index in
            let outcome = Self.outcome(of: files[index], pool: pool)
            outcomes.withLock { $0[outcome, default: 0] += 1 }
        }
        print(folder, outcomes.withLock { $0 })
        let image = try pool.decode(
            WorkerFixture.source("quadrants.tif"), WorkerFixture.request(.tiff, 96, 64))
        #expect(image.shows(DecodedImage.quadrants, tolerance: 0))
    }

    private static func outcome(of path: String, pool: WorkerPool) -> String {
        do throws(ImageError) {
            let source = try ByteSource(.file(path))
            guard let format = try format(of: source) else { return "no format of the worker" }
            var limits = ImageLimits()
            limits.deadline = 4
            // Claims nothing about the size: the decoder's own checks must hold.
            let request = WorkerFixture.request(
                format, 4_000, 4_000, target: PixelSize(200), allowsPartial: source.count % 2 == 0, limits: limits)
            let decoder = format == .jxl ? "LibJXLDecoder" : format == .jp2 ? "JP2Decoder" : "VipsDecoder"
            let image = try pool.decode(source, request, decoder: format == .tiff ? nil : decoder)
            return image.isPartial ? "partial" : "decoded"
        } catch {
            if case .workerFailed(_, let reason) = error { print(URL(filePath: path).lastPathComponent, reason) }
            if case .timedOut = error { print(URL(filePath: path).lastPathComponent, "timed out") }
            return caseName(error)
        }
    }

    /// By the first bytes alone.
    private static func format(of source: ByteSource) throws(ImageError) -> ImageFormat? {
        let head = try source.bytes(at: 0, count: 4_096)
        let text = String(decoding: head, as: UTF8.self)
        func begins(_ bytes: [UInt8], at offset: Int = 0) -> Bool { head.dropFirst(offset).starts(with: bytes) }
        if begins([0x49, 0x49, 0x2A]) || begins([0x4D, 0x4D, 0, 0x2A]) || begins([0x49, 0x49, 0x2B]) { return .tiff }
        if begins(Array("ftyp".utf8), at: 4) { return text.contains("avif") ? .avif : .heic }
        if begins([0xFF, 0x0A]) || begins(Array("JXL ".utf8), at: 4) { return .jxl }
        if begins(Array("jP  ".utf8), at: 4) || begins([0xFF, 0x4F, 0xFF, 0x51]) { return .jp2 }
        if begins([0xFF, 0xD8]) { return .jpeg }
        if begins([0x89, 0x50]) { return .png }
        if begins(Array("GIF8".utf8)) { return .gif }
        if begins(Array("RIFF".utf8)) { return .webp }
        if source.name.hasSuffix(".svg") || text.contains("<svg") { return .svg }
        return nil
    }
}
