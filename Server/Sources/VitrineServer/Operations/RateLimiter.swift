import Dispatch
package import NIOCore
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The address of a client or proxy as 16 bytes; IPv4 is mapped into IPv6.
package struct ClientAddress: Sendable, Hashable, CustomStringConvertible {
    package let high: UInt64
    package let low: UInt64
    /// Whether the peer is on a Unix socket, which has no address.
    package let isUnix: Bool

    /// The peer on a Unix socket.
    package static let unix = ClientAddress(high: 0, low: 0, isUnix: true)

    package init(high: UInt64, low: UInt64, isUnix: Bool = false) {
        (self.high, self.low, self.isUnix) = (high, low, isUnix)
    }

    /// Reads `192.0.2.1`, `2001:db8::1` or, as some proxies write, `192.0.2.1:80` and `[2001:db8::1]:80`.
    package init?(_ text: some StringProtocol) {
        var text = String(text)
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            text = String(text[text.index(after: text.startIndex)..<end])
        } else if text.split(separator: ":", omittingEmptySubsequences: false).count == 2 {
            text = String(text.prefix { $0 != ":" })
        }
        // The 4 or 16 bytes of in_addr and in6_addr.
        var bytes = (UInt64(0), UInt64(0))
        if inet_pton(AF_INET, text, &bytes) == 1 {
            self = withUnsafeBytes(of: &bytes) { ClientAddress(ipv4: $0) }
        } else if inet_pton(AF_INET6, text, &bytes) == 1 {
            self = withUnsafeBytes(of: &bytes) { ClientAddress(ipv6: $0) }
        } else {
            return nil
        }
    }

    private init(ipv4 bytes: UnsafeRawBufferPointer) {
        self.init(high: 0, low: 0xFFFF_0000_0000 | UInt64(UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self))))
    }

    private init(ipv6 bytes: UnsafeRawBufferPointer) {
        self.init(
            high: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
            low: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
    }

    /// The other end of a connection; nil if it has no address.
    package init?(_ address: SocketAddress?) {
        switch address {
        // The offsets of sin_addr and sin6_addr are the same on all systems.
        case .v4(let address):
            self = withUnsafeBytes(of: address.address) { ClientAddress(ipv4: .init(rebasing: $0[4..<8])) }
        case .v6(let address):
            self = withUnsafeBytes(of: address.address) { ClientAddress(ipv6: .init(rebasing: $0[8..<24])) }
        case .unixDomainSocket: self = .unix
        case nil: return nil
        }
    }

    package var isIPv4: Bool { high == 0 && low >> 32 == 0xFFFF }

    /// The client that the limit counts: an IPv4 address, or an IPv6 network of 64 bits.
    package var client: ClientAddress { isIPv4 || isUnix ? self : ClientAddress(high: high, low: 0) }

    package var description: String {
        if isUnix { return "unix" }
        if isIPv4 { return [24, 16, 8, 0].map { String(low >> $0 & 0xFF) }.joined(separator: ".") }
        var six = (high.bigEndian, low.bigEndian)
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { buffer in
            guard let text = inet_ntop(AF_INET6, &six, buffer.baseAddress, socklen_t(buffer.count)) else { return "" }
            return String(cString: text)
        }
    }
}

/// An address or a network, for example `10.0.0.0/8`.
package struct AddressRange: Sendable, Hashable, CustomStringConvertible {
    private let address: ClientAddress
    /// From 0 to 128.
    private let bits: Int
    package let description: String

    package init(_ text: String) throws {
        description = text
        if text == "unix" {
            (address, bits) = (.unix, 128)
            return
        }
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        let problem = SettingError("“\(text)” is not an address or network")
        guard let address = ClientAddress(parts[0]) else { throw problem }
        let width = address.isIPv4 ? 32 : 128
        guard let bits = parts.count == 1 ? width : Int(parts[1]), (0...width).contains(bits) else { throw problem }
        self.address = address
        self.bits = bits + 128 - width
    }

    package func contains(_ other: ClientAddress) -> Bool {
        guard other.isUnix == address.isUnix else { return false }
        // A shift by the whole width or more gives 0.
        let (high, low) = (~(UInt64.max >> UInt64(min(bits, 64))), ~(UInt64.max >> UInt64(max(bits - 64, 0))))
        return (other.high ^ address.high) & high == 0 && (other.low ^ address.low) & low == 0
    }
}

/// Finds the client behind proxies.
package struct ClientLocator: Sendable {
    package var trustedProxies: [AddressRange]

    package init(trustedProxies: [AddressRange]) { self.trustedProxies = trustedProxies }

    /// The last address in `forwarded` that is not of a trusted proxy, if the peer is one; else the peer.
    ///
    /// - Parameter forwarded: Every X-Forwarded-For field, in their order.
    package func client(peer: ClientAddress, forwarded: [String]) -> ClientAddress {
        guard !trustedProxies.isEmpty, isTrusted(peer) else { return peer }
        var client = peer
        for entry in forwarded.joined(separator: ",").split(separator: ",").reversed() {
            // An entry that is no address was not written by a trusted proxy.
            guard let address = ClientAddress(entry.filter { $0 != " " && $0 != "\t" }) else { return client }
            client = address
            if !isTrusted(address) { return address }
        }
        return client
    }

    func isTrusted(_ address: ClientAddress) -> Bool { trustedProxies.contains { $0.contains(address) } }
}

/// A token bucket for each client, in a table of bounded size.
///
/// A bucket is one number, the time at which it is full again (the generic cell rate algorithm, ITU-T I.371). Buckets
/// are in two generations: if the newer is full, it becomes the older one, and the older one is forgotten.
package final class RateLimiter: Sendable {
    private struct State {
        /// Nanoseconds that one request costs.
        var cost: Int64
        /// Nanoseconds that a client may be ahead.
        var depth: Int64
        var newer: [ClientAddress: Int64] = [:]
        var older: [ClientAddress: Int64] = [:]
    }
    private let state: Mutex<State>
    private let capacity: Int

    /// - Parameters:
    ///   - rate: Requests a second of one client; 0 for no limit.
    ///   - burst: Requests of one client at once; 0 for those of two seconds, at least 1.
    ///   - clients: How many clients are known at once.
    package init(rate: Double, burst: Int, clients: Int) {
        capacity = max(clients / 2, 8)
        state = Mutex(Self.state(rate, burst))
    }

    private static func state(_ rate: Double, _ burst: Int) -> State {
        guard rate > 0 else { return State(cost: 0, depth: 0) }
        let cost = max(Int64(1e9 / max(rate, 1e-6)), 1)
        let requests = burst > 0 ? Int64(burst) : max(Int64(rate * 2), 1)
        return State(cost: cost, depth: cost.multipliedReportingOverflow(by: requests - 1).partialValue)
    }

    /// Applies new limits. Requests that were counted stay counted.
    package func configure(rate: Double, burst: Int) {
        let new = Self.state(rate, burst)
        state.withLock { ($0.cost, $0.depth) = (new.cost, new.depth) }
    }

    /// Counts a request.
    ///
    /// - Parameter now: Nanoseconds of a clock that never goes back.
    /// - Returns: Nil if the client may go on, else the seconds until it may.
    package func admit(_ client: ClientAddress, now: Int64 = monotonicNanoseconds()) -> Double? {
        let key = client.client
        return state.withLock { state in
            guard state.cost > 0 else { return nil }
            let full = max(state.newer[key] ?? state.older[key] ?? now, now)
            guard full - now <= state.depth else { return Double(full - now - state.depth) / 1e9 }
            if state.newer[key] == nil, state.newer.count >= capacity {
                state.older = state.newer
                state.newer = [:]
            }
            state.newer[key] = full + state.cost
            return nil
        }
    }

    /// The clients in the table.
    package var count: Int { state.withLock { $0.newer.count + $0.older.count } }
}

/// The time of a clock that never goes back, as systemd wants it too.
package func monotonicNanoseconds() -> Int64 {
    Int64(DispatchTime.now().uptimeNanoseconds)
}
