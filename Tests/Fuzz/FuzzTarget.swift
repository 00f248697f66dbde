import TestSupport

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
    /// Files to begin with. At least one must be accepted.
    let seeds: @Sendable () -> [[UInt8]]
    /// Makes a file whose structure is right; half of the inputs are made by it.
    let generate: (@Sendable (inout FuzzRandom) -> [UInt8])?
    /// Makes checksums right again, which would keep mutations from what lies behind them; half of the inputs get it.
    let repair: (@Sendable ([UInt8]) -> [UInt8])?
    /// The pixels that the limits of the target allow, which may cost time in addition to the bytes.
    let pixels: Int
    /// Whether it decodes pictures, of which a part may be all there is.
    let givesPictures: Bool
    /// Parses; what it throws is an answer like any other. Gives the samples of a picture, which must not depend on
    /// what fresh memory held before; nil for anything else.
    let parse: @Sendable ([UInt8]) throws -> [[UInt8]]?

    init(
        _ name: String, _ kind: Kind = .binary, seeds: @escaping @Sendable () -> [[UInt8]],
        generate: (@Sendable (inout FuzzRandom) -> [UInt8])? = nil,
        repair: (@Sendable ([UInt8]) -> [UInt8])? = nil, parse: @escaping @Sendable ([UInt8]) throws -> Void
    ) {
        (self.name, self.kind, self.seeds, self.generate, self.repair) = (name, kind, seeds, generate, repair)
        (pixels, givesPictures) = (1 << 18, false)
        self.parse = { bytes in
            try parse(bytes)
            return nil
        }
    }

    /// A decoder of pictures.
    init(
        _ name: String, seeds: @escaping @Sendable () -> [[UInt8]],
        generate: (@Sendable (inout FuzzRandom) -> [UInt8])? = nil,
        repair: (@Sendable ([UInt8]) -> [UInt8])? = nil, pixels: Int,
        samples: @escaping @Sendable ([UInt8]) throws -> [[UInt8]]
    ) {
        (self.name, kind, self.seeds, self.generate, self.repair) = (name, .binary, seeds, generate, repair)
        (self.pixels, givesPictures) = (pixels, true)
        parse = samples
    }

    /// A parser of text, with seeds in the source.
    init(text name: String, _ seeds: [String], parse: @escaping @Sendable (String) throws -> Void) {
        self.init(name, .text, seeds: { seeds.map { Array($0.utf8) } }) { bytes in
            try parse(String(decoding: bytes, as: UTF8.self))
        }
    }

    /// The seeds, and with a generator some files of it, the same each time.
    func beginnings(generated count: Int) -> [[UInt8]] {
        var result = seeds().filter { $0.count <= FuzzMutator.maximumCount }
        guard let generate else { return result }
        var random = FuzzRandom(7)
        for _ in 0..<count { result.append(generate(&random)) }
        return result
    }
}

enum FuzzTargets {
    /// All of them; the slowest first, so that two processes side by side end at about the same time. The whole files
    /// of the shared folders only where these are.
    static let all: [FuzzTarget] =
        decoders + compression + (Corpus.isAvailable ? corpus : []) + headers + models + network + downloads + texts
        + wire
}
