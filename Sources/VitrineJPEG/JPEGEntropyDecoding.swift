#if canImport(Glibc)
import VitrineImageCore
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

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

/// Entropy-coded bytes on their way from the file to a bit reader: without stuffing, in pieces of 64 KiB.
struct JPEGEntropyFeed: ~Copyable {
    /// More than any MCU can take: 10 blocks of 64 codes with values of 31 bits are 2,480 bytes.
    static let margin = 4096
    private static let capacity = 64 << 10

    private let scratch: UnsafeMutablePointer<UInt8>
    private let capacity: Int
    private var count = 0
    /// Bytes of the segment before the first one here.
    private var passed = 0
    /// Whether all data has been fed: a marker or the end of the input follows.
    private(set) var isAtEnd = false
    /// A byte of the file to look out for, which is not the zero behind 0xFF.
    var mark: Int?
    /// Where that byte stands in the segment without stuffing, once it has been fed.
    private(set) var markedByte: Int?

    /// - Parameter inputSize: Bytes of the whole input; a small one needs less memory.
    init(inputSize: Int) {
        capacity = max(64, min(JPEGEntropyFeed.capacity, inputSize))
        scratch = .allocate(capacity: capacity + JPEGEntropyFeed.margin + 64)
    }

    deinit { scratch.deallocate() }

    /// Behind the last byte fed.
    var end: UnsafePointer<UInt8> { UnsafePointer(scratch) + count }

    /// A bit reader at the start of the entropy-coded segment that `window` stands at.
    mutating func start(_ window: inout JPEGInputWindow) throws(ImageError) -> JPEGBitReader {
        count = 0
        passed = 0
        isAtEnd = false
        markedByte = nil
        var reader = JPEGBitReader(next: UnsafePointer(scratch))
        try feed(&window, &reader)
        return reader
    }

    /// Moves the bytes that `reader` has not loaded to the front and fills up behind them.
    mutating func feed(_ window: inout JPEGInputWindow, _ reader: inout JPEGBitReader) throws(ImageError) {
        let offset = reader.next - UnsafePointer(scratch)
        let left = max(0, count - offset)
        if left > 0 { memmove(scratch, scratch + offset, left) }
        reader.next = UnsafePointer(scratch) + max(0, offset - count)
        passed += min(offset, count)
        count = left
        while !isAtEnd && count < capacity {
            if window.available == 0, try !window.fill() {
                isAtEnd = true
                break
            }
            let available = min(window.available, capacity - count)
            let stuffed = memchr(window.bytes, 0xFF, available).map { UnsafeRawPointer($0) - UnsafeRawPointer(window.bytes) }
            let plain = stuffed ?? available
            if let mark, window.offset <= mark, mark - window.offset <= plain, markedByte == nil {
                markedByte = passed + count + mark - window.offset
            }
            memcpy(scratch + count, window.bytes, plain)
            count += plain
            window.consume(plain)
            if stuffed != nil { try takeStuffing(&window) }
        }
        // Zeros for a reader that loads ahead, or runs into the end of damaged data within an MCU.
        memset(scratch + count, 0, isAtEnd ? JPEGEntropyFeed.margin + 64 : 32)
    }

    private mutating func takeStuffing(_ window: inout JPEGInputWindow) throws(ImageError) {
        guard try window.require(2) else {
            window.consume(window.available)
            isAtEnd = true
            return
        }
        switch window.bytes[1] {
        case 0:
            scratch[count] = 0xFF
            count += 1
            window.consume(2)
        case 0xFF: window.consume(1)
        default: isAtEnd = true
        }
    }

    /// Passes over the rest of the segment.
    mutating func finish(_ window: inout JPEGInputWindow) throws(ImageError) {
        while !isAtEnd {
            count = 0
            var reader = JPEGBitReader(next: UnsafePointer(scratch))
            try feed(&window, &reader)
        }
    }

    /// A reader at a byte of the segment, which has been fed and not yet passed.
    func reader(atByte byte: Int) -> JPEGBitReader {
        JPEGBitReader(next: UnsafePointer(scratch) + max(0, min(count, byte - passed)))
    }

    /// The bits of the segment that `reader` has taken.
    func position(of reader: JPEGBitReader) -> Int {
        (passed + (reader.next - UnsafePointer(scratch))) * 8 - Int(reader.count)
    }

    /// Whether `reader` has taken more bits than there were.
    func isOverrun(_ reader: JPEGBitReader) -> Bool {
        (reader.next - UnsafePointer(scratch)) * 8 - Int(reader.count) > count * 8
    }
}

/// The addresses of the tables of one Huffman code, for a decoding loop to keep in registers.
struct JPEGHuffmanCode {
    /// Bits that one look-up of ``fast`` covers.
    static let fastBits = 10

    /// By the next 10 bits: length << 8 | symbol; 0 for a longer or undefined code.
    let fast: UnsafePointer<UInt16>
    /// Smallest code, largest code and index of the first value minus its code, each by length 0...16.
    let limits: UnsafePointer<Int32>
    /// Symbols in the order of their codes, 256 entries.
    let values: UnsafePointer<UInt8>

    /// Length << 8 | symbol of the code that `window` (16 bits) starts with; 0 if there is none.
    @inline(__always)
    func symbol(_ window: UInt32) -> UInt32 {
        let entry = UInt32(fast[Int(window &>> UInt32(16 - JPEGHuffmanCode.fastBits))])
        return entry != 0 ? entry : longSymbol(window)
    }

    @inline(never)
    private func longSymbol(_ window: UInt32) -> UInt32 {
        for length in (JPEGHuffmanCode.fastBits + 1)...16 {
            let code = Int32(window >> UInt32(16 - length))
            guard code >= limits[length], code <= limits[17 + length] else { continue }
            return UInt32(length) << 8 | UInt32(values[Int(code &+ limits[34 + length]) & 255])
        }
        return 0
    }
}

/// One Huffman table of a JPEG file, with the look-up tables derived from it.
///
/// Not sendable: lives in one decode, on one thread.
final class JPEGHuffmanTable {
    private let fast: UnsafeMutablePointer<UInt16>
    private let limits: UnsafeMutablePointer<Int32>
    private let values: UnsafeMutablePointer<UInt8>
    private var skipTable: UnsafeMutablePointer<UInt16>?
    /// Whether every symbol is a length of at most 14 bits, as the DC loops rely on; 8-bit images need no more than
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
