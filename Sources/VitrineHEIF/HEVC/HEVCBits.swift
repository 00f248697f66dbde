import VitrineImageCore

/// Why an HEVC picture cannot be decoded here.
package enum HEVCFault: Error, Equatable {
    /// The stream breaks a rule of the format, or ends early.
    case corrupt(String)
    /// The stream uses a part of the format that the decoder does not read.
    case unsupported(String)
    case cancelled
}

/// Reads the fields of parameter sets and slice headers, highest bit first.
///
/// Behind the end it reads zeros, and ``check()`` tells. Loops over counts that were read must be bounded.
///
/// Source: ITU-T H.265 §7.2, §9.2 (Exp-Golomb codes).
struct HEVCBits {
    private let bytes: [UInt8]
    /// Bits read so far.
    private(set) var position: Int
    private var isMalformed = false

    /// - Parameter bytes: The raw bytes of a payload, without the bytes that prevent start codes.
    init(_ bytes: [UInt8], at byte: Int = 0) {
        self.bytes = bytes
        position = byte &* 8
    }

    /// The payload of a NAL unit from its header on: the 3 of each 0, 0, 3 is left out (§7.3.1.1).
    static func payload(_ unit: UnsafeBufferPointer<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(unit.count)
        var start = 0
        var i = 2
        while i < unit.count {
            if unit[i] > 3 {
                i += 3
            } else if unit[i] == 3, unit[i - 1] == 0, unit[i - 2] == 0 {
                bytes.append(contentsOf: UnsafeBufferPointer(rebasing: unit[start..<i]))
                start = i + 1
                i += 3
            } else {
                i += 1
            }
        }
        bytes.append(contentsOf: UnsafeBufferPointer(rebasing: unit[start...]))
        return bytes
    }

    mutating func bits(_ n: Int) -> Int {
        var value = 0
        for _ in 0..<n {
            let byte = position >> 3
            let bit = byte < bytes.count ? Int(bytes[byte] >> UInt8(7 - position & 7)) & 1 : 0
            value = value << 1 | bit
            position += 1
        }
        return value
    }

    mutating func flag() -> Bool { bits(1) == 1 }

    mutating func skip(_ n: Int) { position += n }

    /// An unsigned Exp-Golomb code of at most 32 bits behind the zeros.
    mutating func number() -> Int {
        var zeros = 0
        while zeros < 33, !flag() { zeros += 1 }
        guard zeros <= 32 else {
            isMalformed = true
            return 0
        }
        return (1 << zeros) - 1 + bits(zeros)
    }

    /// A signed Exp-Golomb code.
    mutating func signed() -> Int {
        let k = number()
        return k & 1 == 1 ? (k + 1) / 2 : -(k / 2)
    }

    /// An unsigned Exp-Golomb code in `range`.
    mutating func number(_ range: ClosedRange<Int>, _ name: StaticString) throws(HEVCFault) -> Int {
        let value = number()
        guard range.contains(value) else { throw .corrupt("\(name)") }
        return value
    }

    /// A signed Exp-Golomb code in `range`.
    mutating func signed(_ range: ClosedRange<Int>, _ name: StaticString) throws(HEVCFault) -> Int {
        let value = signed()
        guard range.contains(value) else { throw .corrupt("\(name)") }
        return value
    }

    /// Reads which extensions a parameter set has. Those of several layers change nothing here; range extensions and
    /// screen content change how blocks are decoded.
    mutating func checkExtensions() throws(HEVCFault) {
        guard flag() else { return }
        let (range, _, screen, other) = (flag(), bits(2), flag(), bits(4))
        guard !range, !screen, other == 0 else { throw .unsupported("an extension of the format") }
    }

    /// - Throws: When more bits were read than there are, or a code was too long.
    func check() throws(HEVCFault) {
        guard !isMalformed, position <= bytes.count * 8 else { throw .corrupt("it ends early") }
    }
}
