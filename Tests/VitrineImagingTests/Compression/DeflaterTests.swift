import TestSupport
import Testing
import VitrineImaging

@Suite struct DeflaterTests {
    @Test func givesBackWhatItCompressed() throws {
        var random = SeededGenerator(11)
        var inputs: [[UInt8]] = [[], [1], [1, 2, 3], [UInt8](repeating: 7, count: 100_000), random.bytes(70_000)]
        inputs.append(try Fixture.bytes("Deflate/plain.bin"))
        // Repeats at every distance up to the farthest one.
        let far = random.bytes(32_768)
        inputs.append(far + far + far.prefix(999))
        for input in inputs {
            let stream = Deflater.zlib(input)
            #expect(try Inflater.inflate(stream, maximum: .max) == input)
            #expect(stream.count < input.count + input.count / 7 + 20)
        }
        #expect(Deflater.zlib(inputs[3]).count < 1_000)
        #expect(Deflater.zlib(inputs[5]).count < inputs[5].count / 2)
    }
}
