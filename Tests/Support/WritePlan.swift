/// What a writing child does, batch by batch: the same for the same seed, so that who watches it knows what it did.
package struct WritePlan: Sendable {
    package enum Operation: Sendable {
        case set(SampleEntry)
        case remove(Int)
        case removeAll
    }

    /// Distinguishes one run of a child from the next.
    package var seed: Int
    /// Keys that are written.
    package var keys: Int
    package var sizes: SampleEntry.Sizes

    package init(seed: Int, keys: Int, sizes: SampleEntry.Sizes = .mixed) {
        self.seed = seed
        self.keys = keys
        self.sizes = sizes
    }

    /// Whether the plan writes this entry in some batch.
    package func contains(_ entry: SampleEntry) -> Bool {
        guard entry.version >> 24 == seed else { return false }
        let index = entry.version & 63
        let operations = operations(batch: entry.version >> 6 & 0x3FFFF)
        guard index < operations.count, case .set(let planned) = operations[index] else { return false }
        return planned == entry
    }

    /// The operations of a batch in order. After a batch the child flushes and reports the batch's number.
    package func operations(batch: Int) -> [Operation] {
        var random = SeededGenerator(UInt64(seed) << 32 | UInt64(batch))
        return (0..<Int.random(in: 1...24, using: &random)).map { index in
            let number = Int.random(in: 0..<keys, using: &random)
            switch Int.random(in: 0..<400, using: &random) {
            case 0: return .removeAll
            case 1...40: return .remove(number)
            default: return .set(SampleEntry(number: number, version: seed << 24 | batch << 6 | index))
            }
        }
    }
}
