import Testing
import VitrineCore

@Suite struct CRC32CTests {
    private func sum(_ bytes: [UInt8]) -> UInt32 {
        var sum = CRC32C()
        bytes.withUnsafeBytes { sum.update($0) }
        return sum.value
    }

    /// RFC 3720, appendix B.4, and the check value of the algorithm.
    @Test func examplesOfTheStandardAreRight() {
        #expect(sum([UInt8](repeating: 0, count: 32)) == 0x8A91_36AA)
        #expect(sum([UInt8](repeating: 0xFF, count: 32)) == 0x62A8_AB43)
        #expect(sum(Array(0..<32)) == 0x46DD_794E)
        #expect(sum(Array((0..<32).reversed())) == 0x113F_DB5C)
        #expect(sum(Array("123456789".utf8)) == 0xE306_9283)
        #expect(sum([]) == 0)
    }

    @Test func theDivisionOfBytesDoesNotMatter() {
        let bytes = (0..<300).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        for cut in bytes.indices {
            var parts = CRC32C()
            bytes.withUnsafeBytes { all in
                parts.update(UnsafeRawBufferPointer(rebasing: all[..<cut]))
                parts.update(UnsafeRawBufferPointer(rebasing: all[cut...]))
            }
            #expect(parts.value == sum(bytes))
        }
    }
}
