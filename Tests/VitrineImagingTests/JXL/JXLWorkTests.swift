import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrineJXL

/// The work that headers and trees of JPEG XL make is bounded by their bytes, and the file's container does not matter.
///
/// The deadlines count processor time, a hundred times of what these files need.
@Suite struct JXLWorkTests {
    private static func limits(_ deadline: Double) -> ImageLimits {
        var limits = ImageLimits()
        limits.deadline = deadline
        return limits
    }

    @Test func orderOfSectionsIsReadInTimeOfItsBytes() throws {
        // Moving all numbers behind the one that is taken needs more than 20 seconds for these 65,000 sections a frame.
        let file = JXLBitWriter.image(side: 32_000, isAnimated: true)
            + Array(repeating: JXLBitWriter.permutedFrame(side: 32_000), count: 16).flatMap { $0 }
        let info = try ImageInfo(of: .bytes(file), limits: Self.limits(5))
        #expect(info.frameCount == 16 && info.storedSize == PixelSize(32_000))
    }

    @Test func announcedSectionsWithoutBytesCostNothing() throws {
        // The order of 65,000 sections, and the file ends.
        let frame = JXLBitWriter.permutedFrame(side: 32_000).prefix(40)
        let info = try ImageInfo(of: .bytes(JXLBitWriter.image(side: 32_000, isAnimated: true) + frame))
        #expect(info.frameCount == 1)
    }

    @Test(arguments: [2, 64])
    func treesOfEncodersAreWalked(_ nodes: Int) throws {
        let source = ByteSource(bytes: JXLBitWriter.chainedTree(side: 4_096, nodes: nodes), name: "tree")
        let request = DecodeRequest(info: try ImageInfo(reading: source), target: PixelSize(64))
        #expect(try JXLLowFrequencyDecoder().decode(source, request).planes[0].width == 512)
    }

    @Test func chainsOfNodesAreRefused() throws {
        // 32,000 nodes for each of 786,432 samples.
        let source = ByteSource(bytes: JXLBitWriter.chainedTree(side: 4_096, nodes: 32_000), name: "tree")
        let request = DecodeRequest(info: try ImageInfo(reading: source), target: PixelSize(64))
        #expect(throws: ImageError.unsupported(input: "tree", reason: "a tree of too many levels")) {
            try JXLLowFrequencyDecoder().decode(source, request)
        }
    }

    // MARK: Containers

    private static func box(_ type: String, _ payload: [UInt8]) -> [UInt8] {
        func big(_ value: Int, _ bytes: Int) -> [UInt8] {
            (0..<bytes).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        }
        return big(1, 4) + Array(type.utf8) + big(payload.count + 16, 8) + payload
    }

    private static let start: [UInt8] = [0, 0, 0, 12, 0x4A, 0x58, 0x4C, 0x20, 13, 10, 0x87, 10]

    @Test(arguments: [1, 2, 7])
    func boxesWithSizesOf64BitsAreRead(parts: Int) throws {
        let codestream = try Fixture.bytes("JXL/d1.jxl")
        var file = Self.start + Self.box("ftyp", Array("jxl \0\0\0\0jxl ".utf8))
        if parts == 1 {
            file += Self.box("jxlc", codestream)
        } else {
            let step = (codestream.count + parts - 1) / parts
            for part in 0..<parts {
                let number: [UInt8] = [part == parts - 1 ? 0x80 : 0, 0, 0, UInt8(part)]
                file += Self.box("jxlp", number + codestream[(part * step)...].prefix(step))
            }
        }
        let pool = WorkerFixture.pool(1)
        func picture(_ bytes: [UInt8], _ decoder: any ImageDecoding, _ target: PixelSize?) throws -> [UInt8] {
            let source = ByteSource(bytes: bytes, name: "container")
            let request = DecodeRequest(info: try ImageInfo(reading: source), target: target)
            return try decoder.decode(source, request).firstPlane
        }
        let libjxl = IsolatedDecoder(formats: [.jxl], pool: pool, decoder: "LibJXLDecoder")
        #expect(try picture(file, libjxl, nil) == picture(codestream, libjxl, nil))
        let small = PixelSize(width: 50, height: 33)
        let own = JXLLowFrequencyDecoder()
        #expect(try picture(file, own, small) == picture(codestream, own, small))
    }
}
