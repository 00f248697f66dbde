/// Reads what ``WireWriter`` wrote. The other side may have been taken over: nothing read here is trusted, and
/// reading past the end gives zeros and clears ``isValid`` instead of trapping.
package struct WireReader {
    private let bytes: [UInt8]
    private var position = 0
    /// Whether every read so far found what it wanted.
    package private(set) var isValid = true

    package init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Whether everything was read, and nothing is left over.
    package var isComplete: Bool { isValid && position == bytes.count }

    /// Marks the message as broken.
    package mutating func invalidate() { isValid = false }

    /// The request's number from the start that all packets share; nil when it is not one of this version.
    mutating func packetNumber() -> UInt64? {
        guard integer(UInt32.self) == WorkerProtocol.magic, integer(UInt16.self) == WorkerProtocol.version else {
            return nil
        }
        return integer()
    }

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

    package mutating func double() -> Double { Double(bitPattern: integer(UInt64.self)) }

    /// A text; bytes that are not UTF-8 become replacement characters.
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

    /// One of an enumeration's cases by its raw value.
    package mutating func enumeration<T: RawRepresentable>(_ type: T.Type, or fallback: T) -> T
    where T.RawValue == UInt8 {
        if let value = T(rawValue: integer(UInt8.self)) { return value }
        isValid = false
        return fallback
    }
}
