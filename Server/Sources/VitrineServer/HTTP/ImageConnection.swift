import HTTPTypes
import Hummingbird
package import HummingbirdCore
package import Logging
package import NIOCore
import NIOHTTP1
package import NIOHTTPTypes

/// The limits of a connection.
package struct ConnectionLimits: Sendable, Hashable {
    /// The bytes of the target, or of one header field. More gets 431. Default: 32 KiB.
    package var fieldSize = 32 * 1024
    /// The bytes of all header fields. More gets 431. Default: 64 KiB.
    package var fieldsSize = 64 * 1024
    /// The number of header fields. More gets 431. Default: 100.
    package var fieldCount = 100
    /// How long a connection may stay without a complete header, or without progress of a request's body. Default: one
    /// minute.
    package var idle = Duration.seconds(60)
    /// How long a request may take from its first byte to its last one, its body included. Default: half a minute.
    package var request = Duration.seconds(30)
    /// How long a client that has closed its side may wait for its answer, if it did not say that it would close the
    /// connection. Most such clients have left. Default: 5 s.
    package var halfClosed = Duration.seconds(5)
    /// How long a client may read nothing of an answer that waits to be sent. Default: one minute.
    package var stall = Duration.seconds(60)
    /// How long a client may take to close a connection that the server has closed. Default: 2 s.
    package var lingering = Duration.seconds(2)

    package init() {}
}

/// A connection of HTTP/1.1 for images.
///
/// It is made for untrusted clients, unlike Hummingbird's own:
///
/// - A missing or repeated `Host` is refused. Malformed and too large headers are answered by JSON.
/// - A connection closes after an answer that says `Connection: close`.
/// - A connection that stalls ends. A large answer may take any time as long as the client reads.
/// - Targets keep the bytes that were sent.
package struct ImageHTTP1Channel: HTTPChannelHandler {
    package typealias Value = NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>

    package let responder: HTTPChannelHandler.Responder
    private let limits: ConnectionLimits
    private let isDraining: @Sendable () -> Bool
    private let immediate: ImmediateResponder?
    private let gate: RequestGate?

    /// - Parameter isDraining: Whether the connection is to end with its current or next answer, which says
    ///   `Connection: close` then. Asked for each answer. Default: false.
    package init(
        responder: @escaping HTTPChannelHandler.Responder, limits: ConnectionLimits = ConnectionLimits(),
        isDraining: @escaping @Sendable () -> Bool = { false }
    ) {
        self.init(responder: responder, limits: limits, isDraining: isDraining, immediate: nil)
    }

    /// - Parameters:
    ///   - immediate: Asked before the responder, on the event loop.
    ///   - gate: Limits the cost of clients; nil for no limit of clients.
    package init(
        responder: @escaping HTTPChannelHandler.Responder, limits: ConnectionLimits,
        isDraining: @escaping @Sendable () -> Bool, immediate: ImmediateResponder?, gate: RequestGate? = nil
    ) {
        self.gate = gate
        self.responder = responder
        self.limits = limits
        self.isDraining = isDraining
        self.immediate = immediate
    }

    package func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        channel.eventLoop.makeCompletedFuture {
            var decoding = NIOHTTPDecoderLimitConfiguration()
            decoding.maxHeaderFieldSize = limits.fieldSize
            decoding.maxHeaderListSize = limits.fieldsSize
            decoding.maxHeaderFieldCount = limits.fieldCount
            let pipeline = channel.pipeline.syncOperations
            let decoder = HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes, limitConfiguration: decoding)
            let departure = DepartureHandler(patience: TimeAmount(limits.halfClosed), keepsBytes: true)
            try pipeline.addHandler(departure)
            try pipeline.addHandler(ByteToMessageHandler(decoder))
            try pipeline.addHandler(
                ConnectionHandler(
                    limits: limits, isDraining: isDraining, immediate: immediate, gate: gate, departure: departure))
            return try NIOAsyncChannel(
                wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
        }
    }

    package func handle(value: Value, logger: Logger) async {
        await handleHTTP(asyncChannel: value, logger: logger)
    }
}

extension HTTPServerBuilder {
    /// Serves HTTP/1.1 by ``ImageHTTP1Channel``.
    package static func images(
        limits: ConnectionLimits = ConnectionLimits(), isDraining: @escaping @Sendable () -> Bool = { false }
    ) -> HTTPServerBuilder {
        HTTPServerBuilder { responder in
            ImageHTTP1Channel(responder: responder, limits: limits, isDraining: isDraining)
        }
    }
}

/// The targets of requests.
package enum RequestTarget {
    /// The target without the scheme and host of the absolute form. Nothing else is changed, because signatures are
    /// made of the bytes that are sent.
    package static func path(of target: String) -> String {
        guard target.utf8.first != 0x2F, let colon = target.utf8.firstIndex(of: 0x3A),
            target.utf8[colon...].starts(with: "://".utf8),
            target.utf8[..<colon].allSatisfy({ (0x61...0x7A).contains($0 | 0x20) })
        else { return target }
        let host = target.utf8.index(colon, offsetBy: 3)
        guard let path = target.utf8[host...].firstIndex(where: { $0 == 0x2F || $0 == 0x3F }) else { return "/" }
        return target.utf8[path] == 0x3F ? "/" + target[path...] : String(target[path...])
    }
}

/// Translates between NIO's messages and those of Hummingbird, frames answers, and ends connections.
final class ConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = IOData

    /// A request whose answer has not ended.
    private struct Pending {
        var isHead: Bool
        var closes: Bool
        /// Whether the client knows chunks.
        var isHTTP11: Bool
        /// The client that the request is counted for; nil if it is not counted.
        var client: ClientAddress?
    }

    private enum Framing {
        case length, chunks, none
    }

    private let limits: ConnectionLimits
    private let isDraining: @Sendable () -> Bool
    private var pending = CircularBuffer<Pending>(initialCapacity: 2)
    /// Whether the end of the last request is still to come.
    private var isReading = false
    /// Whether nothing more is read from the client.
    private var isRefusing = false
    /// Whether the connection ends with the current answer.
    private var closesNext = false
    private var hasClosedOutput = false
    private var framing = Framing.none
    /// The answer to a malformed request, while older ones are being answered.
    private var refusal: RequestError?
    private var lastActivity = NIODeadline.now()
    private var lastProgress = NIODeadline.now()
    private var lastBuffered = 0
    private var timer: RepeatedTask?
    private let immediate: ImmediateResponder?
    /// The answer to the request whose end is still to come.
    private var prepared: ImmediateAnswer?
    /// Whether prepared answers wait for the end of the bytes that were received at once.
    private var hasUnflushed = false
    private let gate: RequestGate?
    private let departure: DepartureHandler

    init(
        limits: ConnectionLimits, isDraining: @escaping @Sendable () -> Bool, immediate: ImmediateResponder?,
        gate: RequestGate?, departure: DepartureHandler
    ) {
        self.limits = limits
        self.isDraining = isDraining
        self.immediate = immediate
        (self.gate, self.departure) = (gate, departure)
    }

    // MARK: Life

    func handlerAdded(context: ChannelHandlerContext) {
        if context.channel.isActive { start(context) }
    }

    func handlerRemoved(context: ChannelHandlerContext) { stop() }

    func channelActive(context: ChannelHandlerContext) {
        start(context)
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        stop()
        context.fireChannelInactive()
    }

    private func start(_ context: ChannelHandlerContext) {
        guard timer == nil else { return }
        lastActivity = .now()
        // One timer for the connection costs less than one for each request.
        let period = TimeAmount(max(.milliseconds(20), min(limits.idle, limits.stall, limits.request) / 4))
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        timer = context.eventLoop.scheduleRepeatedTask(initialDelay: period, delay: period) { _ in
            let (handler, context) = bound.value
            handler.check(context)
        }
    }

    private func stop() {
        timer?.cancel()
        timer = nil
        for request in pending { uncount(request) }
        pending.removeAll()
    }

    private func uncount(_ request: Pending) {
        if let client = request.client { gate?.counter.end(client) }
    }

    /// Ends the connection if it has stalled.
    private func check(_ context: ChannelHandlerContext) {
        let now = NIODeadline.now()
        // Bytes that come now and then are no progress. While another answer is being made, nothing is read.
        if let began = departure.requestBegan, pending.isEmpty || isReading,
            now - began >= TimeAmount(limits.request)
        {
            return context.close(promise: nil)
        }
        let buffered = (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
        if buffered > 0 {
            if buffered != lastBuffered {
                lastBuffered = buffered
                lastProgress = now
            } else if now - lastProgress >= TimeAmount(limits.stall) {
                context.close(promise: nil)
            }
            // What is being sent is no idle time.
            lastActivity = now
            return
        }
        lastBuffered = 0
        if !pending.isEmpty, !isReading { return }
        if now - lastActivity >= TimeAmount(limits.idle) { context.close(promise: nil) }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ChannelShouldQuiesceEvent {
            if pending.isEmpty {
                context.close(promise: nil)
            } else {
                closesNext = true
            }
            return
        }
        if let event = event as? ChannelEvent, event == .outputClosed { linger(context) }
        context.fireUserInboundEventTriggered(event)
    }

    // MARK: Requests

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isRefusing else { return }
        lastActivity = .now()
        switch unwrapInboundIn(data) {
        case .head(let head):
            prepared = immediateAnswer(head, context)
            if prepared == nil { read(head, context) } else { isReading = true }
        case .body(let bytes): context.fireChannelRead(wrapInboundOut(.body(bytes)))
        case .end(let trailers):
            isReading = false
            departure.requestBegan = nil
            if let answer = prepared.take() { return write(answer, context) }
            let fields = trailers.map { Self.fields($0).fields }
            context.fireChannelRead(wrapInboundOut(.end(fields)))
        }
    }

    /// The answer to a request that needs no task. Others have to wait for those before them, and for a client that
    /// does not read.
    private func immediateAnswer(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) -> ImmediateAnswer? {
        guard let immediate, pending.isEmpty, !closesNext, !hasClosedOutput, context.channel.isWritable,
            head.method == .GET || head.method == .HEAD, head.version == .http1_1, head.uri.utf8.first == 0x2F
        else { return nil }
        let fields = RequestFields(head.headers)
        guard fields.hostCount == 1, !fields.hasBody, !fields.changesConnection, !isDraining() else { return nil }
        return immediate(
            ImmediateRequest(
                isHead: head.method == .HEAD, target: head.uri, fields: fields, channel: context.channel))
    }

    private func write(_ answer: consuming ImmediateAnswer, _ context: ChannelHandlerContext) {
        answer.finish()
        context.write(wrapOutboundOut(.byteBuffer(answer.bytes)), promise: nil)
        if let body = answer.body {
            context.write(wrapOutboundOut(.byteBuffer(body)), promise: counting(body, context: context, promise: nil))
        }
        hasUnflushed = true
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if hasUnflushed {
            hasUnflushed = false
            context.flush()
        }
        context.fireChannelReadComplete()
    }

    private func read(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        let (fields, hosts, closes, upgrades) = Self.fields(head.headers)
        let isHTTP11 = head.version.major == 1 && head.version.minor >= 1
        guard hosts.count == 1 || (hosts.isEmpty && !isHTTP11) else {
            return refuse(RequestError(400, code: "bad-host", reason: "A request has exactly one Host."), context)
        }
        guard isHTTP11 || !departure.isOtherProtocol else {
            return refuse(RequestError(505, code: "unknown-version", reason: "The protocol is not HTTP."), context)
        }
        guard let method = Self.method(head.method) else {
            return refuse(RequestError(400, code: "bad-request", reason: "The method is malformed."), context)
        }
        // The parser stops reading after a request to change the protocol.
        let isLast = closes || !isHTTP11 || upgrades || method == .connect
        var request = Pending(isHead: method == .head, closes: isLast, isHTTP11: isHTTP11)
        if let gate, !RequestGate.isHealth(head.uri) {
            let client = gate.client(context.channel.remoteAddress, fields[values: .forwardedFor])
            if let error = gate.counter.begin(client) { return refuse(error, context) }
            request.client = client
        }
        pending.append(request)
        isReading = true
        if closes || !isHTTP11 { departure.outlivesInput = true }
        let message = HTTPRequest(
            method: method, scheme: "http", authority: hosts.first, path: RequestTarget.path(of: head.uri),
            headerFields: fields)
        context.fireChannelRead(wrapInboundOut(.head(message)))
    }

    private static func method(_ method: HTTPMethod) -> HTTPRequest.Method? {
        switch method {
        case .GET: .get
        case .HEAD: .head
        default: HTTPRequest.Method(method.rawValue)
        }
    }

    private static func fields(
        _ headers: HTTPHeaders
    ) -> (fields: HTTPFields, hosts: [String], closes: Bool, upgrades: Bool) {
        var fields = HTTPFields()
        fields.reserveCapacity(headers.count)
        var hosts: [String] = []
        var (closes, upgrades) = (false, false)
        for (rawName, value) in headers {
            guard let name = HTTPField.Name(rawName) else { continue }
            switch name.canonicalName {
            case "host":
                hosts.append(value)
                continue
            case "connection":
                if value != "keep-alive" {
                    let options = value.lowercased().split(separator: ",").map { $0.filter { $0 != " " } }
                    closes = closes || options.contains("close")
                }
            case "upgrade": upgrades = true
            default: break
            }
            fields.append(HTTPField(name: name, value: value))
        }
        return (fields, hosts, closes, upgrades)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard !isRefusing else { return }
        // Whoever reads the body of a request learns that it is malformed, and answers.
        guard !isReading, let error = error as? HTTPParserError else {
            closesNext = true
            context.fireErrorCaught(error)
            return
        }
        switch error {
        case .headerOverflow:
            refuse(RequestError(431, code: "header-too-large", reason: "The header or the URL is too large."), context)
        case .invalidVersion:
            refuse(RequestError(505, code: "unknown-version", reason: "The version of HTTP is not supported."), context)
        default: refuse(RequestError(400, code: "bad-request", reason: "The request is malformed."), context)
        }
    }

    /// Answers a malformed request after the requests before it, and closes the connection.
    private func refuse(_ error: RequestError, _ context: ChannelHandlerContext) {
        isRefusing = true
        refusal = error
        if pending.isEmpty { writeRefusal(context) }
    }

    private func writeRefusal(_ context: ChannelHandlerContext) {
        guard let error = refusal else { return }
        refusal = nil
        let text = ErrorAnswer.json(error, requestID: RequestID().description)
        var buffer = context.channel.allocator.buffer(capacity: 512)
        ImmediateAnswer.Lines.write(HTTPResponse.Status(code: error.status), to: &buffer)
        buffer.writeString("Content-Type: application/json\r\nContent-Length: \(text.utf8.count)\r\n")
        if let seconds = error.retryAfter { buffer.writeString("Retry-After: \(seconds)\r\n") }
        buffer.writeString("Cache-Control: no-store\r\nConnection: close\r\n\r\n")
        buffer.writeString(text)
        context.writeAndFlush(wrapOutboundOut(.byteBuffer(buffer)), promise: nil)
        closeOutput(context)
    }

    // MARK: Answers

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        // After a refusal, parts of an answer that nobody waits for may come.
        guard !hasClosedOutput, let request = pending.first else {
            promise?.fail(ChannelError.outputClosed)
            return
        }
        switch unwrapOutboundIn(data) {
        case .head(let head):
            let buffer = encode(head, of: request, context)
            context.write(wrapOutboundOut(.byteBuffer(buffer)), promise: promise)
        case .body(let bytes):
            write(bytes, context: context, promise: promise)
        case .end:
            if framing == .chunks {
                context.write(wrapOutboundOut(.byteBuffer(ByteBuffer(staticString: "0\r\n\r\n"))), promise: promise)
            } else if let promise {
                // Keeps the order of promises.
                context.write(wrapOutboundOut(.byteBuffer(ByteBuffer())), promise: promise)
            }
            ended(context)
        }
    }

    private func write(_ bytes: ByteBuffer, context: ChannelHandlerContext, promise: EventLoopPromise<Void>?) {
        switch framing {
        case .length:
            let promise = counting(bytes, context: context, promise: promise)
            context.write(wrapOutboundOut(.byteBuffer(bytes)), promise: promise)
        case .none: promise?.succeed()
        case .chunks:
            guard bytes.readableBytes > 0 else {
                promise?.succeed()
                return
            }
            var size = context.channel.allocator.buffer(capacity: 20)
            size.writeString(String(bytes.readableBytes, radix: 16) + "\r\n")
            context.write(wrapOutboundOut(.byteBuffer(size)), promise: nil)
            context.write(wrapOutboundOut(.byteBuffer(bytes)), promise: nil)
            context.write(wrapOutboundOut(.byteBuffer(ByteBuffer(staticString: "\r\n"))), promise: promise)
        }
    }

    /// A promise that ends the count of a body's bytes.
    private func counting(
        _ bytes: ByteBuffer, context: ChannelHandlerContext, promise: EventLoopPromise<Void>?
    ) -> EventLoopPromise<Void>? {
        guard let answers = gate?.answers, bytes.readableBytes >= AnswerMemory.leastCount else { return promise }
        let part = answers.add(bytes, of: context.channel)
        let promise = promise ?? context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.whenComplete { _ in answers.remove(part) }
        return promise
    }

    private func encode(
        _ head: HTTPResponse, of request: Pending, _ context: ChannelHandlerContext
    ) -> ByteBuffer {
        var buffer = context.channel.allocator.buffer(capacity: 1024)
        ImmediateAnswer.Lines.write(head.status, to: &buffer)
        let isInformational = head.status.kind == .informational
        let hasNoBody = isInformational || head.status.code == 204 || head.status.code == 304
        // An answer before the end of its request is the last one: nobody waits for the rest.
        let isEarly = isReading && pending.count == 1
        var (closes, hasLength) = (request.closes || closesNext || isEarly || isDraining(), false)
        for field in head.headerFields {
            switch field.name.canonicalName {
            case "connection":
                if field.value.lowercased() == "close" { closes = true }
                continue
            case "transfer-encoding": continue
            case "content-length":
                if hasNoBody { continue }
                hasLength = true
            default: break
            }
            ImmediateAnswer.Lines.write(field.name.rawName, field.value, to: &buffer)
        }
        guard !isInformational else {
            buffer.writeStaticString("\r\n")
            return buffer
        }
        if hasNoBody || request.isHead {
            framing = .none
        } else if hasLength {
            framing = .length
        } else if request.isHTTP11 {
            framing = .chunks
            buffer.writeStaticString("Transfer-Encoding: chunked\r\n")
        } else {
            // The end of the connection is the end of the body.
            framing = .length
            closes = true
        }
        if closes {
            closesNext = true
            buffer.writeStaticString("Connection: close\r\n")
        }
        buffer.writeStaticString("\r\n")
        return buffer
    }

    private func ended(_ context: ChannelHandlerContext) {
        uncount(pending.removeFirst())
        lastActivity = .now()
        if closesNext {
            isRefusing = true
            context.flush()
            closeOutput(context)
        } else if pending.isEmpty, refusal != nil {
            writeRefusal(context)
        }
    }

    /// Closes the sending side after the pending writes. The client then has time to close: bytes that arrive after a
    /// full close would reset the connection, and the answer would be lost.
    private func closeOutput(_ context: ChannelHandlerContext) {
        guard !hasClosedOutput else { return }
        hasClosedOutput = true
        let closed = context.eventLoop.makePromise(of: Void.self)
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        // A protocol without half-closed connections closes them at once.
        closed.futureResult.whenFailure { _ in bound.value.close(promise: nil) }
        context.close(mode: .output, promise: closed)
    }

    private func linger(_ context: ChannelHandlerContext) {
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: TimeAmount(limits.lingering)) { bound.value.close(promise: nil) }
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard mode == .output else { return context.close(mode: mode, promise: promise) }
        closeOutput(context)
        promise?.succeed()
    }
}

@available(*, unavailable)
extension ConnectionHandler: Sendable {}
