/// What MD5 and SHA-256 have in common: 64-byte blocks, 512-bit padding with the length at the end.
protocol BlockFunction: Sendable {
    /// Whether the length in the padding is big endian.
    static var isBigEndian: Bool { get }
    init()
    /// Takes `count` whole blocks of 64 bytes in.
    mutating func compress(_ blocks: UnsafeRawPointer, count: Int)
    /// The digest's bytes.
    var digest: [UInt8] { get }
}

/// Cuts a stream of bytes into blocks for a ``BlockFunction``.
struct BlockDigest<Function: BlockFunction>: Sendable {
    private var function = Function()
    /// The beginning of a block that is not complete yet.
    private var pending: [UInt8] = []
    private var count: UInt64 = 0

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard var base = bytes.baseAddress else { return }
        var rest = bytes.count
        count &+= UInt64(rest)
        if !pending.isEmpty {
            let taken = min(64 - pending.count, rest)
            pending.append(contentsOf: UnsafeRawBufferPointer(start: base, count: taken))
            base += taken
            rest -= taken
            guard pending.count == 64 else { return }
            pending.withUnsafeBytes { block in
                if let start = block.baseAddress { function.compress(start, count: 1) }
            }
            pending.removeAll(keepingCapacity: true)
        }
        let blocks = rest / 64
        if blocks > 0 { function.compress(base, count: blocks) }
        pending.append(contentsOf: UnsafeRawBufferPointer(start: base + blocks * 64, count: rest - blocks * 64))
    }

    /// The digest of everything so far. The stream can go on afterwards.
    var digest: [UInt8] {
        var end = pending
        end.append(0x80)
        while end.count % 64 != 56 { end.append(0) }
        let bits = count &* 8
        for index in 0..<8 {
            let shift = UInt64(Function.isBigEndian ? 56 - index * 8 : index * 8)
            end.append(UInt8(truncatingIfNeeded: bits >> shift))
        }
        var last = function
        end.withUnsafeBytes { bytes in
            if let start = bytes.baseAddress { last.compress(start, count: bytes.count / 64) }
        }
        return last.digest
    }
}
