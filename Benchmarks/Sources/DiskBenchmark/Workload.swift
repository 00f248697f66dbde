#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore

/// Entries of 2 to 50 KB, log-uniform, whose sizes, keys and contents follow from a number. `diskcache_peer.py` has the
/// same sizes and keys.
struct Workload {
    private let noise: [UInt8]

    init() {
        noise = [UInt8](unsafeUninitializedCapacity: 2 << 20) { buffer, count in
            let bytes = UnsafeMutableRawBufferPointer(buffer)
            for offset in stride(from: 0, to: bytes.count, by: 8) {
                bytes.storeBytes(of: Self.mix(UInt64(offset)), toByteOffset: offset, as: UInt64.self)
            }
            count = bytes.count
        }
    }

    func key(_ number: Int) -> CacheKey {
        CacheKey("https://img.example.org/p/\(String(Self.mix(UInt64(number)), radix: 16))/256x256@2x.webp")
    }

    func size(_ number: Int) -> Int {
        let fraction = Double(Self.mix(UInt64(number) ^ 0xABCDEF) >> 11) / 9_007_199_254_740_992
        return Int(2048 * exp(fraction * log(25)))
    }

    func bytes(_ number: Int) -> [UInt8] {
        let start = (number &* 64) & 0xFFFFF
        return Array(noise[start..<start + size(number)])
    }

    func isIntact(_ bytes: [UInt8], _ number: Int) -> Bool { bytes == self.bytes(number) }

    /// 0..<count in an order by chance, the same for the same seed.
    func shuffled(_ count: Int, seed: UInt64) -> [Int] {
        var order = Array(0..<count), state = seed
        for index in stride(from: count - 1, to: 0, by: -1) {
            state = Self.mix(state)
            order.swapAt(index, Int(state % UInt64(index + 1)))
        }
        return order
    }

    /// The finaliser of SplitMix64.
    static func mix(_ value: UInt64) -> UInt64 {
        var z = value &+ 0x9E37_79B9_7F4A_7C15
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
