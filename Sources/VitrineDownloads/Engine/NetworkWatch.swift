import CVitrineDownloads
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore

/// Reports changes of the machine's addresses or routes, after which unreachable hosts are retried.
///
/// It has a thread of its own. In some sandboxes the system does not report changes, and retries depend on their delays
/// alone.
final class NetworkWatch: Sendable {
    /// Closed to end the thread.
    private let end: Int32
    private let thread: BlockingExecutor

    /// - Parameter changed: Called on the watch's thread.
    init(_ changed: @escaping @Sendable () -> Void) {
        thread = BlockingExecutor(threads: 1, name: "vitrine-route")
        let routes = cdownloads_open_routes()
        var pipes: [Int32] = [-1, -1]
        guard routes >= 0, pipe(&pipes) == 0 else {
            if routes >= 0 { close(routes) }
            end = -1
            return
        }
        for pipe in pipes { _ = fcntl(pipe, F_SETFD, FD_CLOEXEC) }
        end = pipes[1]
        thread.submit { [wake = pipes[0]] in Self.run(routes, wake: wake, changed: changed) }
    }

    deinit {
        if end >= 0 { close(end) }
    }

    /// Whether this machine has a route to an address, or to the Internet for a host name. Nothing is sent.
    static func hasRoute(to host: String) -> Bool {
        let host = host.filter { $0 != "[" && $0 != "]" }
        if host.isEmpty || host == "localhost" || host.hasSuffix(".localhost") { return true }
        switch cdownloads_has_route(host) {
        case 0: return false
        case 1: return true
        // A name. These addresses are for documentation (RFC 5737) and the first of the global range.
        default: return cdownloads_has_route("198.51.100.1") == 1 || cdownloads_has_route("2000::1") == 1
        }
    }

    private static func run(_ routes: Int32, wake: Int32, changed: @Sendable () -> Void) {
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        var descriptors = [
            pollfd(fd: routes, events: Int16(POLLIN), revents: 0), pollfd(fd: wake, events: Int16(POLLIN), revents: 0),
        ]
        while poll(&descriptors, 2, -1) >= 0 || errno == EINTR {
            if descriptors[1].revents != 0 { break }
            guard descriptors[0].revents != 0 else { continue }
            // Any change counts, including one whose message was lost (ENOBUFS).
            let count = read(routes, &buffer, buffer.count)
            if count < 0, errno != ENOBUFS, errno != EAGAIN, errno != EINTR { break }
            changed()
        }
        close(routes)
        close(wake)
    }
}
