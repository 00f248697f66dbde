import Foundation
import Glibc
import Synchronization

/// A small HTTP server on 127.0.0.1 for the examples. Each connection carries one request and has a thread of its own.
public final class ExampleServer: Sendable {
    public struct Request: Sendable {
        public let path: String
        /// The first byte that the client asks for, from the field `Range`; nil for the whole.
        public let start: Int?
    }

    public struct Reply: Sendable {
        var status = 200
        var type = "application/octet-stream"
        var body: [UInt8] = []
        /// The server sends this many bytes of the body and then nothing more; nil to send all of it.
        var stall: Int?

        public static func status(_ status: Int) -> Reply { Reply(status: status) }
        public static func body(_ body: [UInt8], type: String, stallingAfter stall: Int? = nil) -> Reply {
            Reply(type: type, body: body, stall: stall)
        }
    }

    private let listener: Int32
    private let port: UInt16
    private let received = Mutex<[Request]>([])
    private let answer: @Sendable (Request) -> Reply

    /// Starts a server on a free port.
    public init(_ answer: @escaping @Sendable (Request) -> Reply) throws {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        self.answer = answer
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listens = withUnsafeMutableBytes(of: &address) { [listener] bytes in
            guard let pointer = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self) else { return false }
            return bind(listener, pointer, size) == 0 && listen(listener, 64) == 0
                && getsockname(listener, pointer, &size) == 0
        }
        guard listens else { throw POSIXError(POSIXError.Code(rawValue: errno) ?? .EIO) }
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread { [self] in accept() }
    }

    public func url(_ path: String) -> URL { URL(string: "http://127.0.0.1:\(port)\(path)") ?? URL(filePath: path) }

    /// The requests so far, in order.
    public var requests: [Request] { received.withLock { $0 } }

    /// Refuses further connections.
    public func stop() { shutdown(listener, Int32(SHUT_RDWR)) }

    private func accept() {
        while true {
            let connection = Glibc.accept(listener, nil, nil)
            guard connection >= 0 else { break }
            // The helpers that the library starts do not keep the connection open.
            _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
            Thread.detachNewThread { [self] in
                serve(connection)
                close(connection)
            }
        }
        close(listener)
    }

    private func serve(_ connection: Int32) {
        var head: [UInt8] = [], buffer = [UInt8](repeating: 0, count: 4_096)
        while head.suffix(4) != [13, 10, 13, 10] {
            let count = recv(connection, &buffer, buffer.count, 0)
            guard count > 0 else { return }
            head += buffer[..<count]
        }
        let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n")
        let range = lines.first { $0.lowercased().hasPrefix("range: bytes=") }
        let request = Request(
            path: lines.first?.split(separator: " ").dropFirst().first.map(String.init) ?? "/",
            start: range.flatMap { Int($0.dropFirst(13).prefix { $0 != "-" }) })
        received.withLock { $0.append(request) }

        let reply = answer(request)
        let start = min(request.start ?? 0, reply.body.count), body = reply.body[start...]
        var fields = ["HTTP/1.1 \(request.start != nil && reply.status == 200 ? 206 : reply.status) Status"]
        if request.start != nil {
            fields.append("Content-Range: bytes \(start)-\(reply.body.count - 1)/\(reply.body.count)")
        }
        fields += ["Content-Length: \(body.count)", "Content-Type: \(reply.type)", "ETag: \"v1\"", "Connection: close"]
        fields += ["Cache-Control: max-age=600", "\r\n"]
        send(Array(fields.joined(separator: "\r\n").utf8) + body.prefix(reply.stall ?? .max), to: connection)
        // The client closes a connection that stalls.
        if reply.stall != nil { while recv(connection, &buffer, buffer.count, 0) > 0 {} }
    }

    private func send(_ bytes: [UInt8], to connection: Int32) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let sent = rest.withUnsafeBytes { Glibc.send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard sent > 0 else { return }
            rest = rest.dropFirst(sent)
        }
    }
}
