/// Turns stored rows into rows of 8-bit samples: grey, grey and alpha, RGB or RGBA.
struct PNGSampler: ~Copyable {
    private enum Conversion {
        case none, indexed, grayBits, gray16, key8, key16
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
    /// Where premultiplied rows go; nil if colour stays as it is.
    private let premultiplied: UnsafeMutableRawPointer?

    /// A converter for rows of at most `width` pixels.
    ///
    /// - Parameter premultiplies: Whether colour is multiplied by alpha, where there is alpha.
    init(_ file: borrowing PNGFile, width: Int, premultiplies: Bool) {
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
            case (_, 16): hasKey ? .key16 : .gray16
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
        let samples = straight(source, width)
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
        case .key8: addKey8(source, width)
        case .key16: addKey16(source, width)
        }
        return UnsafeRawPointer(row)
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

    private func reduce(_ source: UnsafeRawPointer, _ samples: Int) {
        let to = row.assumingMemoryBound(to: UInt8.self)
        var i = 0
        while i < samples {
            to[i] = Self.rounded(UInt16(bigEndian: (source + i &* 2).loadUnaligned(as: UInt16.self)))
            i &+= 1
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
                to[x &* channels &+ c] = Self.rounded(v)
                if v != key[c] { matches = false }
            }
            to[x &* channels &+ storedChannels] = matches ? 0 : 255
        }
    }
}
