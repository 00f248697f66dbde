import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrineHEIF

/// Intra pictures against the samples of other decoders; see `Fixtures/HEVC/README.md`.
struct HEVCIntraDecoderTests {
    struct Stream: Sendable, CustomTestStringConvertible {
        var name: String
        var size: PixelSize
        /// Without loop filters, and with them.
        var checksum: UInt32
        var filtered: UInt32?

        var testDescription: String { name }

        func picture() throws -> HEVCByteStream { HEVCByteStream(try Fixture.bytes("HEVC/\(name).hevc")) }
    }

    static let streams: [Stream] = {
        let index = (try? String(contentsOf: URL(filePath: Fixture.path("HEVC/index.tsv")), encoding: .utf8)) ?? ""
        return index.split(separator: "\n").map { line in
            let fields = line.split(separator: "\t").map(String.init)
            return Stream(
                name: fields[0], size: PixelSize(width: Int(fields[1]) ?? 0, height: Int(fields[2]) ?? 0),
                checksum: UInt32(fields[3], radix: 16) ?? 0, filtered: UInt32(fields[4], radix: 16))
        }
    }()

    static func decoder(
        _ picture: HEVCByteStream, pixels: Int = 1 << 20, hasFilters: Bool = false
    ) throws -> HEVCIntraDecoder {
        try HEVCIntraDecoder(
            configuration: picture.configuration, maximumSide: 4_096, maximumPixels: pixels, hasFilters: hasFilters)
    }

    /// The shown samples of Y, Cb and Cr.
    static func samples(_ decoder: HEVCIntraDecoder, _ stream: [UInt8]) throws -> [UInt8] {
        try stream.withUnsafeBufferPointer { bytes in
            var samples: [UInt8] = []
            for plane in try decoder.decode(bytes) {
                for y in 0..<plane.height {
                    samples += UnsafeBufferPointer(start: plane.samples + y * plane.bytesPerRow, count: plane.width)
                }
            }
            return samples
        }
    }

    @Test func hasFixtures() { #expect(Self.streams.filter { $0.filtered != nil }.count > 100) }

    @Test(arguments: streams)
    func samplesAreThoseOfOtherDecoders(stream: Stream) throws {
        let picture = try stream.picture()
        let samples = try Self.samples(try Self.decoder(picture), picture.stream)
        #expect(samples.count == stream.size.pixelCount * 3 / 2)
        #expect(CRC32.checksum(samples) == stream.checksum)
    }

    @Test(arguments: streams.filter { $0.filtered != nil })
    func filteredSamplesAreThoseOfOtherDecoders(stream: Stream) throws {
        let picture = try stream.picture()
        let decoder = try Self.decoder(picture, hasFilters: true)
        // The second time, nothing is left of the first.
        for _ in 0..<2 { #expect(CRC32.checksum(try Self.samples(decoder, picture.stream)) == stream.filtered) }
    }

    /// Filters of slices and tiles that do not agree in other decoders: the same when each picture is decoded anew.
    @Test(arguments: streams.filter { $0.filtered == nil })
    func filtersForgetEarlierPictures(stream: Stream) throws {
        let picture = try stream.picture()
        let decoder = try Self.decoder(picture, hasFilters: true)
        let first = try Self.samples(decoder, picture.stream)
        #expect(try Self.samples(decoder, picture.stream) == first)
        #expect(CRC32.checksum(first) != stream.checksum, "nothing was filtered")
    }

    @Test(arguments: ["slices", "dep", "tiles3x2u", "wpp-deprows", "scaling3-b", "x265-quantizers"])
    func laterPicturesDoNotDependOnEarlierOnes(name: String) throws {
        let stream = try #require(Self.streams.first { $0.name == name })
        let picture = try stream.picture()
        let decoder = try Self.decoder(picture)
        // One that ends in the middle.
        #expect(throws: HEVCFault.self) { try Self.samples(decoder, Array(picture.stream.dropLast(40))) }
        for _ in 0..<2 { #expect(CRC32.checksum(try Self.samples(decoder, picture.stream)) == stream.checksum) }
    }

    @Test(arguments: ["ctb16-cb8", "dense", "tiles2x2u", "wpp-ctb32", "pcm8", "x265-fine"])
    func picturesThatEndEarlyAreFaults(name: String) throws {
        let picture = try #require(Self.streams.first { $0.name == name }).picture()
        let whole = picture.stream
        for count in stride(from: 0, to: whole.count - 24, by: max(1, whole.count / 23)) {
            var cut = Array(whole.prefix(count))
            // The unit is as long as it says, so that only its data are missing.
            if count > 4 { for i in 0..<4 { cut[i] = UInt8(truncatingIfNeeded: (count - 4) >> (24 - 8 * i)) } }
            let decoder = try Self.decoder(picture)
            #expect(throws: HEVCFault.self, "\(count) of \(whole.count) bytes") { try Self.samples(decoder, cut) }
        }
    }

    @Test func cancellationEndsAPicture() throws {
        let picture = try #require(Self.streams.first { $0.name == "ctb16-cb8" }).picture()
        let decoder = try Self.decoder(picture)
        let token = CancellationToken()
        token.cancel()
        picture.stream.withUnsafeBufferPointer { bytes in
            _ = #expect(throws: HEVCFault.cancelled) { try decoder.decode(bytes, token) }
        }
    }

    @Test func largePicturesAreRefusedBeforeTheyTakeMemory() throws {
        let picture = try #require(Self.streams.first { $0.name == "ctb16-cb8" }).picture()
        let decoder = try Self.decoder(picture, pixels: 192 * 128 - 1)
        #expect(throws: HEVCFault.unsupported("a picture beyond the limits")) {
            try Self.samples(decoder, picture.stream)
        }
        let exact = try Self.decoder(picture, pixels: 192 * 128)
        #expect(try Self.samples(exact, picture.stream).count == 192 * 128 * 3 / 2)
    }

    /// Each byte of the parameter sets and of the first bytes of the slice.
    @Test(arguments: ["vui", "hdr", "tiles-nonuni2", "scaling4", "x265-timing", "x265-window"])
    func damagedHeadersAreFaultsOrPictures(name: String) throws {
        let picture = try #require(Self.streams.first { $0.name == name }).picture()
        var faults = 0
        for place in 22..<picture.configuration.count {
            for change: UInt8 in [0xFF, 0x10, 0x01] {
                var configuration = picture.configuration
                configuration[place] ^= change
                do {
                    let decoder = try HEVCIntraDecoder(
                        configuration: configuration, maximumSide: 1_024, maximumPixels: 1 << 18,
                        hasFilters: true)
                    _ = try Self.samples(decoder, picture.stream)
                } catch is HEVCFault {
                    faults += 1
                }
            }
        }
        #expect(faults > 0)
    }

    /// What each change does is unknown, but never a trap.
    @Test(arguments: ["dense", "nxn-all", "qpd3", "pcm-8only", "x265-slow"])
    func damagedBlocksAreFaultsOrPictures(name: String) throws {
        let picture = try #require(Self.streams.first { $0.name == name }).picture()
        let decoder = try Self.decoder(picture, hasFilters: true)
        let expected = try Self.samples(decoder, picture.stream)
        var changed = 0
        for place in stride(from: 8, to: picture.stream.count, by: 7) {
            var stream = picture.stream
            stream[place] ^= 0x5A
            if (try? Self.samples(decoder, stream)) != expected { changed += 1 }
        }
        #expect(changed > 0)
    }
}
