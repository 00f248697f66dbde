#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// An IP address, version 4 or 6.
package enum IPAddress: Sendable, Hashable {
    /// Four bytes, the first in the highest bits.
    case v4(UInt32)
    /// Sixteen bytes, the first in the highest bits. Zones are not part of the address.
    case v6(UInt128)

    /// Parses an address in its usual notation: `192.0.2.1`, `2001:db8::1`, `::ffff:192.0.2.1`.
    ///
    /// - Returns: nil for anything else, including other number notations, leading zeros, brackets and zones.
    package init?(_ text: String) {
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

    /// Creates an address from 4 or 16 bytes, or returns nil for another number of bytes.
    package init?(bytes: some Collection<UInt8>) {
        switch bytes.count {
        case 4: self = .v4(bytes.reduce(0) { $0 << 8 | UInt32($1) })
        case 16: self = .v6(bytes.reduce(0) { $0 << 8 | UInt128($1) })
        default: return nil
        }
    }
}

extension IPAddress: CustomStringConvertible {
    /// The usual notation, for IPv6 that of RFC 5952.
    package var description: String {
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

/// A block of addresses that begin with the same bits.
package struct AddressRange: Sendable, Hashable {
    /// The first address.
    package let base: IPAddress
    /// The number of common bits.
    package let prefix: Int

    /// Parses `10.0.0.0/8`, `fc00::/7`, or a single address.
    ///
    /// - Returns: nil for anything else.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = parts.first.flatMap({ IPAddress(String($0)) }) else { return nil }
        let bits = if case .v4 = address { 32 } else { 128 }
        var prefix = bits
        if parts.count > 1 {
            guard let number = Int(parts[1]), (0...bits).contains(number), !parts[1].hasPrefix("+") else { return nil }
            prefix = number
        }
        base = address
        self.prefix = prefix
    }

    init(_ base: IPAddress, _ prefix: Int) {
        self.base = base
        self.prefix = prefix
    }

    /// Returns whether the range contains an address. IPv4 addresses are contained in IPv4 ranges only.
    package func contains(_ address: IPAddress) -> Bool {
        switch (base, address) {
        case (.v4(let base), .v4(let value)): prefix == 0 || (base ^ value) >> UInt32(32 - prefix) == 0
        case (.v6(let base), .v6(let value)): prefix == 0 || (base ^ value) >> UInt128(128 - prefix) == 0
        default: false
        }
    }
}

extension IPAddress {
    /// The purpose of an address.
    package enum Class: Sendable, Hashable {
        /// A host of the public Internet.
        case `public`
        /// This computer.
        case loopback
        /// No host: "this network", "unspecified".
        case unspecified
        /// The same link, and the metadata services of cloud providers, wherever they are.
        case linkLocal
        /// A private network.
        case `private`
        /// The network between a provider and its customers.
        case carrierGrade
        /// A group of hosts.
        case multicast
        /// All hosts of a network.
        case broadcast
        /// Reserved for documentation, benchmarks, protocols and future use.
        case reserved
    }

    /// The purpose of the address according to the registries of IANA.
    ///
    /// The sources are the "IPv4 Special-Purpose Address Registry", the "IPv6 Special-Purpose Address Registry" (RFC
    /// 6890), and "Internet Protocol Version 6 Address Space" (RFC 4291). Only 2000::/3 is assigned to public hosts;
    /// all other IPv6 space is ``Class/reserved``. Special-purpose blocks are not public, even if the registries call a
    /// part of them globally reachable.
    ///
    /// An IPv6 address that embeds an IPv4 address has the class of the embedded address, because a translator connects
    /// to that, unless only its own range is not public.
    package var `class`: Class { classes.first { $0 != .public } ?? .public }

    /// The purposes of each embedded IPv4 address, and of the address itself. A connection may lead to any of them.
    package var classes: [Class] { embeddedIPv4.map(\.rangeClass) + [rangeClass] }

    /// The purpose of the range that the address is in.
    private var rangeClass: Class {
        if let special = Self.special.first(where: { $0.range.contains(self) }) { return special.class }
        guard case .v6 = self, !Self.globalUnicast.contains(self) else { return .public }
        return Self.translated.contains { $0.contains(self) } ? .public : .reserved
    }

    /// The assigned unicast space (RFC 4291, 2.4, and the registry of the address space).
    private static let globalUnicast = v6(0x2000 << 112, 3)

    /// Addresses outside of it that translators connect to as the embedded IPv4 address (RFC 4291, 2.5.5.2, RFC 2765,
    /// RFC 6052).
    private static let translated = [v6(0xFFFF << 32, 96), v6(0xFFFF_0000 << 32, 96), v6(0x0064_FF9B << 96, 96)]

    /// The IPv4 addresses that an IPv6 address embeds in one of the standard forms.
    package var embeddedIPv4: [IPAddress] {
        guard case .v6(let value) = self else { return [] }
        let low = UInt32(truncatingIfNeeded: value)
        func bits(_ shift: UInt128) -> IPAddress { .v4(UInt32(truncatingIfNeeded: value >> shift)) }
        // IPv4-mapped ::ffff:0:0/96 (RFC 4291, 2.5.5.2), IPv4-translated ::ffff:0:0:0/96 (RFC 2765),
        // IPv4-compatible ::/96 (RFC 4291, 2.5.5.1); :: and ::1 are themselves.
        if value >> 32 == 0xFFFF || value >> 32 == 0xFFFF_0000 { return [.v4(low)] }
        if value >> 32 == 0 { return low > 1 ? [.v4(low)] : [] }
        // NAT64 64:ff9b::/96 (RFC 6052), and 64:ff9b:1::/48 for a provider's own (RFC 8215), where the address may
        // stand at any of the places of RFC 6052, 2.2.
        if value >> 32 == 0x0064_FF9B_0000_0000_0000_0000 { return [.v4(low)] }
        if value >> 80 == 0x0064_FF9B_0001 { return [.v4(low), nat64(value, 48), nat64(value, 56), nat64(value, 64)] }
        // 6to4 2002::/16 (RFC 3056).
        if value >> 112 == 0x2002 { return [bits(80)] }
        // Teredo 2001::/32 (RFC 4380): the server's address, and the client's with its bits inverted.
        if value >> 96 == 0x2001_0000 { return [bits(64), .v4(~low)] }
        // ISATAP (RFC 5214, 6.1): the interface identifier is 0000:5efe or 0200:5efe and the address.
        let identifier = UInt32(truncatingIfNeeded: value >> 32)
        if identifier == 0x0000_5EFE || identifier == 0x0200_5EFE { return [.v4(low)] }
        return []
    }

    /// The address after a prefix of this many bits. Bits 64 to 71 are skipped (RFC 6052, 2.2).
    private func nat64(_ value: UInt128, _ prefix: UInt128) -> IPAddress {
        let before = value >> 64 & 0xFFFF_FFFF_FFFF_FFFF, after = value & 0x00FF_FFFF_FFFF_FFFF
        // 120 bits without the octet between.
        let joined = before << 56 | after
        return .v4(UInt32(truncatingIfNeeded: joined >> (120 - prefix - 32)))
    }

    private static let special: [(range: AddressRange, class: Class)] = [
        // Metadata services, which return credentials, outside of 169.254.0.0/16: Alibaba Cloud, Azure, Oracle Cloud,
        // Amazon EC2, Google Cloud, Scaleway. They come before the ranges that they are in.
        (v4(a: 100, b: 100, c: 100, d: 200, prefix: 32), .linkLocal),
        (v4(a: 168, b: 63, c: 129, d: 16, prefix: 32), .linkLocal),
        (v4(a: 192, b: 0, c: 0, d: 192, prefix: 32), .linkLocal), (v6(0xFD00_0EC2 << 96, 32), .linkLocal),
        (v6(0xFD20_00CE << 96 | 0x254, 128), .linkLocal), (v6(0xFD00_0042 << 96 | 0x42, 128), .linkLocal),
        // RFC 791, 3.2: this network.
        (v4(a: 0, b: 0, c: 0, d: 0, prefix: 8), .unspecified),
        // RFC 1918.
        (v4(a: 10, b: 0, c: 0, d: 0, prefix: 8), .private), (v4(a: 172, b: 16, c: 0, d: 0, prefix: 12), .private),
        (v4(a: 192, b: 168, c: 0, d: 0, prefix: 16), .private),
        // RFC 6598.
        (v4(a: 100, b: 64, c: 0, d: 0, prefix: 10), .carrierGrade),
        // RFC 1122, 3.2.1.3.
        (v4(a: 127, b: 0, c: 0, d: 0, prefix: 8), .loopback),
        // RFC 3927. Metadata services of cloud providers use 169.254.169.254 and return credentials.
        (v4(a: 169, b: 254, c: 0, d: 0, prefix: 16), .linkLocal),
        // RFC 6890, 2.1: protocol assignments.
        (v4(a: 192, b: 0, c: 0, d: 0, prefix: 24), .reserved),
        // RFC 5737: examples.
        (v4(a: 192, b: 0, c: 2, d: 0, prefix: 24), .reserved), (v4(a: 198, b: 51, c: 100, d: 0, prefix: 24), .reserved),
        (v4(a: 203, b: 0, c: 113, d: 0, prefix: 24), .reserved),
        // RFC 7526: deprecated 6to4 relays.
        (v4(a: 192, b: 88, c: 99, d: 0, prefix: 24), .reserved),
        // RFC 2544: measurements.
        (v4(a: 198, b: 18, c: 0, d: 0, prefix: 15), .reserved),
        // RFC 5771.
        (v4(a: 224, b: 0, c: 0, d: 0, prefix: 4), .multicast),
        // RFC 919.
        (v4(a: 255, b: 255, c: 255, d: 255, prefix: 32), .broadcast),
        // RFC 1112, 4.
        (v4(a: 240, b: 0, c: 0, d: 0, prefix: 4), .reserved),
        // RFC 4291.
        (v6(0, 128), .unspecified), (v6(1, 128), .loopback), (v6(0xFE80 << 112, 10), .linkLocal),
        (v6(0xFF00 << 112, 8), .multicast),
        // RFC 3879: deprecated site-local addresses.
        (v6(0xFEC0 << 112, 10), .private),
        // RFC 4193.
        (v6(0xFC00 << 112, 7), .private),
        // RFC 6666: discard-only addresses. RFC 9780: dummy prefixes.
        (v6(0x0100 << 112, 64), .reserved), (v6(0x0100_0000_0000_0001 << 64, 64), .reserved),
        // RFC 2928: protocol assignments, with Teredo, benchmarks (RFC 5180) and ORCHID (RFC 7343).
        (v6(0x2001 << 112, 23), .reserved),
        // RFC 3849 and RFC 9637: examples.
        (v6(0x2001_0DB8 << 96, 32), .reserved), (v6(0x3FFF << 112, 20), .reserved),
        // RFC 9602: segment routing.
        (v6(0x5F00 << 112, 16), .reserved),
        // RFC 8215: translators of providers.
        (v6(0x0064_FF9B_0001 << 80, 48), .private),
    ]

    private static func v4(a: UInt32, b: UInt32, c: UInt32, d: UInt32, prefix: Int) -> AddressRange {
        AddressRange(.v4(a << 24 | b << 16 | c << 8 | d), prefix)
    }

    private static func v6(_ value: UInt128, _ prefix: Int) -> AddressRange { AddressRange(.v6(value), prefix) }
}
