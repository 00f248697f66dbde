import VitrineImageCore

/// The chunks of an OpenEXR image, decompressed: of whole rows, or tiles that are joined to whole rows.
///
/// Source: OpenEXR 3.1, `ImfZip.cpp`, `ImfRle.c`, `ImfPizCompressor.cpp`, `ImfWav.cpp`, `ImfHuf.cpp` and
/// `ImfPxr24Compressor.cpp`, for the layouts that "OpenEXR File Layout" leaves open.
struct EXRChunks {
    /// The most bytes of all copies of a band together: as stored, decompressed, in order, and joined from tiles.
    static let maximumBytes = 384 << 20

    let source: ByteSource
    private let header: EXRHeader
    private let offsets: [Int]

    init(_ source: ByteSource, header: EXRHeader, limits: ImageLimits) throws(ImageError) {
        self.source = source
        self.header = header
        let bytes = header.bytesPerRow.multipliedReportingOverflow(by: min(header.rowsOfBand, header.size.height))
        guard !bytes.overflow, bytes.partialValue <= EXRChunks.maximumBytes else {
            throw .limitExceeded(
                input: source.name, limit: .memory, actual: bytes.overflow ? .max : bytes.partialValue,
                allowed: EXRChunks.maximumBytes)
        }
        let count = header.bandCount * header.chunksAcross
        // Before anything is allocated: the sides may be those of a bomb.
        guard count <= source.count / 8 else { throw .truncated(input: source.name) }
        let table = try source.bytes(at: header.tableOffset, count: count * 8)
        guard table.count == count * 8 else { throw .truncated(input: source.name) }
        offsets = table.withUnsafeBytes { table in
            (0..<count).map {
                Int(clamping: UInt64(littleEndian: table.loadUnaligned(fromByteOffset: 8 * $0, as: UInt64.self)))
            }
        }
    }

    /// Rows of a band.
    func rows(_ index: Int) -> Int {
        min(header.rowsOfBand, header.size.height - index * header.rowsOfBand)
    }

    /// The samples of a band, row by row: in each row, one channel after the other.
    func band(_ index: Int) throws(ImageError) -> [UInt8] {
        guard let tile = header.tile else {
            let at = try offset(index, header: 8)
            let row = Int(Int32(truncatingIfNeeded: try ByteReader(source).u32(at: at, bigEndian: false)))
            guard row - header.top == index * header.rowsOfBand else { throw corrupt("a chunk of other rows") }
            return try samples(at: at + 4, width: header.size.width, rows: rows(index))
        }
        var band = [UInt8](repeating: 0, count: rows(index) * header.bytesPerRow)
        for column in 0..<header.chunksAcross {
            let at = try offset(index * header.chunksAcross + column, header: 20)
            let reader = ByteReader(source)
            for (place, wanted) in [(0, column), (4, index), (8, 0), (12, 0)] {
                guard try reader.u32(at: at + place, bigEndian: false) == wanted else { throw corrupt("a misplaced tile") }
            }
            let width = min(tile.width, header.size.width - column * tile.width)
            let samples = try samples(at: at + 16, width: width, rows: rows(index))
            insert(samples, width: width, at: column * tile.width, into: &band)
        }
        return band
    }

    /// Copies the channels of each row of a tile.
    private func insert(_ samples: [UInt8], width: Int, at x: Int, into band: inout [UInt8]) {
        var from = 0
        for y in 0..<(samples.count / max(1, width * header.bytesPerPixel)) {
            var row = y * header.bytesPerRow
            for channel in header.channels {
                let (start, count) = (row + x * channel.kind.bytes, width * channel.kind.bytes)
                band[start..<(start + count)] = samples[from..<(from + count)]
                from += count
                row += header.size.width * channel.kind.bytes
            }
        }
    }

    /// Where a chunk begins, which has a header of so many bytes.
    private func offset(_ index: Int, header length: Int) throws(ImageError) -> Int {
        let at = offsets[index]
        // An unfinished file has no offsets for the rows that are missing.
        guard at > header.tableOffset, at <= source.count - length else { throw .truncated(input: source.name) }
        return at
    }

    /// Decompresses the data whose length stands at `at`.
    private func samples(at: Int, width: Int, rows: Int) throws(ImageError) -> [UInt8] {
        let reader = ByteReader(source)
        let count = try reader.u32(at: at, bigEndian: false)
        let wanted = rows * width * header.bytesPerPixel
        guard count <= wanted else { throw corrupt("a chunk of \(count) bytes") }
        try requireMemory(stored: count, samples: wanted, band: header.chunksAcross > 1 ? rows * header.bytesPerRow : 0)
        let stored = try reader.bytes(reader.range(at: at + 4, count: count))
        // What did not become shorter is stored as it is.
        if count == wanted { return stored }
        switch header.compression {
        case .rle: return Self.reordered(try runs(stored, wanted))
        case .zip, .zips: return Self.reordered(try inflated(stored, wanted))
        case .pxr24: return try differences(stored, width: width, rows: rows)
        case .piz: return try EXRWavelet(stored, header, width: width, rows: rows, name: source.name).samples()
        default: throw corrupt("a chunk of \(count) bytes")
        }
    }

    /// Checks the bound before anything is allocated.
    private func requireMemory(stored: Int, samples: Int, band: Int) throws(ImageError) {
        // Codes of PIZ are copied once more. What is not compressed is its own result.
        let needed = (stored == samples ? stored : stored * 2 + samples * 2) + band
        guard needed <= EXRChunks.maximumBytes else {
            throw .limitExceeded(
                input: source.name, limit: .memory, actual: needed, allowed: EXRChunks.maximumBytes)
        }
    }

    private func corrupt(_ reason: String) -> ImageError { .corrupt(input: source.name, reason: reason) }

    private func inflated(_ bytes: [UInt8], _ wanted: Int) throws(ImageError) -> [UInt8] {
        do throws(InflateError) {
            let result = try Inflater<InflaterBytes>.inflate(bytes, maximum: wanted, expected: wanted)
            if result.count == wanted { return result }
        } catch {
            if case .source(let error) = error { throw error }
        }
        throw corrupt("a chunk that does not inflate to its rows")
    }

    private func runs(_ bytes: [UInt8], _ wanted: Int) throws(ImageError) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(wanted)
        var at = 0
        while result.count < wanted, at < bytes.count {
            let head = Int(Int8(bitPattern: bytes[at]))
            if head < 0 {
                guard at - head < bytes.count, -head <= wanted - result.count else { break }
                result += bytes[(at + 1)...(at - head)]
                at += 1 - head
            } else {
                guard at + 1 < bytes.count, head < wanted - result.count else { break }
                result += repeatElement(bytes[at + 1], count: head + 1)
                at += 2
            }
        }
        guard result.count == wanted else { throw corrupt("a chunk whose runs do not fill its rows") }
        return result
    }

    /// Undoes the differences of neighbours, then joins the halves: bytes of even and of odd places.
    private static func reordered(_ bytes: consuming [UInt8]) -> [UInt8] {
        var sums = bytes
        let count = sums.count
        return [UInt8](unsafeUninitializedCapacity: count) { result, n in
            sums.withUnsafeMutableBufferPointer { sums in
                var i = 1
                while i < count {
                    sums[i] = sums[i &- 1] &+ sums[i] &- 128
                    i &+= 1
                }
                let half = (count + 1) / 2
                for i in 0..<half { result[2 &* i] = sums[i] }
                for i in 0..<(count / 2) { result[2 &* i &+ 1] = sums[half &+ i] }
            }
            n = count
        }
    }

    /// PXR24: differences of neighbours, their bytes in planes; the lowest byte of floats is dropped.
    private func differences(_ stored: [UInt8], width: Int, rows: Int) throws(ImageError) -> [UInt8] {
        let planes = header.channels.reduce(0) { $0 + ($1.kind == .float ? 3 : $1.kind.bytes) }
        let packed = try inflated(stored, planes * width * rows)
        var result: [UInt8] = []
        result.reserveCapacity(rows * width * header.bytesPerPixel)
        var at = 0
        for _ in 0..<rows {
            for channel in header.channels {
                var value: UInt32 = 0
                let count = channel.kind == .float ? 3 : channel.kind.bytes
                for x in 0..<width {
                    var difference: UInt32 = 0
                    for plane in 0..<count { difference = difference << 8 | UInt32(packed[at + plane * width + x]) }
                    if channel.kind == .float { difference <<= 8 }
                    value &+= difference
                    for byte in 0..<channel.kind.bytes {
                        result.append(UInt8(truncatingIfNeeded: value >> UInt32(8 * byte)))
                    }
                }
                at += count * width
            }
        }
        return result
    }
}
