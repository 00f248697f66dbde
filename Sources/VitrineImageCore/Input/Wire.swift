/// Writes the fields of a message between client and worker: little-endian, no padding, lengths first.
package struct WireWriter {
    package private(set) var bytes: [UInt8] = []

    package init() {
        bytes.reserveCapacity(512)
    }

    package mutating func write<T: FixedWidthInteger>(_ value: T) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    package mutating func write(_ value: Int) { write(Int64(value)) }

    /// Writes a case of an enumeration without raw values, by its position among all cases.
    package mutating func write<T: CaseIterable & Equatable>(case value: T) {
        for (position, other) in T.allCases.enumerated() where other == value { write(UInt8(position)) }
    }

    package mutating func write(_ value: Bool) { bytes.append(value ? 1 : 0) }

    package mutating func write(_ value: PixelRect?) {
        for number in [value?.x ?? 0, value?.y ?? 0, value?.size.width ?? 0, value?.size.height ?? 0] {
            write(Int32(truncatingIfNeeded: number))
        }
    }

    package mutating func write(_ value: Double) { write(value.bitPattern) }

    /// Writes bytes, at most as many as a packet holds.
    package mutating func write(_ data: [UInt8]) {
        write(UInt32(truncatingIfNeeded: data.count))
        bytes.append(contentsOf: data)
    }

    /// Writes a text of at most `limit` bytes of UTF-8; a longer one is cut between characters.
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

/// Reads a message of ``WireWriter``. The other side is not trusted: reading past the end gives zeros and clears
/// ``isValid`` instead of trapping.
package struct WireReader {
    private let bytes: [UInt8]
    private var position = 0
    /// Whether every read so far succeeded.
    package private(set) var isValid = true

    package init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Whether every read succeeded and no byte is left.
    package var isComplete: Bool { isValid && position == bytes.count }

    /// Marks the message as malformed.
    package mutating func invalidate() { isValid = false }

    package mutating func integer<T: FixedWidthInteger>(_ type: T.Type = T.self) -> T {
        let size = MemoryLayout<T>.size
        guard isValid, bytes.count - position >= size else {
            isValid = false
            return 0
        }
        defer { position += size }
        return bytes.withUnsafeBytes { T(littleEndian: $0.loadUnaligned(fromByteOffset: position, as: T.self)) }
    }

    package mutating func int() -> Int { Int(truncatingIfNeeded: integer(Int64.self)) }

    package mutating func bool() -> Bool {
        let value = integer(UInt8.self)
        if value > 1 { isValid = false }
        return value == 1
    }

    /// Reads a rectangle of numbers that can be added; nil for one without a size.
    package mutating func rect() -> PixelRect? {
        let numbers = (0..<4).map { _ in Int(integer(Int32.self)) }
        guard numbers.allSatisfy({ $0 >= 0 }) else {
            isValid = false
            return nil
        }
        let rect = PixelRect(x: numbers[0], y: numbers[1], width: numbers[2], height: numbers[3])
        return rect.size.isEmpty ? nil : rect
    }

    package mutating func double() -> Double { Double(bitPattern: integer(UInt64.self)) }

    /// Reads a text; bytes that are not UTF-8 become replacement characters.
    package mutating func text() -> String {
        let length = Int(integer(UInt16.self))
        guard isValid, bytes.count - position >= length else {
            isValid = false
            return ""
        }
        defer { position += length }
        return String(decoding: bytes[position..<(position + length)], as: UTF8.self)
    }

    package mutating func byteArray() -> [UInt8] {
        let length = Int(integer(UInt32.self))
        guard isValid, bytes.count - position >= length else {
            isValid = false
            return []
        }
        defer { position += length }
        return Array(bytes[position..<(position + length)])
    }

    /// Reads a case of an enumeration by its raw value.
    package mutating func enumeration<T: RawRepresentable>(_ type: T.Type, or fallback: T) -> T
    where T.RawValue == UInt8 {
        if let value = T(rawValue: integer(UInt8.self)) { return value }
        isValid = false
        return fallback
    }

    /// Reads a case that ``WireWriter/write(case:)`` wrote.
    package mutating func enumeration<T: CaseIterable>(casesOf type: T.Type, or fallback: T) -> T {
        let position = Int(integer(UInt8.self))
        if let value = T.allCases.dropFirst(position).first { return value }
        isValid = false
        return fallback
    }
}
