/// Where an ``Inflater`` gets compressed bytes from, piece by piece.
package protocol InflaterSource {
    /// Writes up to `buffer.count` bytes to the start of `buffer`, whose whole memory may be used as scratch.
    ///
    /// - Returns: The bytes written; 0 when there are no more.
    mutating func read(into buffer: UnsafeMutableRawBufferPointer) throws(ImageError) -> Int
}

/// Compressed bytes in memory.
package struct InflaterBytes: InflaterSource {
    private let bytes: [UInt8]
    private var position = 0

    package init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    package mutating func read(into buffer: UnsafeMutableRawBufferPointer) throws(ImageError) -> Int {
        let n = min(buffer.count, bytes.count - position)
        guard n > 0 else { return 0 }
        bytes.withUnsafeBytes {
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[position..<(position + n)]))
        }
        position += n
        return n
    }
}
