/// The pieces of an ICC profile that JPEG spreads over APP2 segments (ICC.1:2022 annex B.4).
struct JPEGProfileSegments {
    private var pieces: [Int: Range<Int>] = [:]
    private var total = 0

    /// Takes piece `number`, counted from 1, of `total`. Of equal numbers the first counts.
    mutating func add(number: Int, of total: Int, _ range: Range<Int>) {
        if pieces.isEmpty { self.total = total }
        if pieces[number] == nil { pieces[number] = range }
    }

    /// The whole profile; nil when a piece is missing or it is larger than the limit.
    func assembled(_ reader: ByteReader, _ limits: ImageLimits) -> [UInt8]? {
        guard total > 0 else { return nil }
        var profile: [UInt8] = []
        for number in 1...total {
            guard let range = pieces[number], profile.count + range.count <= limits.maximumProfileBytes,
                let bytes = try? reader.bytes(range)
            else { return nil }
            profile += bytes
        }
        return profile
    }
}
