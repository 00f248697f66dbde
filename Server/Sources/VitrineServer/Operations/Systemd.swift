import Foundation
import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Tells the service manager about the state of the server: the protocol of sd_notify(3).
///
/// Without `NOTIFY_SOCKET` in the environment, every call does nothing.
package struct ServiceNotifier: Sendable {
    private let path: String?
    /// How often the service manager wants to hear from the server; nil for never.
    package let watchdogInterval: Duration?

    package init(environment: [String: String]) {
        let path = environment["NOTIFY_SOCKET"] ?? ""
        // A path, or an abstract name behind “@”.
        self.path = path.hasPrefix("/") || path.hasPrefix("@") ? path : nil
        let isOurs = environment["WATCHDOG_PID"].map { $0 == String(getpid()) } ?? true
        if isOurs, let microseconds = environment["WATCHDOG_USEC"].flatMap({ Int64($0) }), microseconds > 0 {
            // Half of the time, as sd_watchdog_enabled(3) recommends.
            watchdogInterval = .microseconds(microseconds / 2)
        } else {
            watchdogInterval = nil
        }
    }

    package func ready(status: String) { send("READY=1\nSTATUS=\(status)\nMAINPID=\(getpid())") }
    package func reloading() { send("RELOADING=1\nMONOTONIC_USEC=\(monotonicNanoseconds() / 1000)") }
    package func stopping() { send("STOPPING=1") }
    package func watchdog() { send("WATCHDOG=1") }

    /// Failures are left unsaid: the server works without a service manager.
    private func send(_ text: String) {
        guard let path else { return }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var name = Array(path.utf8)
        guard name.count < MemoryLayout.size(ofValue: address.sun_path) else { return }
        if name[0] == UInt8(ascii: "@") { name[0] = 0 }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        // An abstract name is as long as the address says; a path ends with a zero.
        let start = MemoryLayout.offset(of: \sockaddr_un.sun_path) ?? 0
        let length = start + name.count + (name[0] == 0 ? 0 : 1)
        #if canImport(Glibc)
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        #else
        let descriptor = socket(AF_UNIX, SOCK_DGRAM, 0)
        #endif
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        let bytes = Array(text.utf8)
        withUnsafeBytes(of: &address) { address in
            guard let address = address.baseAddress?.assumingMemoryBound(to: sockaddr.self) else { return }
            _ = sendto(descriptor, bytes, bytes.count, 0, address, socklen_t(length))
        }
    }
}

/// A listening socket that the service manager opened: the protocol of sd_listen_fds(3).
package struct InheritedSocket: Sendable, Equatable {
    package var descriptor: Int32
    /// FileDescriptorName of the socket unit; `unknown` if there is none.
    package var name: String

    /// The sockets for this process; none if the environment names another process.
    ///
    /// - Throws: ``ConfigurationError`` if the environment is contradictory or a descriptor does not listen.
    package static func all(environment: [String: String]) throws -> [InheritedSocket] {
        guard let process = environment["LISTEN_PID"], let text = environment["LISTEN_FDS"] else { return [] }
        guard process == String(getpid()) else { return [] }
        guard let count = Int(text), (0...256).contains(count) else {
            throw ConfigurationError("LISTEN_FDS: “\(text)” is not a number of sockets")
        }
        let names = (environment["LISTEN_FDNAMES"] ?? "").split(separator: ":", omittingEmptySubsequences: false)
        let sockets = (0..<count).map { index in
            InheritedSocket(
                // SD_LISTEN_FDS_START
                descriptor: Int32(3 + index), name: index < names.count ? String(names[index]) : "unknown")
        }
        for socket in sockets {
            var listens: Int32 = 0
            var size = socklen_t(MemoryLayout<Int32>.size)
            guard getsockopt(socket.descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0, listens == 1 else {
                throw ConfigurationError("LISTEN_FDS: descriptor \(socket.descriptor) is not a listening socket")
            }
            // Programs that the server starts must not keep the socket open.
            _ = fcntl(socket.descriptor, F_SETFD, FD_CLOEXEC)
        }
        return sockets
    }

    /// Removes the variables, so that programs which the server starts do not take them for theirs.
    package static func clearEnvironment() {
        for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] { unsetenv(name) }
    }

    private static func address(of address: SocketAddress) -> ListenAddress? {
        guard let host = ClientAddress(address), let port = address.port else { return nil }
        return .tcp(host: host.description, port: port)
    }

    /// The address that the socket is bound to.
    package var address: ListenAddress? {
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutableBytes(of: &storage) { bytes -> ListenAddress? in
            guard let base = bytes.baseAddress,
                getsockname(descriptor, base.assumingMemoryBound(to: sockaddr.self), &size) == 0
            else { return nil }
            // Not by a member of `sockaddr`: in which module the compiler finds it depends on what was compiled before.
            #if canImport(Darwin)
            let family = Int32(bytes[1])
            #else
            let family = Int32(base.loadUnaligned(as: sa_family_t.self))
            #endif
            switch family {
            case AF_UNIX: return .unix("")
            case AF_INET: return Self.address(of: SocketAddress(base.loadUnaligned(as: sockaddr_in.self)))
            case AF_INET6: return Self.address(of: SocketAddress(base.loadUnaligned(as: sockaddr_in6.self)))
            default: return nil
            }
        }
    }
}
