/// A block of addresses: all that begin with the same bits.
public struct AddressRange: Sendable, Hashable {
    /// The first address.
    public let base: IPAddress
    /// How many bits are the same.
    public let prefix: Int

    /// Reads `10.0.0.0/8`, `fc00::/7`, or one address.
    ///
    /// - Returns: nil for anything else.
    public init?(_ text: String) {
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

    /// Whether an address lies in it. IPv4 addresses lie in ranges of IPv4 only.
    public func contains(_ address: IPAddress) -> Bool {
        switch (base, address) {
        case (.v4(let base), .v4(let value)): prefix == 0 || (base ^ value) >> UInt32(32 - prefix) == 0
        case (.v6(let base), .v6(let value)): prefix == 0 || (base ^ value) >> UInt128(128 - prefix) == 0
        default: false
        }
    }
}
