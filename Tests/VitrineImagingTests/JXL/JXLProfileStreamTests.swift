import Testing
import VitrineCore
import VitrineImaging

@Suite struct JXLProfileStreamTests {
    /// Numbers of so many bits, lowest bit first.
    private static func bytes(_ fields: [(value: Int, width: Int)]) -> [UInt8] {
        var bits: [Int] = []
        for field in fields { bits += (0..<field.width).map { field.value >> $0 & 1 } }
        return stride(from: 0, to: bits.count, by: 8).map { start in
            UInt8(bits[start..<min(start + 8, bits.count)].reversed().reduce(0) { $0 << 1 | $1 })
        }
    }

    /// An 8 × 8 codestream that ends behind a profile of `count` numbers.
    private static func codestream(count: Int) -> [UInt8] {
        bytes([
            (0x0AFF, 16),
            (1, 1), (0, 5), (1, 3),  // small, 8 pixels high, square
            (0, 1), (0, 1), (0, 1), (0, 2), (1, 1), (0, 2), (1, 1),  // 8 bits, no extra channels, XYB
            (0, 1), (1, 1), (0, 2), (0, 2), (1, 1),  // a profile, RGB, no extensions, the default transform
            (1, 2), (count - 1, 4),
            (1, 1), (0, 2), (0, 2), (8, 4),  // copies from symbol 224 on, of 3 numbers or more
            (1, 1), (0, 2),  // one distribution for all contexts
            (1, 1), (15, 4), (1, 1), (7, 4), (97, 7), (1, 2), (0, 2), (225, 8),  // whose only symbol is 225
        ] + [(0, 64)])
    }

    @Test(arguments: [1, 4, 9])
    func aCopyBeforeTheFirstNumberIsOneOfZeros(count: Int) throws {
        let source = ByteSource(bytes: Self.codestream(count: count), name: "copies")
        let info = try ImageInfo(reading: source)
        #expect(info.storedSize == PixelSize(8) && info.colorProfile == nil)
    }
}
