/// Takes bits, most significant first, from memory that holds entropy-coded data without stuffing.
///
/// A refill is one unaligned load without a branch (Fabian Giesen, "Reading bits in far too many ways", 2018, variant
/// 4). It reads up to 8 bytes ahead, so the memory must go on that far behind its last byte.
struct JPEGBitReader {
    /// The next byte to load.
    var next: UnsafePointer<UInt8>
    /// Bits loaded and not yet taken, from the top.
    var bits: UInt64 = 0
    /// How many of them count.
    var count: UInt64 = 0

    /// Makes at least 56 bits available.
    @inline(__always)
    mutating func refill() {
        bits |= UInt64(bigEndian: UnsafeRawPointer(next).loadUnaligned(as: UInt64.self)) &>> count
        next += Int(truncatingIfNeeded: (63 &- count) &>> 3)
        count |= 56
    }

    /// The next 16 bits, without taking them.
    @inline(__always)
    var next16: UInt32 { UInt32(truncatingIfNeeded: bits &>> 48) }

    /// Takes `n` bits, at most 63.
    @inline(__always)
    mutating func take(_ n: UInt64) {
        bits = bits &<< n
        count &-= n
    }

    /// Takes `n` bits (0...15) as a signed difference or coefficient (T.81 §F.2.2.1, EXTEND).
    @inline(__always)
    mutating func takeSigned(_ n: UInt64) -> Int32 {
        let value = Int32(truncatingIfNeeded: (bits &>> 1) &>> (63 &- n))
        let range = Int32(truncatingIfNeeded: UInt64(1) &<< n)
        take(n)
        // A leading zero means negative. Arithmetic instead of a branch: the sign cannot be predicted.
        let isNegative = (value &- (range &>> 1)) &>> 31
        return value &- (isNegative & (range &- 1))
    }
}
