/// One parser, what it is fed at first, and how bytes get to it.
struct FuzzTarget: Sendable {
    enum Kind: Sendable {
        /// Numbers of fixed width: flipped, overwritten, cut.
        case binary
        /// Also with long numbers in the place of digits.
        case text
    }

    let name: String
    let kind: Kind
    let seeds: @Sendable () -> [[UInt8]]
    /// Makes checksums right again, which would keep mutations from what lies behind them; half of the inputs get it.
    let repair: (@Sendable ([UInt8]) -> [UInt8])?
    /// Parses; what it throws is an answer like any other.
    let parse: @Sendable ([UInt8]) throws -> Void

    init(
        _ name: String, _ kind: Kind = .binary, seeds: @escaping @Sendable () -> [[UInt8]],
        repair: (@Sendable ([UInt8]) -> [UInt8])? = nil, parse: @escaping @Sendable ([UInt8]) throws -> Void
    ) {
        (self.name, self.kind, self.seeds, self.repair, self.parse) = (name, kind, seeds, repair, parse)
    }

    /// A parser of text, with seeds in the source.
    init(text name: String, _ seeds: [String], parse: @escaping @Sendable (String) throws -> Void) {
        self.init(name, .text, seeds: { seeds.map { Array($0.utf8) } }) { bytes in
            try parse(String(decoding: bytes, as: UTF8.self))
        }
    }
}

enum FuzzTargets {
    /// All of them; the slowest first, so that two processes side by side end at about the same time.
    static let all: [FuzzTarget] =
        decoders + compression + corpus + headers + models + network + downloads + texts + wire
}
