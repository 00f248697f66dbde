import Foundation

/// Why a socket could not be used.
struct SocketError: Error, CustomStringConvertible {
    let operation: String
    let code: Int32

    init(_ operation: String) {
        self.operation = operation
        code = errno
    }

    var description: String { "\(operation): \(String(cString: strerror(code)))" }
}

/// A socket on 127.0.0.1 that waits for connections.
struct Listener {
    private let socket: Int32
    /// The port it got.
    let port: UInt16

    init(port: UInt16) throws(SocketError) {
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard socket >= 0 else { throw SocketError("socket") }
        var one: Int32 = 1
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in.loopback(port)
        let isBound = address.withGeneric { bind(socket, $0, $1) == 0 }
        guard isBound, listen(socket, 512) == 0 else { throw SocketError("listen on port \(port)") }
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        _ = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &length) }
        }
        self.socket = socket
        self.port = UInt16(bigEndian: address.sin_port)
    }

    /// The next connection.
    func accept() throws(SocketError) -> Int32 {
        while true {
            let connection = Glibc.accept(socket, nil, nil)
            if connection >= 0 { return connection }
            guard errno == EINTR || errno == ECONNABORTED else { throw SocketError("accept") }
        }
    }
}

extension sockaddr_in {
    static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    mutating func withGeneric<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        withUnsafePointer(to: &self) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
        }
    }
}
