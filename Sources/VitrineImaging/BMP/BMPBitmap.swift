import VitrineCore

/// Decodes the pixels of a bitmap from the top, a window of rows at a time.
struct BMPBitmap {
    let source: ByteSource
    let header: BMPHeader
    /// Where stored pixels begin.
    let offset: Int
    /// Where an icon's transparency mask begins: one bit a pixel, 1 for transparent.
    var mask: Int?
    let request: DecodeRequest

    /// Bytes read from the source at once.
    private static let window = 256 << 10

    /// Throws unless the header's size is within the limits.
    static func check(_ size: PixelSize, _ limits: ImageLimits, name: String) throws(ImageError) {
        guard size.longestSide <= limits.maximumSide else {
            throw .limitExceeded(input: name, limit: .side, actual: size.longestSide, allowed: limits.maximumSide)
        }
        guard size.pixelCount <= limits.maximumPixels else {
            throw .limitExceeded(input: name, limit: .pixels, actual: size.pixelCount, allowed: limits.maximumPixels)
        }
    }

    func decode() throws(ImageError) -> DecodedImage {
        try BMPBitmap.check(header.size, request.limits, name: source.name)
        let (width, height) = (header.size.width, header.size.height)
        let hasAlpha = header.hasAlpha || mask != nil
        let channels = hasAlpha ? 4 : 3
        let factor = self.factor
        let converter = BMPRowConverter(header, channels: channels)
        var reducer = BoxReducer(width: width, height: height, channels: channels, factor: factor)
        let row = UnsafeMutablePointer<UInt8>.allocate(capacity: width * channels)
        defer { row.deallocate() }
        let isPartial = try forEachRow { y, stored, maskRow in
            converter.convert(stored, into: row)
            if let maskRow {
                for x in 0..<width where maskRow[x >> 3] & (0x80 >> UInt8(x & 7)) != 0 { row[4 * x + 3] = 0 }
            }
            if hasAlpha, factor > 1 { AlphaMath.premultiply(row, count: width) }
            reducer.add(rows: row, count: 1, bytesPerRow: width * channels)
        }
        return DecodedImage(
            planes: [reducer.finish()], model: .rgb,
            alpha: !hasAlpha ? .none : factor > 1 ? .premultiplied : .straight, isPartial: isPartial,
            samplesAreMeans: factor > 1)
    }

    /// The side of the blocks to average, which leaves at least twice the target.
    private var factor: Int {
        guard let target = request.target, !target.isEmpty else { return 1 }
        let reduction = min(
            Double(header.size.width) / Double(target.width), Double(header.size.height) / Double(target.height))
        return max(1, Int(reduction / 2))
    }

    /// Hands over every stored row from the top, with its row of the mask.
    ///
    /// - Returns: Whether rows were missing; they are handed over as zeros.
    private func forEachRow(
        _ body: (Int, UnsafePointer<UInt8>, UnsafePointer<UInt8>?) -> Void
    ) throws(ImageError) -> Bool {
        if case .runLength = header.packing { return try forEachCodedRow(body) }
        let bytesPerRow = header.bytesPerRow
        let isPartial = try checkTruncation(needed: bytesPerRow * header.size.height)
        var pixels = BMPRowWindow(
            source, offset: offset, bytesPerRow: bytesPerRow, rows: header.size.height,
            capacity: BMPBitmap.window, isTopDown: header.isTopDown)
        var masks = maskWindow
        for y in 0..<header.size.height {
            if y & 63 == 0, request.cancellation.isCancelled { throw .cancelled(input: source.name) }
            body(y, try pixels.row(y), try masks?.row(y))
        }
        return isPartial
    }

    private func forEachCodedRow(
        _ body: (Int, UnsafePointer<UInt8>, UnsafePointer<UInt8>?) -> Void
    ) throws(ImageError) -> Bool {
        let limit = request.limits.maximumInputBytes
        let code = BMPRunLength(
            try source.bytes(at: offset, count: limit), size: header.size, bits: header.bits)
        if code.isTruncated, !request.allowPartial || code.isEmpty { throw .truncated(input: source.name) }
        let indices = UnsafeMutablePointer<UInt8>.allocate(capacity: header.size.width)
        defer { indices.deallocate() }
        var masks = maskWindow
        for y in 0..<header.size.height {
            if y & 63 == 0, request.cancellation.isCancelled { throw .cancelled(input: source.name) }
            code.row(header.isTopDown ? y : header.size.height - 1 - y, into: indices)
            body(y, indices, try masks?.row(y))
        }
        return code.isTruncated
    }

    private var maskWindow: BMPRowWindow? {
        guard let mask else { return nil }
        return BMPRowWindow(
            source, offset: mask, bytesPerRow: (header.size.width + 31) / 32 * 4, rows: header.size.height,
            capacity: BMPBitmap.window, isTopDown: header.isTopDown)
    }

    /// Whether fewer than `needed` bytes of pixels are there.
    private func checkTruncation(needed: Int) throws(ImageError) -> Bool {
        // The padding of the last row is missing in many files.
        let padding = header.bytesPerRow - (header.size.width * header.bits + 7) / 8
        if source.count - offset >= needed - padding { return false }
        guard request.allowPartial, source.count > offset else { throw .truncated(input: source.name) }
        return true
    }
}
