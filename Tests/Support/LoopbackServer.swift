#if os(Linux)
import Foundation
import Glibc
internal import VitrineCore

/// A server on 127.0.0.1 that says exactly what a test tells it to, byte for byte, however wrong.
///
/// ```swift
/// let server = try LoopbackServer { request in
///     [.text("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort"), .close]
/// }
/// let response = try await loader.load(HTTPRequest(url: server.url("/a.jpg")))
/// ```
///
/// Each connection is served by a thread of its own. A connection stays open after a reply, until the client closes
/// it, a step does, or the server goes: ``stop()``, or the last reference.
package final class LoopbackServer: Sendable {
    /// What a client asked.
    package struct Request: Sendable {
        package let method: String
        package let target: String
        /// The lines of the header, without the first.
        package let lines: [String]
        package let body: [UInt8]
        /// Which connection it came by, 0 for the first.
        package let connection: Int

        package init(method: String, target: String, lines: [String], body: [UInt8], connection: Int) {
            self.method = method
            self.target = target
            self.lines = lines
            self.body = body
            self.connection = connection
        }

        /// The value of a field; nil without it.
        package func header(_ name: String) -> String? {
            let prefix = name.lowercased() + ":"
            return lines.first { $0.lowercased().hasPrefix(prefix) }?.dropFirst(prefix.count)
                .trimmingCharacters(in: .whitespaces)
        }
    }

    /// A part of a reply.
    package enum Step: Sendable {
        case bytes([UInt8])
        case text(String)
        /// The same again and again, until the client goes.
        case endless([UInt8])
        /// The same again and again like ``endless(_:)``, but a few times a second only.
        case trickle([UInt8])
        /// Waits until the test opens it.
        case wait(Barrier)
        /// Says nothing until the client goes.
        case hang
        /// Ends the connection in the usual way.
        case close
        /// Ends the connection as one that breaks: the client gets `ECONNRESET`.
        case reset
    }

    /// A door for threads.
    package final class Barrier: Sendable {
        private let promise = AsyncPromise<Bool>()
        package init() {}
        package func open() { promise.fulfill(true) }
        package func wait() { _ = promise.wait() }
    }

    private struct State {
        var sockets: [Int: Int32] = [:]
        var accepted = 0
        var requests: [Request] = []
        var isStopped = false
        var emptyWaiters: [CheckedContinuation<Void, Never>] = []
    }

    /// The port it listens on.
    package let port: Int
    private let state: Shared

    /// What the threads hold on to, so that they do not keep the server.
    private final class Shared: Sendable {
        let listener: Int32
        let handler: @Sendable (Request) -> [Step]
        let state = Locked(State())

        init(_ listener: Int32, _ handler: @escaping @Sendable (Request) -> [Step]) {
            self.listener = listener
            self.handler = handler
        }
    }

    /// Starts a server.
    ///
    /// - Parameters:
    ///   - port: Where; 0 for any free port.
    ///   - handler: Says how to reply. Called on the connection's thread.
    package init(port: Int = 0, _ handler: @escaping @Sendable (Request) -> [Step]) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var one: Int32 = 1
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
        var address = Self.address(port)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, size) == 0 && listen(listener, 256) == 0
                    && getsockname(listener, address, &size) == 0
            }
        }
        guard listener >= 0, status else {
            if listener >= 0 { Glibc.close(listener) }
            throw POSIXError(.EADDRINUSE)
        }
        self.port = Int(in_port_t(bigEndian: address.sin_port))
        state = Shared(listener, handler)
        let shared = state
        Thread.detachNewThread { Self.accept(shared) }
    }

    deinit { stop() }

    /// An address on the server.
    package func url(_ target: String) -> URL { URL(string: "http://127.0.0.1:\(port)\(target)") ?? URL(filePath: "/") }

    /// What has been asked so far, in order.
    package var requests: [Request] { state.state.withLock { $0.requests } }

    /// How many connections there have been.
    package var connectionCount: Int { state.state.withLock { $0.accepted } }

    /// Returns when no connection is open.
    package func waitUntilUnused() async {
        await withCheckedContinuation { continuation in
            let isEmpty = state.state.withLock { state in
                if !state.sockets.isEmpty { state.emptyWaiters.append(continuation) }
                return state.sockets.isEmpty
            }
            if isEmpty { continuation.resume() }
        }
    }

    /// Returns when everything that has come so far is among the requests, of clients that have gone. Blocks.
    ///
    /// Clients that were killed may have left connections that nobody has taken yet: those are taken in order, before
    /// one of this call's own.
    package func settle() throws {
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        defer { Glibc.close(socket) }
        var address = Self.address(port)
        let isConnected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                connect(socket, address, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard isConnected else { throw POSIXError(.ECONNREFUSED) }
        _ = Self.send(Array("\(Self.settling) / HTTP/1.1\r\n\r\n".utf8), socket)
        var byte: UInt8 = 0
        while recv(socket, &byte, 1, 0) > 0 {}
        try waitUntil("all connections have ended") { state.state.withLock { $0.sockets.isEmpty } }
    }

    /// The method of ``settle()``'s own request, which is none of the test's.
    private static let settling = "SETTLE"

    static func address(_ port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    /// Ends all connections and listens no more.
    package func stop() {
        state.state.withLock { state in
            guard !state.isStopped else { return }
            state.isStopped = true
            // Wakes the threads that wait in accept() and recv(), which close what is theirs.
            shutdown(self.state.listener, Int32(SHUT_RDWR))
            for socket in state.sockets.values { shutdown(socket, Int32(SHUT_RDWR)) }
        }
    }

    // MARK: The threads

    private static func accept(_ shared: Shared) {
        while true {
            let socket = Glibc.accept(shared.listener, nil, nil)
            if socket < 0 {
                if errno == EINTR || errno == ECONNABORTED { continue }
                break
            }
            // A child that another test starts would keep the connection open.
            _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
            let connection: Int? = shared.state.withLock { state in
                guard !state.isStopped else { return nil }
                state.accepted += 1
                state.sockets[state.accepted - 1] = socket
                return state.accepted - 1
            }
            guard let connection else {
                Glibc.close(socket)
                break
            }
            Thread.detachNewThread {
                serve(shared, socket, connection)
                end(shared, socket, connection)
            }
        }
        Glibc.close(shared.listener)
    }

    private static func end(_ shared: Shared, _ socket: Int32, _ connection: Int) {
        let waiters = shared.state.withLock { state in
            state.sockets[connection] = nil
            Glibc.close(socket)
            guard state.sockets.isEmpty else { return [CheckedContinuation<Void, Never>]() }
            defer { state.emptyWaiters = [] }
            return state.emptyWaiters
        }
        for waiter in waiters { waiter.resume() }
    }

    private static func serve(_ shared: Shared, _ socket: Int32, _ connection: Int) {
        var buffer: [UInt8] = []
        while let request = read(socket, &buffer, connection), request.method != settling {
            shared.state.withLock { $0.requests.append(request) }
            for step in shared.handler(request) where !perform(step, socket) { return }
        }
    }

    /// - Returns: Whether the connection goes on.
    private static func perform(_ step: Step, _ socket: Int32) -> Bool {
        switch step {
        case .bytes(let bytes): return send(bytes, socket)
        case .text(let text): return send(Array(text.utf8), socket)
        case .endless(let bytes):
            while send(bytes, socket) {}
            return false
        case .trickle(let bytes):
            while send(bytes, socket) { usleep(10_000) }
            return false
        case .wait(let barrier):
            barrier.wait()
            return true
        case .hang:
            var byte: UInt8 = 0
            while recv(socket, &byte, 1, 0) > 0 {}
            return false
        case .close: return false
        case .reset:
            var linger = linger(l_onoff: 1, l_linger: 0)
            setsockopt(socket, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
            return false
        }
    }

    private static func send(_ bytes: [UInt8], _ socket: Int32) -> Bool {
        var offset = 0
        while offset < bytes.count {
            let count = bytes.withUnsafeBytes { buffer in
                Glibc.send(socket, buffer.baseAddress! + offset, bytes.count - offset, Int32(MSG_NOSIGNAL))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            offset += count
        }
        return true
    }

    private static func read(_ socket: Int32, _ buffer: inout [UInt8], _ connection: Int) -> Request? {
        let mark = Array("\r\n\r\n".utf8)
        while true {
            if let end = buffer.firstRange(of: mark) {
                let lines = String(decoding: buffer[..<end.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
                let words = lines[0].split(separator: " ")
                guard words.count >= 2 else { return nil }
                let fields = Array(lines.dropFirst())
                let length = fields.first { $0.lowercased().hasPrefix("content-length:") }
                    .flatMap { Int($0.dropFirst(15).trimmingCharacters(in: .whitespaces)) } ?? 0
                while buffer.count < end.upperBound + length { guard receive(socket, &buffer) else { return nil } }
                let body = Array(buffer[end.upperBound..<(end.upperBound + length)])
                buffer.removeFirst(end.upperBound + length)
                return Request(
                    method: String(words[0]), target: String(words[1]), lines: fields, body: body,
                    connection: connection)
            }
            guard receive(socket, &buffer) else { return nil }
        }
    }

    private static func receive(_ socket: Int32, _ buffer: inout [UInt8]) -> Bool {
        var chunk = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let count = recv(socket, &chunk, chunk.count, 0)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            buffer += chunk[..<count]
            return true
        }
    }
}

extension LoopbackServer.Step {
    /// A whole reply with a length.
    package static func reply(_ status: Int = 200, _ fields: [String] = [], body: [UInt8] = []) -> LoopbackServer.Step {
        let lines = ["HTTP/1.1 \(status) Status", "Content-Length: \(body.count)"] + fields
        return .bytes(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + body)
    }
}
#endif
