import ModelsSamples
import TestSupport
import VitrineModels

/// Changes bytes by chance, behind the checksum: whatever they are, reading them ends in a value or an error.
struct Fuzzing {
    private let seed: Int
    private let coder = PersistentCoder(registry: TypeRegistry())
    private let body: [UInt8]
    private let schema: Schema
    private let schemas: [[UInt8]]

    init(seed: Int) throws {
        self.seed = seed
        var value = Everything()
        let animal = Dog("Rex")
        animal.friend = Animal("Tom")
        animal.friend?.friend = animal
        animal.chip = "C-1"
        value.animal = animal
        body = Array(try coder.encode(value).dropFirst(10).dropLast(4))
        animal.friend = nil
        schema = try coder.registry.schema(of: Everything.self)
        schemas = [schema.encoded, try coder.registry.schema(of: Dog.self).encoded]
    }

    /// Reads so many mutated values, a quarter of them as trees as well, and a tenth as many schemas.
    func run(rounds: Int) throws {
        var random = SeededGenerator(UInt64(seed))
        var failures = 0, accepted = 0
        for round in 0..<rounds {
            if !isRead(Self.mutate(body, &random), alsoAsTree: round % 4 == 0) { failures += 1 }
        }
        for round in 0..<rounds / 10 {
            let mutated = Self.mutate(schemas[round % 2], &random)
            guard let schema = try? Schema(encoded: mutated, registry: coder.registry) else { continue }
            accepted += 1
            // A false schema is no danger for the bytes either.
            body.withUnsafeBytes { tree($0, schema) }
        }
        ModelsChild.report("failures \(failures)")
        ModelsChild.report("accepted \(accepted)")
    }

    private func isRead(_ bytes: [UInt8], alsoAsTree: Bool) -> Bool {
        bytes.withUnsafeBytes { bytes in
            if alsoAsTree { tree(bytes, schema) }
            let value = try? coder.decode(Everything.self, fingerprint: schema.fingerprint, body: bytes)
            value?.animal?.friend = nil
            return value != nil
        }
    }

    private func tree(_ bytes: UnsafeRawBufferPointer, _ schema: Schema) {
        _ = try? TreeReader.read(
            bytes, under: schema, registry: coder.registry, depthLimit: PersistentCoder.defaultDepthLimit)
    }

    private static func mutate(_ bytes: [UInt8], _ random: inout SeededGenerator) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<Int.random(in: 1...5, using: &random) where !bytes.isEmpty {
            let place = Int.random(in: 0..<bytes.count, using: &random)
            switch Int.random(in: 0..<6, using: &random) {
            case 0: bytes.removeLast(bytes.count - place)
            case 1: bytes.insert(contentsOf: random.bytes(Int.random(in: 1...9, using: &random)), at: place)
            case 2: bytes[place] = 0xFF
            case 3: bytes.remove(at: place)
            default: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            }
        }
        return bytes
    }
}
