#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// An address of the Internet Protocol, version 4 or 6.
public enum IPAddress: Sendable, Hashable {
    /// Four bytes, the first in the highest bits.
    case v4(UInt32)
    /// Sixteen bytes, the first in the highest bits. Zones are not part of the address.
    case v6(UInt128)

    /// Reads an address in its usual notation: `192.0.2.1`, `2001:db8::1`, `::ffff:192.0.2.1`.
    ///
    /// - Returns: nil for anything else, also for numbers in other notations, leading zeros, brackets and zones.
    public init?(_ text: String) {
        var v4 = in_addr()
        var v6 = in6_addr()
        if inet_pton(AF_INET, text, &v4) == 1 {
            self = .v4(UInt32(bigEndian: v4.s_addr))
        } else if inet_pton(AF_INET6, text, &v6) == 1 {
            self = withUnsafeBytes(of: &v6) { .v6($0.reduce(0) { $0 << 8 | UInt128($1) }) }
        } else {
            return nil
        }
    }

    /// An address of 4 or 16 bytes.
    ///
    /// - Returns: nil for another number of bytes.
    public init?(bytes: some Collection<UInt8>) {
        switch bytes.count {
        case 4: self = .v4(bytes.reduce(0) { $0 << 8 | UInt32($1) })
        case 16: self = .v6(bytes.reduce(0) { $0 << 8 | UInt128($1) })
        default: return nil
        }
    }
}

extension IPAddress: CustomStringConvertible {
    /// The usual notation, for IPv6 that of RFC 5952.
    public var description: String {
        switch self {
        case .v4(let value):
            return "\(value >> 24).\(value >> 16 & 0xFF).\(value >> 8 & 0xFF).\(value & 0xFF)"
        case .v6(let value):
            var address = in6_addr()
            withUnsafeMutableBytes(of: &address) { bytes in
                for index in 0..<16 { bytes[index] = UInt8(truncatingIfNeeded: value >> UInt128(120 - 8 * index)) }
            }
            return withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { buffer in
                guard let base = buffer.baseAddress,
                    inet_ntop(AF_INET6, &address, base, socklen_t(INET6_ADDRSTRLEN)) != nil
                else { return "::" }
                return String(cString: base)
            }
        }
    }
}
