import Foundation
import Testing
import VitrineCache
import VitrineCore

@Suite struct CacheableValueConformanceTests {
    struct Palette: CacheableCodable, Equatable {
        var name: String
        var colors: [UInt32]
        var gamma: Double
    }

    private func again<Value: CacheableValue>(_ value: Value) throws -> Value {
        try Value(cacheBytes: value.cacheBytes())
    }

    @Test func codableTypesConformByNamingIt() throws {
        let palette = Palette(name: "é", colors: [1, .max], gamma: .infinity)
        #expect(try again(palette) == palette)
        #expect(try palette.cacheBytes() == palette.cacheBytes())
        #expect(palette.cacheCost >= MemoryLayout<Palette>.size)
        #expect(throws: DecodingError.self) { try Palette(cacheBytes: Array("{}".utf8)) }
        #expect(throws: (any Error).self) { try Palette(cacheBytes: []) }
    }

    @Test func anyCodableTypeCanBeWrapped() throws {
        let value = CodableBox(["a": Date(timeIntervalSinceReferenceDate: 0.1)])
        #expect(try again(value) == value)
        #expect(try again(CodableBox(7)).value == 7)
        #expect(try again(CodableBox("x" as String?)).value == "x")
    }

    @Test func arraysAndDictionariesAreCodable() throws {
        let palettes = ["b": [Palette(name: "é", colors: [1], gamma: 1)], "a": []]
        #expect(try again(palettes) == palettes)
        #expect(try palettes.cacheBytes().starts(with: Array("{\"a\":[],".utf8)))
        #expect(try again([1, -2, 3]) == [1, -2, 3])
        #expect(try again(["x", "é"]) == ["x", "é"])
        #expect(try again([1: "one"]) == [1: "one"])
        // Whatever was stored in a box can be read without it.
        #expect(try [String: Int](cacheBytes: CodableBox(["a": 1]).cacheBytes()) == ["a": 1])
        #expect(throws: DecodingError.self) { try [String](cacheBytes: Array("[1]".utf8)) }
        #expect((0..<100).map(String.init).cacheCost >= 100 * MemoryLayout<String>.stride)
        #expect(["a": "b"].cacheCost >= 2 * MemoryLayout<String>.stride)
        // Bytes are their own bytes, also where the type is not known.
        let bytes: any CacheableValue = [UInt8]([0, 255, 7])
        #expect(try bytes.cacheBytes() == [0, 255, 7])
        #expect(bytes.cacheCost == 3)
        #expect(try [UInt8](cacheBytes: [0, 255, 7]) == [0, 255, 7])
        #expect(try again([[UInt8]]([[1], []])) == [[1], []])
    }

    @Test func dataIsItsBytes() throws {
        let data = Data([0, 1, 255])
        #expect(try data.dropFirst().cacheBytes() == [1, 255])
        #expect(try again(data) == data)
        #expect(data.cacheCost == 3)
    }

    @Test func numbersComeBackToTheLastBit() throws {
        #expect(try again(Int.min) == .min)
        #expect(try again(UInt64.max) == .max)
        #expect(try again(0.1) == 0.1)
        #expect(try again(-0.0).sign == .minus)
        #expect(try again(Double.nan).isNaN)
        #expect(try again(Float.leastNonzeroMagnitude) == .leastNonzeroMagnitude)
        #expect(try again(true) && !again(false))
        let date = Date(timeIntervalSinceReferenceDate: 123.456789)
        #expect(try again(date) == date)
        let uuid = UUID()
        #expect(try again(uuid) == uuid)
    }

    @Test func numbersAreReadAsOthersOnlyWithoutLoss() throws {
        #expect(try Double(cacheBytes: 7.cacheBytes()) == 7)
        #expect(try UInt8(cacheBytes: 255.cacheBytes()) == 255)
        #expect(try Int(cacheBytes: (3.0).cacheBytes()) == 3)
        #expect(throws: CacheableValueError.self) { try UInt8(cacheBytes: 256.cacheBytes()) }
        #expect(throws: CacheableValueError.self) { try Int(cacheBytes: (0.5).cacheBytes()) }
        #expect(throws: CacheableValueError.self) { try Float(cacheBytes: (0.1).cacheBytes()) }
        #expect(throws: CacheableValueError.self) { try Double(cacheBytes: (Int.max - 1).cacheBytes()) }
        #expect(throws: CacheableValueError.self) { try Bool(cacheBytes: 2.cacheBytes()) }
        #expect(throws: CacheableValueError.self) { try Int(cacheBytes: [1, 2]) }
        #expect(throws: CacheableValueError.self) { try UUID(cacheBytes: [1, 2]) }
        #expect(throws: CacheableValueError.self) { try Date(cacheBytes: 1.cacheBytes()) }
    }

    @Test func listsKeepTheirElements() throws {
        let list = CacheableList(["", "é", "a\0b"])
        #expect(try again(list) == list)
        #expect(try again(CacheableList<Int>([])).elements.isEmpty)
        #expect(throws: CacheableValueError.self) { try CacheableList<String>(cacheBytes: [1, 0, 0]) }
        #expect(throws: CacheableValueError.self) { try CacheableList<String>(cacheBytes: [255, 255, 255, 255, 1]) }
    }
}
