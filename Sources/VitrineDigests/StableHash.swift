/// A fast 64-bit hash of bytes that is the same in every process, on every machine and in every release.
///
/// It is written to disk as the identifier of entries and the checksum of bodies, so its result for given bytes never
/// changes. It finds damage and spreads keys. It does **not** resist deliberate collisions: code that uses it as an
/// identity also compares the bytes, as ``CacheKey`` does.
///
/// Algorithm: the multiply-and-fold family (wyhash by Wang Yi, public domain). Two 64-bit words are multiplied to 128
/// bits, and the halves are folded together by exclusive or. The factors take part in the fold once more, so a word
/// that makes one factor zero cannot erase the other. Inputs of 64 bytes and more run in four independent lanes, which
/// keeps the multiplier busy. Words are little endian on every platform.
package enum StableHash {
    // The first 64 fractional bits of the square roots of 2, 3, 5, 7 and 11 (the constants SHA-512 starts from,
    // FIPS 180-4 section 5.3.5), made odd: numbers of a public origin without a regular bit pattern.
    private static let k0: UInt64 = 0x6a09_e667_f3bc_c909
    private static let k1: UInt64 = 0xbb67_ae85_84ca_a73b
    private static let k2: UInt64 = 0x3c6e_f372_fe94_f82b
    private static let k3: UInt64 = 0xa54f_f53a_5f1d_36f1
    private static let k4: UInt64 = 0x510e_527f_ade6_82d1

    /// Returns the hash of bytes.
    ///
    /// - Parameters:
    ///   - bytes: Any number of bytes.
    ///   - seed: Another seed gives an unrelated hash of the same bytes.
    package static func hash(_ bytes: UnsafeRawBufferPointer, seed: UInt64 = 0) -> UInt64 {
        let count = bytes.count
        var state = fold(seed ^ k0, UInt64(truncatingIfNeeded: count) ^ k1)
        guard let base = bytes.baseAddress, count > 0 else { return finish(state, first: 0, second: 0) }
        var offset = 0
        if count >= 64 {
            var a = state, b = state ^ k2, c = state ^ k3, d = state ^ k4
            while count &- offset >= 64 {
                a = fold(word(base, offset) ^ k1, word(base, offset &+ 8) ^ a)
                b = fold(word(base, offset &+ 16) ^ k2, word(base, offset &+ 24) ^ b)
                c = fold(word(base, offset &+ 32) ^ k3, word(base, offset &+ 40) ^ c)
                d = fold(word(base, offset &+ 48) ^ k4, word(base, offset &+ 56) ^ d)
                offset &+= 64
            }
            state = fold(a ^ k2, b ^ k3) ^ fold(c ^ k4, d ^ k0)
        }
        while count &- offset >= 16 {
            state = fold(word(base, offset) ^ k1, word(base, offset &+ 8) ^ state)
            offset &+= 16
        }
        var tail: (UInt64, UInt64) = (0, 0)
        if count &- offset >= 8 {
            tail.0 = word(base, offset)
            offset &+= 8
            tail.1 = partial(base, offset: offset, count: count &- offset)
        } else {
            tail.0 = partial(base, offset: offset, count: count &- offset)
        }
        return finish(state, first: tail.0, second: tail.1)
    }

    /// Returns the hash of bytes.
    package static func hash(_ bytes: [UInt8], seed: UInt64 = 0) -> UInt64 {
        bytes.withUnsafeBytes { hash($0, seed: seed) }
    }

    /// Returns the hash of the text's UTF-8 bytes. Composed and decomposed characters have different hashes.
    package static func hash(_ text: String, seed: UInt64 = 0) -> UInt64 {
        if let hash = text.utf8.withContiguousStorageIfAvailable({ hash(UnsafeRawBufferPointer($0), seed: seed) }) {
            return hash
        }
        return hash(Array(text.utf8), seed: seed)
    }

    @inline(__always)
    private static func fold(_ a: UInt64, _ b: UInt64) -> UInt64 {
        let product = a.multipliedFullWidth(by: b)
        return product.high ^ product.low ^ a ^ (b << 32 | b >> 32)
    }

    @inline(__always)
    private static func finish(_ state: UInt64, first: UInt64, second: UInt64) -> UInt64 {
        let mixed = fold(first ^ k2, second ^ state)
        return fold(mixed ^ k3, mixed >> 29 ^ k4)
    }

    @inline(__always)
    private static func word(_ base: UnsafeRawPointer, _ offset: Int) -> UInt64 {
        UInt64(littleEndian: base.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    /// Up to seven bytes as one little-endian word. The length is part of the hash already.
    @inline(__always)
    private static func partial(_ base: UnsafeRawPointer, offset: Int, count: Int) -> UInt64 {
        var value: UInt64 = 0
        var index = 0
        while index < count {
            value |= UInt64(base.load(fromByteOffset: offset &+ index, as: UInt8.self)) << UInt64(index &* 8)
            index &+= 1
        }
        return value
    }
}
