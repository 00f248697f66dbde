import VitrineImageCore

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
        for part in parts[firstPart(at: offset)...] {
            guard part.start < end else { break }
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

    /// The index of the part that holds the byte at `offset`. Halves the parts: a file has thousands of them, and of
    /// frames, each of which begins with a look here.
    private func firstPart(at offset: Int) -> Int {
        var (low, high) = (0, parts.count)
        while low < high {
            let middle = (low + high) / 2
            if parts[middle].start + parts[middle].file.count <= offset { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Reads something at `offset` whose length is not known before: first from a few bytes, then from more.
    ///
    /// - Throws: The error of `body`, except ``JXLFault/truncated`` while more bytes are available.
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

/// A JPEG XL file as libjxl reads it.
package enum JXLFile {
    /// The bytes of a bare codestream, or the codestream of a file in a container.
    ///
    /// libjxl 0.7 does not read boxes with sizes of 64 bits, and needs nothing else of a container for the pixels.
    package static func codestream(of source: ByteSource) throws(ImageError) -> [UInt8] {
        let codestream = try JXLCodestream(ByteReader(source))
        return codestream.boxes.isEmpty
            ? try source.allBytes() : try codestream.bytes(at: 0, count: codestream.count)
    }
}

/// The first frame that is shown: all headers before its sections.
struct JXLFrameStart {
    let image: JXLImageHeader
    /// The embedded ICC profile.
    let profile: [UInt8]?
    let frame: JXLFrameHeader
    let contents: JXLTableOfContents
    /// Where the sections begin in the codestream.
    let sections: Int

    /// The first frame of the codestream, of any kind.
    init(_ codestream: JXLCodestream) throws(ImageError) {
        self = try codestream.parse(at: 0, first: 8 << 10) { bits throws(JXLFault) in
            let image = try JXLImageHeader(&bits)
            let encoded = image.hasProfile ? try JXLProfileStream.read(&bits) : nil
            try bits.align()
            return try JXLFrameStart(&bits, image: image, profile: encoded.flatMap { JXLProfile(encoded: $0)?.bytes })
        }
    }

    private init(_ bits: inout JXLBits, image: JXLImageHeader, profile: [UInt8]?) throws(JXLFault) {
        self.image = image
        self.profile = profile
        frame = try JXLFrameHeader(&bits, image)
        contents = try JXLTableOfContents(&bits, frame)
        sections = bits.position / 8
    }
}

/// Goes from frame to frame by their headers and tables of contents, without decoding any.
struct JXLFrameWalker {
    /// Frames and layers looked at; a file cannot make reading its header take longer.
    static let maximumFrames = 65_536

    private let codestream: JXLCodestream

    init(_ codestream: JXLCodestream) {
        self.codestream = codestream
    }

    /// Counts the frames that are shown, seconds and loops of an animation. If the headers end early or are invalid,
    /// the numbers up to there stay.
    ///
    /// - Parameter start: The first frame.
    func describe(_ start: JXLFrameStart, result: inout ImageHeader, limits: ImageLimits) {
        guard let animation = start.image.animation, !start.image.hasPreview else { return }
        var (frame, next) = (start.frame, start.sections &+ start.contents.total)
        var (shown, ticks) = (0, 0)
        for _ in 0..<JXLFrameWalker.maximumFrames {
            if frame.isShown {
                shown += 1
                ticks += frame.duration
                result.addFrame(
                    seconds: animation.rate > 0 ? Double(frame.duration) / animation.rate : 0, limits)
            }
            guard !frame.isLast, next < codestream.count else { break }
            let offset = next
            let step = try? codestream.parse(at: offset, first: 64) {
                bits throws(JXLFault) -> (JXLFrameHeader, Int) in
                let header = try JXLFrameHeader(&bits, start.image)
                let contents = try JXLTableOfContents(&bits, header)
                return (header, offset &+ bits.position / 8 &+ contents.total)
            }
            guard let step else { break }
            (frame, next) = step
        }
        result.info.frameCount = max(1, shown)
        guard shown > 1, animation.rate > 0 else { return }
        result.info.duration = Double(ticks) / animation.rate
        result.info.loopCount = animation.loopCount
    }
}

/// Where the sections of a frame stand.
///
/// Source: ISO/IEC 18181-1 annex F.3 (TOC) and F.3.2 (permutation).
struct JXLTableOfContents {
    static let maximumEntries = 1 << 18

    /// Side in pixels of a group, and of the area one low-frequency section covers.
    let groupSide: Int
    let lowFrequencyColumns: Int
    let lowFrequencyRows: Int
    /// Of each section in its logical order, the offset behind the table.
    private(set) var offsets: [Int]
    private(set) var sizes: [Int]
    /// Bytes of all sections.
    private(set) var total = 0

    init(_ bits: inout JXLBits, _ frame: JXLFrameHeader) throws(JXLFault) {
        groupSide = 128 << frame.groupSizeShift
        func groups(_ side: Int) -> (Int, Int) { ((frame.width + side - 1) / side, (frame.height + side - 1) / side) }
        let (columns, rows) = groups(groupSide)
        (lowFrequencyColumns, lowFrequencyRows) = groups(groupSide * 8)
        guard columns < 1 << 20, rows < 1 << 20, columns * rows <= JXLTableOfContents.maximumEntries else {
            throw .unsupported("a frame of too many groups")
        }
        let count = columns * rows == 1 && frame.passCount == 1
            ? 1 : 2 + lowFrequencyColumns * lowFrequencyRows + columns * rows * frame.passCount
        guard count <= JXLTableOfContents.maximumEntries else { throw .unsupported("a frame of too many sections") }
        // A size takes 12 bits at least, so that the work is linear in the bytes, whatever the order says.
        guard bits.remaining / 12 >= count else { throw .truncated }
        let order = bits.bool() ? try JXLTableOfContents.permutation(&bits, count: count) : nil
        try bits.align()
        offsets = [Int](repeating: 0, count: count)
        sizes = offsets
        for i in 0..<count {
            let size = bits.u32(a: (0, 10), b: (1024, 14), c: (17_408, 22), d: (4_211_712, 30))
            let section = order.map { $0[i] } ?? i
            offsets[section] = total
            sizes[section] = size
            total += size
        }
        try bits.align()
        try bits.check()
    }

    /// Which section stands at each place: a Lehmer code, entropy-coded.
    private static func permutation(_ bits: inout JXLBits, count: Int) throws(JXLFault) -> [Int] {
        func context(_ value: Int) -> Int { min(7, JXLEntropyCode.ceilLog2(value + 1)) }
        let code = try JXLEntropyCode(&bits, contexts: 8)
        var reader = JXLEntropyReader(code, &bits)
        let end = try reader.read(&bits, context(count))
        guard end <= count, count <= 1 << 16 else { throw .corrupt("order of sections") }
        var rest = RankedNumbers(count: count)
        var order: [Int] = []
        order.reserveCapacity(count)
        var last = 0
        for i in 0..<end {
            last = try reader.read(&bits, context(last))
            guard last < count - i else { throw .corrupt("order of sections") }
            order.append(rest.take(last))
        }
        try reader.finish(bits)
        return order + rest.left
    }
}

/// The numbers from 0 on, from which one after the other is taken by its rank among those that are left.
///
/// A binary indexed tree (P. Fenwick, 1994): a take costs the logarithm of the count, where an array would move all
/// numbers behind it.
private struct RankedNumbers {
    /// At `i`, counted from 1: how many of the numbers that end with `i` and are as many as its lowest bit are left.
    private var sums: [Int32]
    private var isTaken: [Bool]
    /// The largest power of two that is not above the count.
    private let top: Int

    init(count: Int) {
        sums = (0...count).map { Int32(truncatingIfNeeded: $0 & -$0) }
        isTaken = [Bool](repeating: false, count: count)
        top = count > 0 ? 1 << (Int.bitWidth - 1 - count.leadingZeroBitCount) : 0
    }

    /// Takes the number with a rank, from 0 to below the count of those left.
    mutating func take(_ rank: Int) -> Int {
        var (place, before, step) = (0, rank, top)
        while step > 0 {
            let next = place &+ step
            if next < sums.count, sums[next] <= before {
                place = next
                before -= Int(sums[next])
            }
            step >>= 1
        }
        var index = place &+ 1
        while index < sums.count {
            sums[index] -= 1
            index += index & -index
        }
        isTaken[place] = true
        return place
    }

    /// The numbers that are left, in order.
    var left: [Int] { isTaken.indices.filter { !isTaken[$0] } }
}
