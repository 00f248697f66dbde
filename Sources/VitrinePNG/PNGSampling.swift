import VitrineImageCore

/// Turns stored rows into rows of 8-bit samples: grey, grey and alpha, RGB or RGBA.
struct PNGSampler: ~Copyable {
    private enum Conversion {
        case none, indexed, grayBits, gray16, light16, key8, key16
    }

    /// Channels of a sample in the result.
    let channels: Int
    private let conversion: Conversion
    private let depth: Int
    private let storedChannels: Int
    /// The transparent colour, at the depth of the file.
    private let key: SIMD4<UInt16>
    private let memory: UnsafeMutableRawPointer
    private let palette: UnsafeMutablePointer<UInt32>
    private let row: UnsafeMutableRawPointer
    /// How samples of 16 bits are shown in sRGB; nil to cut them to bytes.
    private let colors: HighRangeColors?
    /// Whether colours have the narrow range of videos.
    private let isNarrow: Bool
    /// Where premultiplied rows go; nil if colour stays as it is.
    private let premultiplied: UnsafeMutableRawPointer?

    /// A converter for rows of at most `width` pixels.
    ///
    /// - Parameters:
    ///   - premultiplies: Whether colour is multiplied by alpha, where there is alpha.
    ///   - colors: How samples of 16 bits without a transparent colour are shown in sRGB; nil to cut them to bytes.
    init(_ file: borrowing PNGFile, width: Int, premultiplies: Bool, colors: HighRangeColors? = nil) {
        self.colors = colors
        // Of fewer bits, of which a narrow range is no whole number of levels, nobody makes such files.
        isNarrow = file.hasNarrowRange && (file.header.depth >= 8 || file.header.colorType == .palette)
        channels = file.outputChannels
        depth = file.header.depth
        storedChannels = file.header.colorType.channels
        let mask: UInt16 = depth == 16 ? 0xFFFF : 1 << UInt16(depth) &- 1
        var key = SIMD4<UInt16>.zero
        for i in 0..<3 { key[i] = file.transparency.bigEndian16(at: file.header.colorType == .rgb ? i * 2 : 0) & mask }
        self.key = key
        let hasKey = file.header.colorType != .palette && file.hasTransparency
        conversion =
            switch (file.header.colorType, depth) {
            case (.palette, _): .indexed
            case (_, 16): hasKey ? .key16 : colors == nil ? .gray16 : .light16
            case (.gray, 1...4): .grayBits
            default: hasKey ? .key8 : .none
            }
        let rowBytes = width * channels + 64
        let byteCount = 1_024 + 2 * rowBytes
        memory = .allocate(byteCount: byteCount, alignment: 16)
        memory.initializeMemory(as: UInt8.self, repeating: 0, count: byteCount)
        palette = memory.bindMemory(to: UInt32.self, capacity: 256)
        row = memory + 1_024
        premultiplied = premultiplies && channels & 1 == 0 ? row + rowBytes : nil
        switch conversion {
        case .indexed: fillPalette(file)
        case .grayBits: fillGrays(hasKey: hasKey)
        default: break
        }
    }

    deinit {
        memory.deallocate()
    }

    /// Entries as the four bytes of a pixel; black and opaque behind the end of the palette, as libpng has it.
    private func fillPalette(_ file: borrowing PNGFile) {
        for i in 0..<256 {
            let inside = i * 3 + 2 < file.palette.count
            let r = UInt32(inside ? file.palette[i * 3] : 0)
            let g = UInt32(inside ? file.palette[i * 3 + 1] : 0)
            let b = UInt32(inside ? file.palette[i * 3 + 2] : 0)
            let a = UInt32(i < file.transparency.count ? file.transparency[i] : 255)
            palette[i] = (r | g << 8 | b << 16 | a << 24).littleEndian
        }
    }

    /// Greys of fewer than 8 bits, spread over 0 to 255, with alpha behind them.
    private func fillGrays(hasKey: Bool) {
        let levels = 1 << depth
        for i in 0..<256 {
            let level = UInt32(i & (levels - 1))
            let alpha: UInt32 = hasKey && level == UInt32(key[0]) ? 0 : 255
            palette[i] = (level * 255 / UInt32(levels - 1) | alpha << 8).littleEndian
        }
    }

    /// The samples of a stored row; either `source` itself or memory that the next call overwrites.
    ///
    /// 32 bytes behind them may be read.
    mutating func convert(_ source: UnsafeRawPointer, width: Int) -> UnsafeRawPointer {
        var samples = straight(source, width)
        if isNarrow, conversion != .light16 {
            widen(samples, width)
            samples = UnsafeRawPointer(row)
        }
        guard let premultiplied,
            Premultiplication.apply(samples, premultiplied, width: width, channels: channels)
        else { return samples }
        return UnsafeRawPointer(premultiplied)
    }

    private func straight(_ source: UnsafeRawPointer, _ width: Int) -> UnsafeRawPointer {
        switch conversion {
        case .none: return source
        case .indexed, .grayBits: expand(source, width)
        case .gray16: reduce(source, width * channels)
        case .light16: show(source, width)
        case .key8: addKey8(source, width)
        case .key16: addKey16(source, width)
        }
        return UnsafeRawPointer(row)
    }

    /// Stretches colours of the narrow range to 0...255, and cuts off levels that lie outside of it.
    private func widen(_ source: UnsafeRawPointer, _ width: Int) {
        let from = source.assumingMemoryBound(to: UInt8.self)
        let to = row.assumingMemoryBound(to: UInt8.self)
        let colors = channels - (channels & 1 == 0 ? 1 : 0)
        for i in 0..<(width &* channels) {
            let level = Int32(from[i])
            to[i] = i % channels < colors
                ? UInt8(truncatingIfNeeded: (max(0, min(219, level &- 16)) &* 255 &+ 109) / 219) : from[i]
        }
    }

    private func expand(_ source: UnsafeRawPointer, _ width: Int) {
        let bytes = source.assumingMemoryBound(to: UInt8.self)
        let mask = UInt8(truncatingIfNeeded: 1 << depth &- 1)
        var to = row
        var shift = 8
        var at = 0
        for _ in 0..<width {
            shift &-= depth
            let pixel = palette[Int(bytes[at] &>> UInt8(truncatingIfNeeded: shift) & mask)]
            if shift == 0 {
                shift = 8
                at &+= 1
            }
            // Four bytes are written of which the next pixel overwrites what is not its own.
            to.storeBytes(of: pixel, as: UInt32.self)
            to += channels
        }
    }

    /// 16 bits to 8, rounded: v · 255 / 65,535.
    @inline(__always)
    private static func rounded(_ v: UInt16) -> UInt8 {
        UInt8(truncatingIfNeeded: (UInt32(v) &* 255 &+ 32_895) &>> 16)
    }

    /// The byte of a sample of 16 bits. The narrow range of 16 bits is 256 times that of 8, not 257 times.
    @inline(__always)
    private func byte(_ v: UInt16, channel: Int) -> UInt8 {
        let isColor = channel < channels - (channels & 1 == 0 ? 1 : 0)
        return isNarrow && isColor ? UInt8(min(255, (UInt32(v) + 128) >> 8)) : Self.rounded(v)
    }

    private func reduce(_ source: UnsafeRawPointer, _ samples: Int) {
        let to = row.assumingMemoryBound(to: UInt8.self)
        if isNarrow {
            for i in 0..<samples {
                let word = UInt16(bigEndian: (source + i &* 2).loadUnaligned(as: UInt16.self))
                to[i] = byte(word, channel: i % channels)
            }
            return
        }
        var i = 0
        while i < samples {
            to[i] = Self.rounded(UInt16(bigEndian: (source + i &* 2).loadUnaligned(as: UInt16.self)))
            i &+= 1
        }
    }

    private func show(_ source: UnsafeRawPointer, _ width: Int) {
        guard let colors else { return }
        let to = row.assumingMemoryBound(to: UInt8.self)
        for x in 0..<width {
            func sample(_ c: Int) -> Float {
                Float(UInt16(bigEndian: (source + 2 &* (x &* channels &+ c)).loadUnaligned(as: UInt16.self))) / 65_535
            }
            // In 16 bits, the narrow range begins at 16 · 256 and has 219 · 256 levels.
            func color(_ c: Int) -> Float {
                isNarrow ? (sample(c) * 65_535 - 4_096) / 56_064 : sample(c)
            }
            let p = to + x &* channels
            if channels <= 2 {
                p[0] = colors.levels(SIMD4(1, 1, 1, 0) * color(0)).y
            } else {
                let levels = colors.levels(SIMD4(color(0), color(1), color(2), 0))
                (p[0], p[1], p[2]) = (levels.x, levels.y, levels.z)
            }
            if channels & 1 == 0 { p[channels &- 1] = UInt8(sample(channels &- 1) * 255 + 0.5) }
        }
    }

    private func addKey8(_ source: UnsafeRawPointer, _ width: Int) {
        let from = source.assumingMemoryBound(to: UInt8.self)
        let to = row.assumingMemoryBound(to: UInt8.self)
        for x in 0..<width {
            var matches = true
            for c in 0..<storedChannels {
                let v = from[x &* storedChannels &+ c]
                to[x &* channels &+ c] = v
                if UInt16(v) != key[c] { matches = false }
            }
            to[x &* channels &+ storedChannels] = matches ? 0 : 255
        }
    }

    private func addKey16(_ source: UnsafeRawPointer, _ width: Int) {
        let to = row.assumingMemoryBound(to: UInt8.self)
        for x in 0..<width {
            var matches = true
            for c in 0..<storedChannels {
                let offset = (x &* storedChannels &+ c) &* 2
                let v = UInt16(bigEndian: (source + offset).loadUnaligned(as: UInt16.self))
                to[x &* channels &+ c] = byte(v, channel: c)
                if v != key[c] { matches = false }
            }
            to[x &* channels &+ storedChannels] = matches ? 0 : 255
        }
    }
}

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
        storage = PixelStorage(zeroedByteCount: count)
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

    /// Copies the pixel `left` and `up` of (x, y) to it, which fills the gaps of an interlaced file.
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
        storage = PixelStorage(zeroedByteCount: columns * rows * channels)
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
            width: columns, height: rows, channels: channels,
            extent: (Double(width) / Double(factor), Double(height) / Double(factor)), storage: storage)
    }
}
