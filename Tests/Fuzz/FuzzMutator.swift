import TestSupport

/// Which input comes when: first every beginning of every seed, then mutations by chance, the same for the same seed.
struct FuzzPlan {
    private let seeds: [[UInt8]]
    /// Lengths of the seeds' beginnings that are tried, one seed after the other.
    private let ends: [Int]
    private let prefixes: Int
    private let step: Double
    private var mutator: FuzzMutator

    /// Longer beginnings are left to chance.
    private static let longestPrefix = 4_096

    init(seeds: [[UInt8]], kind: FuzzTarget.Kind, runs: Int, seed: UInt64) {
        self.seeds = seeds
        var total = 0
        var ends: [Int] = []
        for seed in seeds {
            total += min(seed.count, Self.longestPrefix)
            ends.append(total)
        }
        self.ends = ends
        // At most a quarter of the runs; beyond, a sample at even distances.
        prefixes = min(total, runs / 4)
        step = prefixes > 0 ? Double(total) / Double(prefixes) : 1
        mutator = FuzzMutator(seeds: seeds, kind: kind, seed: seed)
    }

    mutating func input(_ number: Int) -> [UInt8] {
        guard number < prefixes else { return mutator.next() }
        let place = Int(Double(number) * step)
        let index = ends.firstIndex { place < $0 } ?? ends.count - 1
        let start = index == 0 ? 0 : ends[index - 1]
        return Array(seeds[index].prefix(place - start))
    }
}

/// Changes seeds by chance.
struct FuzzMutator {
    /// Larger seeds are left out: copying them would be all that is done.
    static let maximumCount = 640 << 10
    private static let longCount = 4_096
    private static let directoryCount = 1_024
    /// Numbers at which arithmetic goes wrong.
    private static let boundaries: [UInt64] = [
        0, 1, 2, 3, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF, 0x1_0000, 0xFF_FFFF, 0x7FFF_FFFE,
        0x7FFF_FFFF, 0x8000_0000, 0x8000_0001, 0xFFFF_FFFE, 0xFFFF_FFFF, 0x1_0000_0000, 0x7FFF_FFFF_FFFF_FFFE,
        0x7FFF_FFFF_FFFF_FFFF, 0x8000_0000_0000_0000, 0xFFFF_FFFF_FFFF_FFF0, 0xFFFF_FFFF_FFFF_FFFE,
        0xFFFF_FFFF_FFFF_FFFF,
    ]
    private static let numbers = [
        "0", "-0", "-1", "00", "+1", "255", "256", "65535", "65536", "2147483647", "2147483648", "-2147483648",
        "4294967295", "4294967296", "9007199254740993", "9223372036854775807", "9223372036854775808",
        "-9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616", "1e308",
        "1e309",
        "-1e999", "1e-400", "NaN", "nan", "inf", "-inf", "0x7fffffffffffffff", "1.7976931348623157e308",
        "99999999999999999999999999999999999999999999", "0.0000000000000000000000000000000001",
    ]

    private let seeds: [[UInt8]]
    private let kind: FuzzTarget.Kind
    private var random: SeededGenerator

    init(seeds: [[UInt8]], kind: FuzzTarget.Kind, seed: UInt64) {
        (self.seeds, self.kind, random) = (seeds, kind, SeededGenerator(seed))
    }

    mutating func next() -> [UInt8] {
        var bytes = seeds[below(seeds.count)]
        repeat { mutate(&bytes) } while below(3) != 0
        if bytes.count > 2 * Self.maximumCount { bytes.removeLast(bytes.count - 2 * Self.maximumCount) }
        return bytes
    }

    /// From 0 to below `end`, which is at least 1; a little faster than the library's, and fair enough.
    private mutating func below(_ end: Int) -> Int {
        Int(truncatingIfNeeded: random.next().multipliedFullWidth(by: UInt64(end)).high)
    }

    /// A place in the bytes: half the time near their beginning, where headers are, and of long ones a quarter near their
    /// end, where directories are.
    private mutating func place(_ bytes: [UInt8]) -> Int {
        switch below(4) {
        case 0, 1: below(min(bytes.count, 128))
        case 2 where bytes.count > Self.longCount: bytes.count - 1 - below(Self.directoryCount)
        default: below(bytes.count)
        }
    }

    private mutating func run(_ bytes: [UInt8]) -> Range<Int> {
        let start = place(bytes)
        return start..<min(bytes.count, start + 1 + below(below(2) == 0 ? 8 : 256))
    }

    private mutating func mutate(_ bytes: inout [UInt8]) {
        guard !bytes.isEmpty else { return bytes.append(UInt8(truncatingIfNeeded: random.next())) }
        if kind == .text, below(3) == 0 { return replaceNumber(&bytes) }
        switch below(16) {
        case 0...3: bytes[place(bytes)] ^= 1 << UInt8(below(8))
        case 4, 5: bytes[place(bytes)] = [0, 1, 0x7F, 0x80, 0xFF][below(5)]
        case 6: bytes[place(bytes)] = UInt8(truncatingIfNeeded: random.next())
        case 7...10: overwrite(&bytes)
        case 11: bytes.removeSubrange(run(bytes))
        case 12:
            let range = run(bytes)
            bytes.insert(contentsOf: bytes[range], at: below(2) == 0 ? range.upperBound : place(bytes))
        case 13: bytes.insert(contentsOf: random.bytes(1 + below(8)), at: place(bytes))
        case 14: splice(&bytes)
        default: bytes.removeLast(below(bytes.count))
        }
    }

    /// A number of 1, 2, 4 or 8 bytes in either order: a boundary, or one near what stands there.
    private mutating func overwrite(_ bytes: inout [UInt8]) {
        let width = [1, 2, 4, 8][below(4)]
        guard bytes.count >= width else { return }
        let at = min(place(bytes), bytes.count - width)
        let isBig = below(2) == 0
        var value = Self.boundaries[below(Self.boundaries.count)]
        if below(4) == 0 {
            let old = (0..<width).reduce(UInt64(0)) { $0 << 8 | UInt64(bytes[at + (isBig ? $1 : width - 1 - $1)]) }
            value = old &+ UInt64(below(33)) &- 16
        }
        for index in 0..<width {
            bytes[at + (isBig ? width - 1 - index : index)] = UInt8(truncatingIfNeeded: value >> UInt64(8 * index))
        }
    }

    /// The beginning of these and the end of another seed.
    private mutating func splice(_ bytes: inout [UInt8]) {
        let other = seeds[below(seeds.count)]
        guard !other.isEmpty else { return }
        bytes.removeLast(bytes.count - place(bytes))
        bytes += other[place(other)...]
    }

    /// A run of digits becomes a number that few expect.
    private mutating func replaceNumber(_ bytes: inout [UInt8]) {
        let isDigit = { (byte: UInt8) in (0x30...0x39).contains(byte) }
        let number = Self.numbers[below(Self.numbers.count)].utf8
        let from = below(bytes.count)
        guard let start = bytes[from...].firstIndex(where: isDigit) ?? bytes.firstIndex(where: isDigit) else {
            return bytes.insert(contentsOf: number, at: from)
        }
        let end = bytes[start...].firstIndex { !isDigit($0) } ?? bytes.count
        bytes.replaceSubrange(start..<end, with: number)
    }
}
