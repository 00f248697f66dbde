import Foundation
import TestSupport
import Testing
import VitrineModels

/// Bytes changed by chance, behind the checksum: reading them ends, in a value or an error.
@Suite struct MutationTests {
    /// 100,000 rounds; 500 times `VITRINE_ROUNDS` if that is set.
    private static let rounds = (ProcessInfo.processInfo.environment["VITRINE_ROUNDS"].flatMap { Int($0) } ?? 200) * 500

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

    @Test func anyBytesEndInAValueOrAnError() async throws {
        try await offPool {
            let coder = PersistentCoder(registry: TypeRegistry())
            var value = Everything()
            let animal = Dog("Rex")
            animal.friend = Animal("Tom")
            animal.friend?.friend = animal
            animal.chip = "C-1"
            value.animal = animal
            let bytes = try coder.encode(value)
            let schema = try coder.registry.schema(of: Everything.self)
            let body = bytes[10..<bytes.count - 4]
            var random = SeededGenerator(8)
            var failures = 0
            for round in 0..<Self.rounds {
                let mutated = Self.mutate(Array(body), &random)
                let isRead = mutated.withUnsafeBytes { bytes in
                    let value = try? coder.decode(Everything.self, fingerprint: schema.fingerprint, body: bytes)
                    if round % 4 == 0 {
                        _ = try? TreeReader.read(bytes, under: schema, registry: coder.registry, depthLimit: 256)
                    }
                    value?.animal?.friend = nil
                    return value != nil
                }
                if !isRead { failures += 1 }
            }
            #expect(failures > Self.rounds / 2)
            #expect(failures < Self.rounds)
            animal.friend = nil
        }
    }

    @Test func anySchemaEndsInASchemaOrAnError() throws {
        let registry = TypeRegistry()
        let schemas = try [registry.schema(of: Everything.self).encoded, registry.schema(of: Dog.self).encoded]
        let body = Array(try PersistentCoder(registry: registry).encode(Everything()).dropFirst(10).dropLast(4))
        var random = SeededGenerator(9)
        var accepted = 0
        for round in 0..<Self.rounds / 10 {
            guard let schema = try? Schema(encoded: Self.mutate(schemas[round % 2], &random), registry: registry) else {
                continue
            }
            accepted += 1
            // A false schema is no danger for the bytes either.
            _ = body.withUnsafeBytes {
                try? TreeReader.read($0, under: schema, registry: registry, depthLimit: 256)
            }
        }
        #expect(accepted > 0)
    }

    @Test func hostileCountsAllocateNothing() throws {
        let coder = PersistentCoder(registry: TypeRegistry())
        let fingerprint = try coder.registry.schema(of: [UUID].self).fingerprint
        // A count of 2^63 − 1 with nothing behind it.
        let bytes: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]
        #expect(throws: PersistenceError.self) {
            try bytes.withUnsafeBytes { try coder.decode([UUID].self, fingerprint: fingerprint, body: $0) }
        }
    }
}
