#if os(Linux)
import Foundation

/// A port of 127.0.0.1 that refuses connections, and that nobody else gets by chance as long as this lives.
///
/// It is bound without being listened to. A server that is told the number, and sets `SO_REUSEADDR` as servers do, can
/// have it; who asks for any free port is given another.
package final class ReservedPort: Sendable {
    package let number: Int
    private let socket: Int32

    package init() throws {
        socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var one: Int32 = 1
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
        var address = LoopbackServer.address(0), size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { [socket] pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(socket, address, size) == 0 && getsockname(socket, address, &size) == 0
            }
        }
        number = Int(in_port_t(bigEndian: address.sin_port))
        guard isBound else { throw POSIXError(.EADDRINUSE) }
    }

    deinit { close(socket) }
}
#endif
