import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP2
import NIOHTTPTypes
import NIOHTTPTypesHTTP2

#if canImport(Glibc)
import Glibc
#endif

/// A connection of HTTP/2 for images.
///
/// It is made for untrusted clients, unlike Hummingbird's own:
///
/// - A request is counted before a task is made for it, and is none if its client has reset it meanwhile.
/// - A connection begins with few requests at once. Each answer that its client takes permits one more. While answers
///   wait to be read, further requests wait without any work.
/// - Floods of frames that carry no request end the connection.
struct ImageHTTP2Channel: Sendable {
    /// A connection after its set-up.
    struct Value: Sendable {
        let channel: any Channel
        fileprivate let streams: AsyncStream<StartedStream>
    }

    private let http1: ImageHTTP1Channel
    private let gate: RequestGate?
    private let addHandlers: @Sendable (any Channel) throws -> Void

    /// - Parameters:
    ///   - http1: Answers the requests of each stream.
    ///   - gate: Limits the requests; nil for no limit of clients.
    ///   - addHandlers: Adds handlers of HTTP messages to the pipeline of a stream.
    init(
        http1: ImageHTTP1Channel, gate: RequestGate?, addHandlers: @escaping @Sendable (any Channel) throws -> Void
    ) {
        (self.http1, self.gate, self.addHandlers) = (http1, gate, addHandlers)
    }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        channel.eventLoop.makeCompletedFuture {
            let (streams, continuation) = AsyncStream<StartedStream>.makeStream()
            let (gate, addHandlers) = (gate, addHandlers)
            let admission = StreamAdmission(channel, gate)
            let bound = NIOLoopBound(admission, eventLoop: channel.eventLoop)
            let handler = NIOHTTP2Handler(mode: .server, eventLoop: channel.eventLoop) { stream in
                stream.eventLoop.makeCompletedFuture {
                    try stream.pipeline.syncOperations.addHandler(HTTP2FramePayloadToHTTPServerCodec())
                    try addHandlers(stream)
                    try stream.pipeline.syncOperations.addHandler(
                        StreamHandler(bound.value, gate) { continuation.yield($0) })
                }
            }
            let pipeline = channel.pipeline.syncOperations
            try pipeline.addHandlers(FrameWatch(), handler, HTTP2EndHandler())
            channel.closeFuture.whenComplete { _ in continuation.finish() }
            return Value(channel: channel, streams: streams)
        }
    }

    /// Answers the requests of a connection until it has ended.
    func handle(value: Value, logger: Logger) async {
        await withDiscardingTaskGroup { group in
            for await stream in value.streams {
                group.addTask {
                    await http1.handleHTTP(asyncChannel: stream.channel, logger: logger)
                    stream.end()
                }
            }
        }
    }
}

/// A stream whose request is being answered.
private struct StartedStream: Sendable {
    let channel: NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>
    /// Called when nothing is done for it any more.
    let end: @Sendable () -> Void
}

/// The requests of one connection that are under way or wait. Used on the event loop of the connection only.
private final class StreamAdmission {
    /// The requests of a new connection at once.
    private static let fewest = 4
    /// The requests at once of a connection whose client takes its answers.
    private static let most = 64
    /// While so many bytes wait to be read, no further request begins.
    private static let mostUnreadBytes = 16 << 20

    private let channel: any Channel
    private let answers: AnswerMemory?
    private var allowed = fewest
    private var running = 0
    private var waiting = CircularBuffer<StreamHandler>()

    init(_ channel: any Channel, _ gate: RequestGate?) { (self.channel, answers) = (channel, gate?.answers) }

    /// Starts a request now or later. Only open streams count: their number is limited by the protocol.
    func add(_ stream: StreamHandler) {
        waiting.append(stream)
        startNext()
    }

    /// - Parameter isTaken: Whether the client took the answer.
    func ended(isTaken: Bool) {
        running -= 1
        allowed = isTaken ? min(allowed + 1, Self.most) : max(allowed / 2, Self.fewest)
        startNext()
    }

    private func startNext() {
        while running < allowed, !waiting.isEmpty {
            if running > 0, let answers, answers.bytes(of: channel) >= Self.mostUnreadBytes { return }
            if waiting.removeFirst().start() { running += 1 }
        }
    }
}

/// Holds the request of a stream back until it may begin.
private final class StreamHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private let admission: StreamAdmission
    private let gate: RequestGate?
    private let begin: (StartedStream) -> Void
    private var context: ChannelHandlerContext?
    /// The parts that arrived before the start: at most the window of the stream.
    private var held: [HTTPRequestPart] = []
    private var isStarted = false
    /// Whether all of the answer has reached the socket.
    private var isTaken = false

    init(_ admission: StreamAdmission, _ gate: RequestGate?, begin: @escaping (StartedStream) -> Void) {
        (self.admission, self.gate, self.begin) = (admission, gate, begin)
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelInactive(context: ChannelHandlerContext) {
        held = []
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isStarted else { return context.fireChannelRead(data) }
        held.append(unwrapInboundIn(data))
        guard held.count == 1 else { return }
        // A reset may be among the bytes that were received with the request. It comes before this.
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        context.eventLoop.execute {
            let handler = bound.value
            handler.admission.add(handler)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if isStarted { context.fireChannelReadComplete() }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if isStarted { context.fireErrorCaught(error) } else { context.close(promise: nil) }
    }

    /// Passes the request on; false if there is none any more, or if it is refused.
    func start() -> Bool {
        guard let context, context.channel.isActive, case .head(let head)? = held.first else { return false }
        let client: ClientAddress?
        if let gate, !RequestGate.isHealth(head.path ?? "") {
            let peer = context.channel.remoteAddress ?? context.channel.parent?.remoteAddress
            let own = gate.client(peer, head.headerFields[values: .forwardedFor])
            if let error = gate.counter.begin(own) {
                refuse(error, context)
                return false
            }
            client = own
        } else {
            client = nil
        }
        isStarted = true
        let (counter, loop) = (gate?.counter, context.eventLoop)
        let bound = NIOLoopBound(self, eventLoop: loop)
        let end: @Sendable () -> Void = {
            if let client { counter?.end(client) }
            loop.execute { bound.value.admission.ended(isTaken: bound.value.isTaken) }
        }
        do {
            let channel = try NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>(
                wrappingChannelSynchronously: context.channel)
            for part in held { context.fireChannelRead(wrapInboundOut(part)) }
            held = []
            context.fireChannelReadComplete()
            begin(StartedStream(channel: channel, end: end))
        } catch {
            end()
            context.close(promise: nil)
        }
        return true
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .end = unwrapOutboundIn(data) else { return context.write(data, promise: promise) }
        let promise = promise ?? context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenSuccess { self.isTaken = true }
        context.write(data, promise: promise)
    }

    private func refuse(_ error: RequestError, _ context: ChannelHandlerContext) {
        isStarted = true
        held = []
        let body = ByteBuffer(string: ErrorAnswer.json(error, requestID: RequestID().description))
        var fields: HTTPFields = [
            .contentType: "application/json", .cacheControl: "no-store", .contentLength: String(body.readableBytes),
        ]
        if let seconds = error.retryAfter { fields[.retryAfter] = String(seconds) }
        let head = HTTPResponse(status: .init(code: error.status), headerFields: fields)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.write(wrapOutboundOut(.body(body)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
}

@available(*, unavailable)
extension StreamHandler: Sendable {}

/// Ends a connection of HTTP/2 after an error, and when its client has closed its side: no client of HTTP/2 does that
/// while it waits for an answer.
private final class HTTP2EndHandler: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event as? ChannelEvent == .inputClosed { context.close(promise: nil) }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}

/// Counts the frames that a client sends (RFC 9113, section 4.1), and ends its connection if it sends too many that
/// carry no request.
final class FrameWatch: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    /// The frames that a client may send at once, and in each second.
    private static let burst = 1_000.0
    private static let rate = 100.0
    /// The frames that each frame of an answer permits: updates of the window of its stream and of the connection,
    /// perhaps for parts of it.
    private static let permittedByAnswer = 4.0

    private var budget = burst
    private var lastRefill = NIODeadline.now()
    /// The bytes of the client's preface that are still to come (RFC 9113, section 3.4).
    private var prefaceBytes = 24
    /// The bytes of the current frame's content that are still to come.
    private var contentBytes = 0
    private var head: [UInt8] = []
    private var hasEnded = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !hasEnded else { return }
        guard !Self.hasLeft(context.channel) else {
            hasEnded = true
            return context.close(promise: nil)
        }
        unwrapInboundIn(data).withUnsafeReadableBytes { read($0) }
        if budget < 0 { refill() }
        guard budget < 0 else { return context.fireChannelRead(data) }
        hasEnded = true
        let frame = HTTP2Frame(
            streamID: .rootStream,
            payload: .goAway(lastStreamID: .maxID, errorCode: .enhanceYourCalm, opaqueData: nil))
        context.channel.writeAndFlush(frame, promise: nil)
        context.close(promise: nil)
    }

    /// Whether a client has closed its side. Its requests are not worth the work of reading them: clients that only
    /// send and leave, again and again, would keep the server from all others.
    static func hasLeft(_ channel: any Channel) -> Bool {
        #if os(Linux)
        guard let information = (channel as? any SocketOptionProvider)?.getTCPInfo() else { return false }
        var isClosing = false
        // On its event loop, the answer is there at once.
        information.assumeIsolated().whenSuccess { isClosing = $0.tcpi_state == closeWait }
        return isClosing
        #else
        return false
        #endif
    }

    /// `TCP_CLOSE_WAIT` of Linux.
    private static let closeWait: UInt8 = 8

    private func refill() {
        let now = NIODeadline.now()
        budget = min(budget + Double((now - lastRefill).nanoseconds) / 1e9 * Self.rate, Self.burst)
        lastRefill = now
    }

    private func read(_ bytes: UnsafeRawBufferPointer) {
        var index = min(prefaceBytes, bytes.count)
        prefaceBytes -= index
        while index < bytes.count {
            if contentBytes > 0 {
                let count = min(contentBytes, bytes.count - index)
                contentBytes -= count
                index += count
                continue
            }
            head.append(bytes[index])
            index += 1
            guard head.count == 9 else { continue }
            contentBytes = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
            switch head[3] {
            // DATA with content, and HEADERS. Both have limits of their own.
            case 0 where contentBytes > 0, 1: break
            // Frames of unknown types are read and dropped, however long they are.
            case 10...: budget -= 1 + Double(contentBytes) / 1_024
            default: budget -= 1
            }
            head.removeAll(keepingCapacity: true)
        }
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        budget = min(budget + Self.permittedByAnswer, Self.burst)
        context.write(data, promise: promise)
    }
}
