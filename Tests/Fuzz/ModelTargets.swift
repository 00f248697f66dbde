import ModelsSamples
import VitrineCache
import VitrineModels

extension FuzzTargets {
    static var models: [FuzzTarget] { [value, migration, tree, schema, document, json] }

    /// The bytes of a value between header and checksum, with an object that leads back to itself.
    private static let body: [UInt8] = {
        var value = Everything()
        let animal = Dog("Rex")
        animal.friend = Animal("Tom")
        animal.friend?.friend = animal
        animal.chip = "C-1"
        value.animal = animal
        let bytes = try? valueCoder.encode(value)
        animal.friend = nil
        return bytes.map { Array($0.dropFirst(10).dropLast(4)) } ?? []
    }()

    private static let value = FuzzTarget("models-value", seeds: { [body] }) { bytes in
        let coder = valueCoder
        let fingerprint = try coder.registry.schema(of: Everything.self).fingerprint
        let value = try bytes.withUnsafeBytes { try coder.decode(Everything.self, fingerprint: fingerprint, body: $0) }
        // Or the objects would keep each other.
        value.animal?.friend = nil
    }

    private static let valueCoder = PersistentCoder(registry: TypeRegistry())

    /// A value of an older version of its type, on its way to the present one.
    private static let migration = FuzzTarget(
        "models-migration",
        seeds: { [(try? oldCoder.encode(Dated<OldBuild>([1, -2]))).map { Array($0.dropFirst(10).dropLast(4)) } ?? []] }
    ) { bytes in
        let old = try oldCoder.registry.schema(of: Dated<OldBuild>.self)
        let coder = PersistentCoder(registry: TypeRegistry())
        _ = try coder.registry.schema(of: Dated<NewBuild>.self)
        let known = try Schema(encoded: old.encoded, registry: coder.registry)
        coder.registry.add(known)
        _ = try bytes.withUnsafeBytes {
            try coder.decode(Dated<NewBuild>.self, fingerprint: known.fingerprint, body: $0)
        }
    }

    private static let oldCoder = PersistentCoder(registry: TypeRegistry())

    private enum OldBuild: DatedBuild {
        static var version: SchemaVersion { "1" }
        static var properties: [DatedProperty] { [DatedProperty(name: "a"), DatedProperty(name: "b")] }
    }

    private enum NewBuild: DatedBuild {
        static var version: SchemaVersion { "2" }
        static var properties: [DatedProperty] {
            [
                DatedProperty(name: "c", defaultValue: 7), DatedProperty(name: "d", aliases: ["b"]),
                DatedProperty(name: "a"),
            ]
        }
    }

    private static let tree = FuzzTarget("models-tree", seeds: { [body] }) { bytes in
        try readTree(bytes, valueCoder.registry.schema(of: Everything.self))
    }

    private static func readTree(_ bytes: [UInt8], _ schema: Schema) throws {
        _ = try bytes.withUnsafeBytes {
            try TreeReader.read(
                $0, under: schema, registry: valueCoder.registry, depthLimit: PersistentCoder.defaultDepthLimit)
        }
    }

    /// A false schema is no danger for the bytes either.
    private static let schema = FuzzTarget(
        "models-schema",
        seeds: {
            let registry = TypeRegistry()
            return [try? registry.schema(of: Everything.self), try? registry.schema(of: Dog.self)].compactMap(
                \.?.encoded)
        }
    ) { bytes in
        try? readTree(body, Schema(encoded: bytes, registry: TypeRegistry()))
        _ = try Schema(encoded: bytes, registry: TypeRegistry())
    }

    private static let document = FuzzTarget(
        "models-json", .text,
        seeds: {
            var value = Everything()
            value.animal = Dog("Rex")
            let animal = Dog("Rex")
            animal.chip = "C-1"
            let coder = PersistentCoder()
            let values = [try? coder.encode(value), try? coder.encode(animal)]
            return values.compactMap { $0 }.compactMap { try? coder.json(of: $0) }.map { Array($0.utf8) }
        }
    ) { bytes in
        // Each with a registry of its own: documents bring schemas with them.
        let coder = PersistentCoder(registry: TypeRegistry())
        _ = try coder.registry.schema(of: Dog.self)
        _ = try coder.decode(Everything.self, fromJSON: String(decoding: bytes, as: UTF8.self))
    }

    private static let json = FuzzTarget(
        "json", .text,
        seeds: {
            [
                #"{"a": [1, -2.5e3, true, null, "b\u00e9\ud83d\ude00\n"], "c": {"d": 18446744073709551615}}"#,
                #"[[[[[]]]], {}, 0, -0, 1E400, 1e-400, "\\\/", 9223372036854775808]"#, "\"a\"", "-12",
                String(repeating: "[", count: 600),
            ].map { Array($0.utf8) }
        }
    ) { bytes in
        let value = try JSONValue(parsing: bytes)
        _ = value.bytes
        _ = value.cacheCost
        for number in value.array ?? [] { _ = (number.int, number.number?.uint64, number.double) }
        _ = try? value.decoded(as: [String: Int].self)
    }
}
