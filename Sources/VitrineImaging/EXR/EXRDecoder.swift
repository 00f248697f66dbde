import VitrineCore

/// Decodes OpenEXR images of scan lines or tiles, in Swift alone: uncompressed, RLE, ZIP, PIZ and PXR24.
///
/// Light becomes sRGB by ``ToneMap``; alpha is multiplied in. The data window is the picture, and of a file with layers
/// the first. Chunks are decoded one by one, and their rows are averaged; of smaller levels none is read. Files of other
/// kinds show their preview attribute if it has at least half the size asked for: several parts, deep images, and lossy
/// B44 and DWA.
package struct EXRDecoder: ImageDecoding, HeaderReading {
    package let formats: Set<ImageFormat> = [.exr]
    package let needsIsolation = false

    package init() {}

    package static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        let header = try EXRHeader(reader)
        var info = ImageInfo(format: .exr, storedSize: header.size)
        let colors = header.colors ?? []
        info.hasAlpha = colors.count & 1 == 0 && !colors.isEmpty
        info.colorModel = (1...2).contains(colors.count) ? .gray : .rgb
        info.bitDepth = colors.first.map { header.channels[$0].kind.bytes * 8 } ?? 32
        return ImageHeader(info: info)
    }

    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        try request.requireFirstPage()
        let header = try EXRHeader(ByteReader(source))
        try BMPBitmap.check(header.size, request.limits, name: source.name)
        guard header.refusal == nil, let colors = header.colors else {
            let reason = header.refusal ?? "it has no channels of colour"
            return try preview(header, source, request, reason)
        }
        let chunks = try EXRChunks(source, header, request.limits)
        let tones = try Self.tones(chunks, header, colors, request)
        let channels = colors.count
        let hasAlpha = channels & 1 == 0
        var rows = try RowCollector(source, request, size: header.size, channels: channels, hasAlpha: hasAlpha)
        var isPartial = false
        do throws(ImageError) {
            for index in 0..<header.bandCount {
                let bytes = try chunks.band(index)
                for y in 0..<chunks.rows(index) {
                    let pixels = EXRPixels(bytes, row: y, header, colors)
                    pixels.convert(tones, hasAlpha: hasAlpha, into: rows.row)
                    try rows.advance()
                }
            }
        } catch {
            guard rows.excuses(error, request) else { throw error }
            isPartial = true
        }
        return try rows.finish(isPartial: isPartial)
    }

    /// From 256 bands of one row, or some rows of 32 higher ones.
    private static func tones(
        _ chunks: EXRChunks, _ header: EXRHeader, _ colors: [Int], _ request: DecodeRequest
    ) throws(ImageError) -> ToneMap {
        let most = header.rowsOfBand == 1 ? 256 : 32
        let across = ToneMap.step(header.size.width)
        var lights: [Float] = []
        for index in stride(from: 0, to: header.bandCount, by: (header.bandCount + most - 1) / most) {
            if request.cancellation.isCancelled { throw .cancelled(input: chunks.source.name) }
            // The second pass says what is wrong.
            guard let bytes = try? chunks.band(index) else { continue }
            for y in stride(from: 0, to: chunks.rows(index), by: 4) {
                let pixels = EXRPixels(bytes, row: y, header, colors)
                for x in stride(from: 0, to: header.size.width, by: across) { lights.append(pixels.luminance(x)) }
            }
        }
        return ToneMap(medianOf: lights)
    }

    private func preview(
        _ header: EXRHeader, _ source: ByteSource, _ request: DecodeRequest, _ reason: String
    ) throws(ImageError) -> DecodedImage {
        let target = request.target ?? header.size
        guard let (size, range) = header.preview, size.width * 2 >= target.width, size.height * 2 >= target.height
        else { throw .unsupported(input: source.name, reason: reason) }
        var whole = request
        whole.target = nil
        var rows = try RowCollector(source, whole, size: size, channels: 4, hasAlpha: true)
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

    init(_ bytes: [UInt8], row: Int, _ header: EXRHeader, _ colors: [Int]) {
        self.bytes = bytes
        width = header.size.width
        offsets = colors.map { color in
            row * header.bytesPerRow + header.channels[..<color].reduce(0) { $0 + $1.kind.bytes } * header.size.width
        }
        kinds = colors.map { header.channels[$0].kind }
    }

    @inline(__always)
    private func light(_ base: UnsafeRawPointer, _ kind: EXRHeader.Channel.Kind, _ x: Int) -> Float {
        switch kind {
        case .half: ToneMap.light(UInt16(littleEndian: (base + 2 &* x).loadUnaligned(as: UInt16.self)))
        case .float: Float(bitPattern: UInt32(littleEndian: (base + 4 &* x).loadUnaligned(as: UInt32.self)))
        case .uint: Float(UInt32(littleEndian: (base + 4 &* x).loadUnaligned(as: UInt32.self)))
        }
    }

    func luminance(_ x: Int) -> Float {
        bytes.withUnsafeBytes { buffer in
            guard let base = buffer.baseAddress else { return 0 }
            func value(_ i: Int) -> Float { light(base + offsets[i], kinds[i], x) }
            return kinds.count <= 2 ? value(0) : ToneMap.luminance(value(0), value(1), value(2))
        }
    }

    func convert(_ tones: ToneMap, hasAlpha: Bool, into target: UnsafeMutablePointer<UInt8>) {
        let channels = kinds.count
        bytes.withUnsafeBytes { buffer in
            guard let base = buffer.baseAddress else { return }
            guard hasAlpha else {
                for c in 0..<channels {
                    let (from, kind) = (base + offsets[c], kinds[c])
                    for x in 0..<width { target[x &* channels &+ c] = tones.level(light(from, kind, x)) }
                }
                return
            }
            let (from, kind) = (base + offsets[channels - 1], kinds[channels - 1])
            for x in 0..<width {
                let alpha = light(from, kind, x)
                let p = target + x &* channels
                // Colours are multiplied by alpha in linear light.
                for c in 0..<(channels &- 1) {
                    let value = light(base + offsets[c], kinds[c], x)
                    p[c] = alpha > 0 ? tones.level(alpha < 1 ? value / alpha : value) : 0
                }
                p[channels &- 1] = alpha > 0 ? UInt8(min(alpha, 1) * 255 + 0.5) : 0
            }
        }
    }
}
