import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdCore
import HummingbirdTesting
import Logging
import NIOCore
import Synchronization
import Testing
import VitrineImaging
import VitrineServer

/// A backend with sources in memory, an own small parser, and results that are texts.
final class MemoryBackend: ImageBackend {
    struct Plan: Sendable {
        var key: String
        var url: ImageURL
    }

    struct SourceAddress: Error, CustomStringConvertible {
        let description: String
    }

    private struct State {
        var memory: [String: ImageResult] = [:]
        var disk: [String: (head: ImageResult, bytes: ByteBuffer)] = [:]
        var parses = 0
        var renders = 0
        var identifiers: [String] = []
    }

    private let state = Mutex(State())
    /// Ends renders of `slow`.
    let gate = TestGate()
    /// Opens when a render of `slow` has begun.
    let started = TestGate()
    /// Opens when a render of `slow` was cancelled.
    let cancelled = TestGate()
    let signs: Bool

    init(signs: Bool = false) { self.signs = signs }

    var parses: Int { state.withLock { $0.parses } }
    var renders: Int { state.withLock { $0.renders } }
    var identifiers: [String] { state.withLock { $0.identifiers } }

    func removeAll() { state.withLock { $0.memory = [:] } }

    /// Moves all results from memory to the disk.
    func moveToDisk() {
        state.withLock { state in
            for (key, result) in state.memory {
                let head = ImageResult(bytes: ByteBuffer(), metadata: result.metadata, count: result.count)
                state.disk[key] = (head, result.bytes)
            }
            state.memory = [:]
        }
    }

    func resultOnDisk(for plan: Plan, format: FormatChoice) -> (head: ImageResult, bytes: ByteBuffer)? {
        state.withLock { $0.disk[plan.key + Self.format(plan, format).rawValue] }
    }

    static func signature(of path: some StringProtocol) -> String {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in path.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return String(hash, radix: 16)
    }

    func parse(_ target: ImageTarget) throws(RequestError) -> ImageURL {
        state.withLock { $0.parses += 1 }
        let parts = target.path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        guard parts.count >= 2, let signature = parts.first else {
            throw RequestError(400, code: "bad-url", reason: "The URL has no image.")
        }
        let rest = target.path[signature.endIndex...]
        if signs, signature != Self.signature(of: rest) {
            throw RequestError(403, code: "bad-signature", reason: "The signature is wrong.")
        }
        var options = ProcessingOptions()
        if target.grammar == .thumbor {
            let source = parts.dropFirst().joined(separator: "/") + (target.query.map { "?" + $0 } ?? "")
            return ImageURL(grammar: .thumbor, options: options, source: source)
        }
        guard let plain = parts.firstIndex(of: "plain") else {
            throw RequestError(400, code: "bad-url", reason: "The URL has no source.")
        }
        for option in parts[2..<plain] {
            let words = option.split(separator: ":").map(String.init)
            switch (words.first, words.last) {
            case ("w", let value?): options.width = Int(value) ?? 0
            case ("q", let value?): options.quality = Int(value)
            case ("dpr", let value?): options.dpr = Double(value) ?? 1
            case ("exp", let value?): options.expires = Int(value)
            case ("fn", let value?): options.fileName = value.removingPercentEncoding
            case ("att", _): options.isAttachment = true
            case ("raw", _): options.isRaw = true
            default: throw RequestError(400, code: "unknown-option", reason: "An option is unknown.")
            }
        }
        let source = parts[(plain + 1)...].joined(separator: "/").split(separator: "@").map(String.init)
        if source.count == 2 { options.format = ImageFormat(rawValue: source[1]) }
        return ImageURL(grammar: .native, options: options, source: source.first ?? "")
    }

    func plan(for url: ImageURL) throws(RequestError) -> Plan {
        let options = url.options
        return Plan(
            key: "\(url.source) w\(options.width) q\(options.quality ?? 0) d\(options.dpr) \(options.isRaw)", url: url)
    }

    private static func format(_ plan: Plan, _ choice: FormatChoice) -> ImageFormat {
        plan.url.options.format ?? choice.preferred ?? .jpeg
    }

    func resultInMemory(for plan: Plan, format: FormatChoice) -> ImageResult? {
        state.withLock { $0.memory[plan.key + Self.format(plan, format).rawValue] }
    }

    func result(for plan: Plan, format: FormatChoice, request: RequestInformation) async throws -> ImageAnswer {
        state.withLock {
            $0.renders += 1
            $0.identifiers.append(request.id)
        }
        let source = plan.url.source
        switch source {
        case "missing": throw RequestError(404, code: "source-not-found", reason: "The source does not exist.")
        case "broken": throw RequestError(422, code: "not-an-image", reason: "The source is not an image.")
        case "down": throw RequestError(502, code: "source-failed", reason: "The source failed.")
        case "busy":
            throw RequestError(503, code: "overloaded", reason: "Too many images are being made.", retryAfter: 7)
        case "crash": throw SourceAddress(description: "cannot read http://hidden.internal/crash")
        case "slow":
            started.open()
            do { try await gate.wait() } catch {
                cancelled.open()
                throw error
            }
        default: break
        }
        let chosen = Self.format(plan, format)
        let text = "\(chosen.rawValue) \(plan.key) " + String(repeating: "x", count: source == "huge" ? 16 << 20 : 100)
        var metadata = ImageResult.Metadata(
            mediaType: source == "page.html" ? "text/html" : source == "a.svg" ? "image/svg+xml" : "image/\(chosen)",
            entityTag: Self.signature(of: text))
        metadata.lastModified = source == "undated" ? nil : 784_111_777
        metadata.expires = source.hasPrefix("fresh") ? 1_000_600 : nil
        metadata.sourceCacheControl = source == "private" ? "Private, max-age=5" : source == "secret" ? "no-store" : nil
        metadata.isSource = plan.url.options.isRaw
        let result = ImageResult(bytes: ByteBuffer(string: text), metadata: metadata)
        let origin: ImageAnswer.Origin = source == "stale" ? .stale : source == "disk" ? .disk : .made
        if source != "stale" {
            state.withLock { $0.memory[plan.key + chosen.rawValue] = result }
        }
        let stages = [ImageAnswer.Stage("fetch", .microseconds(1500)), ImageAnswer.Stage("encode", .milliseconds(20))]
        return ImageAnswer(result, origin, stages: stages)
    }

    func information(for plan: Plan, request: RequestInformation) async throws -> ImageAnswer {
        guard plan.url.source != "missing" else {
            throw RequestError(404, code: "source-not-found", reason: "The source does not exist.")
        }
        let result = ImageResult(
            bytes: ByteBuffer(string: #"{"width":640}"#),
            metadata: ImageResult.Metadata(mediaType: "application/json", entityTag: "info"))
        return ImageAnswer(result, .made)
    }
}

/// A condition that tasks wait for.
final class TestGate: Sendable {
    private struct State {
        var isOpen = false
        var waiters: [Int: CheckedContinuation<Void, any Error>] = [:]
        var next = 0
        var cancelled: Set<Int> = []
    }

    private let state = Mutex(State())

    func open() {
        let waiters = state.withLock { state in
            state.isOpen = true
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.resume() }
    }

    func wait() async throws {
        let number = state.withLock { state in
            state.next += 1
            return state.next
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let result: Result<Void, any Error>? = state.withLock { state in
                    if state.isOpen { return .success(()) }
                    if state.cancelled.contains(number) { return .failure(CancellationError()) }
                    state.waiters[number] = continuation
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                state.cancelled.insert(number)
                return state.waiters.removeValue(forKey: number)
            }
            waiter?.resume(throwing: CancellationError())
        }
    }
}

enum HTTPTestServer {
    static let now: Int64 = 1_000_000

    static var logger: Logger {
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        return logger
    }

    /// A service at the time ``now``.
    static func service(
        _ backend: MemoryBackend, _ change: (inout ImageHTTPConfiguration) -> Void = { _ in }
    ) -> ImageService<MemoryBackend> {
        var configuration = ImageHTTPConfiguration()
        change(&configuration)
        return ImageService(backend, configuration: configuration, now: { now })
    }

    /// Runs requests against a router with the service, without a network.
    static func router(
        _ backend: MemoryBackend = MemoryBackend(), at path: String = "/",
        _ change: (inout ImageHTTPConfiguration) -> Void = { _ in },
        _ test: @Sendable (any TestClientProtocol) async throws -> Void
    ) async throws {
        let router = Router(context: BasicRequestContext.self)
        router.get("/own") { _, _ in "own" }
        router.add(service(backend, change), at: path)
        router.get("/later") { _, _ in "later" }
        try await Application(router: router, logger: logger).test(.router) { try await test($0) }
    }

    /// Runs a server on loopback.
    static func live(
        _ backend: MemoryBackend = MemoryBackend(), limits: ConnectionLimits = ConnectionLimits(),
        isDraining: @escaping @Sendable () -> Bool = { false }, _ test: @escaping @Sendable (Int) async throws -> Void
    ) async throws {
        let application = Application(
            responder: ImageResponder(service(backend), context: ImageRequestContext.self),
            server: .images(limits: limits, isDraining: isDraining), logger: logger)
        try await application.test(.live) { client in try await test(client.port ?? 0) }
    }
}

/// An answer with its bytes.
struct HTTPReply: Sendable {
    var status: Int
    /// By lowercase name.
    var fields: [String: [String]] = [:]
    var body: [UInt8] = []

    subscript(name: String) -> String? { fields[name]?.joined(separator: ", ") }
    var text: String { String(decoding: body, as: UTF8.self) }
}

/// The whole program in this process, on free ports of loopback: listeners, grammar, renderer and caches.
struct ImageProgram {
    let server: ImageServer

    var port: Int { server.addresses.first?.port ?? 0 }
    var adminPort: Int { server.adminAddresses.first?.port ?? 0 }

    func connect() throws -> RawConnection { try RawConnection(port: port) }

    /// Asks on a connection of its own.
    func ask(_ path: String, method: String = "GET", _ fields: [(String, String)] = []) async throws -> HTTPReply {
        try await connect().ask(path, method: method, fields)
    }

    static func configuration(_ change: (inout ServerConfiguration) -> Void = { _ in }) -> ServerConfiguration {
        var configuration = ServerConfiguration()
        configuration.bind = [.tcp(host: "127.0.0.1", port: 0)]
        configuration.adminBind = [.tcp(host: "127.0.0.1", port: 0)]
        configuration.lameDuck = 0
        configuration.logRequests = false
        configuration.localRoot = Samples.directory
        configuration.allowLoopbackSources = true
        configuration.allowPrivateSources = true
        change(&configuration)
        return configuration
    }

    /// - Parameters:
    ///   - hooks: Nil for the real ones.
    ///   - gate: Holds requests.
    static func run(
        _ change: (inout ServerConfiguration) -> Void = { _ in }, hooks: ImageServer.Hooks? = nil,
        gate: RequestGate? = nil, _ body: (ImageProgram) async throws -> Void
    ) async throws {
        let configuration = configuration(change)
        let metrics = ServerMetrics()
        let output = LogOutput(format: .json, level: .critical, write: { _ in })
        var parts: ImageServer.Hooks
        if let hooks {
            parts = hooks
        } else {
            parts = try await ServerCommand.Parts.images.hooks(configuration, metrics, output.logger(label: "test"))
        }
        if let gate {
            parts.responder = gate.holding(parts.responder)
            parts.immediate = nil
        }
        let server = try ImageServer(
            configuration: configuration, notifier: ServiceNotifier(environment: [:]), output: output,
            metrics: metrics, hooks: parts)
        try await server.bind()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await server.run() }
            do {
                try await body(ImageProgram(server: server))
            } catch {
                server.stop()
                throw error
            }
            server.stop()
            try await group.waitForAll()
        }
    }
}

/// Holds the requests for some paths, so that they can be ended however fast the machine answers.
final class RequestGate: Sendable {
    private let prefix: String
    private let state = Mutex<(gate: TestGate?, held: Int)>((nil, 0))

    init(_ prefix: String) { self.prefix = prefix }

    func close() { state.withLock { $0.gate = TestGate() } }
    func open() { state.withLock { $0.gate.take() }?.open() }
    /// The number of requests that wait.
    var held: Int { state.withLock { $0.held } }

    func holding(
        _ responder: any HTTPResponder<ServerRequestContext>
    ) -> CallbackResponder<ServerRequestContext> {
        CallbackResponder { [self] request, context in
            if request.uri.path.hasPrefix(prefix), let gate = state.withLock({ $0.gate }) {
                state.withLock { $0.held += 1 }
                defer { state.withLock { $0.held -= 1 } }
                // Requests whose client has left go on, as the server has its own answer for them.
                try? await ClientDeparture.cancelling(context.channel) { try await gate.wait() }
            }
            return try await responder.respond(to: request, context: context)
        }
    }
}

/// A connection of plain bytes.
final class RawConnection: Sendable {
    private let descriptor: Int32

    struct Failure: Error {}

    init(port: Int, receiveBuffer: Int32? = nil) throws {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo("localhost", String(port), &hints, &list) == 0 else { throw Failure() }
        defer { freeaddrinfo(list) }
        var connected: Int32 = -1
        var next = list
        while let entry = next?.pointee, connected < 0 {
            let socket = Glibc.socket(entry.ai_family, entry.ai_socktype, 0)
            if var size = receiveBuffer {
                setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
            }
            if connect(socket, entry.ai_addr, entry.ai_addrlen) == 0 { connected = socket } else { Glibc.close(socket) }
            next = entry.ai_next
        }
        guard connected >= 0 else { throw Failure() }
        descriptor = connected
        var time = timeval(tv_sec: 600, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { Glibc.close(descriptor) }

    func send(_ text: String) async { await send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) async {
        await onThread { descriptor in
            var offset = 0
            while offset < bytes.count {
                let count = bytes.withUnsafeBytes {
                    Glibc.send(descriptor, $0.baseAddress! + offset, bytes.count - offset, Int32(MSG_NOSIGNAL))
                }
                guard count > 0 else { return }
                offset += count
            }
        }
    }

    func closeOutput() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Lets the connection end by a reset, when the value is released.
    func resetAtEnd() {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    /// Reads until the server closes; nil if it does not within 10 s.
    func readAll(pause: Duration? = nil, piece: Int = 65536) async -> [UInt8]? {
        await onThread { descriptor in
            var all: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: piece)
            while true {
                if let pause { usleep(UInt32(pause.components.attoseconds / 1_000_000_000_000)) }
                let count = recv(descriptor, &buffer, buffer.count, 0)
                if count == 0 || (count < 0 && errno == ECONNRESET) { return all }
                if count < 0 { return nil }
                all += buffer[..<count]
            }
        }
    }

    func readText() async -> String? { await readAll().map { String(decoding: $0, as: UTF8.self) } }

    /// Reads until a text has come; nil at the end of the connection.
    func read(until text: String) async -> String? {
        await onThread { descriptor in
            var all: [UInt8] = []
            var byte: UInt8 = 0
            while !all.suffix(text.utf8.count).elementsEqual(text.utf8) {
                guard recv(descriptor, &byte, 1, 0) == 1 else { return nil }
                all.append(byte)
            }
            return String(decoding: all, as: UTF8.self)
        }
    }

    /// Reads one answer with a `Content-Length`.
    func readAnswer() async -> String? {
        await onThread { descriptor in
            var all: [UInt8] = []
            var byte: UInt8 = 0
            while !all.suffix(4).elementsEqual("\r\n\r\n".utf8) {
                guard recv(descriptor, &byte, 1, 0) == 1 else { return nil }
                all.append(byte)
            }
            let head = String(decoding: all, as: UTF8.self)
            let line = head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("content-length:") }
            var rest = line.flatMap { Int($0.split(separator: ":")[1].trimmingCharacters(in: .whitespaces)) } ?? 0
            while rest > 0 {
                guard recv(descriptor, &byte, 1, 0) == 1 else { return nil }
                all.append(byte)
                rest -= 1
            }
            return String(decoding: all, as: UTF8.self)
        }
    }

    /// Sends a request and reads its answer.
    func ask(_ path: String, method: String = "GET", _ fields: [(String, String)] = []) async throws -> HTTPReply {
        let lines = fields.map { "\($0.0): \($0.1)\r\n" }.joined()
        await send("\(method) \(path) HTTP/1.1\r\nHost: localhost\r\n\(lines)\r\n")
        return try #require(await readReply(hasBody: method != "HEAD"))
    }

    /// Reads one answer; nil at the end of the connection.
    func readReply(hasBody: Bool = true) async -> HTTPReply? {
        await onThread { descriptor in
            var head: [UInt8] = []
            var byte: UInt8 = 0
            while !head.suffix(4).elementsEqual("\r\n\r\n".utf8) {
                guard recv(descriptor, &byte, 1, 0) == 1 else { return nil }
                head.append(byte)
            }
            let lines = String(decoding: head, as: UTF8.self).components(separatedBy: "\r\n")
            guard let status = lines.first.flatMap({ Int($0.dropFirst(9).prefix(3)) }) else { return nil }
            var reply = HTTPReply(status: status)
            for line in lines.dropFirst() {
                guard let colon = line.firstIndex(of: ":") else { continue }
                let value = line[colon...].dropFirst().trimmingCharacters(in: .whitespaces)
                reply.fields[line[..<colon].lowercased(), default: []].append(value)
            }
            let isWhole = hasBody && status != 304 && status != 204
            let length = isWhole ? reply["content-length"].flatMap { Int($0) } ?? 0 : 0
            var body = [UInt8](repeating: 0, count: length)
            var count = 0
            while count < length {
                let received = body.withUnsafeMutableBytes {
                    recv(descriptor, $0.baseAddress! + count, length - count, 0)
                }
                guard received > 0 else { return nil }
                count += received
            }
            reply.body = body
            return reply
        }
    }

    private func onThread<Value: Sendable>(_ work: @escaping @Sendable (Int32) -> Value) async -> Value {
        let descriptor = descriptor
        return await withCheckedContinuation { continuation in
            Thread { continuation.resume(returning: work(descriptor)) }.start()
        }
    }
}

extension TestResponse {
    var text: String { String(buffer: body) }
}
