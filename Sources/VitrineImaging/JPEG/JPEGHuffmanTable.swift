/// One Huffman table of a JPEG file, with the look-up tables derived from it.
///
/// Not sendable: lives in one decode, on one thread.
final class JPEGHuffmanTable {
    private let fast: UnsafeMutablePointer<UInt16>
    private let limits: UnsafeMutablePointer<Int32>
    private let values: UnsafeMutablePointer<UInt8>
    private var skipTable: UnsafeMutablePointer<UInt16>?
    /// Whether every symbol is a length of at most 14 bits, as the DC loops rely on; 8-bit pictures need no more than
    /// 11.
    private(set) var isUsableForDC = true

    /// A table from the lengths and values of a DHT segment (T.81 §B.2.4.2, §C.2).
    ///
    /// - Parameters:
    ///   - lengths: 16 counts of codes, by length 1...16.
    ///   - symbols: As many bytes as the counts say, at most 256.
    /// - Returns: nil when there are more codes of a length than that many bits can tell apart.
    init?(lengths: UnsafePointer<UInt8>, symbols: UnsafeBufferPointer<UInt8>) {
        fast = .allocate(capacity: 1 << JPEGHuffmanCode.fastBits)
        fast.initialize(repeating: 0, count: 1 << JPEGHuffmanCode.fastBits)
        limits = .allocate(capacity: 51)
        limits.initialize(repeating: 0, count: 51)
        values = .allocate(capacity: 256)
        values.initialize(repeating: 0, count: 256)
        for (i, symbol) in symbols.prefix(256).enumerated() {
            values[i] = symbol
            if symbol > 14 { isUsableForDC = false }
        }
        guard assignCodes(lengths) else { return nil }
    }

    deinit {
        fast.deallocate()
        limits.deallocate()
        values.deallocate()
        skipTable?.deallocate()
    }

    var code: JPEGHuffmanCode { JPEGHuffmanCode(fast: fast, limits: limits, values: values) }

    private func assignCodes(_ lengths: UnsafePointer<UInt8>) -> Bool {
        var code: Int32 = 0
        var index: Int32 = 0
        for length in 1...16 {
            let count = Int32(lengths[length - 1])
            guard code + count <= Int32(1) << Int32(length) else { return false }
            limits[length] = code
            limits[17 + length] = code + count - 1
            limits[34 + length] = index - code
            if length <= JPEGHuffmanCode.fastBits {
                let spare = JPEGHuffmanCode.fastBits - length
                for k in 0..<Int(count) {
                    let entry = UInt16(length) << 8 | UInt16(values[(Int(index) + k) & 255])
                    (fast + (Int(code) + k) << spare).update(repeating: entry, count: 1 << spare)
                }
            }
            code = (code + count) << 1
            index += count
        }
        return true
    }

    /// A table that passes over several AC codes and their values at once.
    ///
    /// By the next `bits` bits, an entry has the bits of all whole codes with their values (bits 0-5), how many
    /// coefficients they pass (6-11) and whether they include the end of the block (12). Bit 13 stands alone: the first
    /// code does not fit. A sum of entries never carries from bits into coefficients, as a round of look-ups takes
    /// less than 64 bits, so one addition keeps both counts and one comparison finds every reason to stop.
    func skip(bits: Int) -> UnsafePointer<UInt16> {
        if let skipTable { return UnsafePointer(skipTable) }
        let table = UnsafeMutablePointer<UInt16>.allocate(capacity: 1 << bits)
        let code = code
        let width = UInt32(bits)
        for index in 0..<UInt32(1 << bits) {
            var used: UInt32 = 0
            var passed: UInt32 = 0
            var isEnd: UInt32 = 0
            while true {
                let entry = code.symbol(((index << (16 - width)) << used) & 0xFFFF)
                let length = entry >> 8
                let run = (entry >> 4) & 15
                let size = entry & 15
                guard entry != 0, used + length <= width else { break }
                if size == 0 && run != 15 {
                    used += length
                    isEnd = 1
                    break
                }
                guard used + length + size <= width, passed + run + 1 <= 62 else { break }
                used += length + size
                passed += run + 1
            }
            table[Int(index)] = used == 0 ? 1 << 13 : UInt16(used | passed << 6 | isEnd << 12)
        }
        skipTable = table
        return UnsafePointer(table)
    }
}
