import TestSupport
import Testing
import VitrineCache
import VitrineCore

@Suite struct JSONTests {
    @Test func objectsAndArraysAreToldApart() throws {
        let object = try JSONValue(parsing: #" {"a": {"b": [1, 2.5, "x", null, true]}} "#.utf8)
        #expect(object.object?.keys.sorted() == ["a"])
        #expect(object.array == nil)
        let list = object["a"]?["b"]
        #expect(list?[0]?.int == 1 && list?[1]?.double == 2.5 && list?[2]?.string == "x")
        #expect(list?[3]?.isNull == true && list?[4]?.bool == true)
        #expect(list?[5] == nil && list?[-1] == nil && list?["b"] == nil && object[0] == nil && object["c"] == nil)
        #expect(list?[2]?.int == nil && list?[0]?.string == nil)
        let array = try JSONValue(parsing: "[{}]".utf8)
        #expect(array.object == nil)
        #expect(array.array == [[:]])
        #expect(array[0]?.object?.isEmpty == true)
    }

    @Test(arguments: [
        "", " ", "{", "[", "[1,]", "[,1]", "{\"a\"}", "{\"a\":}", "{a:1}", "{\"a\":1,}", "[1 2]", "[01]", "[-]", "[1.]",
        "[.5]", "[1e]", "[+1]", "[NaN]", "[tru]", "[true1]", "[\"a]", "[\"\\x\"]", "[\"\\u12\"]", "[\"\\ud800\"]",
        "[\"\\ud800\\u0041\"]", "[\"\\udc00\"]", "[\"\n\"]", "[]]", "{}[]", "1", "\"a\"", "null", "['a']", "[1]\0",
    ])
    func otherTextIsRefused(text: String) {
        #expect(throws: JSONError.self) { try JSONValue(parsing: text.utf8) }
    }

    @Test func illFormedBytesAreRefused() {
        let illFormed: [UInt8] = [0x5B, 0x22, 0xFF, 0x22, 0x5D]
        #expect(throws: JSONError.invalidString(position: 1)) { try JSONValue(parsing: illFormed) }
        #expect(throws: JSONError.fragment) { try JSONValue(parsing: "1".utf8) }
        #expect(throws: JSONError.unexpectedEnd) { try JSONValue(parsing: "[1".utf8) }
        #expect(throws: JSONError.unexpectedByte(0x7D, position: 2)) { try JSONValue(parsing: "[1}".utf8) }
    }

    @Test func deepNestingIsRefusedWithoutExhaustingTheStack() throws {
        let fine = String(repeating: "[", count: 512) + String(repeating: "]", count: 512)
        #expect(try JSONValue(parsing: fine.utf8).description == fine)
        let hostile = String(repeating: "[", count: 1_000_000)
        #expect(throws: JSONError.tooDeep(position: 512)) { try JSONValue(parsing: hostile.utf8) }
        #expect(throws: JSONError.self) { try JSONValue(parsing: String(repeating: "{\"a\":", count: 100_000).utf8) }
    }

    @Test(arguments: [
        ("0", JSONValue.Number.integer(0)), ("-9223372036854775808", .integer(.min)),
        ("9223372036854775808", .unsigned(1 << 63)), ("18446744073709551615", .unsigned(.max)),
        ("18446744073709551616", .decimal("18446744073709551616")), ("-0", .double(-0.0)), ("0.1", .double(0.1)),
        ("1e2", .double(100)), ("1.50", .double(1.5)), ("0.1234567890123456789", .decimal("0.1234567890123456789")),
        ("1e400", .decimal("1e400")), ("1e-99999999999999999999", .decimal("1e-99999999999999999999")),
    ])
    func numbersKeepWhatIsWritten(text: String, number: JSONValue.Number) throws {
        #expect(try JSONValue(parsing: "[\(text)]".utf8)[0]?.number == number)
        let again = try JSONValue(parsing: JSONValue(parsing: "[\(text)]".utf8).bytes)
        #expect(again[0]?.number == number)
    }

    @Test func numbersAreReadAsWhatTheyAre() throws {
        let json = try JSONValue(parsing: "[3.0, 3.5, 18446744073709551615, -1, 1e400]".utf8)
        #expect(json[0]?.int == 3 && json[1]?.int == nil && json[2]?.int == nil && json[2]?.number?.uint64 == .max)
        #expect(json[3]?.number?.uint64 == nil && json[3]?.double == -1 && json[4]?.double == nil)
    }

    @Test func textIsUnescapedAndEscaped() throws {
        let json = try JSONValue(parsing: #"["\"\\\/\b\f\n\r\t\u00e9\ud83d\uDE00\u0000"]"#.utf8)
        #expect(json[0]?.string == "\"\\/\u{8}\u{C}\n\r\t\u{E9}\u{1F600}\0")
        #expect(try JSONValue(parsing: json.bytes) == json)
    }

    @Test func equalValuesHaveEqualBytes() throws {
        let json = try JSONValue(parsing: "\u{FEFF}{\"b\" : 1, \"a\" : [ ] , \"\u{E9}\" : {} }".utf8)
        #expect(json.description == "{\"a\":[],\"b\":1,\"\u{E9}\":{}}")
        #expect(json == ["b": 1, "a": [], "\u{E9}": [:]])
        #expect((["x": nil, "y": [true, 1.5]] as JSONValue).description == #"{"x":null,"y":[true,1.5]}"#)
    }

    @Test func hostileBytesNeverTrap() {
        var generator = SeededGenerator(79)
        let seed = Array(#"{"a":[1,-2.5e10,"x\u00e9\n",null,true,{"b":[]}],"c":18446744073709551615}"#.utf8)
        for _ in 0..<20_000 {
            var bytes = seed
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                let index = Int.random(in: 0..<bytes.count, using: &generator)
                switch Int.random(in: 0..<3, using: &generator) {
                case 0: bytes[index] = .random(in: 0...255, using: &generator)
                case 1: bytes.remove(at: index)
                default: bytes.insert(.random(in: 0...255, using: &generator), at: index)
                }
            }
            guard let json = try? JSONValue(parsing: bytes) else { continue }
            #expect((try? JSONValue(parsing: json.bytes)) == json)
        }
    }

    @Test func codableTypesGoInAndOut() throws {
        struct Point: Codable, Equatable { var x: Int, y: Double }
        let json = try JSONValue(encoding: Point(x: 1, y: 0.1))
        #expect(json["y"]?.double == 0.1)
        #expect(try json.decoded(as: Point.self) == Point(x: 1, y: 0.1))
        #expect(throws: JSONError.fragment) { try JSONValue(encoding: 1) }
    }

    @Test func itIsCacheable() throws {
        let json = try JSONValue(parsing: #"{"a":"some text"}"#.utf8)
        #expect(try JSONValue(cacheBytes: json.cacheBytes()) == json)
        #expect(json.cacheCost >= 9)
        #expect(throws: JSONError.self) { try JSONValue(cacheBytes: [1]) }
        #expect(throws: JSONError.fragment) { try (json["a"] ?? nil).cacheBytes() }
    }
}
