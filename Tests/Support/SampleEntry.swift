package import VitrineCore

/// A cache entry whose bytes follow from a number and a version, so that any process can tell a good one from a
/// damaged one, and a new one from an old one.
package struct SampleEntry: Sendable, Equatable {
    /// How large the entries are.
    package enum Sizes: Sendable {
        /// 24 to 200 bytes.
        case tiny
        /// Mostly up to 4 KB, a quarter up to 60 KB, one in twenty 66 to 200 KB, which is a file of its own.
        case mixed
        /// All the same, in bytes; at least 24.
        case fixed(Int)
    }

    /// More than the largest mixed entry counts, in bytes: its contents, its key, and rounding to pages.
    package static let largestAccountedSize = 210_000

    package var number: Int
    package var version: Int

    package init(number: Int, version: Int) {
        self.number = number
        self.version = version
    }

    /// What the entry is stored under.
    package var key: CacheKey { Self.key(number) }

    package static func key(_ number: Int) -> CacheKey { CacheKey("entry", String(number)) }

    /// The contents: number, version, length, then noise that follows from them.
    package func bytes(_ sizes: Sizes) -> [UInt8] {
        var random = SeededGenerator(UInt64(bitPattern: Int64(number &* 1_000_003 &+ version)))
        return fill(count: size(sizes, &random), &random)
    }

    /// The entry these bytes are, unless a single one of them is wrong.
    package init?(intact bytes: [UInt8], _ sizes: Sizes) {
        guard bytes.count >= 24 else { return nil }
        let words = bytes.withUnsafeBytes { bytes in
            (0..<3).map { Int(Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: $0 * 8, as: Int64.self))) }
        }
        self.init(number: words[0], version: words[1])
        guard words[2] == bytes.count, self.bytes(sizes) == bytes else { return nil }
    }

    private func size(_ sizes: Sizes, _ random: inout SeededGenerator) -> Int {
        switch sizes {
        case .tiny: return Int.random(in: 24...200, using: &random)
        case .fixed(let size): return max(24, size)
        case .mixed:
            switch Int.random(in: 0..<20, using: &random) {
            case 0: return Int.random(in: 66_000...200_000, using: &random)
            case 1...5: return Int.random(in: 4_000...60_000, using: &random)
            default: return Int.random(in: 24...4_000, using: &random)
            }
        }
    }

    private func fill(count: Int, _ random: inout SeededGenerator) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: (count + 7) / 8 * 8) { buffer, filled in
            let bytes = UnsafeMutableRawBufferPointer(buffer)
            for (index, word) in [number, version, count].enumerated() {
                bytes.storeBytes(of: Int64(word).littleEndian, toByteOffset: index * 8, as: Int64.self)
            }
            for offset in stride(from: 24, to: count, by: 8) {
                bytes.storeBytes(of: random.next().littleEndian, toByteOffset: offset, as: UInt64.self)
            }
            filled = count
        }
    }
}
