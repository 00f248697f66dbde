#if os(Linux)
import VitrineCore
import VitrineNetwork

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// One connection of a browser to the proxy: a request or a tunnel. For one thread.
struct PageProxyConnection {
    /// Milliseconds the browser has to send the head of its request.
    private static let patience = 30_000
    private static let chunk = 64 << 10
    /// The first byte of an encrypted connection: a handshake record (RFC 8446, section 5.1).
    private static let handshake: UInt8 = 0x16

    let browser: Int32
    let shared: PageProxy.Shared

    /// Serves the connection to its end.
    func serve() {
        var buffer: [UInt8] = []
        guard let end = readHead(into: &buffer) else { return }
        let head: ProxyRequestHead
        do {
            head = try ProxyRequestHead(parsing: Array(buffer[..<end]))
        } catch {
            return
        }
        let rest = Array(buffer[(end + 4)...])
        guard let (server, upstream) = connect(head) else {
            // Nothing that could be drawn as the page.
            if head.isTunnel { _ = send(Array("HTTP/1.1 502 Refused\r\nContent-Length: 0\r\n\r\n".utf8), to: browser) }
            return
        }
        defer { shared.remove(server) }
        if head.isTunnel {
            tunnel(head, rest: rest, server: server, upstream: upstream)
        } else if rest.count <= head.bodySize, send(head.bytes(toProxy: upstream) + rest, to: server) {
            exchange(head.bodySize - rest.count, server)
        }
    }

    // MARK: The request

    /// - Returns: Where the empty line begins that ends the head.
    private func readHead(into buffer: inout [UInt8]) -> Int? {
        let mark = Array("\r\n\r\n".utf8)
        let deadline = ContinuousClock.now + .milliseconds(Self.patience)
        var searched = 0
        while buffer.count < ProxyRequestHead.maximumBytes {
            let left = Int32(clamping: Int64((deadline - .now) / .milliseconds(1)))
            guard wait([(browser, Int16(POLLIN))], milliseconds: max(0, left)) != nil,
                receive(from: browser, into: &buffer) > 0
            else { return nil }
            if let found = buffer[max(0, searched - 3)...].firstRange(of: mark) { return found.lowerBound }
            searched = buffer.count
        }
        return nil
    }

    /// Connects to the first address of the host that is permitted and answers.
    private func connect(_ head: ProxyRequestHead) -> (server: Int32, upstream: UpstreamProxy?)? {
        guard let site = head.isTunnel ? tunnelSite(head.site) : head.site else { return nil }
        if let violation = shared.access.check(site) { return refuse(site, violation) }
        if let proxy = shared.network.proxies.proxy(for: site) { return connect(site, through: proxy) }
        let addresses: [IPAddress]
        switch site.host {
        case .address(let address): addresses = [address]
        case .name(let name): addresses = shared.network.resolve(name)
        }
        switch shared.access.permitted(addresses, of: site.host) {
        case .failure(let violation): return refuse(site, violation)
        case .success(let permitted):
            return open(permitted.filter { !isItself($0, site.port) }, site, for: site).map { ($0, nil) }
        }
    }

    /// The site of a tunnel with a scheme that may be loaded: unencrypted web sockets take tunnels as well.
    private func tunnelSite(_ site: SourceURL) -> SourceURL? {
        guard case .scheme? = shared.access.check(site) else { return site }
        return try? SourceURL("http://\(site.host.text):\(site.port)/")
    }

    private func isItself(_ address: IPAddress, _ port: Int) -> Bool {
        port == shared.port && (address.class == .loopback || address.class == .unspecified)
    }

    private func refuse(_ site: SourceURL, _ violation: PolicyViolation) -> (Int32, UpstreamProxy?)? {
        shared.access.refuse(site, violation)
        return nil
    }

    /// With the environment's proxy the addresses are that one's business, as for ``NetworkLoader``.
    private func connect(_ site: SourceURL, through proxy: String) -> (Int32, UpstreamProxy?)? {
        let policy = shared.access.policy
        guard policy.allowsPrivateAddresses || policy.trustsProxy else { return refuse(site, .addressesUnknown) }
        if case .address(let address) = site.host,
            case .failure(let violation) = shared.access.permitted([address], of: site.host)
        {
            return refuse(site, violation)
        }
        guard let upstream = UpstreamProxy(proxy) else { return nil }
        let addresses: [IPAddress]
        switch upstream.site.host {
        case .address(let address): addresses = [address]
        case .name(let name): addresses = shared.network.resolve(name)
        }
        return open(addresses, upstream.site, for: site).map { ($0, upstream) }
    }

    /// A connection to the first of the addresses that answers.
    private func open(_ addresses: [IPAddress], _ target: SourceURL, for site: SourceURL) -> Int32? {
        var reason = "there is no address for \(target.host.text)"
        for address in addresses {
            do throws(PageNetwork.Unreachable) {
                let socket = try shared.network.connect(address, target.port)
                return shared.add(socket) ? socket : nil
            } catch {
                reason = "no connection to \(address), port \(target.port): \(String(cString: strerror(error.code)))"
            }
        }
        shared.access.fail(site, reason)
        return nil
    }

    // MARK: The answer

    /// Passes the rest of the request's body on, and the response back with a head that ends the connection.
    private func exchange(_ bodySize: Int, _ server: Int32) {
        var left = bodySize
        var head: [UInt8]? = []
        var searched = 0
        while true {
            let events = Int16(POLLIN)
            guard let ready = wait([(server, events), (browser, events)]) else { return }
            if ready[1] {
                var bytes: [UInt8] = []
                guard receive(from: browser, into: &bytes) > 0, bytes.count <= left, send(bytes, to: server) else {
                    return
                }
                left -= bytes.count
            }
            guard ready[0] else { continue }
            var bytes = head ?? []
            let count = receive(from: server, into: &bytes)
            guard count > 0, shared.count(count) else { return }
            guard head != nil else {
                guard send(bytes, to: browser) else { return }
                continue
            }
            head = bytes
            while let pending = head, let end = ProxyResponseHead.end(in: pending, from: searched) {
                guard let new = try? ProxyResponseHead.rewritten(Array(pending[..<end])) else { return }
                let rest = Array(pending[end...])
                guard send(new.isInterim ? new.bytes : new.bytes + rest, to: browser) else { return }
                head = new.isInterim ? rest : nil
                searched = 0
            }
            if let pending = head {
                guard pending.count <= ProxyResponseHead.maximumBytes else { return }
                searched = max(0, pending.count - 2)
            }
        }
    }

    private func tunnel(_ head: ProxyRequestHead, rest: [UInt8], server: Int32, upstream: UpstreamProxy?) {
        if let upstream {
            // The other proxy's own answer tells the browser whether there is a tunnel.
            guard send(head.bytes(toProxy: upstream), to: server) else { return }
        } else {
            guard send(Array("HTTP/1.1 200 Connected\r\n\r\n".utf8), to: browser) else { return }
        }
        var isChecked = false
        if !rest.isEmpty {
            guard mayBegin(head.site, rest), send(rest, to: server) else { return }
            isChecked = true
        }
        while let ready = wait([(server, Int16(POLLIN)), (browser, Int16(POLLIN))]) {
            if ready[1] {
                var bytes: [UInt8] = []
                guard receive(from: browser, into: &bytes) > 0, isChecked || mayBegin(head.site, bytes),
                    send(bytes, to: server)
                else { return }
                isChecked = true
            }
            if ready[0] {
                var bytes: [UInt8] = []
                let count = receive(from: server, into: &bytes)
                guard count > 0, shared.count(count), send(bytes, to: browser) else { return }
            }
        }
    }

    /// Whether the policy allows the content of a tunnel, encrypted or not.
    private func mayBegin(_ site: SourceURL, _ bytes: [UInt8]) -> Bool {
        let scheme = bytes.first == Self.handshake ? "https" : "http"
        guard let actual = try? SourceURL("\(scheme)://\(site.host.text):\(site.port)/") else { return false }
        guard let violation = shared.access.check(actual) else { return true }
        shared.access.refuse(actual, violation)
        return false
    }

    // MARK: Sockets

    /// - Returns: Which of the sockets can be read from or have ended; nil after the time, or when waiting fails.
    private func wait(_ sockets: [(socket: Int32, events: Int16)], milliseconds: Int32 = -1) -> [Bool]? {
        var items = sockets.map { pollfd(fd: $0.socket, events: $0.events, revents: 0) }
        while true {
            let count = poll(&items, nfds_t(items.count), milliseconds)
            if count > 0 { return items.map { $0.revents != 0 } }
            guard count < 0, errno == EINTR else { return nil }
        }
    }

    private func receive(from socket: Int32, into bytes: inout [UInt8]) -> Int {
        var count = 0
        let more = [UInt8](unsafeUninitializedCapacity: Self.chunk) { buffer, filled in
            repeat { count = recv(socket, buffer.baseAddress, buffer.count, 0) } while count < 0 && errno == EINTR
            filled = max(0, count)
        }
        bytes += more
        return count
    }

    private func send(_ bytes: [UInt8], to socket: Int32) -> Bool {
        bytes.withUnsafeBytes { bytes in
            var done = 0
            while done < bytes.count {
                let count = sendCall(socket, UnsafeRawBufferPointer(rebasing: bytes[done...]))
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return false }
                done += count
            }
            return true
        }
    }

    private func sendCall(_ socket: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
        #if canImport(Glibc)
        Glibc.send(socket, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        #else
        Musl.send(socket, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        #endif
    }
}
#endif
