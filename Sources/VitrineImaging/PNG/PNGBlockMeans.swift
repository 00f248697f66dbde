/// Means of square blocks of pixels, gathered while rows arrive: memory is one row of column sums and the result.
///
/// Blocks at the right and lower edge average the pixels they have. Colour must be premultiplied.
struct PNGBlockMeans: PNGRowSink, ~Copyable {
    /// The largest block side: 4,096² · 255 fits 32 bits.
    static let maximumFactor = 4_096
    /// Rows of column sums that fit 16 bits: 256 · 255 < 65,536.
    private static let maximumColumnRows = 256

    let width: Int
    let height: Int
    let channels: Int
    let factor: Int
    /// Size of the result.
    let columns: Int
    let rows: Int
    private let storage: PixelStorage
    private let sums: UnsafeMutablePointer<UInt32>
    private let vertical: UnsafeMutablePointer<UInt16>
    /// Samples a row, and a row with padding.
    private let samples: Int
    private let padded: Int
    /// For scattered pixels: how many each block has got.
    private let counts: UnsafeMutablePointer<UInt32>?
    private var columnRows = 0
    private var blockRows = 0
    private var row = 0

    /// - Parameter isScattered: Whether pixels come in any order, by ``add(_:y:x:step:count:)``, not row by row.
    init(width: Int, height: Int, channels: Int, factor: Int, isScattered: Bool) {
        self.width = width
        self.height = height
        self.channels = channels
        self.factor = min(max(factor, 1), Self.maximumFactor)
        columns = (width + self.factor - 1) / self.factor
        rows = (height + self.factor - 1) / self.factor
        samples = width * channels
        padded = isScattered ? 0 : samples + 32
        let sumCount = columns * channels * (isScattered ? rows : 1) + 4
        storage = PixelStorage(uninitializedByteCount: columns * rows * channels)
        sums = .allocate(capacity: sumCount)
        sums.initialize(repeating: 0, count: sumCount)
        vertical = .allocate(capacity: padded)
        vertical.initialize(repeating: 0, count: padded)
        if isScattered {
            let counts = UnsafeMutablePointer<UInt32>.allocate(capacity: columns * rows)
            counts.initialize(repeating: 0, count: columns * rows)
            self.counts = counts
        } else {
            counts = nil
        }
    }

    deinit {
        sums.deallocate()
        vertical.deallocate()
        counts?.deallocate()
    }

    /// Adds the next row; 16 bytes behind it are read too.
    mutating func add(_ source: UnsafeRawPointer) {
        let to = UnsafeMutableRawPointer(vertical)
        let count = samples
        var i = 0
        while i < count {
            let v = (source + i).loadUnaligned(as: SIMD16<UInt8>.self)
            let at = to + i &* 2
            let sum = at.loadUnaligned(as: SIMD16<UInt16>.self) &+ SIMD16<UInt16>(truncatingIfNeeded: v)
            at.storeBytes(of: sum, as: SIMD16<UInt16>.self)
            i &+= 16
        }
        columnRows += 1
        blockRows += 1
        row += 1
        if blockRows == factor || row == height {
            fold()
            finishBlocks()
        } else if columnRows == Self.maximumColumnRows {
            fold()
        }
    }

    /// Adds pixels of row `y` at `x`, `x + step` and so on.
    func add(_ source: UnsafeRawPointer, y: Int, x: Int, step: Int, count: Int) {
        guard let counts else { return }
        let from = source.assumingMemoryBound(to: UInt8.self)
        var block = y / factor &* columns &+ x / factor
        var end = (x / factor &+ 1) &* factor
        var at = x
        for i in 0..<count {
            while at >= end {
                end &+= factor
                block &+= 1
            }
            for c in 0..<channels { sums[block &* channels &+ c] &+= UInt32(from[i &* channels &+ c]) }
            counts[block] &+= 1
            at &+= step
        }
    }

    /// Adds the column sums to the sums of the blocks of this row.
    private mutating func fold() {
        switch channels {
        case 1: fold(1)
        case 2: fold(2)
        case 3: foldWide(3)
        default: foldWide(4)
        }
        vertical.update(repeating: 0, count: padded)
        columnRows = 0
    }

    @inline(__always)
    private func fold(_ channels: Int) {
        for block in 0..<columns {
            var at = block &* factor &* channels
            let end = min(at &+ factor &* channels, samples)
            while at < end {
                for c in 0..<channels { sums[block &* channels &+ c] &+= UInt32(vertical[at &+ c]) }
                at &+= channels
            }
        }
    }

    /// A pixel a vector; with three channels the fourth lane holds the next pixel's red, which is not kept.
    @inline(__always)
    private func foldWide(_ channels: Int) {
        let from = UnsafeRawPointer(vertical)
        for block in 0..<columns {
            var at = block &* factor &* channels
            let end = min(at &+ factor &* channels, samples)
            var sum = SIMD4<UInt32>.zero
            while at < end {
                let v = (from + at &* 2).loadUnaligned(as: SIMD4<UInt16>.self)
                sum &+= SIMD4<UInt32>(truncatingIfNeeded: v)
                at &+= channels
            }
            for c in 0..<channels { sums[block &* channels &+ c] &+= sum[c] }
        }
    }

    private mutating func finishBlocks() {
        let to = storage.bytes.baseAddress! + (row - 1) / factor * columns * channels
        for block in 0..<columns {
            let blockColumns = min((block &+ 1) &* factor, width) &- block &* factor
            let pixels = UInt32(truncatingIfNeeded: blockColumns &* blockRows)
            for c in 0..<channels {
                let i = block &* channels &+ c
                let mean = UInt8(truncatingIfNeeded: (sums[i] &+ pixels / 2) / pixels)
                to.storeBytes(of: mean, toByteOffset: i, as: UInt8.self)
                sums[i] = 0
            }
        }
        blockRows = 0
    }

    /// The result. Blocks that got no pixel are zero: black, or transparent.
    mutating func finish() -> PixelPlane {
        if let counts {
            for block in 0..<(columns * rows) {
                let pixels = max(1, counts[block])
                for c in 0..<channels {
                    let i = block &* channels &+ c
                    storage.bytes[i] = UInt8(truncatingIfNeeded: (sums[i] &+ pixels / 2) / pixels)
                }
            }
        } else {
            if blockRows > 0 {
                fold()
                finishBlocks()
                row = (row + factor - 1) / factor * factor
            }
            let done = min(rows, (row + factor - 1) / factor) * columns * channels
            let rest = UnsafeMutableRawBufferPointer(rebasing: storage.bytes[done...])
            rest.initializeMemory(as: UInt8.self, repeating: 0)
        }
        return PixelPlane(
            width: columns, height: rows, channels: channels, extentWidth: Double(width) / Double(factor),
            extentHeight: Double(height) / Double(factor), storage: storage)
    }
}
