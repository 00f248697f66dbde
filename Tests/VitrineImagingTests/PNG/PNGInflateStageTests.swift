import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrinePNG

/// Decodes of one image on two threads.
@Suite struct PNGInflateStageTests {
    private let alone = PNGDecoder(cores: IdleCores(count: 1))
    /// Without and with parts that are inflated ahead.
    private let together = [1 << 20, 4 << 10].map {
        PNGDecoder(cores: IdleCores(count: 2), minimumStageBytes: 0, leadBytes: $0)
    }

    /// Compares what one thread and two threads make of a file: samples, or the error.
    private func compare(_ bytes: [UInt8], _ name: String) {
        let source = ByteSource(bytes: bytes, name: name)
        var limits = ImageLimits.standard
        limits.maximumPixels = 4_000_000
        guard let info = try? ImageInfo(reading: source, limits: limits), info.format == .png else { return }
        for divisor in [1, 5] {
            let size = info.storedSize
            let target = PixelSize(width: max(1, size.width / divisor), height: max(1, size.height / divisor))
            for allowPartial in [false, true] {
                let request = DecodeRequest(
                    info: info, target: divisor == 1 ? nil : target, allowPartial: allowPartial, limits: limits)
                let expected = Result { try alone.decode(source, request) }
                for decoder in together {
                    expect(Result { try decoder.decode(source, request) }, toBe: expected, name)
                }
            }
        }
    }

    private func expect(
        _ found: Result<DecodedImage, any Error>, toBe expected: Result<DecodedImage, any Error>, _ name: String
    ) {
        switch (expected, found) {
        case (.success(let a), .success(let b)):
            #expect(a.isPartial == b.isPartial && a.planes.count == b.planes.count)
            for (a, b) in zip(a.planes, b.planes) { #expect(JPEG.samples(a) == JPEG.samples(b), "\(name)") }
        case (.failure(let a as ImageError), .failure(let b as ImageError)):
            #expect(a == b, "\(name)")
        default:
            Issue.record("\(name): \(expected), but \(found)")
        }
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func twoThreadsGiveTheSameSamples() throws {
        for path in Corpus.files(in: "corpus/pngsuite") { compare(try ByteSource(.file(path)).allBytes(), path) }
    }

    @Test(
        .enabled(if: Corpus.isAvailable, "needs the shared corpus"),
        arguments: ["imagetestsuite-png", "gofuzz-png", "truncated", "bombs"])
    func twoThreadsJudgeHostileFilesAlike(folder: String) throws {
        for path in Corpus.files(in: "hostile/\(folder)") { compare(try ByteSource(.file(path)).allBytes(), path) }
    }

    @Test func damageAnywhereIsJudgedAlike() throws {
        let image = Image(width: 300, height: 700, alpha: .opaque) { bytes in
            for i in 0..<bytes.count { bytes[i] = i & 3 == 3 ? 255 : UInt8(truncatingIfNeeded: i &* i >> 7) }
        }
        let file = try image.encoded(as: .png)
        compare(file, "whole")
        for place in stride(from: 60, to: file.count, by: file.count / 23) {
            var damaged = file
            damaged[place] ^= 0x40
            compare(damaged, "damaged at \(place)")
            compare(Array(file[..<place]), "cut at \(place)")
        }
    }

    /// Many pieces, with parts between them.
    @Test(arguments: [false, true]) func damageOfLongDataIsJudgedAlike(isNoise: Bool) throws {
        var random = SeededGenerator(5)
        let image = Image(width: 700, height: 900, alpha: .opaque) { bytes in
            for i in 0..<bytes.count {
                let noise = UInt8.random(in: 0...(isNoise ? 255 : 7), using: &random)
                bytes[i] = i & 3 == 3 ? 255 : UInt8(truncatingIfNeeded: i >> 12) &+ noise
            }
        }
        let file = try image.encoded(as: .png)
        for _ in 0..<5 { compare(file, "whole") }
        for place in stride(from: 60, to: file.count, by: file.count / 11) {
            var damaged = file
            damaged[place] ^= 0x40
            compare(damaged, "damaged at \(place)")
            compare(Array(file[..<place]), "cut at \(place)")
        }
    }

    @Test func cancelledTokenStopsBothThreads() throws {
        let image = Image(width: 64, height: 64, alpha: .opaque) { bytes in
            bytes.initializeMemory(as: UInt8.self, repeating: 255)
        }
        let source = ByteSource(bytes: try image.encoded(as: .png), name: "cancelled")
        let token = CancellationToken()
        token.cancel()
        let request = DecodeRequest(info: try ImageInfo(reading: source), target: nil, cancellation: token)
        for decoder in together {
            #expect(throws: ImageError.cancelled(input: "cancelled")) { try decoder.decode(source, request) }
        }
    }
}
