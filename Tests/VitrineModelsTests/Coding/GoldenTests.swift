import Foundation
import ModelsSamples
import TestSupport
import Testing
import VitrineModels

/// Bytes that were stored by the first release are read for ever, and today's are the same.
@Suite struct GoldenTests {
    private let coder = PersistentCoder(registry: TypeRegistry())

    @Test func everything() throws {
        let value = Everything()
        let bytes = try hexadecimal(coder.encode(value))
        #expect(bytes == Self.everythingBytes)
        #expect(try coder.decode(Everything.self, from: Self.bytes(Self.everythingBytes)) == value)
    }

    @Test func objects() throws {
        let dog = Dog("Rex"), cat = Animal("Tom")
        dog.friend = cat
        cat.friend = dog
        dog.chip = "C-1"
        let bytes = try hexadecimal(coder.encode([dog, cat]))
        #expect(bytes == Self.objectBytes)
        let animals = try coder.decode([Animal].self, from: Self.bytes(Self.objectBytes))
        #expect(animals.map(\.name) == ["Rex", "Tom"])
        #expect(animals[1].friend === animals[0])
        #expect(animals[0].chip == "C-1")
        animals[0].friend = nil
        cat.friend = nil
    }

    private static let everythingBytes = """
        b501d6b1661e48a205910105000201feffffffffffffffff01ffffffffffffffffff01ff01ffffffffffffffffff010000c0\
        3f00000000000000800c5ac3bc7269636820f09f8f940200ff0000000218b074410102030405060708090a0b0c0d0e0f1001\
        05623f6323641468747470733a2f2f612e6578616d706c652f782f052d31322e350200010601070104686f6d650178000000\
        0000c0474001000202016e01030105677265656e020000008c301aac
        """
    private static let objectBytes = """
        b5016303eaf769ea977b020113c979d85d3f18010352657801014352ec37a719e66603546f6d010000000000010356657404\
        636869708c207f06c44da18a00050103432d31060001a1d16d6d
        """

    private static func bytes(_ digits: String) -> [UInt8] {
        let digits = Array(digits)
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(String(digits[$0..<$0 + 2]), radix: 16) ?? 0 }
    }

    private func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
