import VitrineImaging

extension FuzzTargets {
    /// Streams of deflate.
    static var compression: [FuzzTarget] { [inflater, aheadInflater] }

    private static let inflater = FuzzTarget(
        "inflate", seeds: { Seeds.pictures(.png, 30, upTo: 3 << 10).compactMap(data) }
    ) {
        bytes in
        let wrapper = bytes.count & 1 == 0
        _ =
            try wrapper
            ? Inflater<InflaterBytes>.inflate(bytes, maximum: 1 << 18)
            : Inflater<InflaterBytes>.inflate(Array(bytes.dropFirst(2)), wrapper: .raw, maximum: 1 << 18)
    }

    /// A stream with a part that is inflated ahead, which is the same without it. The first two bytes say where it
    /// begins and how long it is worked on.
    private static let aheadInflater = FuzzTarget(
        "inflate-ahead",
        // Of the small pictures hardly one has a second block.
        seeds: {
            let streams = Seeds.pictures(.png, 30, upTo: 9 << 10).compactMap(data) + Seeds.files(8, where: isStream)
            return streams.map { [90, 2] + $0 }
        }
    ) { bytes in
        guard bytes.count > 2 else { throw FuzzRefusal() }
        let stream = Array(bytes[2...])
        var plain = Inflater(InflaterBytes(stream), chunk: 4_000)
        var expected: [UInt8] = []
        let failure = rest(&plain, &expected)
        let from = stream.count * Int(bytes[0]) / 256
        let ahead = try AheadInflater(from: from, in: .init(capacity: 1 << 17)) { byte in
            byte < stream.count ? InflaterBytes(Array(stream[byte...])) : nil
        }
        guard let ahead else { throw FuzzRefusal() }
        for _ in 0..<bytes[1] { ahead.advance() }
        var inflater = Inflater(InflaterBytes(stream), chunk: 4_000)
        inflater.stop = ahead.start
        var found: [UInt8] = []
        var other = rest(&inflater, &found)
        if inflater.isAtStop, let past = inflater.past, var last = ahead.inflater(behind: past.bytes, past.adler) {
            found += ahead.bytes
            other = rest(&last, &found)
        } else {
            inflater.stop = nil
            other = other ?? rest(&inflater, &found)
        }
        let count = min(expected.count, found.count, 1 << 18)
        precondition(expected.prefix(count).elementsEqual(found.prefix(count)), "other bytes")
        precondition(count == 1 << 18 || (expected.count == found.count && failure == other), "another end")
    }

    /// Inflates up to 256 KiB, or to an error or a stop.
    private static func rest(_ inflater: inout Inflater<InflaterBytes>, _ result: inout [UInt8]) -> InflateError? {
        do throws(InflateError) {
            while result.count < 1 << 18 {
                let piece = try inflater.next()
                if piece.isEmpty { return nil }
                result += piece
            }
            return nil
        } catch {
            return error
        }
    }

    /// Whether a file begins as a zlib stream (RFC 1950).
    private static func isStream(_ file: [UInt8]) -> Bool {
        file.count > 2 && file[0] == 0x78 && (Int(file[0]) << 8 | Int(file[1])) % 31 == 0
    }

    /// What the first IDAT chunk of a PNG file holds.
    private static func data(_ file: [UInt8]) -> [UInt8]? {
        let mark = Array("IDAT".utf8)
        guard let at = file.indices.first(where: { file[$0...].starts(with: mark) }), at >= 4 else { return nil }
        let count = file[(at - 4)..<at].reduce(0) { $0 << 8 | Int($1) }
        return Array(file[(at + 4)...].prefix(count))
    }
}
