import Foundation
import HummingbirdCore
package import Logging
package import NIOCore
import NIOPosix
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A listening socket and its connections.
///
/// It accepts until ``stopAccepting()``; ``run()`` returns when the last connection has ended. ``quiesce()`` asks
/// connections to end: idle ones at once, others after their answer.
package final class HTTPListener: Sendable {
    package enum Endpoint: Sendable {
        case address(ListenAddress)
        case inherited(InheritedSocket)
    }

    private struct Connection {
        let channel: any Channel
        var isHTTP2 = false
        /// Whether a task serves it. Until then only this listener knows of it.
        var isServed = false
    }

    private struct State {
        var server: NIOAsyncChannel<HTTPConnectionSetup.Value, Never>?
        var connections: [ObjectIdentifier: Connection] = [:]
        var isStopped = false
        /// Whether connections that follow are closed at once.
        var hasEnded = false
    }

    /// Used in messages and metrics: `main` or `admin`.
    package let name: String
    package let endpoint: Endpoint
    private let setup: HTTPConnectionSetup
    private let maximumConnections: Int
    private let group: any EventLoopGroup
    private let logger: Logger
    private let state = Mutex(State())
    private let isPaused = Flag()

    /// A flag of several owners.
    private final class Flag: Sendable {
        private let value = Atomic(false)
        var isSet: Bool { value.load(ordering: .acquiring) }
        func set() { value.store(true, ordering: .releasing) }
    }

    /// Decides whether another connection is accepted.
    private struct Gate: AvailableConnectionsDelegate {
        let limit: Int
        let isPaused: Flag
        var count = 0

        mutating func connectionOpened() { count += 1 }
        mutating func connectionClosed() { count -= 1 }
        func isAcceptingNewConnections() -> Bool { count < limit && !isPaused.isSet }
    }

    package init(
        name: String, endpoint: Endpoint, setup: HTTPConnectionSetup, maximumConnections: Int,
        group: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton, logger: Logger
    ) {
        self.name = name
        self.endpoint = endpoint
        self.setup = setup
        self.maximumConnections = maximumConnections
        self.group = group
        self.logger = logger
    }

    /// Opens the socket. Clients can connect from now on.
    ///
    /// - Throws: ``ConfigurationError`` with the address and the reason.
    package func bind() async throws {
        let limit = maximumConnections
        let isPaused = isPaused
        let bootstrap = ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 4096)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        AvailableConnectionsChannelHandler(delegate: Gate(limit: limit, isPaused: isPaused)))
                }
            }
        let initializer: @Sendable (any Channel) -> EventLoopFuture<HTTPConnectionSetup.Value> = { channel in
            self.accept(channel)
            return self.setup.setup(channel: channel, logger: self.logger)
        }
        let server: NIOAsyncChannel<HTTPConnectionSetup.Value, Never>
        do {
            switch endpoint {
            case .address(.tcp(let host, let port)):
                server = try await bootstrap.bind(host: host, port: port, childChannelInitializer: initializer)
            case .address(.unix(let path)):
                try Self.removeUnusedSocket(path)
                server = try await bootstrap.bind(unixDomainSocketPath: path, childChannelInitializer: initializer)
            case .inherited(let socket):
                server = try await bootstrap.bind(socket.descriptor, childChannelInitializer: initializer)
            }
        } catch {
            throw ConfigurationError("\(name == "main" ? "bind" : "admin-bind"): \(Self.reason(error, endpoint))")
        }
        state.withLock { $0.server = server }
    }

    private static func reason(_ error: any Error, _ endpoint: Endpoint) -> String {
        let subject =
            switch endpoint {
            case .address(let address): address.description
            case .inherited(let socket): "descriptor \(socket.descriptor)"
            }
        switch error {
        case let error as SettingError: return "\(subject) \(error.reason)"
        case let error as IOError where error.errnoCode == EADDRINUSE: return "\(subject) is in use by another program"
        case let error as IOError where error.errnoCode == EACCES:
            return "\(subject) may not be used by this user"
        case let error as IOError where error.errnoCode == EADDRNOTAVAIL:
            return "\(subject) is not an address of this machine"
        case let error as IOError: return "\(subject) cannot be used: \(String(cString: strerror(error.errnoCode)))"
        case is SocketAddressError: return "\(subject) cannot be resolved"
        default: return "\(subject) cannot be used: \(error)"
        }
    }

    /// Removes the socket of a program that has ended. A socket that a program listens on stays.
    private static func removeUnusedSocket(_ path: String) throws {
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: path) else { return }
        guard attributes[.type] as? FileAttributeType == .typeSocket else {
            throw SettingError("is a file that is not a socket")
        }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        #if canImport(Glibc)
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        #else
        let descriptor = socket(AF_UNIX, SOCK_STREAM, 0)
        #endif
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        let connected = withUnsafeBytes(of: &address) { bytes in
            bytes.baseAddress.map {
                connect(descriptor, $0.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count)) == 0
            } ?? false
        }
        guard !connected else { throw SettingError("is in use by another program") }
        unlink(path)
    }

    /// Whether the service manager holds the socket, so that it stays open behind this process.
    package var isInherited: Bool { if case .inherited = endpoint { true } else { false } }

    /// The address that clients connect to; nil before ``bind()``.
    package var localAddress: SocketAddress? { state.withLock { $0.server?.channel.localAddress } }

    package var connectionCount: Int { state.withLock { $0.connections.count } }

    private var connections: [Connection] { state.withLock { Array($0.connections.values) } }

    /// Serves until the socket is closed and every connection has ended.
    package func run() async {
        guard let server = state.withLock({ $0.server }) else { return }
        await withDiscardingTaskGroup { group in
            do {
                try await server.executeThenClose { inbound in
                    for try await connection in inbound {
                        self.serve(connection)
                        group.addTask {
                            await self.setup.handle(value: connection, logger: self.logger)
                            self.remove(connection.channel)
                        }
                    }
                }
            } catch {
                if !state.withLock({ $0.isStopped }) {
                    logger.error("A listener failed", metadata: ["listener": "\(name)", "error": "\(error)"])
                }
            }
            closeUnserved()
        }
        if case .address(.unix(let path)) = endpoint { unlink(path) }
    }

    /// Keeps a connection in view from the beginning. NIO drops those that it is still setting up when the socket
    /// closes, and leaves them open.
    private func accept(_ channel: any Channel) {
        let key = ObjectIdentifier(channel)
        let hasEnded = state.withLock { state in
            state.connections[key] = Connection(channel: channel)
            return state.hasEnded
        }
        channel.closeFuture.whenComplete { _ in
            self.state.withLock { state in
                if state.connections[key]?.isServed == false { state.connections[key] = nil }
            }
        }
        if hasEnded { channel.close(promise: nil) }
    }

    /// Ends the connections that were accepted and reach no task any more.
    private func closeUnserved() {
        let channels = state.withLock { state in
            state.hasEnded = true
            return state.connections.values.filter { !$0.isServed }.map(\.channel)
        }
        for channel in channels { channel.close(promise: nil) }
    }

    private func serve(_ connection: HTTPConnectionSetup.Value) {
        let channel = connection.channel
        state.withLock {
            $0.connections[ObjectIdentifier(channel)] = Connection(channel: channel, isServed: true)
        }
        connection.negotiated.whenSuccess { negotiated in
            guard case .http2 = negotiated else { return }
            self.state.withLock { $0.connections[ObjectIdentifier(channel)]?.isHTTP2 = true }
        }
    }

    private func remove(_ channel: any Channel) {
        state.withLock { _ = $0.connections.removeValue(forKey: ObjectIdentifier(channel)) }
    }

    private static func quiesce(_ channel: any Channel) {
        channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
    }

    /// Tells HTTP/2 clients to use another connection for requests that follow. HTTP/1 clients learn it from answers.
    package func announceDrain() {
        for connection in connections where connection.isHTTP2 { setup.announceEnd(connection.channel) }
    }

    /// Leaves connections that follow in the queue of the socket, for the next process that listens on it.
    package func pauseAccepting() { isPaused.set() }

    /// Closes a socket that ``run()`` never served.
    package func abandon() async {
        guard let server = state.withLock({ $0.server }) else { return }
        try? await server.executeThenClose { _ in }
    }

    /// Closes the socket, and not the connections.
    package func stopAccepting() {
        let server = state.withLock { state in
            state.isStopped = true
            return state.server
        }
        server?.channel.close(promise: nil)
    }

    /// Ends idle connections, and those of HTTP/1 after their answer.
    package func quiesce() {
        for connection in connections {
            let channel = connection.channel
            if !connection.isHTTP2 {
                Self.quiesce(channel)
            } else if !setup.announceEnd(channel), setup.isIdle(channel) {
                // Its client was told by GOAWAY a while ago. Clients that keep such a connection must not hold the
                // stop.
                channel.close(promise: nil)
            }
        }
    }

    /// Ends every connection now.
    package func closeConnections() {
        for connection in connections { connection.channel.close(promise: nil) }
    }
}
