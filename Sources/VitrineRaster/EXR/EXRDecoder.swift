import VitrineCore
import VitrineImageCore

/// Decodes OpenEXR images of scan lines or tiles, in Swift alone: uncompressed, RLE, ZIP, PIZ and PXR24.
///
/// Light becomes sRGB by ``ToneMap``; alpha is multiplied in. The display window is the image, black or transparent
/// where no pixels are stored, and of a file with layers the first. Chunks are decoded one by one, and their rows are
/// averaged; of smaller levels none is read. Files of other kinds show their preview attribute if it has at least half the
/// size asked for: several parts, deep images, and lossy B44 and DWA.
package struct EXRDecoder: ImageDecoding, HeaderReading {
    package let formats: Set<ImageFormat> = [.exr]

    package init() {}

    package static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        let header = try EXRHeader(reader)
        var info = ImageInfo(format: .exr, storedSize: header.shown.size)
        let colors = header.colors ?? []
        info.hasAlpha = colors.count & 1 == 0 && !colors.isEmpty
        info.colorModel = (1...2).contains(colors.count) ? .gray : .rgb
        info.bitDepth = colors.first.map { header.channels[$0].kind.bytes * 8 } ?? 32
        return ImageHeader(info: info)
    }

    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        try request.requireFirstPage()
        let header = try EXRHeader(ByteReader(source))
        try request.limits.check(storedSize: header.shown.size, input: source.name)
        guard header.refusal == nil, let colors = header.colors else {
            let reason = header.refusal ?? "it has no channels of colour"
            return try preview(header, source: source, request: request, reason: reason)
        }
        try request.limits.check(storedSize: header.size, input: source.name)
        let chunks = try EXRChunks(source, header: header, limits: request.limits)
        let channels = colors.count
        var rows = try RowCollector(
            source, request, size: header.shown.size, channels: channels, alpha: channels & 1 == 0 ? .straight : .none)
        var isPartial = false
        do throws(ImageError) {
            try Self.read(chunks, header: header, colors: colors, into: &rows)
        } catch {
            guard rows.excuses(error, request) else { throw error }
            isPartial = true
        }
        return try rows.finish(isPartial: isPartial)
    }

    /// Reads the rows of the display window. Pixels outside of the data window are zero.
    private static func read(
        _ chunks: EXRChunks, header: EXRHeader, colors: [Int], into rows: inout RowCollector
    ) throws(ImageError) {
        let shown = header.shown
        let columns = max(0, shown.x)..<min(header.size.width, shown.x + shown.size.width)
        let first = max(0, shown.y)
        let tones = ToneMap()
        func blank(_ rows: inout RowCollector, to end: Int) throws(ImageError) {
            while rows.count < end {
                rows.row.update(repeating: 0, count: rows.bytesPerRow)
                try rows.advance()
            }
        }
        try blank(&rows, to: first - shown.y)
        for index in (first / header.rowsOfBand)..<header.bandCount where !rows.isComplete {
            let bytes = try chunks.band(index)
            for y in 0..<chunks.rows(index) where index * header.rowsOfBand + y >= first && !rows.isComplete {
                if columns.count < shown.size.width { rows.row.update(repeating: 0, count: rows.bytesPerRow) }
                let pixels = EXRPixels(bytes, row: y, header: header, colors: colors)
                pixels.convert(
                    columns, tones, into: rows.row + (columns.lowerBound - shown.x) * colors.count)
                try rows.advance()
            }
        }
        try blank(&rows, to: shown.size.height)
    }

    private func preview(
        _ header: EXRHeader, source: ByteSource, request: DecodeRequest, reason: String
    ) throws(ImageError) -> DecodedImage {
        let target = request.target ?? header.shown.size
        guard let (size, range) = header.preview, size.width * 2 >= target.width, size.height * 2 >= target.height
        else { throw .unsupported(input: source.name, reason: reason) }
        var whole = request
        whole.target = nil
        var rows = try RowCollector(source, whole, size: size, channels: 4, alpha: .straight)
        var stream = ByteStream(source, from: range.lowerBound, to: range.upperBound)
        while !rows.isComplete {
            try stream.take(rows.bytesPerRow, into: rows.row)
            try rows.advance()
        }
        return try rows.finish()
    }
}

/// One row of a chunk: samples of each channel, one channel after the other.
private struct EXRPixels {
    private let bytes: [UInt8]
    private let offsets: [Int]
    private let kinds: [EXRHeader.Channel.Kind]
    private let width: Int

    init(_ bytes: [UInt8], row: Int, header: EXRHeader, colors: [Int]) {
        self.bytes = bytes
        width = header.size.width
        offsets = colors.map { color in
            row * header.bytesPerRow + header.channels[..<color].reduce(0) { $0 + $1.kind.bytes } * header.size.width
        }
        kinds = colors.map { header.channels[$0].kind }
    }

    @inline(__always)
    private func light(_ base: UnsafeRawPointer, kind: EXRHeader.Channel.Kind, x: Int) -> Float {
        switch kind {
        case .half: ToneMap.light(UInt16(littleEndian: (base + 2 &* x).loadUnaligned(as: UInt16.self)))
        case .float: Float(bitPattern: UInt32(littleEndian: (base + 4 &* x).loadUnaligned(as: UInt32.self)))
        case .uint: Float(UInt32(littleEndian: (base + 4 &* x).loadUnaligned(as: UInt32.self)))
        }
    }

    /// Writes the pixels of some columns, one after the other.
    func convert(_ columns: Range<Int>, _ tones: ToneMap, into target: UnsafeMutablePointer<UInt8>) {
        let channels = kinds.count
        let colors = channels <= 2 ? 1 : 3
        bytes.withUnsafeBytes { buffer in
            guard let base = buffer.baseAddress else { return }
            @inline(__always) func value(_ channel: Int, _ x: Int) -> Float {
                light(base + offsets[channel], kind: kinds[channel], x: x)
            }
            var p = target
            for x in columns {
                var scale: Float = 1
                if channels > colors {
                    // Colours are multiplied by alpha in linear light.
                    let alpha = value(colors, x)
                    p[colors] = alpha > 0 ? UInt8(min(alpha, 1) * 255 + 0.5) : 0
                    scale = alpha > 0 ? (alpha < 1 ? 1 / alpha : 1) : 0
                }
                if colors == 1 {
                    p[0] = tones.level(value(0, x) * scale)
                } else {
                    tones.write(red: value(0, x) * scale, green: value(1, x) * scale, blue: value(2, x) * scale, to: p)
                }
                p += channels
            }
        }
    }
}
