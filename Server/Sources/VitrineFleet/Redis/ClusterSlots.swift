/// The assignment of keys to the nodes of a Redis Cluster, by the specification of Redis Cluster.
package struct ClusterSlots: Sendable, Equatable {
    /// The number of slots.
    package static let count = 16_384

    /// The masters that have slots.
    package private(set) var addresses: [RedisConfiguration.Address] = []
    /// For each slot the index of its master; -1 for none.
    private var owners = [Int16](repeating: -1, count: count)

    /// Creates an assignment of no slots.
    package init() {}

    /// Reads the reply to `CLUSTER SLOTS`.
    ///
    /// - Parameter asked: The address of the node that replied, which stands for hosts that it leaves out.
    package init(reply: RESPValue, asked: RedisConfiguration.Address) throws(RedisError) {
        guard let ranges = reply.items else { throw .protocolViolation("CLUSTER SLOTS is not an array") }
        for range in ranges {
            guard let fields = range.items, fields.count >= 3, let first = fields[0].integer,
                let last = fields[1].integer, 0 <= first, first <= last, last < Self.count,
                let node = fields[2].items, node.count >= 2, let port = node[1].integer, (1...65_535).contains(port)
            else { throw .protocolViolation("CLUSTER SLOTS has a malformed range") }
            let host = node[0].text ?? ""
            assign(
                Int(first)...Int(last),
                to: .init(host.isEmpty || host == "?" ? asked.host : host, Int(port)))
        }
    }

    /// Assigns slots to a master.
    package mutating func assign(_ slots: ClosedRange<Int>, to address: RedisConfiguration.Address) {
        let index: Int
        if let known = addresses.firstIndex(of: address) {
            index = known
        } else {
            guard addresses.count < Int(Int16.max) else { return }
            index = addresses.count
            addresses.append(address)
        }
        for slot in slots { owners[slot] = Int16(index) }
    }

    /// The master of a slot.
    package subscript(slot: Int) -> RedisConfiguration.Address? {
        owners[slot] < 0 ? nil : addresses[Int(owners[slot])]
    }

    /// Whether each slot has a master.
    package var isComplete: Bool { !owners.contains(-1) }

    /// The slot of a key: of the part in its first braces if that is not empty, else of the whole key.
    package static func slot(of key: String) -> Int {
        let bytes = key.utf8
        if let open = bytes.firstIndex(of: UInt8(ascii: "{")) {
            let rest = bytes[bytes.index(after: open)...]
            if let close = rest.firstIndex(of: UInt8(ascii: "}")), close != rest.startIndex {
                return Int(checksum(rest[..<close])) % count
            }
        }
        return Int(checksum(bytes)) % count
    }

    /// CRC-16/XMODEM.
    package static func checksum(_ bytes: some Sequence<UInt8>) -> UInt16 {
        var value: UInt16 = 0
        for byte in bytes { value = value << 8 ^ table[Int(value >> 8) ^ Int(byte)] }
        return value
    }

    private static let table: [UInt16] = (0..<256).map { index in
        var value = UInt16(index) << 8
        for _ in 0..<8 { value = value & 0x8000 == 0 ? value << 1 : value << 1 ^ 0x1021 }
        return value
    }

    /// Where a node sends a command.
    package enum Redirection: Sendable, Equatable {
        /// The slot belongs to another node.
        case moved(slot: Int, RedisConfiguration.Address)
        /// The slot is on its way to another node, which has this key.
        case ask(RedisConfiguration.Address)

        /// Reads an error reply; nil if it is not a redirection.
        package init?(_ text: String, asked: RedisConfiguration.Address) {
            let parts = text.split(separator: " ")
            guard parts.count >= 3, let slot = Int(parts[1]), (0..<ClusterSlots.count).contains(slot),
                let colon = parts[2].lastIndex(of: ":"), let port = Int(parts[2][parts[2].index(after: colon)...]),
                (1...65_535).contains(port)
            else { return nil }
            let host = parts[2][..<colon]
            let address = RedisConfiguration.Address(host.isEmpty || host == "?" ? asked.host : String(host), port)
            switch parts[0] {
            case "MOVED": self = .moved(slot: slot, address)
            case "ASK": self = .ask(address)
            default: return nil
            }
        }
    }
}
