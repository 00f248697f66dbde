import VitrineImageCore

/// Steps from frame to frame of a GIF without decoding any.
///
/// Source: GIF89a specification §17 to §26; Netscape application extension for the loop count. Unknown blocks end the
/// walk as they end it in browsers. Every block advances by at least one byte, so work is linear in the input.
package struct GIFWalker {
    package let reader: ByteReader
    /// The canvas; the size of the first frame if the file says zero.
    package private(set) var canvas: PixelSize
    /// How often the animation is shown, 0 for ever; 1 until a Netscape extension says otherwise.
    package private(set) var plays = 1
    /// Where an XMP packet stands.
    package private(set) var xmp: Range<Int>?
    /// Whether the input ended before the trailer.
    package private(set) var isTruncated = false
    private var globalPalette: Range<Int> = 0..<0
    private var offset: Int
    private var pending = GIFFrame()
    private var isFirst = true

    /// Reads the logical screen descriptor.
    package init(_ reader: ByteReader) throws(ImageError) {
        self.reader = reader
        canvas = PixelSize(
            width: try reader.u16(at: 6, bigEndian: false), height: try reader.u16(at: 8, bigEndian: false))
        let flags = try reader.u8(at: 10)
        offset = 13
        if flags & 0x80 != 0 {
            let size = 3 << ((flags & 7) + 1)
            globalPalette = 13..<(13 + size)
            offset += size
        }
    }

    /// The next frame; nil behind the last one.
    ///
    /// - Throws: Read errors only. An early end sets ``isTruncated``.
    package mutating func next() throws(ImageError) -> GIFFrame? {
        do {
            while true {
                switch try reader.u8(at: offset) {
                case 0x21: try takeExtension()
                case 0x2C: return try takeDescriptor()
                case 0x00: offset += 1  // stray terminators occur in the wild
                default: return nil
                }
            }
        } catch {
            guard case .truncated = error else { throw error }
            isTruncated = true
            return nil
        }
    }

    private mutating func takeExtension() throws(ImageError) {
        let label = try reader.u8(at: offset + 1)
        let size = try reader.u8(at: offset + 2)
        let data = offset + 3
        if label == 0xF9, size >= 4 {
            let flags = try reader.u8(at: data)
            pending.disposal = [2: .clear, 3: .restore, 4: .restore][flags >> 2 & 7] ?? .keep
            pending.delay = try reader.u16(at: data + 1, bigEndian: false)
            let index = try reader.u8(at: data + 3)
            pending.transparentIndex = flags & 1 != 0 ? index : nil
        } else if label == 0xFF, size == 11 {
            try takeApplication(data)
            return
        }
        offset = try skipBlocks(from: offset + 2)
    }

    private mutating func takeApplication(_ data: Int) throws(ImageError) {
        let body = data + 11
        if reader.matches("NETSCAPE2.0", at: data) || reader.matches("ANIMEXTS1.0", at: data) {
            if try reader.u8(at: body) >= 3, try reader.u8(at: body + 1) == 1 {
                let repeats = try reader.u16(at: body + 2, bigEndian: false)
                plays = repeats == 0 ? 0 : repeats + 1
            }
        }
        let isXMP = reader.matches("XMP DataXMP", at: data)
        offset = try skipBlocks(from: body)
        // XMP lies in the open, followed by 257 bytes that bring readers of sub-blocks back in step.
        if isXMP, xmp == nil, offset - 258 > body { xmp = body..<(offset - 258) }
    }

    private mutating func takeDescriptor() throws(ImageError) -> GIFFrame {
        var frame = pending
        pending = GIFFrame()
        frame.x = try reader.u16(at: offset + 1, bigEndian: false)
        frame.y = try reader.u16(at: offset + 3, bigEndian: false)
        frame.width = try reader.u16(at: offset + 5, bigEndian: false)
        frame.height = try reader.u16(at: offset + 7, bigEndian: false)
        let flags = try reader.u8(at: offset + 9)
        frame.isInterlaced = flags & 0x40 != 0
        offset += 10
        frame.palette = globalPalette
        if flags & 0x80 != 0 {
            let size = 3 << ((flags & 7) + 1)
            frame.palette = offset..<(offset + size)
            offset += size
        }
        frame.data = offset
        if isFirst, canvas.isEmpty { canvas = PixelSize(width: frame.width, height: frame.height) }
        isFirst = false
        // A frame counts once its data has begun, however it ends.
        _ = try reader.u8(at: offset)
        do {
            offset = try skipBlocks(from: offset + 1)
        } catch {
            guard case .truncated = error else { throw error }
            isTruncated = true
            offset = reader.count
        }
        return frame
    }

    /// Where the block behind a run of sub-blocks stands.
    private func skipBlocks(from start: Int) throws(ImageError) -> Int {
        var at = start
        while true {
            let size = try reader.u8(at: at)
            at += 1 + size
            if size == 0 { return at }
        }
    }
}

/// Where one frame of a GIF stands and how it is to be shown.
///
/// Source: GIF89a specification (CompuServe, 1990) §20 (image descriptor), §23 (graphic control extension).
package struct GIFFrame {
    /// The change to the canvas before the next frame.
    package enum Disposal {
        case keep, clear, restore
    }

    package var x = 0
    package var y = 0
    package var width = 0
    package var height = 0
    package var isInterlaced = false
    package var disposal = Disposal.keep
    package var transparentIndex: Int?
    /// Hundredths of a second, as the file says.
    package var delay = 0
    /// The colour table that counts, local or global: its place in the input; empty if there is none.
    package var palette: Range<Int> = 0..<0
    /// Where the minimum code size stands; sub-blocks follow.
    package var data = 0
}
