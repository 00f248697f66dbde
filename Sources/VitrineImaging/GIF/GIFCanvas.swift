/// The picture a GIF's frames are composed on: red, green, blue and alpha, transparent at first.
///
/// Source: GIF89a specification §20, §23; appendix E for the order of interlaced rows. Like every browser, disposal to
/// the background clears to transparent and ignores the background colour.
struct GIFCanvas {
    let width: Int
    let height: Int
    let storage: PixelStorage

    init(_ size: PixelSize) {
        width = size.width
        height = size.height
        storage = PixelStorage(zeroedByteCount: size.pixelCount * 4)
    }

    /// The part of a frame that lies on the canvas: its first column and row, one behind its last.
    private func visible(_ frame: GIFFrame) -> (columns: Range<Int>, rows: Range<Int>) {
        let (x, y) = (min(frame.x, width), min(frame.y, height))
        return (x..<min(width, x + frame.width), y..<min(height, y + frame.height))
    }

    /// Paints `count` decoded indices of a frame.
    func paint(_ indices: UnsafeBufferPointer<UInt8>, _ frame: GIFFrame, palette: [UInt32]) {
        let (columns, rows) = visible(frame)
        guard !columns.isEmpty, !rows.isEmpty, let source = indices.baseAddress else { return }
        let pixels = storage.bytes.assumingMemoryBound(to: UInt32.self)
        let transparent = frame.transparentIndex ?? -1
        let decodedRows = frame.width > 0 ? (indices.count + frame.width - 1) / frame.width : 0
        palette.withUnsafeBufferPointer { colors in
            for stored in 0..<min(decodedRows, frame.height) {
                let row = frame.isInterlaced ? GIFCanvas.interlacedRow(stored, of: frame.height) : stored
                let y = frame.y + row
                guard rows.contains(y) else { continue }
                let line = source + stored * frame.width
                let count = min(columns.count, indices.count - stored * frame.width)
                let target = pixels.baseAddress! + y * width + columns.lowerBound
                for x in 0..<count {
                    let index = Int(line[x])
                    if index != transparent { target[x] = colors[index] }
                }
            }
        }
    }

    /// Makes a frame's area transparent.
    func clear(_ frame: GIFFrame) {
        let (columns, rows) = visible(frame)
        for y in rows where !columns.isEmpty {
            (storage.bytes.baseAddress! + (y * width + columns.lowerBound) * 4)
                .initializeMemory(as: UInt8.self, repeating: 0, count: columns.count * 4)
        }
    }

    /// Copies a frame's area from another canvas of the same size.
    func restore(_ frame: GIFFrame, from saved: PixelStorage) {
        let (columns, rows) = visible(frame)
        for y in rows where !columns.isEmpty {
            let at = (y * width + columns.lowerBound) * 4
            (storage.bytes.baseAddress! + at).copyMemory(
                from: saved.bytes.baseAddress! + at, byteCount: columns.count * 4)
        }
    }

    /// Which row of the picture the `stored`-th row of an interlaced frame is.
    static func interlacedRow(_ stored: Int, of height: Int) -> Int {
        var rest = stored
        for (first, step) in [(0, 8), (4, 8), (2, 4), (1, 2)] {
            let rows = height > first ? (height - first + step - 1) / step : 0
            if rest < rows { return first + rest * step }
            rest -= rows
        }
        return height
    }
}
