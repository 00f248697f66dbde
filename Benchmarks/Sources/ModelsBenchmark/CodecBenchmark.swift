import Foundation
import VitrineModels

/// Values to bytes and back, one record each, and copies.
struct CodecBenchmark {
    let count: Int
    let rounds: Int

    func run() async throws {
        let orders = Order<First>.samples(count)
        let coder = PersistentCoder(registry: TypeRegistry())
        let encoder = JSONEncoder(), decoder = JSONDecoder()
        let bytes = try orders.map { try coder.encode($0) }
        let texts = try orders.map { try encoder.encode($0) }
        let areEqual = try zip(bytes, orders).allSatisfy { try coder.decode(Order<First>.self, from: $0) == $1 }
            && zip(texts, orders).allSatisfy { try decoder.decode(Order<First>.self, from: $0) == $1 }
        precondition(areEqual)
        let sizes = (bytes.reduce(0) { $0 + $1.count }, texts.reduce(0) { $0 + $1.count })
        print("bytes a record: \(sizes.1 / count) as JSON, \(sizes.0 / count) here:",
            String(format: "%.2f", Double(sizes.0) / Double(sizes.1)))
        var encoding = Comparison("encode", count: count, rounds: rounds)
        encoding.add("JSONEncoder") { for order in orders { blackHole(try encoder.encode(order).count) } }
        encoding.add("PersistentCoder") { for order in orders { blackHole(try coder.encode(order).count) } }
        var decoding = Comparison("decode", count: count, rounds: rounds)
        decoding.add("JSONDecoder") {
            for text in texts { blackHole(try decoder.decode(Order<First>.self, from: text).number) }
        }
        decoding.add("PersistentCoder") {
            for bytes in bytes { blackHole(try coder.decode(Order<First>.self, from: bytes).number) }
        }
        var copying = Comparison("copy", count: count, rounds: rounds)
        copying.add("through JSON") {
            for order in orders {
                blackHole(try decoder.decode(Order<First>.self, from: encoder.encode(order)).number)
            }
        }
        copying.add("persistentCopy") { for order in orders { blackHole(try order.persistentCopy(by: coder).number) } }
        for comparison in [encoding, decoding, copying] { try await comparison.run() }
    }
}

/// Keeps a result from being optimised away.
@inline(never) func blackHole(_ value: Int) { if value == .min { print(value) } }
