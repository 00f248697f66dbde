package import NIOCore
import Synchronization

/// Cancels work when the client closes its connection or resets its stream.
package enum ClientDeparture {
    /// Runs an operation, and cancels it when the channel becomes inactive or the client closes its side.
    ///
    /// Hummingbird's `consumeWithCancellationOnInboundClose` reads the connection itself and loses the next request of
    /// a kept connection, so a handler in the channel's pipeline listens instead. A half-closed connection counts as
    /// one that the client left.
    package static func cancelling<Value: Sendable>(
        _ channel: (any Channel)?, _ operation: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        guard let channel else { return try await operation() }
        let task = Task { try await operation() }
        let watch = DepartureWatch { task.cancel() }
        defer { watch.end() }
        channel.eventLoop.execute { DepartureHandler.add(watch, to: channel) }
        return try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            task.cancel()
        }
    }
}

/// A closure that runs at most once, and not after ``end()``.
final class DepartureWatch: Sendable {
    private let action: Mutex<(@Sendable () -> Void)?>

    init(_ action: @escaping @Sendable () -> Void) { self.action = Mutex(action) }

    var hasEnded: Bool { action.withLock { $0 == nil } }

    func end() { action.withLock { $0 = nil } }

    func fire() {
        let action = action.withLock { action in
            defer { action = nil }
            return action
        }
        action?()
    }
}

/// Notices the end of a connection, and the beginning of requests. ``ImageHTTP1Channel`` always has one. Other channels
/// get it when it is first needed, and may have ended unnoticed before.
final class DepartureHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    private var hasLeft = false
    private var watches: [DepartureWatch] = []
    private let patience: TimeAmount
    private var timer: Scheduled<Void>?
    /// Whether a client that closes its side waits for its answer, as it has said.
    var outlivesInput = false
    /// When the first byte of the current request came; nil between requests.
    var requestBegan: NIODeadline?

    /// The bytes that are being read, and the last ones before them. Only where bytes pass, and no frames.
    private var received: ByteBuffer?
    private var last: [UInt8] = []
    private let keepsBytes: Bool

    /// - Parameters:
    ///   - patience: How long a client counts as one that waits after it has closed its side. Default: 0.
    ///   - keepsBytes: Whether the bytes of a connection of HTTP/1 pass here.
    init(patience: TimeAmount = .zero, keepsBytes: Bool = false) {
        (self.patience, self.keepsBytes) = (patience, keepsBytes)
    }

    static func add(_ watch: DepartureWatch, to channel: any Channel) {
        guard channel.isActive else { return watch.fire() }
        let pipeline = channel.pipeline.syncOperations
        if let handler = try? pipeline.handler(type: DepartureHandler.self) { return handler.add(watch) }
        let handler = DepartureHandler()
        // Without a handler, the work is merely not cancelled.
        try? pipeline.addHandler(handler, position: .first)
        handler.add(watch)
    }

    private func add(_ watch: DepartureWatch) {
        if hasLeft { return watch.fire() }
        watches.removeAll(where: \.hasEnded)
        watches.append(watch)
    }

    private func leave() {
        hasLeft = true
        let gone = watches
        watches = []
        for watch in gone { watch.fire() }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if let event = event as? ChannelEvent, event == .inputClosed, !outlivesInput {
            if patience > .zero {
                let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
                timer = context.eventLoop.scheduleTask(in: patience) { bound.value.leave() }
            } else {
                leave()
            }
        }
        context.fireUserInboundEventTriggered(event)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard keepsBytes else { return context.fireChannelRead(data) }
        if requestBegan == nil { requestBegan = .now() }
        let bytes = unwrapInboundIn(data)
        received = bytes
        context.fireChannelRead(data)
        received = nil
        last = Array(bytes.readableBytesView.suffix(Self.longestProtocol))
    }

    private static let longestProtocol = 8

    /// Whether the bytes that are being read have a request line of another protocol than HTTP, which the parser of NIO
    /// reads as HTTP/1.0.
    var isOtherProtocol: Bool {
        let bytes = last + Array((received?.readableBytesView).map { $0.prefix(65_536) } ?? [])
        return [" RTSP/", " ICE/"].contains { name in
            let name = Array(name.utf8)
            return bytes.indices.contains { bytes[$0...].starts(with: name) }
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        end()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) { end() }

    private func end() {
        timer?.cancel()
        timer = nil
        leave()
    }
}
