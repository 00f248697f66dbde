/// Writes the fields of one message between a client and its worker: little-endian, no padding, lengths in front.
package struct WireWriter {
    package private(set) var bytes: [UInt8] = []

    package init() {
        bytes.reserveCapacity(512)
    }

    /// The start that all packets share, with the request's number.
    init(packet id: UInt64) {
        self.init()
        write(WorkerProtocol.magic)
        write(WorkerProtocol.version)
        write(id)
    }

    package mutating func write<T: FixedWidthInteger>(_ value: T) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    package mutating func write(_ value: Int) { write(Int64(value)) }

    package mutating func write(_ value: Bool) { bytes.append(value ? 1 : 0) }

    package mutating func write(_ value: Double) { write(value.bitPattern) }

    /// Bytes, of which there may be as many as a packet holds.
    package mutating func write(_ data: [UInt8]) {
        write(UInt32(truncatingIfNeeded: data.count))
        bytes.append(contentsOf: data)
    }

    /// A text of at most `limit` bytes of UTF-8; a longer one is cut between characters.
    package mutating func write(_ text: String, limit: Int = 1_000) {
        var utf8 = Array(text.utf8)
        if utf8.count > limit {
            var end = limit
            while end > 0, utf8[end] & 0xC0 == 0x80 { end -= 1 }
            utf8.removeSubrange(end...)
        }
        write(UInt16(truncatingIfNeeded: utf8.count))
        bytes.append(contentsOf: utf8)
    }
}
