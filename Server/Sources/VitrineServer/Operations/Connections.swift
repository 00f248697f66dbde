import HTTPTypes
package import HummingbirdCore
package import HummingbirdHTTP2
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
        context = Mutex(try Self.load(certificate, key, http2))
    }

    /// Uses the files' new content for connections that follow; keeps the old one if there is an error.
    package func reload(certificate: String, key: String, http2: Bool) throws {
        let new = try Self.load(certificate, key, http2)
        context.withLock { $0 = new }
    }

    package var current: NIOSSLContext { context.withLock { $0 } }

    private static func load(_ certificate: String, _ key: String, _ http2: Bool) throws -> NIOSSLContext {
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
    package enum Connection: Sendable {
        case http1(ImageHTTP1Channel.Value)
        case http2(HTTP2Channel.Value)
    }
    package struct Value: ServerChildChannelValue {
        let negotiated: EventLoopFuture<Connection>
        package let channel: any Channel
    }

    private let http1: ImageHTTP1Channel
    private let http2: HTTP2Channel?
    private let streams = OpenStreams()
    private let tls: TLSContext?
    private let timeout: TimeAmount

    package init(
        responder: @escaping HTTPChannelHandler.Responder, immediate: ImmediateResponder? = nil,
        configuration: ServerConfiguration, tls: TLSContext?, drain: DrainState
    ) {
        let timeout = TimeAmount.milliseconds(Int64(configuration.keepAliveTimeout * 1000))
        self.timeout = timeout
        self.tls = tls
        let limit = configuration.maximumHeaderBytes
        let streams = streams
        var limits = ConnectionLimits()
        (limits.fieldSize, limits.fieldsSize) = (limit, limit)
        limits.idle = .seconds(configuration.keepAliveTimeout)
        http1 = ImageHTTP1Channel(
            responder: responder, limits: limits, isDraining: { drain.isDraining }, immediate: immediate)
        http2 =
            configuration.http2
            ? HTTP2Channel(
                responder: responder,
                configuration: .init(
                    idleTimeout: .nanoseconds(timeout.nanoseconds),
                    gracefulCloseTimeout: .milliseconds(Int64(configuration.stopTimeout * 1000)),
                    streamConfiguration: .init(
                        additionalChannelHandlers: [StreamCounter(streams: streams)], idleTimeout: timeout,
                        httpDecoderConfiguration: .init(
                            maxHeaderFieldSize: limit, maxHeaderListSize: limit,
                            maxHeaderFieldCount: limits.fieldCount))))
            : nil
    }

    package func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        channel.eventLoop.makeCompletedFuture {
            let negotiated: EventLoopFuture<Connection>
            if let tls {
                try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls.current))
                let handler = NIOTypedApplicationProtocolNegotiationHandler<Connection> { result, channel in
                    switch result {
                    case .negotiated("h2"): connection(true, channel, logger)
                    case .negotiated, .fallback: connection(false, channel, logger)
                    }
                }
                try channel.pipeline.syncOperations.addHandler(handler)
                negotiated = handler.protocolNegotiationResult
            } else if http2 != nil {
                let handler = HTTPVersionHandler(channel.eventLoop.makePromise(of: Connection.self)) { isHTTP2 in
                    connection(isHTTP2, channel, logger)
                }
                try channel.pipeline.syncOperations.addHandler(handler)
                negotiated = handler.promise.futureResult
            } else {
                negotiated = connection(false, channel, logger)
            }
            // Nobody else watches a connection whose client says nothing.
            let deadline = channel.eventLoop.scheduleTask(in: timeout) { channel.close(promise: nil) }
            negotiated.whenComplete { _ in deadline.cancel() }
            return Value(negotiated: negotiated, channel: channel)
        }
    }

    private func connection(
        _ isHTTP2: Bool, _ channel: any Channel, _ logger: Logger
    ) -> EventLoopFuture<Connection> {
        if isHTTP2, let http2 {
            http2.setup(channel: channel, logger: logger).map { .http2($0) }
        } else {
            http1.setup(channel: channel, logger: logger).map { .http1($0) }
        }
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
    /// Streams go on. Hummingbird's own graceful end comes only when there are none: it closes a connection before the
    /// end of the last stream is written.
    static func sendGoAway(_ channel: any Channel) {
        let frame = HTTP2Frame(
            streamID: .rootStream, payload: .goAway(lastStreamID: .maxID, errorCode: .noError, opaqueData: nil))
        channel.writeAndFlush(frame, promise: nil)
    }

    /// Whether the last stream of an HTTP/2 connection ended a while ago, so that all of it is written.
    func isIdle(_ channel: any Channel) -> Bool { streams.isIdle(channel) }
}

/// The streams of HTTP/2 connections.
private final class OpenStreams: Sendable {
    private let counts = Mutex<[ObjectIdentifier: (count: Int, changed: Int64)]>([:])

    func change(_ connection: any Channel, by difference: Int) {
        let key = ObjectIdentifier(connection)
        counts.withLock { counts in
            let count = (counts[key]?.count ?? 0) + difference
            counts[key] = (count, monotonicNanoseconds())
        }
        // Once for each connection.
        if difference > 0, counts.withLock({ $0[key]?.count == 1 }) {
            connection.closeFuture.whenComplete { _ in
                self.counts.withLock { _ = $0.removeValue(forKey: key) }
            }
        }
    }

    func isIdle(_ connection: any Channel) -> Bool {
        counts.withLock { counts in
            guard let entry = counts[ObjectIdentifier(connection)] else { return true }
            return entry.count <= 0 && monotonicNanoseconds() - entry.changed > 200_000_000
        }
    }
}

/// Counts a stream while it is open.
private final class StreamCounter: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart

    private let streams: OpenStreams
    private var connection: (any Channel)?

    init(streams: OpenStreams) { self.streams = streams }

    func handlerAdded(context: ChannelHandlerContext) {
        connection = context.channel.parent
        connection.map { streams.change($0, by: 1) }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        connection.map { streams.change($0, by: -1) }
        connection = nil
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
