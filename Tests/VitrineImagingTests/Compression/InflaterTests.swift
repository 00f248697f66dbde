import TestSupport
import Testing
import VitrineImaging

@Suite struct InflaterTests {
    /// A source that gives a few bytes at a time.
    private struct Trickle: InflaterSource {
        let bytes: [UInt8]
        let step: Int
        var position = 0

        mutating func read(into buffer: UnsafeMutableRawBufferPointer) throws(ImageError) -> Int {
            let n = min(step, buffer.count, bytes.count - position)
            buffer.copyBytes(from: bytes[position..<(position + n)])
            position += n
            return n
        }
    }

    private func inflate(_ bytes: [UInt8], step: Int, chunk: Int) throws -> [UInt8] {
        var inflater = Inflater(Trickle(bytes: bytes, step: step), chunk: chunk, inputCapacity: 64)
        var result: [UInt8] = []
        while true {
            let piece = try inflater.next()
            if piece.isEmpty { return result }
            result += piece
        }
    }

    /// Text, noise, long runs and far matches, with the streams zlib makes of them at several levels and strategies.
    /// Made by Fixtures/Deflate/make.py.
    private func fixtures() throws -> [(name: String, stream: [UInt8], plain: [UInt8])] {
        let names = ["level0", "level1", "level6", "level9", "fixed", "huffman", "rle", "window9"]
        let plain = try Fixture.bytes("Deflate/plain.bin")
        return try names.map { ($0, try Fixture.bytes("Deflate/\($0).zz"), plain) }
    }

    @Test func decodesWhatZlibWrites() throws {
        for (name, stream, plain) in try fixtures() {
            #expect(try Inflater.inflate(stream, maximum: .max) == plain, "\(name)")
            let start = try Inflater.inflate(Array(stream[2...]), wrapper: .raw, maximum: 5_000)
            #expect(start == Array(plain.prefix(5_000)))
        }
    }

    @Test func doesNotDependOnThePieces() throws {
        for (name, stream, plain) in try fixtures() {
            for (step, chunk) in [(1, 1 << 14), (7, 100), (64, 1), (33, 4_000), (1_000, 1 << 17)] {
                #expect(try inflate(stream, step: step, chunk: chunk) == plain, "\(name) \(step) \(chunk)")
            }
        }
    }

    @Test func refusesEveryTruncation() throws {
        for (name, stream, plain) in try fixtures() where stream.count < 20_000 {
            for count in stride(from: 0, to: stream.count, by: max(1, stream.count / 300)) {
                #expect(throws: InflateError.truncated, "\(name) \(count)") {
                    try inflate(Array(stream.prefix(count)), step: 50, chunk: 1_000)
                }
            }
            var inflater = Inflater(InflaterBytes(Array(stream.prefix(stream.count / 2))), chunk: 64)
            var result: [UInt8] = []
            while let piece = try? inflater.next() { result += piece }
            #expect(!result.isEmpty && result == Array(plain.prefix(result.count)), "\(name)")
        }
    }

    @Test(arguments: [
        ([0x78, 0x9D, 3, 0], "zlib header check is wrong"), ([0x79, 0x9C, 3, 0], "not a zlib stream"),
        ([0x78, 0xBB, 0, 0, 0, 1, 3, 0], "zlib stream needs a preset dictionary"),
        ([0x78, 0x9C, 7], "block type 3 does not exist"),
        ([0x78, 0x9C, 1, 1, 0, 0, 0], "stored block lengths do not match"),
        ([0x78, 0x9C, 3, 0, 0, 0, 0, 2], "checksum is wrong"),
        // A fixed block that begins with a match: nothing is there to copy.
        ([0x78, 0x9C, 0x03, 0x02, 0, 0, 0, 0, 0, 0, 0, 0], "distance reaches before the first byte"),
        ([0x78, 0x9C, 0xFD, 0xFF, 0, 0, 0], "too many symbols"),
        ([0x78, 0x9C, 0x05, 0xE0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], "bad code of code lengths"),
    ] as [([UInt8], String)])
    func saysWhatIsWrong(bytes: [UInt8], reason: String) {
        #expect(throws: InflateError.invalid(reason)) { try Inflater.inflate(bytes, maximum: 100) }
    }

    @Test func survivesMutations() throws {
        var random = SeededGenerator(9)
        for (_, stream, plain) in try fixtures() where stream.count < 40_000 {
            for _ in 0..<150 {
                var bytes = stream
                for _ in 0..<3 {
                    bytes[Int.random(in: 2..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
                }
                let result = try? Inflater.inflate(bytes, maximum: 1 << 20)
                #expect(result == nil || result == plain || bytes.suffix(4) != stream.suffix(4))
            }
            for count in [20, 200, 2_000] {
                _ = try? Inflater.inflate(random.bytes(count), wrapper: .raw, maximum: 1 << 20)
            }
        }
    }
}

@Suite struct ChecksumTests {
    @Test func adlerAgreesWithItsDefinition() {
        var random = SeededGenerator(3)
        for count in [0, 1, 15, 16, 17, 351, 352, 353, 5_553, 40_000] {
            for bytes in [random.bytes(count), [UInt8](repeating: 255, count: count)] {
                var (a, b) = (1, 0)
                for byte in bytes {
                    a = (a + Int(byte)) % 65_521
                    b = (b + a) % 65_521
                }
                #expect(Adler32.checksum(bytes) == UInt32(b << 16 | a))
            }
        }
    }

    @Test func crcAgreesWithItsDefinition() {
        // The check value of the CRC catalogue.
        #expect(CRC32.checksum(Array("123456789".utf8)) == 0xCBF4_3926)
        var random = SeededGenerator(4)
        for count in [0, 1, 7, 8, 9, 1_000] {
            let bytes = random.bytes(count)
            var crc: UInt32 = 0xFFFF_FFFF
            for byte in bytes {
                crc ^= UInt32(byte)
                for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1 }
            }
            #expect(CRC32.checksum(bytes) == ~crc)
        }
    }
}
