import Testing
import VitrineCore

struct StableHashTests {
    /// Written to disk: a change of any of these loses every cache in the field.
    @Test func valuesNeverChange() {
        #expect(StableHash.hash("") == 4557772203166807305)
        #expect(StableHash.hash("a") == 17603032220580132884)
        #expect(StableHash.hash("http://haneke.io") == 278272344979279122)
        #expect(StableHash.hash([UInt8](0...255)) == 16944190000667832454)
        #expect(StableHash.hash([UInt8](0...255), seed: 1) == 6898706235056305884)
    }

    @Test func everyBitOfEveryLengthMatters() {
        for length in 1...200 {
            var bytes = [UInt8](repeating: 0, count: length)
            let original = StableHash.hash(bytes)
            var flipped = 0
            for bit in 0..<length * 8 {
                bytes[bit / 8] ^= 1 << UInt8(bit % 8)
                flipped += (StableHash.hash(bytes) ^ original).nonzeroBitCount
                bytes[bit / 8] ^= 1 << UInt8(bit % 8)
            }
            // Half of the 64 bits change on average, as of a random function.
            let mean = Double(flipped) / Double(length * 8)
            #expect((26...38).contains(mean), "length \(length): \(mean)")
        }
    }

    @Test func similarKeysDoNotMeet() {
        var seen = Set<UInt64>()
        var low = Set<UInt64>()
        for index in 0..<200_000 {
            let hash = StableHash.hash("https://example.org/\(index).jpg")
            seen.insert(hash)
            low.insert(hash & 0xffff_ffff)
        }
        #expect(seen.count == 200_000)
        // 4.7 pairs are expected to share their lower half.
        #expect(low.count > 200_000 - 30)
    }

    @Test func zerosOfDifferentLengthsDiffer() {
        let hashes = Set((0...300).map { StableHash.hash([UInt8](repeating: 0, count: $0)) })
        #expect(hashes.count == 301)
    }
}
