/// A plane of every pixel, filled while rows arrive.
struct FullPlane: PNGRowSink, ~Copyable {
    let isScattered: Bool
    let width: Int
    let height: Int
    let channels: Int
    let storage: PixelStorage
    private let base: UnsafeMutableRawPointer
    private var row = 0

    /// - Parameter isScattered: Whether pixels come in any order, by ``add(_:y:x:step:count:)``, not row by row.
    init(width: Int, height: Int, channels: Int, isScattered: Bool) {
        self.width = width
        self.height = height
        self.channels = channels
        self.isScattered = isScattered
        // 64 bytes more than the samples, so that wide stores and loads need no special last pixel.
        let count = width * height * channels + 64
        storage = isScattered ? PixelStorage(zeroedByteCount: count) : PixelStorage(uninitializedByteCount: count)
        base = storage.bytes.baseAddress!
    }

    /// Adds the next row.
    mutating func add(_ source: UnsafeRawPointer) {
        guard row < height else { return }
        (base + row * width * channels).copyMemory(from: source, byteCount: width * channels)
        row += 1
    }

    /// Adds pixels of row `y` at `x`, `x + step` and so on.
    mutating func add(_ source: UnsafeRawPointer, y: Int, x: Int, step: Int, count: Int) {
        let to = (base + (y * width + x) * channels).assumingMemoryBound(to: UInt8.self)
        let from = source.assumingMemoryBound(to: UInt8.self)
        for i in 0..<count {
            for c in 0..<channels { to[i &* step &* channels &+ c] = from[i &* channels &+ c] }
        }
    }

    /// Copies the pixel `left` and `up` of (x, y) to it: how what an interlaced file lacks is filled in.
    mutating func repeatPixel(y: Int, x: Int, left: Int, up: Int) {
        let to = base + (y * width + x) * channels
        to.copyMemory(from: to - (up * width + left) * channels, byteCount: channels)
    }

    /// The result. Rows that did not come are zero: black, or transparent.
    mutating func finish() -> PixelPlane {
        if !isScattered {
            UnsafeMutableRawBufferPointer(rebasing: storage.bytes[(row * width * channels)...])
                .initializeMemory(as: UInt8.self, repeating: 0)
        }
        return PixelPlane(width: width, height: height, channels: channels, storage: storage)
    }
}
