/// The header of a scan (ITU-T T.81 §B.2.3).
struct JPEGScanHeader {
    /// Indices into the frame's components, and the tables each uses.
    var components: [(index: Int, dcTable: Int, acTable: Int)]
    /// First and last coefficient, by zigzag index.
    var spectralStart: Int
    var spectralEnd: Int
    /// Bit positions of successive approximation (Ah, Al).
    var approximationHigh: Int
    var approximationLow: Int

    /// Reads the body of an SOS segment; nil when it breaks the rules or names components the frame does not have.
    init?(_ body: UnsafeBufferPointer<UInt8>, frame: JPEGFrame) {
        guard let first = body.first else { return nil }
        let count = Int(first)
        guard 1...frame.components.count ~= count, body.count >= 4 + 2 * count else { return nil }
        components = []
        for i in 0..<count {
            let id = body[1 + 2 * i]
            let tables = body[2 + 2 * i]
            guard let index = frame.components.firstIndex(where: { $0.id == id }),
                !components.contains(where: { $0.index == index }), tables >> 4 < 4, tables & 15 < 4
            else { return nil }
            components.append((index, Int(tables >> 4), Int(tables & 15)))
        }
        spectralStart = Int(body[1 + 2 * count])
        spectralEnd = Int(body[2 + 2 * count])
        approximationHigh = Int(body[3 + 2 * count] >> 4)
        approximationLow = Int(body[3 + 2 * count] & 15)
        guard approximationLow <= 13 else { return nil }
    }

    /// Whether it is the first to bring the DC coefficients of its components, in a progressive file.
    var isFirstDC: Bool { spectralStart == 0 && approximationHigh == 0 }
}
