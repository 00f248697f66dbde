import Foundation
import Glibc
import Synchronization

/// A slow HTTP server on 127.0.0.1, which serves bytes by name.
///
/// It supports range requests, so that downloads can resume (RFC 9110, section 14).
package final class FileServer: Sendable {
    private let files: [String: [UInt8]]
    private let bytesPerSecond: Int
    private let listener: Int32
    private let port: Int
    private let sent = Mutex(0)
    private let outage = Mutex((isOut: false, refused: 0))

    /// Starts the server at a free port.
    ///
    /// - Parameters:
    ///   - files: The bytes by name.
    ///   - bytesPerSecond: The transfer rate of each connection.
    package init(_ files: [String: [UInt8]], bytesPerSecond: Int) throws {
        (self.files, self.bytesPerSecond) = (files, bytesPerSecond)
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = listener
        let isOpen = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, size) == 0 && listen(listener, 16) == 0 && getsockname(listener, $0, &size) == 0
            }
        }
        guard isOpen else { throw POSIXError(.EADDRINUSE) }
        port = Int(in_port_t(bigEndian: address.sin_port))
        Thread.detachNewThread { [self] in accept() }
    }

    /// Returns the URL of a file.
    package func address(_ name: String) -> String { "http://127.0.0.1:\(port)/\(name)" }

    /// The number of bytes of files sent so far.
    package var bytesSent: Int { sent.withLock { $0 } }

    /// Whether the server resets every connection, to simulate a missing network.
    package func setOutage(_ isOut: Bool) { outage.withLock { $0.isOut = isOut } }

    /// The number of connections reset.
    package var refused: Int { outage.withLock { $0.refused } }

    /// Stops accepting connections.
    package func stop() { shutdown(listener, Int32(SHUT_RDWR)) }

    private func accept() {
        while true {
            let socket = Glibc.accept(listener, nil, nil)
            if socket < 0, errno == EINTR { continue }
            guard socket >= 0 else { break }
            _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
            let isOut = outage.withLock { outage in
                if outage.isOut { outage.refused += 1 }
                return outage.isOut
            }
            guard !isOut else {
                // The client gets ECONNRESET.
                var linger = linger(l_onoff: 1, l_linger: 0)
                setsockopt(socket, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
                close(socket)
                continue
            }
            Thread.detachNewThread { [self] in
                serve(socket)
                close(socket)
            }
        }
        close(listener)
    }

    private func serve(_ socket: Int32) {
        var head: [UInt8] = []
        while !head.suffix(4).elementsEqual([13, 10, 13, 10]) {
            var byte: UInt8 = 0
            guard recv(socket, &byte, 1, 0) == 1 else { return }
            head.append(byte)
        }
        let lines = String(decoding: head, as: UTF8.self).components(separatedBy: "\r\n")
        let words = lines[0].split(separator: " ")
        guard words.count > 1, let bytes = files[String(words[1].dropFirst())] else {
            let answer = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            _ = send(Array(answer.utf8)[...], socket)
            return
        }
        let range = lines.first { $0.lowercased().hasPrefix("range: bytes=") }?.dropFirst(13) ?? ""
        let start = range.split(separator: "-").first.flatMap { Int($0) } ?? 0
        guard start < bytes.count else { return }
        var answer = start > 0 ? "HTTP/1.1 206 Partial Content\r\n" : "HTTP/1.1 200 OK\r\n"
        if start > 0 { answer += "Content-Range: bytes \(start)-\(bytes.count - 1)/\(bytes.count)\r\n" }
        answer += "Content-Length: \(bytes.count - start)\r\nContent-Type: image/jpeg\r\nAccept-Ranges: bytes\r\n"
        answer += "ETag: \"\(words[1])-\(bytes.count)\"\r\nConnection: close\r\n\r\n"
        guard send(Array(answer.utf8)[...], socket), words[0] != "HEAD" else { return }
        let step = max(1, bytesPerSecond / 20)
        for offset in stride(from: start, to: bytes.count, by: step) {
            let part = bytes[offset..<min(bytes.count, offset + step)]
            guard send(part, socket) else { return }
            sent.withLock { $0 += part.count }
            usleep(50_000)
        }
    }

    private func send(_ bytes: ArraySlice<UInt8>, _ socket: Int32) -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }
}
