#if os(Linux)
import Foundation
import Glibc
import Hummingbird
import Logging
import NIOCore
import Synchronization
import Testing
import VitrineImaging
import VitrineServer

/// A server on loopback that answers with the bytes of a test, however wrong.
final class ScriptedOrigin: Sendable {
    /// A part of an answer.
    enum Step: Sendable {
        case text(String)
        case bytes([UInt8])
        /// The same again and again until the client leaves.
        case endless([UInt8])
        /// The same again and again, with a pause of 20 ms before each.
        case trickle([UInt8])
        case wait(OpenSignal)
        /// Says nothing until the client leaves.
        case hang
        case close
        /// Ends the connection by a reset.
        case reset
    }

    struct Received: Sendable {
        let target: String
        /// The whole head in lower case.
        let head: String
    }

    private struct State {
        var descriptors: Set<Int32> = []
        var received: [Received] = []
        var connections = 0
        var sent = 0
        var departures = 0
        var isStopped = false
    }

    let port: Int
    private let listener: Int32
    private let state: Shared

    private final class Shared: Sendable { let value = Mutex(State()) }

    init(_ answer: @escaping @Sendable (Received) -> [Step]) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        port = try withUnsafeMutableBytes(of: &address) { bytes in
            let base = try #require(bytes.baseAddress).assumingMemoryBound(to: sockaddr.self)
            try #require(Glibc.bind(listener, base, size) == 0 && listen(listener, 4_096) == 0)
            try #require(getsockname(listener, base, &size) == 0)
            return Int(UInt16(bigEndian: bytes.loadUnaligned(as: sockaddr_in.self).sin_port))
        }
        self.listener = listener
        let state = Shared()
        self.state = state
        Thread.detachNewThread {
            while true {
                let descriptor = accept(listener, nil, nil)
                guard descriptor >= 0 else { return }
                let isStopped = state.value.withLock { state in
                    state.connections += 1
                    state.descriptors.insert(descriptor)
                    return state.isStopped
                }
                if isStopped { shutdown(descriptor, Int32(SHUT_RDWR)) }
                Thread.detachNewThread { Self.serve(descriptor, state, answer) }
            }
        }
    }

    deinit {
        state.value.withLock { state in
            state.isStopped = true
            for descriptor in state.descriptors { shutdown(descriptor, Int32(SHUT_RDWR)) }
        }
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }

    func url(_ path: String) -> String { "http://127.0.0.1:\(port)/\(path)" }

    var received: [Received] { state.value.withLock { $0.received } }
    var connections: Int { state.value.withLock { $0.connections } }
    /// The bytes that the system took so far.
    var sentBytes: Int { state.value.withLock { $0.sent } }
    /// Clients that left while an answer was hanging or endless.
    var departures: Int { state.value.withLock { $0.departures } }

    /// An answer with a length.
    static func answer(
        _ body: [UInt8], status: Int = 200, _ fields: [String] = ["Cache-Control: max-age=600"]
    ) -> [Step] {
        let lines = ["HTTP/1.1 \(status) X", "Content-Length: \(body.count)"] + fields
        return [.text(lines.joined(separator: "\r\n") + "\r\n\r\n"), .bytes(body)]
    }

    private static func serve(
        _ descriptor: Int32, _ state: Shared, _ answer: @Sendable (Received) -> [Step]
    ) {
        defer {
            state.value.withLock { _ = $0.descriptors.remove(descriptor) }
            close(descriptor)
        }
        var buffer: [UInt8] = []
        while true {
            guard let head = head(descriptor, &buffer) else { return }
            let words = head.split(separator: " ", maxSplits: 2)
            let received = Received(target: words.count > 1 ? String(words[1]) : "", head: head.lowercased())
            state.value.withLock { $0.received.append(received) }
            for step in answer(received) {
                guard perform(step, descriptor, state) else { return }
            }
        }
    }

    private static func head(_ descriptor: Int32, _ buffer: inout [UInt8]) -> String? {
        while true {
            let end = buffer.indices.dropFirst(3).first { buffer[($0 - 3)...$0].elementsEqual([13, 10, 13, 10]) }
            if let end {
                defer { buffer.removeFirst(end + 1) }
                return String(decoding: buffer[...end], as: UTF8.self)
            }
            var part = [UInt8](repeating: 0, count: 16_384)
            let count = recv(descriptor, &part, part.count, 0)
            guard count > 0 else { return nil }
            buffer += part.prefix(count)
        }
    }

    /// False if the connection has ended.
    private static func perform(_ step: Step, _ descriptor: Int32, _ state: Shared) -> Bool {
        switch step {
        case .text(let text): return send(Array(text.utf8), descriptor, state)
        case .bytes(let bytes): return send(bytes, descriptor, state)
        case .endless(let bytes):
            while send(bytes, descriptor, state) {}
            state.value.withLock { $0.departures += 1 }
            return false
        case .trickle(let bytes):
            repeat { usleep(20_000) } while send(bytes, descriptor, state)
            state.value.withLock { $0.departures += 1 }
            return false
        case .wait(let signal):
            let done = DispatchSemaphore(value: 0)
            Task {
                await signal.wait()
                done.signal()
            }
            done.wait()
            return true
        case .hang:
            var byte: UInt8 = 0
            while recv(descriptor, &byte, 1, 0) > 0 {}
            state.value.withLock { $0.departures += 1 }
            return false
        case .close: return false
        case .reset:
            var option = linger(l_onoff: 1, l_linger: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
            return false
        }
    }

    private static func send(_ bytes: [UInt8], _ descriptor: Int32, _ state: Shared) -> Bool {
        var offset = 0
        while offset < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(
                    descriptor, $0.baseAddress.map { $0 + offset }, bytes.count - offset, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            offset += count
            state.value.withLock { $0.sent += count }
        }
        return true
    }
}

/// The image server in this process: configuration, listener, HTTP, grammars, renderer.
struct RunningServer {
    let server: ImageServer
    let backend: ServerBackend

    var port: Int { server.addresses.first?.port ?? 0 }
    var renderer: Renderer { backend.renderer }

    static func run(
        _ change: (inout ServerConfiguration) -> Void = { _ in },
        _ body: @Sendable (RunningServer) async throws -> Void
    ) async throws {
        var configuration = ServerConfiguration()
        configuration.bind = [.tcp(host: "127.0.0.1", port: 0)]
        configuration.adminBind = []
        configuration.lameDuck = 0
        configuration.localRoot = Samples.directory
        configuration.allowLoopbackSources = true
        configuration.logRequests = false
        change(&configuration)
        let backend = try ServerBackend(configuration, Renderer(try configuration.rendering()))
        let service = ImageService(backend, configuration: try configuration.http())
        let log = LineCollector()
        let server = try ImageServer(
            configuration: configuration, notifier: ServiceNotifier(environment: [:]),
            output: log.output(level: .critical, secrets: []), metrics: ServerMetrics(),
            hooks: ImageServer.Hooks(responder: ImageResponder(service, context: ServerRequestContext.self)))
        try await server.bind()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await server.run() }
            do {
                try await body(RunningServer(server: server, backend: backend))
            } catch {
                server.stop()
                throw error
            }
            server.stop()
            try await group.waitForAll()
        }
    }

    /// The path of a source with options.
    static func path(_ source: String, _ options: String = "w:60", as format: String = "") -> String {
        let allowed = CharacterSet(charactersIn: Unicode.Scalar("a")...Unicode.Scalar("z"))
            .union(.init(charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:/.-_"))
        let escaped = source.addingPercentEncoding(withAllowedCharacters: allowed) ?? source
        return "/insecure/\(options)/plain/\(escaped)\(format.isEmpty ? "" : "@")\(format)"
    }

    func get(
        _ source: String, _ options: String = "w:60", as format: String = ""
    ) async throws -> PlainClient.Answer {
        try await VitrineServerTests.get(port, Self.path(source, options, as: format))
    }

    /// The requests that wait for an image of this width whose URL names the format.
    func waiters(_ source: String, width: Int = 60, height: Int = 0, as format: ImageFormat = .jpeg) throws -> Int {
        var options = ProcessingOptions()
        (options.width, options.height, options.format) = (width, height, format)
        return try renderer.waiters(for: ImageURL(grammar: .native, options: options, source: source))
    }

    /// Whether nothing is under way.
    var isIdle: Bool {
        let (renders, loads) = (renderer.admission.renders, renderer.admission.loads)
        let sources = renderer.admission.sources.counts
        return renderer.workCount == (0, 0) && renders.running == 0 && renders.cost == 0 && renders.waiting == 0
            && loads.running == 0 && loads.waiting == 0 && sources.cost == 0 && sources.waiting == 0
    }
}

extension PlainClient.Answer {
    /// The value of a field of an error's JSON.
    var code: String? {
        let object = try? JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: Any]
        return object?["code"] as? String
    }
}
#endif
