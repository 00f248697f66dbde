import Foundation
public import NIOCore
import NIOPosix
package import NIOSSL
import NIOTLS
import Synchronization

/// A connection on which commands are sent without waiting for the replies of earlier ones.
package final class RedisConnection: Sendable {
    /// How to connect and log in.
    package struct Options: Sendable {
        package var username: String?
        package var password: String?
        package var database = 0
        package var tls: NIOSSLContext?
        package var tlsServerName: String?
        package var connectTimeout: Duration
        package var limits: RESPParser.Limits
        /// How many commands may wait for their replies.
        package var depth = 1_024

        /// Creates options without a login.
        package init(connectTimeout: Duration, limits: RESPParser.Limits) {
            (self.connectTimeout, self.limits) = (connectTimeout, limits)
        }
    }

    /// The server.
    package let address: RedisConfiguration.Address
    private let channel: any Channel
    private let handler: NIOLoopBound<RedisChannelHandler>
    private let waiting: Waiting
    private let depth: Int

    /// The state that the connection and its handler share.
    final class Waiting: Sendable {
        /// The number of commands without a reply.
        let count = Atomic(0)
    }

    private init(
        _ address: RedisConfiguration.Address, channel: any Channel, handler: NIOLoopBound<RedisChannelHandler>,
        waiting: Waiting, depth: Int
    ) {
        (self.address, self.channel, self.handler) = (address, channel, handler)
        (self.waiting, self.depth) = (waiting, depth)
    }

    /// Connects and logs in.
    ///
    /// - Parameters:
    ///   - push: Called on the event loop for each push, in order. It must not block.
    package static func connect(
        to address: RedisConfiguration.Address, _ options: Options, group: any EventLoopGroup,
        push: (@Sendable ([RESPValue]) -> Void)? = nil
    ) async throws(RedisError) -> RedisConnection {
        let waiting = Waiting()
        let (channel, handler) = try await channel(
            to: address, options: options, group: group, waiting: waiting, push: push)
        let connection = RedisConnection(
            address, channel: channel, handler: handler, waiting: waiting, depth: options.depth)
        do throws(RedisError) {
            try await connection.logIn(options)
        } catch {
            connection.close()
            throw error
        }
        return connection
    }

    private static func channel(
        to address: RedisConfiguration.Address, options: Options, group: any EventLoopGroup, waiting: Waiting,
        push: (@Sendable ([RESPValue]) -> Void)?
    ) async throws(RedisError) -> (any Channel, NIOLoopBound<RedisChannelHandler>) {
        let bootstrap = ClientBootstrap(group: group)
            .connectTimeout(TimeAmount(options.connectTimeout))
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelOption(.maxMessagesPerRead, value: 16)
            .channelOption(
                .recvAllocator,
                value: AdaptiveRecvByteBufferAllocator(minimum: 2_048, initial: 16_384, maximum: 262_144)
            )
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let tls = options.tls {
                        let name = options.tlsServerName ?? (isIPAddress(address.host) ? nil : address.host)
                        try channel.pipeline.syncOperations.addHandler(
                            try NIOSSLClientHandler(context: tls, serverHostname: name))
                    }
                    try channel.pipeline.syncOperations.addHandler(
                        RedisChannelHandler(
                            limits: options.limits, isSecured: options.tls == nil, waiting: waiting, push: push))
                }
            }
        do {
            return try await bootstrap.connect(host: address.host, port: address.port).flatMapThrowing { channel in
                let handler = try channel.pipeline.syncOperations.handler(type: RedisChannelHandler.self)
                return (channel, NIOLoopBound(handler, eventLoop: channel.eventLoop))
            }.get()
        } catch {
            throw RedisError(connecting: error, to: address)
        }
    }

    private static func isIPAddress(_ host: String) -> Bool {
        (try? SocketAddress(ipAddress: host, port: 0)) != nil
    }

    private func logIn(_ options: Options) async throws(RedisError) {
        var hello = RESPCommand("HELLO", "3")
        if let password = options.password {
            hello.arguments += ["AUTH", .text(options.username ?? "default"), .text(password)]
        }
        hello.arguments += ["SETNAME", "vitrine"]
        let reply = try await call(hello, timeout: options.connectTimeout)
        if case .error(let text) = reply {
            let error = RedisError(reply: text)
            // Servers that do not know HELLO answer ERR.
            guard case .server(let text) = error, text.hasPrefix("ERR") else { throw error }
            throw .resp3Unsupported(text)
        }
        guard reply["proto"]?.integer == 3 else { throw .resp3Unsupported("HELLO 3 was answered without RESP3") }
        guard options.database != 0 else { return }
        if case .error(let text) = try await call(
            RESPCommand("SELECT", "\(options.database)"), timeout: options.connectTimeout)
        {
            throw RedisError(reply: text)
        }
    }

    /// Sends a command and returns its reply, which may be ``RESPValue/error(_:)``.
    ///
    /// - Parameters:
    ///   - command: The command.
    ///   - isAsking: Whether the command is preceded by `ASKING`.
    ///   - timeout: After which time the reply is not awaited any more.
    /// - Throws: ``RedisError/timedOut``, ``RedisError/overloaded``, or the reason for which the connection ended.
    package func call(
        _ command: RESPCommand, isAsking: Bool = false, timeout: Duration
    ) async throws(RedisError) -> RESPValue {
        guard waiting.count.add(1, ordering: .relaxed).newValue <= depth else {
            waiting.count.subtract(1, ordering: .relaxed)
            throw .overloaded
        }
        var buffers = command.encoded()
        if isAsking { buffers = RESPCommand("ASKING").encoded() + buffers }
        let deadline = NIODeadline.now() + TimeAmount(timeout)
        return try await withCheckedContinuation { continuation in
            send(.init(buffers: buffers, skip: isAsking ? 1 : 0, deadline: deadline, reply: continuation))
        }.get()
    }

    /// Sends a command that is answered by a push.
    package func send(_ command: RESPCommand) {
        send(.init(buffers: command.encoded(), skip: 0, deadline: .distantFuture, reply: nil))
    }

    private func send(_ request: RedisChannelHandler.Request) {
        if channel.eventLoop.inEventLoop {
            handler.value.send(request)
        } else {
            channel.eventLoop.execute { [handler] in handler.value.send(request) }
        }
    }

    /// Whether the caller runs on the event loop of the connection, so that commands need no switch between threads.
    package var isOnEventLoop: Bool { channel.eventLoop.inEventLoop }

    /// Closes the connection. Commands without a reply fail.
    package func close() { channel.close(promise: nil) }

    /// Calls a closure when the connection is closed, at once if it is already.
    package func onClose(_ body: @escaping @Sendable () -> Void) {
        channel.closeFuture.whenComplete { _ in body() }
    }
}

extension TimeAmount {
    init(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        self = .nanoseconds(
            Int64(clamping: min(seconds, 1_000_000_000)) * 1_000_000_000 + attoseconds / 1_000_000_000)
    }
}

extension RedisError {
    init(connecting error: any Error, to address: RedisConfiguration.Address) {
        switch error {
        case let error as RedisError: self = error
        case let error as NIOSSLError: self = .tls("\(address): \(error)")
        case is NIOConnectionError, is IOError, is ChannelError:
            self = .unreachable("\(address) refuses connections or does not exist")
        default: self = .unreachable("\(address): \(error)")
        }
    }
}

/// Runs tasks on an event loop.
///
/// Look-ups of such tasks, on connections of the same event loop, need no switch between threads: a single caller gets
/// about three times as many values. Such tasks must not block or compute for long, because the connections of their
/// event loop wait for them.
///
/// ```swift
/// await withTaskExecutorPreference(EventLoopTaskExecutor(loop)) {
///     await tier.lookup(key)
/// }
/// ```
public final class EventLoopTaskExecutor: TaskExecutor {
    private let loop: any EventLoop

    /// Creates an executor for an event loop, which must not end before its tasks.
    public init(_ loop: any EventLoop) { self.loop = loop }

    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

/// Writes commands and assigns replies to them in order.
private final class RedisChannelHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer
    typealias Reply = CheckedContinuation<Result<RESPValue, RedisError>, Never>

    struct Request: Sendable {
        var buffers: [ByteBuffer]
        /// How many replies come before the one that counts.
        var skip: Int
        var deadline: NIODeadline
        /// nil for commands without a reply.
        var reply: Reply?
    }

    private struct Pending {
        var skip: Int
        var deadline: NIODeadline
        /// nil once the deadline has passed. The reply is still to come.
        var reply: Reply?
    }

    private var context: ChannelHandlerContext?
    private var pending = CircularBuffer<Pending>(initialCapacity: 64)
    private var parser: RESPParser
    /// Whether there is nothing to wait for before the first reply: no TLS, or a complete handshake.
    private var isSecured: Bool
    private var hasReceived = false
    private let waiting: RedisConnection.Waiting
    private let push: (@Sendable ([RESPValue]) -> Void)?
    private var isFlushing = false
    private var timer: (deadline: NIODeadline, task: Scheduled<Void>)?
    private var reason: RedisError?

    init(
        limits: RESPParser.Limits, isSecured: Bool, waiting: RedisConnection.Waiting,
        push: (@Sendable ([RESPValue]) -> Void)?
    ) {
        parser = RESPParser(limits: limits)
        (self.isSecured, self.waiting, self.push) = (isSecured, waiting, push)
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        failAll()
    }

    /// Writes a command. Runs on the event loop.
    func send(_ request: Request) {
        guard let context, reason == nil else {
            guard let reply = request.reply else { return }
            waiting.count.subtract(1, ordering: .relaxed)
            // A command that comes after the end has the reason of the end.
            reply.resume(returning: .failure(reason ?? .unreachable("the connection is closed")))
            return
        }
        if let reply = request.reply {
            pending.append(Pending(skip: request.skip, deadline: request.deadline, reply: reply))
            schedule(request.deadline, context)
        }
        for buffer in request.buffers { context.write(wrapOutboundOut(buffer), promise: nil) }
        guard !isFlushing else { return }
        // Commands of callers that run at the same time share one system call.
        isFlushing = true
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        context.eventLoop.execute {
            let (handler, context) = bound.value
            handler.isFlushing = false
            context.flush()
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        if !hasReceived, bytes.getInteger(at: bytes.readerIndex, as: UInt16.self) == Self.alert {
            return fail(.tls("the server uses TLS, and this client does not"), context)
        }
        hasReceived = true
        do throws(RedisError) {
            while let reply = try parser.next(&bytes) { try deliver(reply) }
        } catch {
            fail(error, context)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted? = event as? TLSUserEvent { isSecured = true }
        context.fireUserInboundEventTriggered(event)
    }

    /// The beginning of an alert of TLS (RFC 8446, section 5.1): a server answers so to bytes that are not TLS.
    private static let alert: UInt16 = 0x1503

    private func deliver(_ reply: RESPValue) throws(RedisError) {
        if case .push(let items) = reply {
            push?(items)
            return
        }
        guard var first = pending.popFirst() else { throw .protocolViolation("a reply to no command") }
        if first.skip > 0 {
            first.skip -= 1
            pending.prepend(first)
            return
        }
        waiting.count.subtract(1, ordering: .relaxed)
        first.reply?.resume(returning: .success(reply))
    }

    private func schedule(_ deadline: NIODeadline, _ context: ChannelHandlerContext) {
        if let timer, timer.deadline <= deadline { return }
        timer?.task.cancel()
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        timer = (
            deadline,
            context.eventLoop.scheduleTask(deadline: deadline) {
                let (handler, context) = bound.value
                handler.expire(context)
            }
        )
    }

    /// Fails the commands whose time has passed. Their replies are discarded when they come.
    private func expire(_ context: ChannelHandlerContext) {
        timer = nil
        let now = NIODeadline.now()
        var next: NIODeadline?
        for index in pending.indices where pending[index].reply != nil {
            if pending[index].deadline <= now {
                pending[index].reply?.resume(returning: .failure(isSecured ? .timedOut : .tlsTimedOut))
                pending[index].reply = nil
            } else {
                next = min(next ?? .distantFuture, pending[index].deadline)
            }
        }
        if let next { schedule(next, context) }
    }

    private func fail(_ error: RedisError, _ context: ChannelHandlerContext) {
        if reason == nil { reason = error }
        failAll()
        context.close(promise: nil)
    }

    private func failAll() {
        timer?.task.cancel()
        timer = nil
        let error = reason ?? .unreachable("the server closed the connection")
        reason = error
        while let next = pending.popFirst() {
            waiting.count.subtract(1, ordering: .relaxed)
            next.reply?.resume(returning: .failure(error))
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        failAll()
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case let error as NIOSSLError: fail(.tls("\(error)"), context)
        case let error as NIOSSLExtraError: fail(.tls("\(error)"), context)
        default: fail(.unreachable("\(error)"), context)
        }
    }
}
