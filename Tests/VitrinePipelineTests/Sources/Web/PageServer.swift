#if os(Linux)
#if canImport(Glibc)
import Glibc
#else
import Musl
#endif
import TestSupport
import VitrineCore

/// A server on the loopback interface that gives one page, whatever it is asked for.
final class PageServer: Sendable {
    let url: String
    /// What was asked for.
    let paths = Recorder<String>()
    private let socket: Int32
    private let isStopped = Locked(false)
    private let executor = BlockingExecutor(threads: 1, name: "page-server")

    struct Failure: Error {
        var code: Int32
    }

    /// - Parameter html: The page; nil to leave every question unanswered.
    init(html: String?) throws {
        let listener = openSocket()
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, length) == 0 && listen(listener, 16) == 0
                    && getsockname(listener, address, &length) == 0
            }
        }
        guard listener >= 0, isListening else { throw Failure(code: errno) }
        socket = listener
        url = "http://127.0.0.1:\(UInt16(bigEndian: address.sin_port))/"
        executor.submit { [paths] in Self.serve(listener, html, paths) }
    }

    deinit { stop() }

    /// Refuses connections from now on.
    func stop() {
        guard isStopped.withLock({ stopped in defer { stopped = true }; return !stopped }) else { return }
        // Ends the waiting call, whose thread closes it.
        shutdown(socket, Int32(SHUT_RDWR))
        executor.shutdown()
    }

    private static func serve(_ listener: Int32, _ html: String?, _ paths: Recorder<String>) {
        var open: [Int32] = []
        while true {
            let connection = accept(listener, nil, nil)
            guard connection >= 0 else { break }
            open.append(connection)
            // Browsers open connections that they do not use.
            var patience = timeval(tv_sec: 1, tv_usec: 0)
            setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
            var request = [UInt8](repeating: 0, count: 4_096)
            let count = read(connection, &request, request.count)
            let words = String(decoding: request.prefix(max(0, count)), as: UTF8.self).split(separator: " ")
            guard words.count > 1 else { continue }
            paths.add(String(words[1]))
            guard let html else { continue }
            let answer = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: \(html.utf8.count)\r\n"
                + "Connection: close\r\n\r\n" + html
            _ = answer.withCString { send(connection, $0, strlen($0), Int32(MSG_NOSIGNAL)) }
            shutdown(connection, Int32(SHUT_RDWR))
        }
        for connection in open { close(connection) }
        close(listener)
    }
}

// The property hides the C function.
private func openSocket() -> Int32 {
    #if canImport(Glibc)
    socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #else
    socket(AF_INET, SOCK_STREAM, 0)
    #endif
}
#endif
