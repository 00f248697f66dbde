import TestSupport
import Testing
import VitrineImaging

@Suite struct PNGFilterTests {
    /// The specification's predictor (§9.4), literally.
    private func paeth(_ a: Int, _ b: Int, _ c: Int) -> Int {
        let p = a + b - c
        let (pa, pb, pc) = (abs(p - a), abs(p - b), abs(p - c))
        return pa <= pb && pa <= pc ? a : pb <= pc ? b : c
    }

    @Test(arguments: 0..<5, [1, 2, 3, 4, 6, 8])
    func undoesEveryFilterAtEveryPixelSize(type: Int, distance: Int) throws {
        var random = SeededGenerator(UInt64(type * 10 + distance))
        let types: UInt8 = [1: 0, 2: 4, 3: 2, 4: 6, 6: 2, 8: 6][distance]!
        let depth: UInt8 = distance > 4 ? 16 : 8
        let (width, height) = (61, 23)
        let count = width * distance
        var rows: [[Int]] = []
        var data: [UInt8] = []
        for _ in 0..<height {
            let row = random.bytes(count).map(Int.init)
            let above = rows.last ?? [Int](repeating: 0, count: count)
            data.append(UInt8(type))
            for i in 0..<count {
                let a = i >= distance ? row[i - distance] : 0
                let c = i >= distance ? above[i - distance] : 0
                let b = above[i]
                let predictions: [Int] = [0, a, b, (a + b) / 2, paeth(a, b, c)]
                data.append(UInt8((row[i] - predictions[type]) & 255))
            }
            rows.append(row)
        }
        let file = PNGSupport.signature + PNGSupport.header(width, height, type: types, depth: depth)
            + PNGSupport.chunk("IDAT", PNGSupport.stored(data)) + PNGSupport.chunk("IEND", [])
        let flat = rows.flatMap { $0 }
        var expected = flat.map { UInt8($0) }
        if depth == 16 {
            expected = stride(from: 0, to: flat.count, by: 2).map { i -> UInt8 in
                let sample: Int = flat[i] * 256 + flat[i + 1]
                return UInt8((sample * 255 + 32_767) / 65_535)
            }
        }
        #expect(PNGSupport.samples(try PNGSupport.decode(file)) == expected)
    }

    @Test func refusesAnUnknownFilter() {
        let file = PNGSupport.signature + PNGSupport.header(1, 1, type: 0)
            + PNGSupport.chunk("IDAT", PNGSupport.stored([5, 0])) + PNGSupport.chunk("IEND", [])
        #expect(throws: ImageError.corrupt(input: "test", reason: "unknown row filter")) {
            try PNGSupport.decode(file)
        }
    }
}
