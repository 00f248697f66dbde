import NIOCore
import Testing
import VitrineFleet

@Suite struct RESPTests {
    private func parse(_ text: String, size: Int = 100_000) throws -> [RESPValue] {
        var parser = RESPParser(limits: .init(size: size))
        var buffer = ByteBuffer(string: text)
        var values: [RESPValue] = []
        while let value = try parser.next(&buffer) { values.append(value) }
        return values
    }

    private func bulk(_ text: String) -> RESPValue { .bulk(ByteBuffer(string: text)) }

    private let everything =
        "+OK\r\n-ERR no\r\n:-42\r\n$5\r\nhe\r\no\r\n$-1\r\n*-1\r\n_\r\n#t\r\n#f\r\n,1.5\r\n(123456789012345678901\r\n"
        + "!7\r\nERR bad\r\n=8\r\ntxt:word\r\n*2\r\n:1\r\n*1\r\n$0\r\n\r\n%1\r\n+key\r\n:7\r\n~1\r\n:3\r\n"
        + "|1\r\n+ttl\r\n:9\r\n*2\r\n|0\r\n:1\r\n:2\r\n>2\r\n+message\r\n$1\r\nx\r\n*0\r\n%0\r\n"

    @Test func parserReadsEveryType() throws {
        let expected: [RESPValue] = [
            .simple("OK"), .error("ERR no"), .integer(-42), bulk("he\r\no"), .null, .null, .null, .boolean(true),
            .boolean(false), .simple("1.5"), .simple("123456789012345678901"), .error("ERR bad"), bulk("word"),
            .array([.integer(1), .array([bulk("")])]), .map([.simple("key"), .integer(7)]), .array([.integer(3)]),
            .array([.integer(1), .integer(2)]), .push([.simple("message"), bulk("x")]), .array([]), .map([]),
        ]
        #expect(try parse(everything) == expected)
    }

    @Test func parserReadsBytesInPiecesOfAnySize() throws {
        let whole = try parse(everything)
        for size in 1...17 {
            var parser = RESPParser(limits: .init(size: 100_000))
            var buffer = ByteBuffer()
            var values: [RESPValue] = []
            var rest = ByteBuffer(string: everything)
            while rest.readableBytes > 0 {
                let piece = rest.readSlice(length: min(size, rest.readableBytes))
                buffer.writeImmutableBuffer(try #require(piece))
                while let value = try parser.next(&buffer) { values.append(value) }
            }
            #expect(values == whole)
        }
    }

    @Test(arguments: [
        "hello\r\n", "\r\n", ":\r\n", ":1a\r\n", ":+1\r\n", ":99999999999999999999\r\n", "$-2\r\n", "$x\r\n",
        "$3\r\nabcd\r\n", "*-2\r\n", "%-1\r\n", "_x\r\n", "#x\r\n", "+a\rb\r\n", "=3\r\nabc\r\n", "=4\r\nabcd\r\n",
        "$?\r\n", "*?\r\n", "\u{15}\u{3}\u{1}\r\n",
    ])
    func parserRefusesMalformedReplies(text: String) {
        #expect(throws: RedisError.self) { try parse(text) }
    }

    @Test(arguments: [
        "$100001\r\n", "*300000\r\n", "%200000\r\n", "*9223372036854775807\r\n", "%9223372036854775807\r\n",
        String(repeating: "*1\r\n", count: 9), "+" + String(repeating: "a", count: 70_000),
        "*2\r\n$60000\r\n" + String(repeating: "a", count: 60_000) + "\r\n$60000\r\n",
    ])
    func parserRefusesRepliesBeyondItsLimits(text: String) {
        #expect(throws: RedisError.self) { try parse(text) }
    }

    /// SplitMix64.
    private struct Generator: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var z = state
            z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
            return z ^ z >> 31
        }
    }

    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func parserAgreesWithItselfOnDamagedReplies(seed: UInt64) throws {
        var generator = Generator(state: seed)
        let bytes = Array(everything.utf8)
        var refused = 0
        for _ in 0..<2_000 {
            var damaged = bytes
            for _ in 0...Int.random(in: 0..<4, using: &generator) {
                let index = Int.random(in: 0..<damaged.count, using: &generator)
                switch Int.random(in: 0..<3, using: &generator) {
                case 0: damaged[index] = UInt8.random(in: 0...255, using: &generator)
                case 1: damaged.remove(at: index)
                default: damaged.insert(bytes.randomElement(using: &generator) ?? 0, at: index)
                }
            }
            let whole = outcome(damaged, pieces: [damaged.count])
            let pieces = (0..<8).map { _ in Int.random(in: 1...40, using: &generator) }
            let split = outcome(damaged, pieces: pieces)
            #expect(whole.0 == split.0)
            #expect(whole.1 == split.1)
            if whole.1 { refused += 1 }
        }
        #expect(refused > 200)
    }

    /// The replies before the first error, and whether there was one.
    private func outcome(_ bytes: [UInt8], pieces: [Int]) -> ([RESPValue], Bool) {
        var parser = RESPParser(limits: .init(size: 4_096))
        var buffer = ByteBuffer()
        var values: [RESPValue] = []
        var start = 0
        var turn = 0
        while start < bytes.count {
            let end = min(bytes.count, start + pieces[turn % pieces.count])
            buffer.writeBytes(bytes[start..<end])
            (start, turn) = (end, turn + 1)
            do {
                while let value = try parser.next(&buffer) { values.append(value) }
            } catch {
                return (values, true)
            }
        }
        return (values, false)
    }

    @Test func commandsAreArraysOfStrings() throws {
        let long = ByteBuffer(repeating: 7, count: 5_000)
        let parts = RESPCommand("SET", "é", .bytes(long), "PX", "5").encoded()
        #expect(parts.count == 3)
        var buffer = ByteBuffer()
        for var part in parts { buffer.writeBuffer(&part) }
        var parser = RESPParser(limits: .init(size: 100_000))
        let command = try parser.next(&buffer)
        #expect(
            command == .array([bulk("SET"), bulk("é"), .bulk(long), bulk("PX"), bulk("5")]))
        #expect(buffer.readableBytes == 0)
    }

    // MARK: Clusters

    @Test func slotsAreThoseOfTheSpecification() {
        #expect(ClusterSlots.checksum("123456789".utf8) == 0x31C3)
        #expect(ClusterSlots.slot(of: "foo") == 12_182)
        #expect(ClusterSlots.slot(of: "{user1000}.following") == 3_443)
        #expect(ClusterSlots.slot(of: "{user1000}.following") == ClusterSlots.slot(of: "user1000"))
        #expect(ClusterSlots.slot(of: "foo{}{bar}") == Int(ClusterSlots.checksum("foo{}{bar}".utf8)) % 16_384)
        #expect(ClusterSlots.slot(of: "foo{{bar}}zap") == ClusterSlots.slot(of: "{bar"))
        #expect(ClusterSlots.slot(of: "foo{bar}{zap}") == ClusterSlots.slot(of: "bar"))
    }

    @Test func slotsAreReadAndRefusedOutOfRange() throws {
        let asked = RedisConfiguration.Address("10.0.0.9", 7_000)
        func node(_ host: RESPValue, _ port: Int64) -> RESPValue { .array([host, .integer(port), bulk("id")]) }
        func range(_ first: Int64, _ last: Int64, _ node: RESPValue) -> RESPValue {
            .array([.integer(first), .integer(last), node, node])
        }
        let slots = try ClusterSlots(
            reply: .array([range(0, 99, node(bulk("a"), 1)), range(100, 16_383, node(.null, 2))]), asked: asked)
        #expect(slots[99] == .init("a", 1))
        #expect(slots[100] == .init("10.0.0.9", 2))
        #expect(slots.isComplete)
        for bad in [
            range(0, 16_384, node(bulk("a"), 1)), range(-1, 5, node(bulk("a"), 1)), range(7, 5, node(bulk("a"), 1)),
            range(0, 5, node(bulk("a"), 70_000)), range(0, 5, .null), .null, .array([]),
        ] {
            #expect(throws: RedisError.self) { try ClusterSlots(reply: .array([bad]), asked: asked) }
        }
        #expect(throws: RedisError.self) { try ClusterSlots(reply: .null, asked: asked) }
    }

    @Test func redirectionsAreRead() {
        let asked = RedisConfiguration.Address("h", 1)
        #expect(
            ClusterSlots.Redirection("MOVED 3999 127.0.0.1:6381", asked: asked)
                == .moved(slot: 3_999, .init("127.0.0.1", 6_381)))
        #expect(ClusterSlots.Redirection("ASK 1 ::1:6381", asked: asked) == .ask(.init("::1", 6_381)))
        #expect(ClusterSlots.Redirection("ASK 1 :6381", asked: asked) == .ask(.init("h", 6_381)))
        for text in ["MOVED", "MOVED 1", "MOVED 16384 a:1", "MOVED -1 a:1", "MOVED 1 a", "MOVED 1 a:0", "ERR 1 a:1"] {
            #expect(ClusterSlots.Redirection(text, asked: asked) == nil)
        }
    }

    // MARK: URLs

    @Test func urlsNameServersAndCredentials() throws {
        let one = try RedisConfiguration(url: "redis://us%40er:p%3Aw@example.com/3")
        #expect(one.topology == .single(.init("example.com", 6_379)))
        #expect(one.username == "us@er" && one.password == "p:w" && one.database == 3 && one.tls == nil)
        let secure = try RedisConfiguration(url: "rediss://:secret@[::1]:7000")
        #expect(secure.topology == .single(.init("::1", 7_000)))
        #expect(secure.username == nil && secure.password == "secret" && secure.tls != nil)
        #expect(!"\(secure)".contains("secret") && !String(reflecting: secure).contains("secret"))
        let sentinel = try RedisConfiguration(url: "redis+sentinel://a:1,b/images/2")
        #expect(sentinel.topology == .sentinel([.init("a", 1), .init("b", 26_379)], master: "images"))
        #expect(sentinel.database == 2)
        #expect(
            try RedisConfiguration(url: "redis+cluster://a,b:2").topology == .cluster([.init("a"), .init("b", 2)]))
    }

    @Test(arguments: [
        "", "localhost", "http://a", "redis://", "redis://a,b", "redis://a:0", "redis://a:x", "redis://a/x",
        "redis://a/1/2", "redis://a/-1", "redis+sentinel://a", "redis+cluster://a/1", "redis+other://a",
        "redis://%zz:secret@a", "redis://::1", "redis://[::1", "redis+cluster://a,,b",
    ])
    func malformedURLsAreRefused(url: String) {
        #expect(throws: RedisError.self) { try RedisConfiguration(url: url) }
    }
}
