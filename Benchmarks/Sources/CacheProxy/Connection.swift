import Foundation

/// A connection, read through a buffer. Blocks its thread.
final class Connection {
    private let socket: Int32
    private var buffer: [UInt8] = []
    private var position = 0

    /// Takes the socket over.
    init(_ socket: Int32) {
        self.socket = socket
        var one: Int32 = 1
        setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
    }

    deinit { close(socket) }

    /// Connects to a server by its name.
    convenience init(host: String, port: UInt16) throws(SocketError) {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, String(port), &hints, &found) == 0 else { throw SocketError("find \(host)") }
        defer { freeaddrinfo(found) }
        var next = found
        while let address = next {
            next = address.pointee.ai_next
            let socket = Glibc.socket(address.pointee.ai_family, address.pointee.ai_socktype, 0)
            guard socket >= 0 else { continue }
            if connect(socket, address.pointee.ai_addr, address.pointee.ai_addrlen) == 0 {
                self.init(socket)
                return
            }
            close(socket)
        }
        throw SocketError("connect to \(host):\(port)")
    }

    /// Ends a connection that other threads may read or write.
    func end() { shutdown(socket, Int32(SHUT_RDWR)) }

    /// Reads more bytes; false at the end.
    private func fill() throws(SocketError) -> Bool {
        if position == buffer.count {
            buffer.removeAll(keepingCapacity: true)
            position = 0
        }
        let size = 65536
        let start = buffer.count
        buffer.append(contentsOf: repeatElement(0, count: size))
        let count = buffer.withUnsafeMutableBytes { bytes in
            while true {
                let count = recv(socket, bytes.baseAddress! + start, size, 0)
                if count >= 0 || errno != EINTR { return count }
            }
        }
        buffer.removeLast(size - max(0, count))
        guard count >= 0 else { throw SocketError("receive") }
        return count > 0
    }

    /// A line without its end; nil at the end of the connection.
    ///
    /// - Throws: ``MessageError/tooLarge`` for a line of more than `limit` bytes.
    func line(limit: Int) throws -> [UInt8]? {
        var scanned = position
        while true {
            if let end = buffer[scanned...].firstIndex(of: 0x0A) {
                guard end - position <= limit else { throw MessageError.tooLarge }
                var line = buffer[position..<end]
                position = end + 1
                if line.last == 0x0D { line.removeLast() }
                return Array(line)
            }
            guard buffer.count - position <= limit else { throw MessageError.tooLarge }
            let read = buffer.count - position
            guard try fill() else { return nil }
            scanned = position + read
        }
    }

    /// So many bytes.
    ///
    /// - Throws: ``MessageError/incomplete`` when the connection ends before.
    func bytes(_ count: Int) throws -> [UInt8] {
        while buffer.count - position < count { guard try fill() else { throw MessageError.incomplete } }
        defer { position += count }
        return Array(buffer[position..<(position + count)])
    }

    /// All that comes until the connection ends.
    ///
    /// - Throws: ``MessageError/tooLarge`` for more than `limit` bytes.
    func rest(limit: Int) throws -> [UInt8] {
        var result: [UInt8] = []
        repeat {
            result += buffer[position...]
            position = buffer.count
            guard result.count <= limit else { throw MessageError.tooLarge }
        } while try fill()
        return result
    }

    /// Sends all of the bytes.
    func send(_ bytes: [UInt8]) throws(SocketError) {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(socket, $0.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL))
            }
            if count < 0 {
                guard errno == EINTR else { throw SocketError("send") }
            } else {
                sent += count
            }
        }
    }
}
