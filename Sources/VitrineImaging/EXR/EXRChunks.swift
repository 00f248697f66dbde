/// The chunks of rows of an OpenEXR image, decompressed.
///
/// Source: OpenEXR 3.1, `ImfZip.cpp`, `ImfRle.c`, `ImfPizCompressor.cpp`, `ImfWav.cpp`, `ImfHuf.cpp` and
/// `ImfPxr24Compressor.cpp`, for the layouts that "OpenEXR File Layout" leaves open.
struct EXRChunks {
    /// The most bytes of a decompressed chunk.
    private static let maximumBytes = 256 << 20

    let source: ByteSource
    private let header: EXRHeader
    private let offsets: [Int]

    init(_ source: ByteSource, _ header: EXRHeader, _ limits: ImageLimits) throws(ImageError) {
        self.source = source
        self.header = header
        let bytes = header.bytesPerRow.multipliedReportingOverflow(by: min(header.compression.rows, header.size.height))
        guard !bytes.overflow, bytes.partialValue <= EXRChunks.maximumBytes else {
            throw .limitExceeded(
                input: source.name, limit: .memory, actual: bytes.overflow ? .max : bytes.partialValue,
                allowed: EXRChunks.maximumBytes)
        }
        let table = try source.bytes(at: header.tableOffset, count: header.chunkCount * 8)
        guard table.count == header.chunkCount * 8 else { throw .truncated(input: source.name) }
        offsets = table.withUnsafeBytes { table in
            (0..<header.chunkCount).map {
                Int(clamping: UInt64(littleEndian: table.loadUnaligned(fromByteOffset: 8 * $0, as: UInt64.self)))
            }
        }
    }

    /// Rows of a chunk.
    func rows(_ index: Int) -> Int {
        min(header.compression.rows, header.size.height - index * header.compression.rows)
    }

    /// The samples of a chunk, row by row.
    func chunk(_ index: Int) throws(ImageError) -> [UInt8] {
        let reader = ByteReader(source)
        let at = offsets[index]
        // An unfinished file has no offsets for the rows that are missing.
        guard at > header.tableOffset, at <= reader.count - 8 else { throw .truncated(input: source.name) }
        let row = Int(Int32(truncatingIfNeeded: try reader.u32(at: at, bigEndian: false)))
        guard row - header.top == index * header.compression.rows else { throw corrupt("a chunk of other rows") }
        let count = try reader.u32(at: at + 4, bigEndian: false)
        let wanted = rows(index) * header.bytesPerRow
        guard count <= wanted else { throw corrupt("a chunk of \(count) bytes") }
        let stored = try reader.bytes(reader.range(at: at + 8, count: count))
        // What did not become shorter is stored as it is.
        if count == wanted { return stored }
        switch header.compression {
        case .rle: return Self.reordered(try runs(stored, wanted))
        case .zip, .zips: return Self.reordered(try inflated(stored, wanted))
        case .pxr24: return try differences(stored, rows(index))
        case .piz: return try EXRWavelet(stored, header, rows: rows(index), name: source.name).samples()
        default: throw corrupt("a chunk of \(count) bytes")
        }
    }

    private func corrupt(_ reason: String) -> ImageError { .corrupt(input: source.name, reason: reason) }

    private func inflated(_ bytes: [UInt8], _ wanted: Int) throws(ImageError) -> [UInt8] {
        do throws(InflateError) {
            let result = try Inflater<InflaterBytes>.inflate(bytes, maximum: wanted)
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
                guard at - head < bytes.count else { break }
                result += bytes[(at + 1)...(at - head)]
                at += 1 - head
            } else {
                guard at + 1 < bytes.count else { break }
                result += repeatElement(bytes[at + 1], count: head + 1)
                at += 2
            }
        }
        guard result.count == wanted else { throw corrupt("a chunk of \(result.count) bytes in place of \(wanted)") }
        return result
    }

    /// Undoes the differences of neighbours, then joins the halves: bytes of even and of odd places.
    private static func reordered(_ bytes: [UInt8]) -> [UInt8] {
        var sums = bytes
        let count = bytes.count
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
    private func differences(_ stored: [UInt8], _ rows: Int) throws(ImageError) -> [UInt8] {
        let width = header.size.width
        let planes = header.channels.reduce(0) { $0 + ($1.kind == .float ? 3 : $1.kind.bytes) }
        let packed = try inflated(stored, planes * width * rows)
        var result: [UInt8] = []
        result.reserveCapacity(rows * header.bytesPerRow)
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
