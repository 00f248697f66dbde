/// Where the JPEG XL codestream stands in its file: bare, in one box, or in parts.
///
/// Source: ISO/IEC 18181-2 (container; `jxlc`, `jxlp`).
struct JXLCodestream {
    private let reader: ByteReader
    /// Parts in the file and where each begins in the codestream.
    private var parts: [(file: Range<Int>, start: Int)] = []
    /// Bytes in the codestream, as far as the file goes.
    private(set) var count = 0
    /// The boxes around it; none around a bare codestream.
    let boxes: [ISOBox]

    init(_ reader: ByteReader) throws(ImageError) {
        self.reader = reader
        if try reader.u16(at: 0) == 0xFF0A {
            boxes = []
            append(0..<reader.count)
            return
        }
        boxes = ISOBox.children(reader, in: 0..<reader.count)
        if let whole = boxes["jxlc"] {
            append(whole.payload)
        } else {
            for box in boxes where box.type == "jxlp" && box.payload.count >= 4 {
                append((box.payload.lowerBound + 4)..<box.payload.upperBound)  // behind the number of the part
            }
        }
        guard count >= 2 else { throw .truncated(input: reader.name) }
        let first = parts[0].file.lowerBound
        guard try reader.u16(at: first) == 0xFF0A else { throw reader.corrupt("no JPEG XL codestream") }
    }

    private mutating func append(_ range: Range<Int>) {
        guard !range.isEmpty else { return }
        parts.append((range, count))
        count += range.count
    }

    /// A copy of at most `length` bytes from `offset` on; fewer where the codestream ends.
    func bytes(at offset: Int, count length: Int) throws(ImageError) -> [UInt8] {
        var result: [UInt8] = []
        let end = offset &+ min(length, max(0, count &- offset))
        for part in parts where part.start < end && part.start + part.file.count > offset {
            let from = part.file.lowerBound + max(0, offset - part.start)
            let to = part.file.lowerBound + min(part.file.count, end - part.start)
            if result.isEmpty {
                result = try reader.bytes(from..<to)
            } else {
                result += try reader.bytes(from..<to)
            }
        }
        return result
    }

    /// Reads something at `offset` whose length is not known before: first from a few bytes, then from more.
    ///
    /// - Throws: What `body` throws, except ``JXLFault/truncated`` while there are more bytes to be had.
    func parse<R>(
        at offset: Int, first length: Int, limit: Int = 16 << 20,
        _ body: (inout JXLBits) throws(JXLFault) -> R
    ) throws(ImageError) -> R {
        var length = length
        while true {
            let bytes = try bytes(at: offset, count: length)
            switch JXLBits.read(bytes, body) {
            case .success(let value): return value
            case .failure(.truncated) where bytes.count == length && length < limit: length *= 16
            case .failure(let fault): throw fault.error(reader.name)
            }
        }
    }
}
