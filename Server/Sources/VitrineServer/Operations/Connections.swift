import HTTPTypes
package import HummingbirdCore
package import Logging
package import NIOCore
import NIOHTTP2
import NIOHTTPTypes
package import NIOSSL
import NIOTLS
import Synchronization

/// Whether the server still takes work, shared by all its parts.
package final class DrainState: Sendable {
    private let isDrainingFlag = Atomic(false)

    package init() {}

    package var isDraining: Bool { isDrainingFlag.load(ordering: .acquiring) }
    package func begin() { isDrainingFlag.store(true, ordering: .releasing) }
}

/// The certificate of listeners, which may be replaced while they listen.
package final class TLSContext: Sendable {
    private let context: Mutex<NIOSSLContext>

    /// - Throws: ``ConfigurationError`` if a file has another content, or the key is of another certificate.
    package init(certificate: String, key: String, http2: Bool) throws {
        context = Mutex(try Self.load(certificate, key: key, http2: http2))
    }

    /// Uses another certificate for connections that follow.
    func use(_ certificate: NIOSSLContext) { context.withLock { $0 = certificate } }

    package var current: NIOSSLContext { context.withLock { $0 } }

    /// Reads the files of a certificate.
    ///
    /// - Throws: ``ConfigurationError`` that names the file.
    static func load(_ certificate: String, key: String, http2: Bool) throws -> NIOSSLContext {
        func attempt<Value>(_ problem: String, _ body: () throws -> Value) throws -> Value {
            do {
                return try body()
            } catch {
                throw ConfigurationError(problem)
            }
        }
        let chain = try attempt("tls-certificate: \(certificate) is not a PEM file of certificates") {
            try NIOSSLCertificate.fromPEMFile(certificate)
        }
        let privateKey = try attempt("tls-key: \(key) is not a PEM file of a private key") {
            try NIOSSLPrivateKey(file: key, format: .pem)
        }
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(privateKey))
        configuration.minimumTLSVersion = .tlsv12
        configuration.applicationProtocols = http2 ? ["h2", "http/1.1"] : ["http/1.1"]
        return try attempt("tls-key: \(key) is not the key of \(certificate)") {
            try NIOSSLContext(configuration: configuration)
        }
    }
}

/// Sets up a connection for HTTP/1.1 or HTTP/2: by ALPN with TLS, by the client's first bytes without.
package struct HTTPConnectionSetup: ServerChildChannel {
    /// A connection with the protocol that its client speaks.
    enum Connection: Sendable {
        case http1(ImageHTTP1Channel.Value)
        case http2(ImageHTTP2Channel.Value)
    }
    package struct Value: ServerChildChannelValue {
        let negotiated: EventLoopFuture<Connection>
        package let channel: any Channel
    }

    private let http1: ImageHTTP1Channel
    private let http2: ImageHTTP2Channel?
    private let streams = OpenStreams()
    private let tls: TLSContext?
    private let timeout: TimeAmount
    private let sendTimeout: TimeAmount

    /// - Parameter gate: Limits the cost of clients; nil for no limit of clients.
    package init(
        responder: @escaping HTTPChannelHandler.Responder, immediate: ImmediateResponder? = nil,
        configuration: ServerConfiguration, tls: TLSContext?, drain: DrainState, gate: RequestGate? = nil
    ) {
        timeout = TimeAmount.milliseconds(Int64(configuration.keepAliveTimeout * 1000))
        let sendTimeout = TimeAmount.milliseconds(Int64(configuration.sendTimeout * 1000))
        self.sendTimeout = sendTimeout
        self.tls = tls
        let limit = configuration.maximumHeaderBytes
        let streams = streams
        var limits = ConnectionLimits()
        (limits.fieldSize, limits.fieldsSize) = (limit, limit)
        limits.idle = .seconds(configuration.keepAliveTimeout)
        limits.request = .seconds(configuration.requestTimeout)
        limits.stall = .seconds(configuration.sendTimeout)
        http1 = ImageHTTP1Channel(
            responder: responder, limits: limits, isDraining: { drain.isDraining }, immediate: immediate, gate: gate)
        let requestTimeout = TimeAmount(limits.request)
        http2 =
            configuration.http2
            ? ImageHTTP2Channel(http1: http1, gate: gate) { stream in
                let watch = StreamWatch(
                    streams: streams, answers: gate?.answers, sendTimeout: sendTimeout, requestTimeout: requestTimeout)
                try stream.pipeline.syncOperations.addHandler(watch)
            }
            : nil
    }

    package func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        channel.eventLoop.makeCompletedFuture {
            let negotiated: EventLoopFuture<Connection>
            if let tls {
                try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls.current))
                let handler = NIOTypedApplicationProtocolNegotiationHandler<Connection> { result, channel in
                    switch result {
                    case .negotiated("h2"): connection(true, channel: channel, logger: logger)
                    case .negotiated, .fallback: connection(false, channel: channel, logger: logger)
                    }
                }
                try channel.pipeline.syncOperations.addHandler(handler)
                negotiated = handler.protocolNegotiationResult
            } else if http2 != nil {
                let handler = HTTPVersionHandler(channel.eventLoop.makePromise(of: Connection.self)) { isHTTP2 in
                    connection(isHTTP2, channel: channel, logger: logger)
                }
                try channel.pipeline.syncOperations.addHandler(handler)
                negotiated = handler.promise.futureResult
            } else {
                negotiated = connection(false, channel: channel, logger: logger)
            }
            // Nobody else watches a connection whose client says nothing.
            let deadline = channel.eventLoop.scheduleTask(in: timeout) { channel.close(promise: nil) }
            negotiated.whenComplete { _ in deadline.cancel() }
            return Value(negotiated: negotiated, channel: channel)
        }
    }

    private func connection(
        _ isHTTP2: Bool, channel: any Channel, logger: Logger
    ) -> EventLoopFuture<Connection> {
        if isHTTP2, let http2 {
            watch(channel)
            return http2.setup(channel: channel, logger: logger).map { .http2($0) }
        } else {
            return http1.setup(channel: channel, logger: logger).map { .http1($0) }
        }
    }

    /// Ends an HTTP/2 connection whose client reads nothing, or that stays open without streams. The client of such a
    /// connection is asked to leave first.
    private func watch(_ channel: any Channel) {
        let (idle, send, streams) = (timeout, sendTimeout, streams)
        let begin = NIODeadline.now()
        let last = NIOLoopBoundBox((buffered: 0, progress: begin), eventLoop: channel.eventLoop)
        let period = TimeAmount.nanoseconds(max(20_000_000, min(timeout, send).nanoseconds / 4))
        let task = channel.eventLoop.scheduleRepeatedTask(initialDelay: period, delay: period) { _ in
            let now = NIODeadline.now()
            let current = (try? channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
            if current == 0 || current != last.value.buffered { last.value = (current, now) }
            if now - last.value.progress >= send { return channel.close(promise: nil) }
            let unused = streams.timeUnused(channel) ?? now - begin
            if unused >= idle { announceEnd(channel) }
            if unused >= idle + .seconds(2) { channel.close(promise: nil) }
        }
        channel.closeFuture.whenComplete { _ in task.cancel() }
    }

    package func handle(value: Value, logger: Logger) async {
        do {
            switch try await value.negotiated.get() {
            case .http1(let connection): await http1.handle(value: connection, logger: logger)
            case .http2(let connection): await http2?.handle(value: connection, logger: logger)
            }
        } catch {
            logger.debug("A connection ended before its first request", metadata: ["error": "\(error)"])
            value.channel.close(promise: nil)
        }
    }
}

extension HTTPConnectionSetup {
    /// Tells an HTTP/2 client to use another connection for requests that follow: GOAWAY (RFC 9113, section 6.8).
    /// Streams go on. A request that the client sends meanwhile is refused with REFUSED_STREAM, which says that it may
    /// be sent again (section 8.7). Hummingbird's own graceful end comes only when there are no streams: it closes a
    /// connection before the end of the last one is written.
    ///
    /// - Returns: Whether the client was not told before.
    @discardableResult
    func announceEnd(_ channel: any Channel) -> Bool {
        guard streams.tell(channel) else { return false }
        let frame = HTTP2Frame(
            streamID: .rootStream, payload: .goAway(lastStreamID: .maxID, errorCode: .noError, opaqueData: nil))
        channel.writeAndFlush(frame, promise: nil)
        return true
    }

    /// Whether the last stream of an HTTP/2 connection ended a second ago: all of it is written, and the client had time to
    /// leave.
    func isIdle(_ channel: any Channel) -> Bool { streams.isIdle(channel) }
}

/// The streams of HTTP/2 connections, and which clients were told to leave theirs.
private final class OpenStreams: Sendable {
    private struct Entry {
        var count = 0
        var changed: Int64 = 0
        var isTold = false
    }

    private let entries = Mutex<[ObjectIdentifier: Entry]>([:])

    func change(_ connection: any Channel, by difference: Int) {
        update(connection) { entry in
            entry.count += difference
            entry.changed = monotonicNanoseconds()
        }
    }

    /// Marks that the client of a connection was told. Returns whether it was not before.
    func tell(_ connection: any Channel) -> Bool {
        update(connection) { entry in
            defer { entry.isTold = true }
            return !entry.isTold
        }
    }

    private func update<Result: Sendable>(
        _ connection: any Channel, _ change: (inout Entry) -> Result
    ) -> Result {
        let key = ObjectIdentifier(connection)
        let (isNew, result) = entries.withLock { entries in
            let isNew = entries[key] == nil
            return (isNew, change(&entries[key, default: Entry()]))
        }
        if isNew {
            connection.closeFuture.whenComplete { _ in
                self.entries.withLock { _ = $0.removeValue(forKey: key) }
            }
        }
        return result
    }

    /// How long a connection has had no streams; nil if it never had one.
    func timeUnused(_ connection: any Channel) -> TimeAmount? {
        entries.withLock { entries in
            guard let entry = entries[ObjectIdentifier(connection)] else { return nil }
            return entry.count > 0 ? .zero : .nanoseconds(monotonicNanoseconds() - entry.changed)
        }
    }

    func isIdle(_ connection: any Channel) -> Bool {
        entries.withLock { entries in
            guard let entry = entries[ObjectIdentifier(connection)] else { return true }
            return entry.count <= 0 && monotonicNanoseconds() - entry.changed > 1_000_000_000
        }
    }
}

/// Counts a stream while it is open, and ends it if its client takes nothing of its answer. The windows of HTTP/2 can
/// hold an answer back although the connection itself is read (RFC 9113, section 5.2).
private final class StreamWatch: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// The parts in which a body is sent, each of which is a step of progress.
    private static let partSize = 65_536

    private let streams: OpenStreams
    private let answers: AnswerMemory?
    private let sendTimeout: TimeAmount
    private let requestTimeout: TimeAmount
    private var connection: (any Channel)?
    /// Ends a stream whose request does not end.
    private var requestTimer: Scheduled<Void>?
    private var isRequestWhole = false
    /// Writes that have not reached the socket.
    private var pending = 0
    private var lastProgress = NIODeadline.now()
    private var timer: RepeatedTask?

    init(streams: OpenStreams, answers: AnswerMemory?, sendTimeout: TimeAmount, requestTimeout: TimeAmount) {
        (self.streams, self.answers) = (streams, answers)
        (self.sendTimeout, self.requestTimeout) = (sendTimeout, requestTimeout)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        connection = context.channel.parent
        connection.map { streams.change($0, by: 1) }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        timer?.cancel()
        timer = nil
        requestTimer?.cancel()
        connection.map { streams.change($0, by: -1) }
        connection = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .end = unwrapInboundIn(data) {
            isRequestWhole = true
            requestTimer?.cancel()
        }
        context.fireChannelRead(data)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        // Requests without a body have ended by now.
        if requestTimer == nil, !isRequestWhole {
            let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            requestTimer = context.eventLoop.scheduleTask(in: requestTimeout) {
                let (watch, context) = bound.value
                if !watch.isRequestWhole { context.close(promise: nil) }
            }
        }
        context.fireChannelReadComplete()
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .body(var bytes) = unwrapOutboundIn(data), bytes.readableBytes > Self.partSize else {
            return write(unwrapOutboundIn(data), context: context, promise: promise)
        }
        let promise = counting(bytes, context: context, promise: promise)
        while bytes.readableBytes > Self.partSize, let part = bytes.readSlice(length: Self.partSize) {
            write(.body(part), context: context, promise: nil)
        }
        write(.body(bytes), context: context, promise: promise)
    }

    /// A promise that ends the count of a body's bytes.
    private func counting(
        _ bytes: ByteBuffer, context: ChannelHandlerContext, promise: EventLoopPromise<Void>?
    ) -> EventLoopPromise<Void>? {
        guard let answers, let connection else { return promise }
        let part = answers.add(bytes, of: connection)
        let promise = promise ?? context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.whenComplete { _ in answers.remove(part) }
        return promise
    }

    private func write(_ part: HTTPResponsePart, context: ChannelHandlerContext, promise: EventLoopPromise<Void>?) {
        if pending == 0 { lastProgress = .now() }
        pending += 1
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.cascade(to: promise)
        written.futureResult.assumeIsolated().whenComplete { _ in
            self.pending -= 1
            self.lastProgress = .now()
        }
        watch(context)
        context.write(wrapOutboundOut(part), promise: written)
    }

    private func watch(_ context: ChannelHandlerContext) {
        guard timer == nil, connection != nil else { return }
        let period = TimeAmount.nanoseconds(max(20_000_000, sendTimeout.nanoseconds / 4))
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        timer = context.eventLoop.scheduleRepeatedTask(initialDelay: period, delay: period) { _ in
            let (watch, context) = bound.value
            watch.check(context)
        }
    }

    private func check(_ context: ChannelHandlerContext) {
        if pending == 0 {
            timer?.cancel()
            timer = nil
        } else if NIODeadline.now() - lastProgress >= sendTimeout {
            context.close(promise: nil)
        }
    }
}

/// Finds out whether a client begins with the preface of HTTP/2 (RFC 9113, section 3.4), then removes itself.
private final class HTTPVersionHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// As long as no HTTP/1 request can begin with it.
    private static let preface = Array("PRI * HTTP/2.0\r\n".utf8)
    let promise: EventLoopPromise<HTTPConnectionSetup.Connection>
    private let setUp: (Bool) -> EventLoopFuture<HTTPConnectionSetup.Connection>
    private var received: ByteBuffer?
    private var isDecided = false

    init(
        _ promise: EventLoopPromise<HTTPConnectionSetup.Connection>,
        setUp: @escaping (Bool) -> EventLoopFuture<HTTPConnectionSetup.Connection>
    ) {
        self.promise = promise
        self.setUp = setUp
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var part = unwrapInboundIn(data)
        if received == nil { received = part } else { received?.writeBuffer(&part) }
        guard !isDecided, let received else { return }
        let begin = received.readableBytesView.prefix(Self.preface.count)
        let isHTTP2 = begin.elementsEqual(Self.preface)
        guard isHTTP2 || !Self.preface.starts(with: begin) else { return }
        isDecided = true
        guard !isHTTP2 || !FrameWatch.hasLeft(context.channel) else {
            promise.fail(ChannelError.inputClosed)
            return context.close(promise: nil)
        }
        // The set-up ends at once: it only adds handlers behind this one.
        setUp(isHTTP2).assumeIsolated().whenComplete { result in
            self.promise.assumeIsolated().completeWith(result)
            guard case .success = result else { return context.close(promise: nil) }
            if let received = self.received { context.fireChannelRead(self.wrapInboundOut(received)) }
            self.received = nil
            context.fireChannelReadComplete()
            context.pipeline.syncOperations.removeHandler(self, promise: nil)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // A client that says nothing, or a server that stops.
        if !isDecided, event is ChannelShouldQuiesceEvent || event as? ChannelEvent == .inputClosed {
            context.close(promise: nil)
        }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        if !isDecided { promise.fail(ChannelError.inputClosed) }
        isDecided = true
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        if !isDecided { promise.fail(ChannelError.inputClosed) }
        isDecided = true
    }
}
