

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

#if os(Linux)
import VitrineCore
import VitrineNetwork

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// How the proxy of a page finds hosts and connects to them.
package struct PageNetwork: Sendable {
    /// Why there is no connection: an `errno`.
    package struct Unreachable: Error {
        package var code: Int32
        package init(code: Int32) { self.code = code }
    }

    /// A host's name translated to its addresses, in the order they are tried. Blocks.
    package var resolve: @Sendable (_ name: String) -> [IPAddress]
    /// Connects to an address that has been permitted, and returns the socket. Blocks.
    package var connect: @Sendable (_ address: IPAddress, _ port: Int) throws(Unreachable) -> Int32
    /// The proxies of the environment.
    package var proxies: ProxySettings

    package init(
        resolve: @escaping @Sendable (String) -> [IPAddress],
        connect: @escaping @Sendable (IPAddress, Int) throws(Unreachable) -> Int32, proxies: ProxySettings
    ) {
        self.resolve = resolve
        self.connect = connect
        self.proxies = proxies
    }

    /// The system's resolver, its network, and the proxies that the environment names.
    package static var system: PageNetwork {
        PageNetwork(
            resolve: addresses,
            connect: { address, port throws(Unreachable) in try PageSocket.connect(address, port: port) },
            proxies: ProxySettings { name in getenv(name).map { String(cString: $0) } })
    }

    private static func addresses(_ name: String) -> [IPAddress] {
        var hints = addrinfo()
        hints.ai_socktype = PageSocket.stream
        hints.ai_flags = AI_ADDRCONFIG
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(name, nil, &hints, &list) == 0 else { return [] }
        defer { freeaddrinfo(list) }
        var found: [IPAddress] = []
        var next = list
        while let entry = next, found.count < 32 {
            let address = PageSocket.address(entry.pointee.ai_addr)
            if let address, !found.contains(address) { found.append(address) }
            next = entry.pointee.ai_next
        }
        return found
    }
}

/// A proxy that connects in place of the page's own: that of the environment.
struct UpstreamProxy: Sendable, Hashable {
    let site: SourceURL
    /// The value of `Proxy-Authorization`.
    let authorization: String?

    /// - Returns: nil for a proxy that is not spoken to over plain HTTP.
    init?(_ text: String) {
        let url = text.contains("://") ? text : "http://" + text
        guard let site = try? SourceURL(url), site.scheme == "http" else { return nil }
        let authority = url.utf8.dropFirst(7).prefix { $0 != UInt8(ascii: "/") }
        let host = authority.lastIndex { $0 == UInt8(ascii: "@") || $0 == UInt8(ascii: "]") }
        // Without a port, curl(1) uses 1080.
        let hasPort = authority[(host ?? authority.startIndex)...].contains(UInt8(ascii: ":"))
        self.site = hasPort ? site : (try? SourceURL("http://\(site.host.text):1080/")) ?? site
        authorization = site.credentials.flatMap { PercentEncoding.validated($0.utf8) }.map {
            "Basic " + Data($0).base64EncodedString()
        }
    }
}

/// TCP sockets of the proxy.
package enum PageSocket {
    #if canImport(Glibc)
    static let stream = Int32(SOCK_STREAM.rawValue)
    private static let flags = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    #else
    static let stream = Int32(SOCK_STREAM)
    private static let flags = Int32(SOCK_STREAM) | Int32(SOCK_CLOEXEC)
    #endif

    /// Milliseconds an address has to take a connection.
    private static let patience: Int32 = 15_000

    /// A socket connected to an address.
    package static func connect(_ address: IPAddress, port: Int) throws(PageNetwork.Unreachable) -> Int32 {
        let result: (socket: Int32, code: Int32)? = withAddress(address, port: port) { family, name, length in
            let socket = open(family)
            guard socket >= 0 else { return (-1, errno) }
            let mode = fcntl(socket, F_GETFL)
            _ = fcntl(socket, F_SETFL, mode | O_NONBLOCK)
            var code: Int32 = 0
            if connectCall(socket, name: name, length: length) != 0 {
                code = errno
                var item = pollfd(fd: socket, events: Int16(POLLOUT), revents: 0)
                if code == EINPROGRESS {
                    code = ETIMEDOUT
                    var size = socklen_t(MemoryLayout<Int32>.size)
                    if poll(&item, 1, patience) == 1 { getsockopt(socket, SOL_SOCKET, SO_ERROR, &code, &size) }
                }
            }
            if code == 0, fcntl(socket, F_SETFL, mode) != 0 { code = errno }
            if code != 0 { close(socket) }
            return (socket, code)
        }
        guard let result, result.code == 0 else { throw PageNetwork.Unreachable(code: result?.code ?? EINVAL) }
        return result.socket
    }

    /// A socket that listens on the loopback interface, and its port.
    static func listen() throws(FileError) -> (socket: Int32, port: Int) {
        let result: (socket: Int32, port: Int)? = withAddress(.v4(0x7F00_0001), port: 0) { family, name, length in
            let socket = open(family)
            guard socket >= 0 else { return nil }
            var bound = sockaddr_in()
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isListening = bind(socket, name, length) == 0 && listenCall(socket) == 0
                && withUnsafeMutablePointer(to: &bound) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &size) == 0 }
                }
            guard isListening else {
                let code = errno
                close(socket)
                errno = code
                return nil
            }
            return (socket, Int(UInt16(bigEndian: bound.sin_port)))
        }
        guard let result else { throw FileError(operation: "listen", path: "127.0.0.1", code: errno) }
        return result
    }

    static func address(_ name: UnsafePointer<sockaddr>?) -> IPAddress? {
        guard let name else { return nil }
        switch Int32(name.pointee.sa_family) {
        case AF_INET:
            return name.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                .v4(UInt32(bigEndian: $0.pointee.sin_addr.s_addr))
            }
        case AF_INET6:
            return name.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { name in
                withUnsafeBytes(of: name.pointee.sin6_addr) { IPAddress(bytes: $0) }
            }
        default: return nil
        }
    }

    private static func open(_ family: Int32) -> Int32 { socket(family, flags, 0) }

    // Functions of their own, as the methods hide those of the system.
    private static func connectCall(_ socket: Int32, name: UnsafePointer<sockaddr>, length: socklen_t) -> Int32 {
        #if canImport(Glibc)
        Glibc.connect(socket, name, length)
        #else
        Musl.connect(socket, name, length)
        #endif
    }

    private static func listenCall(_ socket: Int32) -> Int32 {
        #if canImport(Glibc)
        Glibc.listen(socket, 64)
        #else
        Musl.listen(socket, 64)
        #endif
    }

    private static func withAddress<T>(
        _ address: IPAddress, port: Int, _ body: (Int32, UnsafePointer<sockaddr>, socklen_t) -> T?
    ) -> T? {
        guard let port = UInt16(exactly: port) else { return nil }
        switch address {
        case .v4(let value):
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            name.sin_port = in_port_t(port.bigEndian)
            name.sin_addr.s_addr = in_addr_t(value.bigEndian)
            return withUnsafePointer(to: &name) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    body(AF_INET, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        case .v6(let value):
            var name = sockaddr_in6()
            name.sin6_family = sa_family_t(AF_INET6)
            name.sin6_port = in_port_t(port.bigEndian)
            withUnsafeMutableBytes(of: &name.sin6_addr) { bytes in
                for index in 0..<16 { bytes[index] = UInt8(truncatingIfNeeded: value >> UInt128(120 - 8 * index)) }
            }
            return withUnsafePointer(to: &name) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    body(AF_INET6, $0, socklen_t(MemoryLayout<sockaddr_in6>.size))
                }
            }
        }
    }
}
#endif
