/// Bounds-checked reading of numbers and short runs of bytes at any offset of a ``ByteSource``, through a small window.
///
/// Offsets and lengths come from files: every call accepts any number, throws ``ImageError/truncated(input:)`` outside
/// the input, and never traps. Reading on from the end of the window doubles the next read up to 16 KiB; a jump reads
/// 1 KiB. Not safe to share between threads: make one for each reading.
package final class ByteReader {
    private static let capacity = 16 << 10
    private static let smallest = 1 << 10

    /// Where the bytes come from.
    package let source: ByteSource
    private let window: UnsafeMutableRawBufferPointer
    private var start = 0
    private var filled = 0
    private var stride = ByteReader.smallest

    /// A reader at the beginning of `source`. Reads nothing yet.
    package init(_ source: ByteSource) {
        self.source = source
        window = .allocate(byteCount: ByteReader.capacity, alignment: 16)
    }

    deinit { window.deallocate() }

    /// Bytes in the input.
    package var count: Int { source.count }

    /// The name of the input in errors.
    package var name: String { source.name }

    /// The error for bytes that break their format's rules.
    package func corrupt(_ reason: String) -> ImageError { .corrupt(input: name, reason: reason) }

    /// The byte at `offset`.
    @inline(__always)
    package func u8(at offset: Int) throws(ImageError) -> Int { try Int(load(UInt8.self, at: offset)) }

    /// A 16-bit number, most significant byte first unless `bigEndian` is false.
    @inline(__always)
    package func u16(at offset: Int, bigEndian: Bool = true) throws(ImageError) -> Int {
        let value = try load(UInt16.self, at: offset)
        return Int(bigEndian ? UInt16(bigEndian: value) : UInt16(littleEndian: value))
    }

    /// A 24-bit number, least significant byte first.
    package func u24LittleEndian(at offset: Int) throws(ImageError) -> Int {
        let low = try u16(at: offset, bigEndian: false)
        return try low | u8(at: offset &+ 2) << 16
    }

    /// A 32-bit number, most significant byte first unless `bigEndian` is false.
    @inline(__always)
    package func u32(at offset: Int, bigEndian: Bool = true) throws(ImageError) -> Int {
        let value = try load(UInt32.self, at: offset)
        return Int(bigEndian ? UInt32(bigEndian: value) : UInt32(littleEndian: value))
    }

    /// A 64-bit number, most significant byte first unless `bigEndian` is false; values above `Int.max` become
    /// `Int.max`.
    package func u64(at offset: Int, bigEndian: Bool = true) throws(ImageError) -> Int {
        let value = try load(UInt64.self, at: offset)
        return Int(clamping: bigEndian ? UInt64(bigEndian: value) : UInt64(littleEndian: value))
    }

    /// Four characters that name a chunk or a box.
    @inline(__always)
    package func fourCC(at offset: Int) throws(ImageError) -> FourCC {
        FourCC(rawValue: UInt32(bigEndian: try load(UInt32.self, at: offset)))
    }

    /// Whether the bytes at `offset` are `expected`; false where the input ends before or cannot be read.
    package func matches(_ expected: StaticString, at offset: Int) -> Bool {
        let length = expected.utf8CodeUnitCount
        guard offset >= 0, offset <= count &- length else { return false }
        for i in 0..<length where (try? load(UInt8.self, at: offset &+ i)) != expected.utf8Start[i] { return false }
        return true
    }

    /// The range of `length` bytes from `offset`, which must lie inside the input.
    package func range(at offset: Int, count length: Int) throws(ImageError) -> Range<Int> {
        guard offset >= 0, length >= 0, length <= count, offset <= count &- length else {
            throw .truncated(input: name)
        }
        return offset..<(offset &+ length)
    }

    /// A copy of a range of bytes, which must lie inside the input.
    package func bytes(_ range: Range<Int>) throws(ImageError) -> [UInt8] {
        guard range.lowerBound >= 0, range.upperBound <= count else { throw .truncated(input: name) }
        let bytes = try source.bytes(at: range.lowerBound, count: range.count)
        // A file can shrink while it is read.
        guard bytes.count == range.count else { throw .truncated(input: name) }
        return bytes
    }

    /// Appends a short run of bytes (at most 1 KiB, inside the input) through the window.
    package func append(_ range: Range<Int>, to bytes: inout [UInt8]) throws(ImageError) {
        guard range.count <= ByteReader.smallest else { return bytes += try self.bytes(range) }
        guard !range.isEmpty else { return }
        let index = range.lowerBound &- start
        if index < 0 || index > filled &- range.count { try fill(at: range.lowerBound, atLeast: range.count) }
        let from = range.lowerBound &- start
        bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: window[from..<(from &+ range.count)]))
    }

    @inline(__always)
    private func load<T: FixedWidthInteger>(_ type: T.Type, at offset: Int) throws(ImageError) -> T {
        let size = MemoryLayout<T>.size
        let index = offset &- start
        if index < 0 || index > filled &- size || offset < 0 { try fill(at: offset, atLeast: size) }
        return window.loadUnaligned(fromByteOffset: offset &- start, as: T.self)
    }

    private func fill(at offset: Int, atLeast size: Int) throws(ImageError) {
        guard offset >= 0, offset <= count &- size else { throw .truncated(input: name) }
        let readsOn = offset >= start && offset <= start &+ filled
        stride = readsOn ? min(stride &* 2, ByteReader.capacity) : ByteReader.smallest
        filled = 0
        filled = try source.read(into: UnsafeMutableRawBufferPointer(rebasing: window[0..<stride]), at: offset)
        start = offset
        guard filled >= size else { throw .truncated(input: name) }
    }
}

/// Four characters that name a chunk (PNG, RIFF) or a box (ISO/IEC 14496-12).
package struct FourCC: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral {
    /// The characters, the first in the highest byte.
    package let rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// The first four ASCII characters of a literal; a shorter one is filled with zeros.
    package init(stringLiteral value: StaticString) {
        var raw: UInt32 = 0
        for i in 0..<4 { raw = raw << 8 | (i < value.utf8CodeUnitCount ? UInt32(value.utf8Start[i]) : 0) }
        rawValue = raw
    }
}

extension [UInt8] {
    /// Four bytes as a number, the most significant first; 0 where there are none.
    package func bigEndian32(at offset: Int) -> UInt32 {
        guard offset >= 0, offset <= count - 4 else { return 0 }
        return UInt32(self[offset]) << 24 | UInt32(self[offset + 1]) << 16 | UInt32(self[offset + 2]) << 8
            | UInt32(self[offset + 3])
    }

    /// Two bytes as a number, the most significant first; 0 where there are none.
    package func bigEndian16(at offset: Int) -> UInt16 {
        guard offset >= 0, offset <= count - 2 else { return 0 }
        return UInt16(self[offset]) << 8 | UInt16(self[offset + 1])
    }
}
