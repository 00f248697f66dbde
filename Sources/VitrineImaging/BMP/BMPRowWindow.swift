/// Stored rows of a bitmap, read from the source in runs of neighbours whichever way up they are stored.
struct BMPRowWindow {
    private let source: ByteSource
    private let offset: Int
    private let bytesPerRow: Int
    private let rows: Int
    private let isTopDown: Bool
    private let rowsAtOnce: Int
    private let storage: PixelStorage
    /// Stored rows in memory.
    private var loaded = 0..<0

    init(_ source: ByteSource, offset: Int, bytesPerRow: Int, rows: Int, capacity: Int, isTopDown: Bool) {
        self.source = source
        self.offset = offset
        self.bytesPerRow = bytesPerRow
        self.rows = rows
        self.isTopDown = isTopDown
        rowsAtOnce = max(1, min(rows, capacity / bytesPerRow))
        storage = PixelStorage(uninitializedByteCount: rowsAtOnce * bytesPerRow)
    }

    /// Row `y` from the top, valid until the next call; zeros where the source has ended.
    mutating func row(_ y: Int) throws(ImageError) -> UnsafePointer<UInt8> {
        let stored = isTopDown ? y : rows - 1 - y
        if !loaded.contains(stored) {
            let first = isTopDown ? stored : max(0, stored + 1 - rowsAtOnce)
            let count = min(rowsAtOnce, rows - first)
            let buffer = UnsafeMutableRawBufferPointer(rebasing: storage.bytes[0..<(count * bytesPerRow)])
            let read = try source.read(into: buffer, at: offset + first * bytesPerRow)
            if read < buffer.count {
                UnsafeMutableRawBufferPointer(rebasing: buffer[read...]).initializeMemory(as: UInt8.self, repeating: 0)
            }
            loaded = first..<(first + count)
        }
        let base = storage.bytes.baseAddress! + (stored - loaded.lowerBound) * bytesPerRow
        return UnsafePointer(base.assumingMemoryBound(to: UInt8.self))
    }
}
