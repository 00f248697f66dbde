import VitrineImageCore

/// Reads fields of a JPEG XL codestream, lowest bit first, from bytes that outlive it.
///
/// Behind the end it reads zeros, and ``check()`` tells: so inner loops need no error paths, but must be bounded.
///
/// Source: ISO/IEC 18181-1 annex B (U32, U64, F16, Bool, Enum).
struct JXLBits {
    /// One way of writing a U32: `base` plus a number of `bits`.
    typealias Choice = (base: Int, bits: Int)

    private let bytes: UnsafePointer<UInt8>
    private let count: Int
    /// Bits read so far.
    private(set) var position = 0

    init(_ buffer: UnsafeBufferPointer<UInt8>, at byte: Int = 0) {
        bytes = buffer.baseAddress ?? UnsafePointer(bitPattern: 1)!
        count = buffer.count
        position = byte &* 8
    }

    /// Reads something from the start of `bytes`.
    static func read<R>(_ bytes: [UInt8], _ body: (inout JXLBits) throws(JXLFault) -> R) -> Result<R, JXLFault> {
        bytes.withUnsafeBufferPointer { buffer in
            Result { () throws(JXLFault) in
                var bits = JXLBits(buffer)
                return try body(&bits)
            }
        }
    }

    /// The next 32 bits or more, not consumed.
    @inline(__always)
    func peek() -> UInt64 {
        let byte = position &>> 3
        if byte <= count &- 8 {
            let word = UnsafeRawPointer(bytes + byte).loadUnaligned(as: UInt64.self)
            return UInt64(littleEndian: word) &>> UInt64(truncatingIfNeeded: position & 7)
        }
        var word: UInt64 = 0
        var i = byte
        while i < count, i < byte &+ 8 {
            word |= UInt64(bytes[i]) &<< UInt64(truncatingIfNeeded: (i &- byte) &* 8)
            i &+= 1
        }
        return word &>> UInt64(truncatingIfNeeded: position & 7)
    }

    @inline(__always)
    mutating func skip(_ n: Int) { position &+= n }

    /// Bits that are left; 0 behind the end.
    var remaining: Int { max(0, count &* 8 &- position) }

    /// `n` bits, at most 32.
    @inline(__always)
    mutating func bits(_ n: Int) -> Int {
        let value = peek() & ((1 &<< UInt64(truncatingIfNeeded: n)) &- 1)
        position &+= n
        return Int(truncatingIfNeeded: value)
    }

    mutating func bool() -> Bool { bits(1) == 1 }

    mutating func u32(a: Choice, b: Choice, c: Choice, d: Choice) -> Int {
        let choice = switch bits(2) {
        case 0: a
        case 1: b
        case 2: c
        default: d
        }
        return choice.base + bits(choice.bits)
    }

    mutating func enumeration() -> Int { u32(a: (0, 0), b: (1, 0), c: (2, 4), d: (18, 6)) }

    mutating func u64() -> UInt64 {
        switch bits(2) {
        case 0: return 0
        case 1: return UInt64(1 + bits(4))
        case 2: return UInt64(17 + bits(8))
        default: break
        }
        var value = UInt64(bits(12))
        var shift: UInt64 = 12
        while bool() {
            if shift == 60 { return value | UInt64(bits(4)) &<< 60 }
            value |= UInt64(bits(8)) &<< shift
            shift += 8
        }
        return value
    }

    /// A half-precision number.
    mutating func f16() throws(JXLFault) -> Float {
        let value = bits(16)
        let exponent = (value >> 10) & 31
        guard exponent != 31 else { throw .corrupt("a number is not finite") }
        let mantissa = Float(value & 1023)
        let size = exponent == 0
            ? mantissa / 16_777_216 : (1 + mantissa / 1024) * Float(sign: .plus, exponent: exponent - 15, significand: 1)
        return value >> 15 == 1 ? -size : size
    }

    /// A number of few bits, small ones written short (annex C.2.1).
    mutating func u8() -> Int {
        guard bool() else { return 0 }
        let n = bits(3)
        return bits(n) + (1 << n)
    }

    mutating func skipExtensions() throws(JXLFault) {
        let present = u64()
        guard present != 0 else { return }
        var total: UInt64 = 0
        for i in 0..<64 where present >> UInt64(i) & 1 == 1 {
            let (sum, overflow) = total.addingReportingOverflow(u64())
            guard !overflow, sum < 1 << 40 else { throw .truncated }
            total = sum
        }
        position &+= Int(total)
        try check()
    }

    mutating func skipName() { position &+= 8 &* u32(a: (0, 0), b: (0, 4), c: (16, 5), d: (48, 10)) }

    mutating func align() throws(JXLFault) {
        let rest = (8 &- position & 7) & 7
        guard bits(rest) == 0 else { throw .corrupt("padding is not zero") }
    }

    /// - Throws: ``JXLFault/truncated`` when more was read than there is.
    func check() throws(JXLFault) {
        guard position <= count &* 8 else { throw .truncated }
    }
}

/// Why a JPEG XL codestream is not read on.
enum JXLFault: Error {
    /// The bytes end before.
    case truncated
    /// The bytes break the rules.
    case corrupt(StaticString)
    /// The codestream is valid, but uses a feature that this decoder does not read.
    case unsupported(StaticString)

    func error(_ name: String) -> ImageError {
        switch self {
        case .truncated: .truncated(input: name)
        case .corrupt(let reason): .corrupt(input: name, reason: "\(reason)")
        case .unsupported(let reason): .unsupported(input: name, reason: "\(reason)")
        }
    }
}
