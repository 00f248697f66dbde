import Foundation
import Hummingbird
import HummingbirdCore
import NIOCore
import Synchronization
import Testing

import VitrineServer

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Not Hummingbird's.
typealias ServerConfiguration = VitrineServer.ServerConfiguration

/// An HTTP/1.1 client on one connection that neither retries nor hides an error.
///
/// Its calls block, so that they belong on threads of their own; see ``onThread(_:)``.
final class PlainClient {
    struct Answer: Sendable, Equatable {
        var status: Int
        var fields: [String: String]
        var body: String
    }
    enum Failure: Error, Equatable { case connect(Int32), closed, malformed(String) }

    private let descriptor: Int32
    private var received: [UInt8] = []

    init(port: Int) throws {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        try withUnsafeBytes(of: &address) { try connect($0) }
    }

    init(path: String) throws {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        try withUnsafeBytes(of: &address) { try connect($0) }
    }

    private func connect(_ address: UnsafeRawBufferPointer) throws {
        // Nothing in these tests takes longer.
        var limit = timeval(tv_sec: 600, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let base = try #require(address.baseAddress).assumingMemoryBound(to: sockaddr.self)
        guard systemConnect(descriptor, base, socklen_t(address.count)) == 0 else {
            throw Failure.connect(errno)
        }
    }

    deinit { close(descriptor) }

    func closeOutput() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// The bytes until the server ends the connection.
    func readToEnd() -> String {
        while (try? receive()) == true {}
        return String(decoding: received, as: UTF8.self)
    }

    /// Lets the connection end by a reset.
    func resetAtEnd() {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    func send(_ text: String) throws { try send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                systemSend(descriptor, $0.baseAddress.map { $0 + sent }, bytes.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { throw Failure.closed }
            sent += count
        }
    }

    /// False at the end of the connection.
    private func receive() throws -> Bool {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        guard count >= 0 else { throw Failure.closed }
        received += buffer.prefix(count)
        return count > 0
    }

    /// Reads at most a number of bytes and drops them. Returns their number, 0 at the end.
    func readPart(_ count: Int) throws -> Int {
        var buffer = [UInt8](repeating: 0, count: count)
        let read = recv(descriptor, &buffer, count, 0)
        guard read >= 0 else { throw Failure.closed }
        return read
    }

    /// Whether the server has closed the connection so far. Bytes that have come are dropped.
    func hasEnded() throws -> Bool {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        return count == 0 || count < 0 && errno != EAGAIN && errno != EINTR
    }

    /// Whether the server has closed the connection without another byte.
    func isAtEnd() throws -> Bool { received.isEmpty ? try !receive() : false }

    /// The types of the frames of HTTP/2 up to the end of the connection (RFC 9113, section 4.1).
    func frameTypesUntilEnd() throws -> [UInt8] {
        while try receive() {}
        var types: [UInt8] = []
        var rest = received[...]
        while rest.count >= 9 {
            let head = Array(rest.prefix(9))
            types.append(head[3])
            rest = rest.dropFirst(9 + Int(head[0]) << 16 + Int(head[1]) << 8 + Int(head[2]))
        }
        return types
    }

    func answer(toHead: Bool = false) throws -> Answer {
        var end: Int?
        while end == nil {
            end = received.indices.dropFirst(3).first { received[($0 - 3)...$0].elementsEqual([13, 10, 13, 10]) }
            if end == nil, try !receive() { throw Failure.closed }
        }
        let head = String(decoding: received[...(end ?? 0)], as: UTF8.self)
        received.removeFirst((end ?? 0) + 1)
        let lines = head.components(separatedBy: "\r\n").filter { !$0.isEmpty }
        guard let first = lines.first, first.hasPrefix("HTTP/1.1 "),
            let status = Int(first.dropFirst(9).prefix(3))
        else { throw Failure.malformed(head) }
        var fields: [String: String] = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2 else { throw Failure.malformed(head) }
            fields[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces)
        }
        let length = toHead ? 0 : Int(fields["content-length"] ?? "0") ?? 0
        while received.count < length { guard try receive() else { throw Failure.closed } }
        let body = String(decoding: received.prefix(length), as: UTF8.self)
        received.removeFirst(length)
        return Answer(status: status, fields: fields, body: body)
    }

    func request(
        _ path: String, method: String = "GET", _ fields: [String: String] = [:], body: String = ""
    ) throws -> Answer {
        var text = "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\n"
        for (name, value) in fields { text += "\(name): \(value)\r\n" }
        if !body.isEmpty { text += "Content-Length: \(body.utf8.count)\r\n" }
        try send(text + "\r\n" + body)
        return try answer(toHead: method == "HEAD")
    }
}

private func systemConnect(_ descriptor: Int32, _ address: UnsafePointer<sockaddr>, _ size: socklen_t) -> Int32 {
    connect(descriptor, address, size)
}

private func systemSend(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int, _ flags: Int32) -> Int {
    send(descriptor, bytes, count, flags)
}

/// Runs blocking work on a thread of its own.
func onThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
    }
}

/// One request on a connection of its own.
func get(
    _ port: Int, _ path: String, method: String = "GET", _ fields: [String: String] = [:], body: String = ""
) async throws -> PlainClient.Answer {
    try await onThread { try PlainClient(port: port).request(path, method: method, fields, body: body) }
}

/// Polls until the condition holds; fails after a time that only a defect needs.
func eventually(_ event: String, _ condition: @Sendable () async throws -> Bool) async throws {
    let end = ContinuousClock.now + .seconds(600)
    while try await !condition() {
        guard ContinuousClock.now < end else {
            Issue.record("It did not happen: \(event)")
            return
        }
        try await Task.sleep(for: .milliseconds(5))
    }
}

/// A server in this process, on free ports of loopback.
struct TestServer {
    let server: ImageServer
    let log: LineCollector

    var port: Int { server.addresses.first?.port ?? 0 }
    var adminPort: Int { server.adminAddresses.first?.port ?? 0 }

    static func run(
        _ change: (inout ServerConfiguration) -> Void = { _ in }, notifier: [String: String] = [:],
        purge: (@Sendable (PurgeRequest) async throws -> Int)? = nil,
        reload: @escaping @Sendable (ServerConfiguration) async throws -> Void = { _ in },
        respond: @escaping @Sendable (Request, ServerRequestContext) async throws -> Response = { request, _ in
            Response(status: .ok, body: ResponseBody(byteBuffer: ByteBuffer(string: request.uri.path)))
        },
        _ body: (TestServer) async throws -> Void
    ) async throws {
        var configuration = ServerConfiguration()
        configuration.bind = [.tcp(host: "127.0.0.1", port: 0)]
        configuration.adminBind = [.tcp(host: "127.0.0.1", port: 0)]
        configuration.lameDuck = 0
        change(&configuration)
        let log = LineCollector()
        let server = try ImageServer(
            configuration: configuration, notifier: ServiceNotifier(environment: notifier),
            output: log.output(level: configuration.logLevel, secrets: configuration.secrets),
            metrics: ServerMetrics(),
            hooks: ImageServer.Hooks(responder: CallbackResponder(callback: respond), purge: purge, reload: reload))
        try await server.bind()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await server.run() }
            do {
                try await body(TestServer(server: server, log: log))
            } catch {
                server.stop()
                throw error
            }
            server.stop()
            try await group.waitForAll()
        }
    }
}

/// A signal that tests give and wait for.
final class OpenSignal: Sendable {
    private let state = Mutex<(isOpen: Bool, waiting: [CheckedContinuation<Void, Never>])>((false, []))

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    func wait() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.waiting.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }
}

/// Clients on keep-alive connections that ask again and again, each on a thread of its own.
final class KeepAliveLoad: Sendable {
    private struct State {
        var answered = 0
        var closed = 0
        var failures: [String] = []
        var running = 0
        var isStopped = false
    }
    private let state = Mutex(State())

    var answered: Int { state.withLock { $0.answered } }
    /// Answers with `Connection: close`.
    var closed: Int { state.withLock { $0.closed } }
    var failures: [String] { state.withLock { $0.failures } }
    var isRunning: Bool { state.withLock { $0.running > 0 } }

    /// - Parameter reconnects: Whether a client goes on with a new connection after `Connection: close`.
    func start(clients: Int, port: Int, path: String, reconnects: Bool) {
        for _ in 0..<clients {
            state.withLock { $0.running += 1 }
            Thread.detachNewThread {
                self.ask(port, path, reconnects)
                self.state.withLock { $0.running -= 1 }
            }
        }
    }

    private func ask(_ port: Int, _ path: String, _ reconnects: Bool) {
        do {
            var client: PlainClient?
            while !state.withLock({ $0.isStopped }) {
                let current = try client ?? PlainClient(port: port)
                let answer = try current.request(path)
                let isClosing = answer.fields["connection"] == "close"
                state.withLock {
                    $0.answered += 1
                    if isClosing { $0.closed += 1 }
                    if answer.status != 200 || answer.body.isEmpty { $0.failures.append("status \(answer.status)") }
                }
                if isClosing && !reconnects { return }
                client = isClosing ? nil : current
            }
        } catch {
            state.withLock { $0.failures.append("\(error)") }
        }
    }

    /// Starts a client that makes a connection for each request until the server refuses one.
    func startConnecting(port: Int) {
        state.withLock { $0.running += 1 }
        Thread.detachNewThread {
            var isRefused = false
            while !isRefused {
                do {
                    let answer = try PlainClient(port: port).request("/a")
                    self.state.withLock {
                        $0.answered += 1
                        if answer.status != 200 { $0.failures.append("status \(answer.status)") }
                    }
                } catch PlainClient.Failure.connect {
                    isRefused = true
                } catch PlainClient.Failure.closed {
                    // The socket was closed while this connection waited.
                } catch {
                    self.state.withLock { $0.failures.append("\(error)") }
                }
            }
            self.state.withLock { $0.running -= 1 }
        }
    }

    /// No request begins after this.
    func stop() { state.withLock { $0.isStopped = true } }
}

/// Clients that a test keeps between threads.
final class ClientBox: @unchecked Sendable {
    // The lock is the only way to them.
    private let lock = NSLock()
    private var clients: [PlainClient]

    init(_ clients: [PlainClient]) { self.clients = clients }

    func removeAll() { lock.withLock { clients = [] } }
    func forEach<Value>(_ body: (PlainClient) throws -> Value) rethrows -> [Value] {
        try lock.withLock { try clients.map(body) }
    }
    /// Whether the first connection is closed.
    func isAtEnd() throws -> Bool { try lock.withLock { try clients.first?.isAtEnd() ?? true } }
}
