import VitrineNetwork

/// Why a message cannot be read.
enum MessageError: Error {
    case malformed
    case tooLarge
    /// The connection ended before the message did.
    case incomplete
}

/// A message of HTTP/1.1 as it goes over a connection (RFC 9112). Texts have one scalar for each byte, so that all
/// bytes pass as they came.
struct Message {
    /// The request line or status line.
    var start: String
    var headers: HTTPHeaders
    var body: [UInt8] = []

    static let longestLine = 65536
    static let longestHeader = 1 << 20
    static let longestBody = 1 << 28

    /// Reads start line and fields; nil when the connection ends before the first byte.
    static func head(from connection: Connection) throws -> Message? {
        var line = try connection.line(limit: longestLine)
        // RFC 9112 section 2.2: empty lines before a message do not count.
        while let empty = line, empty.isEmpty { line = try connection.line(limit: longestLine) }
        guard let start = line else { return nil }
        var headers: [(name: String, value: String)] = []
        var size = 0
        while true {
            guard let line = try connection.line(limit: longestLine) else { throw MessageError.incomplete }
            if line.isEmpty { break }
            size += line.count + 64
            guard size <= longestHeader else { throw MessageError.tooLarge }
            guard let colon = line.firstIndex(of: 0x3A), colon > 0,
                !line[..<colon].contains(where: { $0 <= 0x20 || $0 >= 0x7F })
            else { throw MessageError.malformed }
            let value = line[(colon + 1)...]
            let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
            let first = value.firstIndex { !isSpace($0) } ?? value.endIndex
            let last = value.lastIndex { !isSpace($0) }.map { $0 + 1 } ?? first
            headers.append((name: text(line[..<colon]), value: text(value[first..<last])))
        }
        return Message(start: text(start[...]), headers: HTTPHeaders(headers))
    }

    /// Reads the body that follows the head (RFC 9112 section 6.3).
    ///
    /// - Parameter endsWithConnection: Whether a body without any length goes on to the end, as those of responses do.
    mutating func readBody(from connection: Connection, endsWithConnection: Bool) throws {
        let codings = headers.all("Transfer-Encoding").joined(separator: ",")
        if !codings.isEmpty {
            if codings.split(separator: ",").last?.lowercased().contains("chunked") == true {
                body = try Message.chunks(connection)
            } else {
                // A coding nobody knows: the body passes as it is.
                guard endsWithConnection else { throw MessageError.malformed }
                body = try connection.rest(limit: Message.longestBody)
            }
        } else if let length = headers["Content-Length"] {
            guard headers.all("Content-Length").allSatisfy({ $0 == length }), length.utf8.allSatisfy({ $0.isDigit }),
                let count = Int(length)
            else { throw MessageError.malformed }
            guard count <= Message.longestBody else { throw MessageError.tooLarge }
            body = try connection.bytes(count)
        } else if endsWithConnection {
            body = try connection.rest(limit: Message.longestBody)
        }
    }

    private static func chunks(_ connection: Connection) throws -> [UInt8] {
        var body: [UInt8] = []
        while true {
            guard let line = try connection.line(limit: longestLine) else { throw MessageError.incomplete }
            let digits = text(line[...]).prefix { $0.isHexDigit }
            guard let count = Int(digits, radix: 16) else { throw MessageError.malformed }
            guard count <= longestBody - body.count else { throw MessageError.tooLarge }
            if count == 0 { break }
            body += try connection.bytes(count)
            guard try connection.line(limit: 2)?.isEmpty == true else { throw MessageError.incomplete }
        }
        while let line = try connection.line(limit: longestLine) { if line.isEmpty { return body } }
        throw MessageError.incomplete
    }

    /// The bytes of start line and fields.
    var head: [UInt8] {
        var bytes = Message.bytes(start) + [0x0D, 0x0A]
        for field in headers {
            bytes += Message.bytes(field.name) + [0x3A, 0x20] + Message.bytes(field.value) + [0x0D, 0x0A]
        }
        return bytes + [0x0D, 0x0A]
    }

    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
        var text = ""
        for byte in bytes { text.unicodeScalars.append(Unicode.Scalar(byte)) }
        return text
    }

    private static func bytes(_ text: String) -> [UInt8] {
        text.unicodeScalars.map { UInt8(exactly: $0.value) ?? 0x3F }
    }
}

extension UInt8 {
    fileprivate var isDigit: Bool { (0x30...0x39).contains(self) }
}
