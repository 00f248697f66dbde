import VitrineCore

/// The checksum every entry carries: 64 bits over body, length, key, times and tag.
///
/// Made of two independent hashes joined by exclusive or, so that times and tag can change without the body being
/// read again. It finds damage; it is no protection against someone who writes into the directory on purpose.
enum EntrySum {
    /// Over body and key. ``StableHash`` takes the length into account.
    static func body(_ bytes: UnsafeRawBufferPointer, id: Int64) -> UInt64 {
        StableHash.hash(bytes, seed: UInt64(bitPattern: id))
    }

    /// Over what can change by itself, and the key's text.
    static func seal(
        key: UnsafeRawBufferPointer, created: Int64, expires: Int64?, tag: UnsafeRawBufferPointer
    ) -> UInt64 {
        let times = (created, expires ?? .min, Int64(tag.count))
        let head = withUnsafeBytes(of: times) { StableHash.hash($0, seed: 0x7665_7272_696e_6520) }
        let middle = StableHash.hash(key, seed: head)
        return tag.isEmpty ? middle : StableHash.hash(tag, seed: middle)
    }

    /// The seal of a key that is at hand.
    static func seal(key: CacheKey, created: Int64, expires: Int64?, tag: [UInt8]) -> UInt64 {
        withBytes(of: key) { key in
            tag.withUnsafeBytes { seal(key: key, created: created, expires: expires, tag: $0) }
        }
    }

    /// Lends the bytes of a key's identity, which keys hold as contiguous UTF-8.
    @inline(__always)
    static func withBytes<Result>(of key: CacheKey, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        var identity = key.identity
        return identity.withUTF8 { body(UnsafeRawBufferPointer($0)) }
    }
}

extension Duration {
    /// Whole nanoseconds, within what 64 bits can hold (until the year 2262): how times are stored.
    var nanosecondsClamped: Int64 {
        let (seconds, attoseconds) = components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        guard !overflow else { return seconds < 0 ? .min / 2 : .max / 2 }
        return min(max(product, .min / 2), .max / 2) + attoseconds / 1_000_000_000
    }
}
