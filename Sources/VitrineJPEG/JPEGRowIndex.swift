public import VitrineCore
import VitrineImageCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Where the rows of blocks of a JPEG file begin in its compressed data, so that some rows are decoded without those
/// above them.
///
/// The data of a JPEG file has no marks to enter it. One pass over the file notes the position of the entropy decoder
/// at the beginning of each row of blocks. It decodes no more than the means of blocks. ``part(_:of:)`` copies the data
/// of some rows into a small JPEG file of their own.
@_spi(JPEGRows)
public struct JPEGRowIndex: Sendable {
    /// The state of the entropy decoder at the beginning of a row of blocks.
    struct Row: Sendable {
        var row: Int
        /// The byte of the file with the first bit, and the bits of it that belong to the row before.
        var offset: Int
        var bit: Int
        /// The last DC coefficients, in the order of the scan.
        var predictors: SIMD4<Int32>

        var isClean: Bool { bit == 0 && predictors == SIMD4(repeating: 0) }
    }

    /// A JPEG file of some rows.
    public struct Part: Sendable {
        /// The file.
        public let bytes: [UInt8]
        /// The row of the file that shows the first row that was wanted.
        public let firstRow: Int
    }

    /// The rows around those that are wanted, from which decoders may take colour.
    private static let margin = 16
    /// The most bytes before the compressed data.
    private static let longestHeader = 4 << 20

    /// The stored size of the image.
    public let size: PixelSize
    private let rowHeight: Int
    private let rowCount: Int
    private let rows: [Row]
    private let start: Int
    private let end: Int

    /// The bytes that the index takes in memory.
    public var byteCount: Int { rows.count * MemoryLayout<Row>.stride + 128 }

    /// Reads a file once.
    ///
    /// - Returns: nil for files that have no such index: progressive ones, those of several scans, those that the
    ///   block-mean decoder does not read, and damaged ones.
    /// - Throws: ``ImageError`` if the file cannot be read or exceeds a limit, or if the token is cancelled.
    public init?(
        of input: ImageInput, limits: ImageLimits = .standard, cancellation: CancellationToken = CancellationToken()
    ) throws(ImageError) {
        let source = try ByteSource(input)
        var reader = BlockMeanReader(
            source, scale: .eighth, limits: limits, allowsPartial: false, cancellation: cancellation)
        reader.recorder = JPEGRowRecorder()
        do {
            _ = try reader.decode()
        } catch {
            switch error {
            case .truncated, .corrupt, .unsupported, .empty: return nil
            default: throw error
            }
        }
        guard let index = try JPEGRowIndex(reader, of: source) else { return nil }
        self = index
    }

    /// The notes of a decode; nil unless it was whole and one scan has all components.
    init?(_ reader: borrowing BlockMeanReader, of source: ByteSource) throws(ImageError) {
        guard let frame = reader.frame, !frame.isProgressive, reader.damage == nil, let recorder = reader.recorder,
            recorder.scans == 1, recorder.rows.first?.row == 0, recorder.rows.count > 2,
            recorder.start <= Self.longestHeader, let rows = try recorder.placed(in: source)
        else { return nil }
        self.init(
            size: PixelSize(width: frame.width, height: frame.height), rowHeight: 8 * frame.maximumVertical,
            rowCount: frame.mcuRows, start: recorder.start, end: recorder.end, rows: rows)
    }

    /// nil for places that no file has.
    private init?(size: PixelSize, rowHeight: Int, rowCount: Int, start: Int, end: Int, rows: [Row]) {
        guard (1...65_535).contains(size.width), (1...65_535).contains(size.height),
            [8, 16, 24, 32].contains(rowHeight), (1...8_192).contains(rowCount), (0...Self.longestHeader).contains(start), end >= start, end < 1 << 48
        else { return nil }
        var last = (row: -1, offset: start)
        for row in rows {
            guard row.row > last.row, row.row < rowCount, row.offset >= last.offset, row.offset <= end,
                (0..<8).contains(row.bit), (0..<4).allSatisfy({ row.predictors[$0].magnitude < 1 << 15 })
            else { return nil }
            last = (row.row, row.offset)
        }
        (self.size, self.rowHeight, self.rowCount) = (size, rowHeight, rowCount)
        (self.start, self.end, self.rows) = (start, end, rows)
    }

    // MARK: Bytes

    /// The form in which a worker sends it.
    var bytes: [UInt8] {
        var wire = WireWriter()
        for value in [size.width, size.height, rowHeight, rowCount, start, end, rows.count] { wire.write(value) }
        for row in rows {
            wire.write(Int32(truncatingIfNeeded: row.row))
            wire.write(row.offset)
            wire.write(UInt8(truncatingIfNeeded: row.bit))
            for component in 0..<4 { wire.write(Int16(truncatingIfNeeded: row.predictors[component])) }
        }
        return wire.bytes
    }

    /// nil for bytes that are no index.
    public init?(bytes: [UInt8]) {
        var wire = WireReader(bytes)
        let size = PixelSize(width: wire.int(), height: wire.int())
        let (rowHeight, rowCount, start, end, count) = (wire.int(), wire.int(), wire.int(), wire.int(), wire.int())
        guard wire.isValid, (1...8_192).contains(count) else { return nil }
        var rows: [Row] = []
        for _ in 0..<count {
            let row = Int(wire.integer(Int32.self)), offset = wire.int(), bit = Int(wire.integer(UInt8.self))
            var predictors = SIMD4<Int32>(repeating: 0)
            for component in 0..<4 { predictors[component] = Int32(wire.integer(Int16.self)) }
            rows.append(Row(row: row, offset: offset, bit: bit, predictors: predictors))
        }
        guard wire.isComplete else { return nil }
        self.init(size: size, rowHeight: rowHeight, rowCount: rowCount, start: start, end: end, rows: rows)
    }

    // MARK: Parts

    /// Returns a JPEG file of some rows of pixels and a few around them.
    ///
    /// - Parameters:
    ///   - wanted: The rows, as stored.
    ///   - input: The same file. Another one gives a file of other pixels, or none.
    /// - Returns: nil if the file has no Huffman codes to begin at these rows.
    /// - Throws: ``ImageError`` if the file cannot be read.
    public func part(_ wanted: Range<Int>, of input: ImageInput) throws(ImageError) -> Part? {
        let wanted = wanted.clamped(to: 0..<size.height)
        guard !wanted.isEmpty else { return nil }
        let first = max(0, (wanted.lowerBound - Self.margin) / rowHeight - 1)
        let last = (wanted.upperBound + Self.margin + rowHeight - 1) / rowHeight + 1
        guard let begin = rows.last(where: { $0.row <= first }) else { return nil }
        let stop = rows.first { $0.row >= last }
        let source = try ByteSource(input)
        let bytes = try source.bytes(at: 0, count: min(start, source.count))
        let lead = begin.isClean ? 0 : 1
        let height = min(size.height, (stop?.row ?? rowCount) * rowHeight) + (lead - begin.row) * rowHeight
        let upper = min(source.count, stop.map { $0.offset + ($0.bit > 0 ? 1 : 0) } ?? end)
        guard height > 0, height <= 65_535, begin.offset <= upper,
            let header = JPEGPartHeader(bytes, height: height),
            var writer = header.writer(leadingTo: lead == 0 ? nil : begin.predictors)
        else { return nil }
        let data = try source.bytes(at: begin.offset, count: upper - begin.offset)
        if lead == 0 {
            writer.copyWhole(data, spareBits: stop.map { $0.bit == 0 ? 0 : 8 - $0.bit } ?? 0)
        } else {
            writer.copy(data, from: begin.bit, spareBits: stop.map { $0.bit == 0 ? 0 : 8 - $0.bit } ?? 0)
        }
        return Part(bytes: writer.finished(), firstRow: wanted.lowerBound + (lead - begin.row) * rowHeight)
    }
}

/// Notes where rows begin while a block-mean decode passes over them.
struct JPEGRowRecorder {
    /// The rows; their offsets count bytes without stuffing from ``start``, unless restart markers divide the data.
    private(set) var rows: [JPEGRowIndex.Row] = []
    private(set) var scans = 0
    /// The first and the last byte of the compressed data.
    private(set) var start = 0
    var end = 0
    private var isDivided = false

    /// - Parameter isWhole: Whether the scan has all components.
    mutating func beginScan(at offset: Int, isWhole: Bool) {
        scans += isWhole ? 1 : 2
        start = offset
    }

    /// At the first byte behind a restart marker that begins a row.
    mutating func note(row: Int, afterRestartAt offset: Int) {
        isDivided = true
        rows.append(JPEGRowIndex.Row(row: row, offset: offset, bit: 0, predictors: SIMD4(repeating: 0)))
    }

    /// - Parameter bit: The bits of the scan before, without stuffing.
    mutating func note(row: Int, bit: Int, _ predictors: UnsafeMutablePointer<Int32>) {
        guard rows.last?.row != row else { return }
        let last = SIMD4(predictors[0], predictors[1], predictors[2], predictors[3])
        rows.append(JPEGRowIndex.Row(row: row, offset: bit / 8, bit: bit % 8, predictors: last))
    }

    /// The rows with their places in the file; nil if its data ends before.
    func placed(in source: ByteSource) throws(ImageError) -> [JPEGRowIndex.Row]? {
        if isDivided { return rows }
        var placed = rows, next = 0, passed = 0, position = start
        while next < placed.count, position < source.count {
            let bytes = try source.bytes(at: position, count: min(256 << 10, source.count - position))
            let isLast = position + bytes.count == source.count
            let taken = bytes.withUnsafeBytes { bytes in
                var at = 0
                while at < bytes.count, next < placed.count {
                    let available = bytes.count - at
                    let found = bytes.baseAddress.flatMap { memchr($0 + at, 0xFF, available) }
                    let plain = found.map { UnsafeRawPointer($0) - (bytes.baseAddress! + at) } ?? available
                    while next < placed.count, placed[next].offset < passed + plain {
                        placed[next].offset += position + at - passed
                        next += 1
                    }
                    passed += plain
                    at += plain
                    guard at + 1 < bytes.count else { break }
                    switch bytes[at + 1] {
                    case 0:
                        if next < placed.count, placed[next].offset == passed {
                            placed[next].offset = position + at
                            next += 1
                        }
                        passed += 1
                        at += 2
                    case 0xFF: at += 1
                    // A marker: the data ends before the row.
                    default: return 0
                    }
                }
                return at
            }
            if taken == 0 || isLast { break }
            position += taken
        }
        return next == placed.count ? placed : nil
    }
}

/// The segments of a JPEG file before its compressed data, for a file of fewer rows.
private struct JPEGPartHeader {
    private struct Code {
        var bits: UInt32
        var length: Int
    }

    private var bytes: [UInt8] = [0xFF, JPEGMarker.startOfImage]
    private var dc = [[UInt8: Code]](repeating: [:], count: 4)
    private var ac = [[UInt8: Code]](repeating: [:], count: 4)
    private var frame: JPEGFrame?
    private var scan: JPEGScanHeader?

    init?(_ source: [UInt8], height: Int) {
        var at = 2
        while at + 4 <= source.count {
            guard source[at] == 0xFF, source[at + 1] != 0xFF, source[at + 1] != 0 else {
                at += 1
                continue
            }
            let marker = source[at + 1]
            if JPEGMarker.isStandalone(marker) {
                at += 2
                continue
            }
            let length = Int(source[at + 2]) << 8 | Int(source[at + 3])
            guard length >= 2, at + 2 + length <= source.count else { return nil }
            var segment = Array(source[at..<(at + 2 + length)])
            at += 2 + length
            guard read(marker, &segment, height: height) else { return nil }
            if marker == JPEGMarker.startOfScan { return }
        }
        return nil
    }

    private mutating func read(_ marker: UInt8, _ segment: inout [UInt8], height: Int) -> Bool {
        switch marker {
        // Exif and comments say nothing about the pixels; an upright image needs no orientation.
        case JPEGMarker.application0, JPEGMarker.application0 + 2, JPEGMarker.application14,
            JPEGMarker.quantizationTables, JPEGMarker.restartInterval:
            break
        case JPEGMarker.huffmanTables: guard readCodes(segment.dropFirst(4)) else { return false }
        case JPEGMarker.startOfScan:
            scan = frame.flatMap { frame in
                segment.withUnsafeBufferPointer { segment in
                    JPEGScanHeader(UnsafeBufferPointer(rebasing: segment.dropFirst(4)), frame: frame)
                }
            }
            guard scan != nil else { return false }
        default:
            guard JPEGMarker.isFrame(marker) else { return true }
            guard segment.count >= 10 else { return false }
            (segment[5], segment[6]) = (UInt8(height >> 8), UInt8(height & 255))
            frame = segment.withUnsafeBufferPointer { segment in
                try? JPEGFrame(marker: marker, UnsafeBufferPointer(rebasing: segment.dropFirst(4)))
            }
            guard frame != nil else { return false }
        }
        bytes += segment
        return true
    }

    private mutating func readCodes(_ body: ArraySlice<UInt8>) -> Bool {
        var rest = body
        while let first = rest.first {
            guard first >> 4 <= 1, first & 15 < 4, rest.count >= 17 else { return false }
            let lengths = Array(rest.dropFirst().prefix(16))
            let count = lengths.reduce(0) { $0 + Int($1) }
            guard rest.count >= 17 + count else { return false }
            var symbols = rest.dropFirst(17).prefix(count).makeIterator()
            var codes: [UInt8: Code] = [:], bits: UInt32 = 0
            for (index, number) in lengths.enumerated() {
                for _ in 0..<number {
                    guard let symbol = symbols.next() else { return false }
                    codes[symbol] = Code(bits: bits, length: index + 1)
                    bits += 1
                }
                bits <<= 1
            }
            if first >> 4 == 0 { dc[Int(first & 15)] = codes } else { ac[Int(first & 15)] = codes }
            rest = rest.dropFirst(17 + count)
        }
        return true
    }

    /// Returns a writer behind the header, and behind a row of flat blocks whose last DC coefficients are `predictors`.
    /// nil if there are no codes for it.
    func writer(leadingTo predictors: SIMD4<Int32>?) -> JPEGPartWriter? {
        var writer = JPEGPartWriter(bytes)
        guard let predictors else { return writer }
        guard let frame, let scan, scan.components.count == frame.components.count else { return nil }
        let isInterleaved = scan.components.count > 1
        var left = predictors
        for _ in 0..<(isInterleaved ? frame.mcuColumns : frame.blocks(of: 0).width) {
            for (order, entry) in scan.components.enumerated() {
                let component = frame.components[entry.index]
                guard let flat = ac[entry.acTable][0] else { return nil }
                for _ in 0..<(isInterleaved ? component.horizontal * component.vertical : 1) {
                    guard let step = Self.step(left[order], dc[entry.dcTable]) else { return nil }
                    left[order] -= step.difference
                    writer.put(step.code.bits, step.code.length)
                    writer.put(step.value, step.size)
                    writer.put(flat.bits, flat.length)
                }
            }
        }
        return left == SIMD4(repeating: 0) ? writer : nil
    }

    /// The largest difference towards `left` that has a code, with its bits.
    private static func step(
        _ left: Int32, _ codes: [UInt8: Code]
    ) -> (difference: Int32, code: Code, value: UInt32, size: Int)? {
        let magnitude = left.magnitude
        for size in stride(from: UInt32.bitWidth - magnitude.leadingZeroBitCount, through: 0, by: -1) {
            guard size <= 14, let code = codes[UInt8(size)] else { continue }
            let most = min(magnitude, (1 << UInt32(size)) - 1)
            // Negative ones are written as one less, without the sign.
            let value = left < 0 ? (1 << UInt32(size)) - 1 - most : most
            return (left < 0 ? -Int32(most) : Int32(most), code, value, size)
        }
        return nil
    }
}

/// Writes compressed data behind a header.
private struct JPEGPartWriter {
    private var bytes: [UInt8]
    private var bits: UInt32 = 0
    /// Bits that are not in `bytes` yet, fewer than 8.
    private var count = 0

    init(_ header: [UInt8]) { bytes = header }

    private mutating func append(_ byte: UInt8) {
        bytes.append(byte)
        if byte == 0xFF { bytes.append(0) }
    }

    /// - Parameter length: At most 16.
    mutating func put(_ value: UInt32, _ length: Int) {
        bits = bits << UInt32(length) | value
        count += length
        while count >= 8 {
            count -= 8
            append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
        }
    }

    /// Copies data that begins with a whole byte, with restart markers counted anew from zero.
    ///
    /// - Parameter spareBits: The last bits of the last byte, which belong to another row.
    mutating func copyWhole(_ data: [UInt8], spareBits: Int) {
        var begin = bytes.count, restarts: UInt8 = 0
        bytes += data
        // A marker before the next row belongs to that row.
        if bytes.count >= begin + 2, bytes[bytes.count - 2] == 0xFF, JPEGMarker.isRestart(bytes[bytes.count - 1]) {
            bytes.removeLast(2)
        }
        if spareBits > 0, bytes.count > begin { bytes[bytes.count - 1] |= UInt8((1 << spareBits) - 1) }
        if bytes.count > begin, bytes[bytes.count - 1] == 0xFF { bytes.append(0) }
        while begin + 1 < bytes.count {
            if bytes[begin] == 0xFF, JPEGMarker.isRestart(bytes[begin + 1]) {
                bytes[begin + 1] = JPEGMarker.firstRestart + restarts
                restarts = (restarts + 1) & 7
                begin += 1
            }
            begin += 1
        }
    }

    /// Copies data from a bit of its first byte.
    ///
    /// - Parameters:
    ///   - bit: The first bits of the first byte, which belong to another row.
    ///   - spareBits: The same at the end.
    mutating func copy(_ data: [UInt8], from bit: Int, spareBits: Int) {
        guard let first = data.first else { return }
        var last: UInt8 = 0, hasLast = false
        put(UInt32(first) & (0xFF >> UInt32(bit)), 8 - bit)
        var rest = data.dropFirst(first == 0xFF && data.dropFirst().first == 0 ? 2 : 1)
        if spareBits > 0, let byte = rest.popLast() { (last, hasLast) = (byte, true) }
        // What is already there is written first, as the copy moves whole bytes by the bits that are left.
        let shift = UInt32(count)
        var kept = bits & ((1 << shift) - 1)
        let begin = bytes.count
        let header = bytes
        bytes = [UInt8](unsafeUninitializedCapacity: begin + 2 * rest.count + 16) { output, used in
            _ = output.update(fromContentsOf: header)
            var to = begin
            rest.withUnsafeBufferPointer { input in
                var from = 0
                while from < input.count {
                    let byte = input[from]
                    from += 1
                    if byte == 0xFF {
                        let next = from < input.count ? input[from] : 0
                        if next == 0xFF { continue }
                        // The end of the data.
                        if next != 0 { break }
                        from += 1
                    }
                    kept = kept << 8 | UInt32(byte)
                    let whole = UInt8(truncatingIfNeeded: kept >> shift)
                    output[to] = whole
                    to += 1
                    if whole == 0xFF {
                        output[to] = 0
                        to += 1
                    }
                }
            }
            used = to
        }
        bits = kept
        if hasLast { put(UInt32(last) >> UInt32(spareBits), 8 - spareBits) }
    }

    /// The file.
    mutating func finished() -> [UInt8] {
        if count > 0 { put((1 << UInt32(8 - count)) - 1, 8 - count) }
        bytes += [0xFF, JPEGMarker.endOfImage]
        return bytes
    }
}
