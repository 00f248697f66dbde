import TestSupport

/// Random numbers of the generators.
struct FuzzRandom {
    var numbers: SeededGenerator
    init(_ seed: UInt64) { numbers = SeededGenerator(seed) }
    mutating func below(_ n: Int) -> Int {
        n <= 1 ? 0 : Int(truncatingIfNeeded: numbers.next().multipliedFullWidth(by: UInt64(n)).high)
    }
    mutating func chance(_ n: Int) -> Bool { below(n) == 0 }
    mutating func flag() -> Bool { below(2) == 0 }
    mutating func byte() -> UInt8 { UInt8(truncatingIfNeeded: numbers.next()) }
    mutating func range(_ r: ClosedRange<Int>) -> Int { r.lowerBound + below(r.count) }
    mutating func pick<T>(_ a: [T]) -> T { a[below(a.count)] }
    mutating func bytes(_ n: Int) -> [UInt8] {
        switch below(6) {
        case 0: return [UInt8](repeating: pick([0, 0xFF, 0x80, 0x55, 1, 0x7F]), count: n)
        case 1:
            var out: [UInt8] = []
            while out.count < n { out += [UInt8](repeating: byte(), count: 1 + below(9)) }
            return Array(out.prefix(n))
        case 2: let b = byte(); return (0..<n).map { _ in below(8) == 0 ? byte() : b }
        default: return numbers.bytes(n)
        }
    }
    static let edges: [Int] = [
        0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 255, 256, 511, 512, 1023, 4095, 32767, 32768, 65535,
        65536, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF,
    ]
    mutating func size() -> Int { chance(3) ? pick(FuzzRandom.edges) : below(80) }
}

/// Bits, the highest first.
struct HighestFirstBits {
    var bytes: [UInt8] = []
    var n = 0
    mutating func put(_ v: Int, _ c: Int) { for i in stride(from: c - 1, through: 0, by: -1) { bit(v >> i & 1) } }
    mutating func bit(_ b: Int) {
        if n & 7 == 0 { bytes.append(0) }
        if b != 0 { bytes[bytes.count - 1] |= 0x80 >> UInt8(n & 7) }
        n += 1
    }
    mutating func flag(_ b: Bool) { bit(b ? 1 : 0) }
    mutating func ue(_ v: Int) {
        let x = v + 1
        let len = Int.bitWidth - x.leadingZeroBitCount
        for _ in 0..<(len - 1) { bit(0) }
        put(x, len)
    }
    mutating func se(_ v: Int) { ue(v > 0 ? 2 * v - 1 : -2 * v) }
    mutating func align(_ one: Bool = true) { if one { bit(1) }; while n & 7 != 0 { bit(0) } }
}

/// Bits, the lowest first.
struct LowestFirstBits {
    var bytes: [UInt8] = []
    var n = 0
    mutating func put(_ v: Int, _ c: Int) {
        for i in 0..<c {
            if n & 7 == 0 { bytes.append(0) }
            if v >> i & 1 != 0 { bytes[bytes.count - 1] |= 1 << UInt8(n & 7) }
            n += 1
        }
    }
    mutating func flag(_ b: Bool) { put(b ? 1 : 0, 1) }
    mutating func align() { while n & 7 != 0 { put(0, 1) } }
}

/// The lowest bytes of a number, the highest first.
func big(_ v: Int, _ n: Int) -> [UInt8] { (0..<n).map { UInt8(truncatingIfNeeded: v >> (8 * (n - 1 - $0))) } }
/// The lowest bytes of a number, the lowest first.
func little(_ v: Int, _ n: Int) -> [UInt8] { (0..<n).map { UInt8(truncatingIfNeeded: v >> (8 * $0)) } }

/// Files of a format whose structure is right, so that mutations reach what lies behind it. The same numbers give the
/// same files.
enum FuzzGenerators {}
