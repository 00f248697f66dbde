#if os(Linux)
import VitrineCore
import VitrineNetwork

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The only way of a browser to other machines: an HTTP proxy on the loopback interface, made for one page.
///
/// The proxy resolves each host itself, asks the page's ``PageAccess`` for the addresses, and connects to exactly
/// those. A name that stands for another address the next time is checked the next time. One thread serves one
/// connection, and one connection one request or tunnel.
final class PageProxy: Sendable {
    /// Connections of the browser at a time; it opens fewer by itself.
    static let maximumConnections = 128
    /// Bytes that servers may send to one page.
    static let maximumBytes = 512 << 20

    /// The state that the threads share, so that they do not retain the proxy.
    final class Shared: Sendable {
        struct State {
            var isStopped = false
            var sockets: Set<Int32> = []
            var connections = 0
            var received = 0
        }

        let access: PageAccess
        let network: PageNetwork
        let port: Int
        let state = Locked(State())

        init(access: PageAccess, network: PageNetwork, port: Int) {
            self.access = access
            self.network = network
            self.port = port
        }

        /// Has a socket shut down with the proxy.
        ///
        /// - Returns: false when the proxy has stopped; the socket is closed then.
        func add(_ socket: Int32) -> Bool {
            state.withLock { state in
                guard !state.isStopped else {
                    close(socket)
                    return false
                }
                state.sockets.insert(socket)
                return true
            }
        }

        /// Closes a socket.
        func remove(_ socket: Int32) {
            // Under the lock, so that stop() does not shut down another with the same number.
            state.withLock { state in
                state.sockets.remove(socket)
                close(socket)
            }
        }

        /// Counts bytes of servers.
        ///
        /// - Returns: false when there are too many.
        func count(_ bytes: Int) -> Bool {
            state.withLock { state in
                state.received += bytes
                return state.received <= PageProxy.maximumBytes
            }
        }

        func stop() {
            state.withLock { state in
                state.isStopped = true
                for socket in state.sockets { shutdown(socket, Int32(SHUT_RDWR)) }
            }
        }
    }

    private let shared: Shared
    private let listener: Int32

    /// Where the browser finds it.
    var port: Int { shared.port }
    /// Whether servers sent more than ``maximumBytes``.
    var isOverrun: Bool { shared.state.withLock { $0.received > Self.maximumBytes } }
    /// Bytes that servers sent.
    var received: Int { shared.state.withLock { $0.received } }

    init(access: PageAccess, network: PageNetwork) throws(FileError) {
        let (socket, port) = try PageSocket.listen()
        (listener, shared) = (socket, Shared(access: access, network: network, port: port))
        guard shared.add(listener), Thread.start(name: "page-proxy", body: { [listener, shared] in
            Self.accept(listener, shared)
        }) else {
            shared.remove(listener)
            throw FileError(operation: "pthread_create", path: "page-proxy", code: EAGAIN)
        }
    }

    deinit { shared.stop() }

    private static func accept(_ listener: Int32, _ shared: Shared) {
        while true {
            let socket = acceptCall(listener)
            if socket < 0 {
                // No descriptors or memory are left: connections that end give some back.
                if [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(errno) { usleep(10_000) }
                else if ![EINTR, ECONNABORTED, EPROTO].contains(errno) { break }
                if shared.state.withLock({ $0.isStopped }) { break }
                continue
            }
            guard shared.add(socket) else { break }
            let hasRoom = shared.state.withLock { state in
                guard state.connections < maximumConnections else { return false }
                state.connections += 1
                return true
            }
            guard hasRoom else {
                shared.remove(socket)
                continue
            }
            let isStarted = Thread.start(name: "page-proxy") {
                PageProxyConnection(browser: socket, shared: shared).serve()
                shared.remove(socket)
                shared.state.withLock { $0.connections -= 1 }
            }
            if !isStarted {
                shared.remove(socket)
                shared.state.withLock { $0.connections -= 1 }
            }
        }
        shared.remove(listener)
    }

    private static func acceptCall(_ listener: Int32) -> Int32 {
        #if canImport(Glibc)
        let socket = Glibc.accept(listener, nil, nil)
        #else
        let socket = Musl.accept(listener, nil, nil)
        #endif
        if socket >= 0 { _ = fcntl(socket, F_SETFD, FD_CLOEXEC) }
        return socket
    }
}
#endif
