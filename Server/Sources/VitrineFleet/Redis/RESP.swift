package import NIOCore

/// A reply of the Redis protocol, version 3.
package enum RESPValue: Sendable, Equatable {
    case null
    case simple(String)
    case error(String)
    case integer(Int64)
    case boolean(Bool)
    case bulk(ByteBuffer)
    case array([RESPValue])
    /// Keys and values in turn.
    case map([RESPValue])
    case push([RESPValue])

    /// The text of a string; nil for other values, and for bytes that are not UTF-8.
    package var text: String? {
        switch self {
        case .simple(let text): text
        case .bulk(let bytes): String(validating: bytes.readableBytesView, as: UTF8.self)
        default: nil
        }
    }

    /// The bytes of a string.
    package var bytes: ByteBuffer? {
        switch self {
        case .simple(let text): ByteBuffer(string: text)
        case .bulk(let bytes): bytes
        default: nil
        }
    }

    /// An integer, also if it was sent as a string.
    package var integer: Int64? {
        if case .integer(let integer) = self { return integer }
        return text.flatMap { Int64($0) }
    }

    /// The elements of an array, a set or a push.
    package var items: [RESPValue]? {
        switch self {
        case .array(let items), .push(let items): items
        default: nil
        }
    }

    /// The value of a field of a map, or of an array of fields and values.
    package subscript(field: String) -> RESPValue? {
        let fields: [RESPValue]
        switch self {
        case .map(let items), .array(let items): fields = items
        default: return nil
        }
        for index in stride(from: 0, to: fields.count - 1, by: 2) where fields[index].text == field {
            return fields[index + 1]
        }
        return nil
    }
}

/// Reads replies from a stream of bytes, in pieces of any size.
///
/// Each byte is looked at once: the parser keeps the beginning of an incomplete reply. A string is copied once, into
/// memory of its own size. A value that is kept then keeps no other bytes, and the memory of a read is used again.
package struct RESPParser {
    /// Limits on a single reply. More is an error of the protocol.
    package struct Limits: Sendable {
        /// The bytes of a line.
        package var line = 65_536
        /// The bytes of a reply.
        package var size: Int
        /// The elements of a reply, at all depths together.
        package var elements = 262_144
        /// The depth of nested arrays.
        package var depth = 8

        /// Creates the defaults with a limit on the bytes of a reply.
        package init(size: Int) { self.size = size }
    }

    private struct Frame {
        var kind: UInt8
        var remaining: Int
        var items: [RESPValue] = []
    }

    private let limits: Limits
    private var frames: [Frame] = []
    /// The string whose length is known, and those of its bytes that are here.
    private var body: (kind: UInt8, length: Int, bytes: ByteBuffer)?
    /// The beginning of a line whose end is not here yet.
    private var partial = ByteBuffer()
    private var size = 0
    private var elements = 0

    /// Creates a parser at the beginning of a reply.
    package init(limits: Limits) { self.limits = limits }

    /// Returns the next complete reply, or nil if more bytes are needed. All bytes are consumed before it returns nil.
    ///
    /// - Throws: ``RedisError/protocolViolation(_:)``. The stream cannot be read any further.
    package mutating func next(_ buffer: inout ByteBuffer) throws(RedisError) -> RESPValue? {
        while let step = try step(&buffer) {
            guard case .value(let value) = step, let complete = added(value) else { continue }
            (size, elements) = (0, 0)
            return complete
        }
        return nil
    }

    private enum Step {
        case value(RESPValue)
        /// The head of a string or an array.
        case head
    }

    private mutating func step(_ buffer: inout ByteBuffer) throws(RedisError) -> Step? {
        if body != nil { return try string(&buffer).map { .value($0) } }
        guard let line = try line(&buffer) else { return nil }
        guard let kind = line.readableBytesView.first else { throw .protocolViolation("an empty line") }
        let rest = line.readableBytesView.dropFirst()
        switch kind {
        case UInt8(ascii: "+"), UInt8(ascii: "("), UInt8(ascii: ","):
            return .value(.simple(String(decoding: rest, as: UTF8.self)))
        case UInt8(ascii: "-"):
            return .value(.error(String(decoding: rest, as: UTF8.self)))
        case UInt8(ascii: ":"):
            return .value(.integer(try Self.integer(rest)))
        case UInt8(ascii: "_"):
            guard rest.isEmpty else { throw .protocolViolation("a null with content") }
            return .value(.null)
        case UInt8(ascii: "#"):
            guard rest.count == 1, let letter = rest.first, letter == UInt8(ascii: "t") || letter == UInt8(ascii: "f")
            else { throw .protocolViolation("a boolean that is neither t nor f") }
            return .value(.boolean(letter == UInt8(ascii: "t")))
        case UInt8(ascii: "$"), UInt8(ascii: "!"), UInt8(ascii: "="):
            let length = try Self.integer(rest)
            if length == -1, kind == UInt8(ascii: "$") { return .value(.null) }
            guard length >= 0, length <= limits.size - size else {
                throw .protocolViolation("a string of \(length) bytes")
            }
            size += Int(length)
            body = (kind, Int(length), ByteBufferAllocator().buffer(capacity: Int(length)))
            return .head
        case UInt8(ascii: "*"), UInt8(ascii: "~"), UInt8(ascii: ">"), UInt8(ascii: "%"), UInt8(ascii: "|"):
            return try collection(kind, count: try Self.integer(rest))
        default:
            throw .protocolViolation("an unknown type with the code \(kind)")
        }
    }

    /// Reads the bytes of a string, and the end of line after them.
    private mutating func string(_ buffer: inout ByteBuffer) throws(RedisError) -> RESPValue? {
        guard let (kind, length, held) = body.take() else { return nil }
        var bytes = consume held
        if var part = buffer.readSlice(length: min(length - bytes.readableBytes, buffer.readableBytes)) {
            bytes.writeBuffer(&part)
        }
        guard bytes.readableBytes == length, let end = try line(&buffer) else {
            body = (kind, length, bytes)
            return nil
        }
        guard end.readableBytes == 0 else { throw .protocolViolation("a string does not end where it should") }
        switch kind {
        case UInt8(ascii: "!"): return .error(String(buffer: bytes))
        case UInt8(ascii: "="):
            // Three letters of the format and a colon.
            guard let text = bytes.getSlice(at: bytes.readerIndex + 4, length: bytes.readableBytes - 4),
                bytes.getInteger(at: bytes.readerIndex + 3, as: UInt8.self) == UInt8(ascii: ":")
            else { throw .protocolViolation("a verbatim string without a format") }
            return .bulk(text)
        default: return .bulk(bytes)
        }
    }

    private mutating func collection(_ kind: UInt8, count: Int64) throws(RedisError) -> Step {
        if count == -1, kind == UInt8(ascii: "*") { return .value(.null) }
        let isMap = kind == UInt8(ascii: "%") || kind == UInt8(ascii: "|")
        guard count >= 0, count <= Int64(limits.elements - elements) / (isMap ? 2 : 1) else {
            throw .protocolViolation("a collection of \(count) elements")
        }
        guard frames.count < limits.depth else { throw .protocolViolation("collections nested too deeply") }
        let items = Int(count) * (isMap ? 2 : 1)
        elements += items
        var frame = Frame(kind: kind, remaining: items)
        if items == 0 { return kind == UInt8(ascii: "|") ? .head : .value(Self.value(of: frame)) }
        frame.items.reserveCapacity(min(items, 1_024))
        frames.append(frame)
        return .head
    }

    /// Adds a value to the collection that is being read. Returns a reply that is complete with it.
    private mutating func added(_ value: RESPValue) -> RESPValue? {
        var value = value
        while var frame = frames.popLast() {
            frame.items.append(value)
            frame.remaining -= 1
            guard frame.remaining == 0 else {
                frames.append(frame)
                return nil
            }
            // Attributes describe the value that follows. None is needed.
            if frame.kind == UInt8(ascii: "|") { return nil }
            value = Self.value(of: frame)
        }
        return value
    }

    private static func value(of frame: Frame) -> RESPValue {
        switch frame.kind {
        case UInt8(ascii: "%"): .map(frame.items)
        case UInt8(ascii: ">"): .push(frame.items)
        default: .array(frame.items)
        }
    }

    private mutating func line(_ buffer: inout ByteBuffer) throws(RedisError) -> ByteBuffer? {
        let end = buffer.readableBytesView.firstIndex(of: 0x0A)
        let length = end.map { $0 - buffer.readerIndex + 1 } ?? buffer.readableBytes
        guard partial.readableBytes + length <= limits.line + 2 else {
            throw .protocolViolation("a line without an end")
        }
        guard var line = buffer.readSlice(length: length) else { return nil }
        if end == nil || partial.readableBytes > 0 {
            partial.writeBuffer(&line)
            guard end != nil else { return nil }
            line = partial
            partial = ByteBuffer()
        }
        let view = line.readableBytesView
        guard view.count >= 2, view.firstIndex(of: 0x0D) == view.endIndex - 2 else {
            throw .protocolViolation("a malformed line")
        }
        size += view.count - 2
        guard size <= limits.size else { throw .protocolViolation("a reply that is too large") }
        return line.getSlice(at: line.readerIndex, length: view.count - 2)
    }

    private static func integer(_ digits: ByteBufferView.SubSequence) throws(RedisError) -> Int64 {
        guard (1...20).contains(digits.count), digits.first != UInt8(ascii: "+"),
            let value = Int64(String(decoding: digits, as: UTF8.self))
        else { throw .protocolViolation("a malformed number") }
        return value
    }
}

/// A command of the Redis protocol.
package struct RESPCommand: Sendable {
    /// An argument of a command.
    package enum Argument: Sendable, ExpressibleByStringInterpolation {
        case text(String)
        case bytes(ByteBuffer)

        package init(stringLiteral value: String) { self = .text(value) }
    }

    package var arguments: [Argument]

    /// Creates a command from its name and its arguments.
    package init(_ arguments: Argument...) { self.arguments = arguments }

    /// Creates a command from its name and its arguments.
    package init(_ arguments: [Argument]) { self.arguments = arguments }

    /// The bytes as they are sent. Long arguments are buffers of their own, so that they are not copied.
    package func encoded() -> [ByteBuffer] {
        var buffers: [ByteBuffer] = []
        var head = ByteBufferAllocator().buffer(capacity: 256)
        head.writeString("*\(arguments.count)\r\n")
        for argument in arguments {
            switch argument {
            case .text(let text):
                head.writeString("$\(text.utf8.count)\r\n")
                head.writeString(text)
            case .bytes(let bytes):
                head.writeString("$\(bytes.readableBytes)\r\n")
                if bytes.readableBytes > 4_096 {
                    buffers.append(head)
                    buffers.append(bytes)
                    head = ByteBufferAllocator().buffer(capacity: 256)
                } else {
                    head.writeImmutableBuffer(bytes)
                }
            }
            head.writeStaticString("\r\n")
        }
        buffers.append(head)
        return buffers
    }
}
