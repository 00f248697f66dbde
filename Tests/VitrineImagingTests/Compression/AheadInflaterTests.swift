import TestSupport
import Testing
import VitrineImaging

@Suite struct AheadInflaterTests {
    private static let names = ["level1", "level6", "level9", "huffman", "rle", "window9"]

    /// Words of a few letters, which zlib finds again over long distances, and noise between them.
    private static let long: [UInt8] = {
        var random = SeededGenerator(11)
        let words = (0..<200).map { _ in
            (0..<Int.random(in: 3...9, using: &random)).map { _ in UInt8.random(in: 97...122, using: &random) }
        }
        var bytes: [UInt8] = []
        while bytes.count < 600_000 {
            bytes += words[Int.random(in: 0..<200, using: &random)]
            // Later only noise, which refers to nothing.
            if bytes.count > 300_000 { for _ in 0..<40 { bytes.append(UInt8.random(in: 0...255, using: &random)) } }
        }
        return bytes
    }()

    private func streams() throws -> [(name: String, stream: [UInt8], plain: [UInt8])] {
        let plain = try Fixture.bytes("Deflate/plain.bin")
        let fixtures = try Self.names.map { ($0, try Fixture.bytes("Deflate/\($0).zz"), plain) }
        let image = Image(width: 1_000, height: 150, alpha: .opaque) { bytes in
            for i in 0..<bytes.count { bytes[i] = i & 3 == 3 ? 255 : Self.long[i] }
        }
        let idat = PNGSupport.data(of: try image.encoded(as: .png))
        return fixtures + [("long", idat, try Inflater.inflate(idat, maximum: .max))]
    }

    /// Inflates a stream to a part from `position` on, with what was inflated ahead, and to the end.
    private func inflate(_ stream: [UInt8], from position: Int, capacity: Int, pieces: Int) throws -> (
        bytes: [UInt8], ahead: Int
    )? {
        let ahead = try AheadInflater(from: position, in: .init(capacity: capacity)) { byte in
            byte < stream.count ? InflaterBytes(Array(stream[byte...])) : nil
        }
        guard let ahead else { return nil }
        for _ in 0..<pieces { ahead.advance() }
        var inflater = Inflater(InflaterBytes(stream), chunk: 5_000)
        inflater.stop = ahead.start
        var result: [UInt8] = []
        while !inflater.isAtStop {
            let piece = try inflater.next()
            if piece.isEmpty, !inflater.isAtStop { return nil }
            result += piece
        }
        guard let past = inflater.past else { return nil }
        guard var last = ahead.inflater(behind: past.bytes, past.adler) else { return nil }
        result += ahead.bytes
        while true {
            let piece = try last.next()
            if piece.isEmpty { break }
            result += piece
        }
        let isFinished = last.isFinished
        #expect(isFinished)
        return (result, ahead.bytes.count)
    }

    @Test func partsFromAnywhereFitTheirStreams() throws {
        var found = 0
        for (name, stream, plain) in try streams() {
            for position in stride(from: 0, to: stream.count, by: max(1, stream.count / 40)) {
                for (capacity, pieces) in [(1, 1), (100_000, 2), (1 << 22, 100)] {
                    let whole = try inflate(stream, from: position, capacity: capacity, pieces: pieces)
                    guard let whole else { continue }
                    #expect(whole.bytes == plain, "\(name) \(position) \(capacity)")
                    if whole.ahead > 0 { found += 1 }
                }
            }
        }
        #expect(found > 50, "\(found)")
    }

    @Test func aPartThatIsNotBegunIsOfNoUse() throws {
        let (_, stream, _) = try #require(try streams().last)
        #expect(try inflate(stream, from: stream.count / 2, capacity: 1 << 20, pieces: 0) == nil)
    }

    @Test func damageInAPartIsFoundWhereItIs() throws {
        let (_, stream, plain) = try #require(try streams().last)
        let position = stream.count / 2
        var damaged = 0
        for place in stride(from: position + 100, to: stream.count - 4, by: 997) {
            var stream = stream
            stream[place] ^= 0x10
            var expected: [UInt8] = [], reason: InflateError?
            var inflater = Inflater(InflaterBytes(stream))
            do throws(InflateError) {
                while true {
                    let piece = try inflater.next()
                    if piece.isEmpty { break }
                    expected += piece
                }
            } catch { reason = error }
            do {
                guard let whole = try inflate(stream, from: position, capacity: 1 << 22, pieces: 100) else { continue }
                #expect(whole.bytes == expected && reason == nil)
            } catch let error as InflateError {
                #expect(error == reason)
                damaged += 1
            }
        }
        #expect(damaged > 10, "\(damaged)")
        #expect(plain.count > 1 << 18)
    }

    @Test func theEndOfTheStreamHasNoBlockToBeginWith() throws {
        let (_, stream, _) = try #require(try streams().last)
        #expect(try inflate(stream, from: stream.count - 10, capacity: 1 << 20, pieces: 9) == nil)
        #expect(try inflate(stream, from: stream.count + 10, capacity: 1 << 20, pieces: 9) == nil)
        #expect(try inflate([], from: 0, capacity: 1 << 20, pieces: 9) == nil)
    }
}
