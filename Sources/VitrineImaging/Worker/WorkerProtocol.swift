/// The protocol of clients and helper processes: one request at a time, packets over a socket pair, and pixels in
/// memory that both have mapped.
///
/// - Descriptor 3 of the helper is the socket (`SOCK_SEQPACKET`), descriptor 4 the shared memory.
/// - The helper sends ``magic`` and ``version`` when it is ready. Each request is one packet, with the descriptor of an
///   input that is not small. Each reply is one packet.
/// - The first page of the shared memory is the header. Its first word is the number of the last request that the
///   helper took. The payload follows. A request puts the ICC profile and a small input (decode) or pixels (encode) at
///   the payload's start. A reply puts planes, a profile or a file's bytes anywhere in the payload.
///
/// The client limits the helper's memory and processor time before each request. A helper cannot change its limits.
///
/// The size of the memory is fixed and sealed when it is created. Its pages exist after the first write.
package enum WorkerProtocol {
    /// `VWKR`.
    package static let magic: UInt32 = 0x524B_5756
    package static let version: UInt16 = 12
    /// The most bytes of a packet.
    package static let maximumPacket = 16 << 10
    /// The size in bytes of descriptions that travel in a packet; longer ones are left in the shared memory.
    package static let maximumDescription = 12 << 10
    /// Bytes before the payload.
    package static let headerSize = 4_096
    /// The most bytes of the shared memory; ``HelperMemory/share(for:)`` computes the size.
    package static let memorySize = 1 << 30
    /// Payload bytes whose pages are kept from one request to the next.
    package static let keptPayload = 16 << 20
    /// The argument that turns a program into a worker.
    package static let argument = "--vitrine-worker"

    /// The work of a request.
    package enum Operation: UInt8, Sendable {
        case ping = 0
        case decode = 1
        case encode = 2
        /// Describe a document: its pages, its duration.
        case describe = 3
        /// Draw a page or a frame of a document.
        case render = 4
    }
}

/// A request to a worker.
package protocol WorkerMessage: Sendable {
    /// The number its reply must have.
    var id: UInt64 { get }
    /// The limits, with the deadline and the helper's memory.
    var limits: ImageLimits { get }
    /// The packet.
    func encoded() -> [UInt8]
}

extension WorkerMessage {
    /// Reads the common start of all packets; nil for packets of other versions.
    static func operation(of packet: [UInt8]) -> WorkerProtocol.Operation? {
        var wire = WireReader(packet)
        guard wire.packetNumber() != nil else { return nil }
        return WorkerProtocol.Operation(rawValue: wire.integer())
    }
}

/// The exit status of a worker.
package enum WorkerExit: Int32, Sendable {
    /// The client has closed the socket, or no request came for a while.
    case idle = 0
    /// The program was not started by a pool.
    case misused = 64
    /// Shared memory could not be mapped.
    case noMemory = 71
    /// The sandbox could not be entered.
    case notSandboxed = 77
}

/// Writes the fields of a message between client and worker: little-endian, no padding, lengths first.
package struct WireWriter {
    package private(set) var bytes: [UInt8] = []

    package init() {
        bytes.reserveCapacity(512)
    }

    /// Writes the common start of all packets with the request's number.
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

    /// Reads the request's number from the common start of all packets; nil for packets of other versions.
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
