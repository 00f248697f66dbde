import VitrineImaging

extension FuzzTargets {
    /// Streams of deflate.
    static var compression: [FuzzTarget] { [inflater] }

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

    /// What the first IDAT chunk of a PNG file holds.
    private static func data(_ file: [UInt8]) -> [UInt8]? {
        let mark = Array("IDAT".utf8)
        guard let at = file.indices.first(where: { file[$0...].starts(with: mark) }), at >= 4 else { return nil }
        let count = file[(at - 4)..<at].reduce(0) { $0 << 8 | Int($1) }
        return Array(file[(at + 4)...].prefix(count))
    }
}
