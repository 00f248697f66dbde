import VitrineImageCore

/// The header of an OpenEXR file.
///
/// Source: "OpenEXR File Layout" (Academy Software Foundation, 2023). Little-endian throughout.
struct EXRHeader {
    enum Compression: Int {
        case none = 0, rle, zips, zip, piz, pxr24, b44, b44a, dwaa, dwab

        /// Rows of one chunk.
        var rows: Int {
            switch self {
            case .none, .rle, .zips: 1
            case .zip, .pxr24: 16
            case .piz, .b44, .b44a, .dwaa: 32
            case .dwab: 256
            }
        }
    }

    struct Channel {
        /// The kind of a sample.
        enum Kind: Int {
            case uint = 0, half, float
            var bytes: Int { self == .half ? 2 : 4 }
        }

        var name: String
        var kind: Kind
        var across: Int
        var down: Int
    }

    private static let maximumAttributes = 512
    private static let maximumChannels = 128
    /// Larger tiles would be of no use to their writers.
    private static let longestTileSide = 1 << 16

    /// The rectangle of stored pixels.
    var left = 0
    var top = 0
    var size = PixelSize.zero
    /// The rectangle to show, in pixels of the stored one; its origin is negative where it reaches beyond.
    private(set) var shown = PixelRect(x: 0, y: 0, width: 0, height: 0)
    var channels: [Channel] = []
    var compression = Compression.none
    /// A small image of RGBA bytes.
    var preview: (size: PixelSize, range: Range<Int>)?
    /// Why this decoder does not read its pixels.
    var refusal: String?
    /// The size of tiles; nil for an image of scan lines. The first tiles of the table are those of the whole image;
    /// smaller levels follow.
    var tile: PixelSize?
    /// Where the table of chunks begins.
    var tableOffset: Int

    /// Rows of the image that are decompressed at once: a chunk of scan lines, or the tiles side by side.
    var rowsOfBand: Int { tile?.height ?? compression.rows }
    var bandCount: Int { (size.height + rowsOfBand - 1) / rowsOfBand }
    /// Chunks side by side.
    var chunksAcross: Int { tile.map { (size.width + $0.width - 1) / $0.width } ?? 1 }

    init(_ reader: ByteReader) throws(ImageError) {
        guard reader.count > 0 else { throw .empty(input: reader.name) }
        func u32(_ at: Int) throws(ImageError) -> Int { try reader.u32(at: at, bigEndian: false) }
        func i32(_ at: Int) throws(ImageError) -> Int { Int(Int32(truncatingIfNeeded: try u32(at))) }
        guard try u32(0) == 0x0131_2F76 else { throw .notAnImage(input: reader.name) }
        let version = try u32(4)
        guard version & 0xFF == 2 else { throw reader.corrupt("version \(version & 0xFF)") }
        var at = 8
        func text() throws(ImageError) -> String {
            var bytes: [UInt8] = []
            while bytes.count <= 255 {
                let byte = UInt8(try reader.u8(at: at))
                at += 1
                if byte == 0 { break }
                bytes.append(byte)
            }
            return String(decoding: bytes, as: UTF8.self)
        }
        tableOffset = 0
        var (hasWindow, hasCompression, isSubsampled) = (false, false, false)
        var display: (left: Int, top: Int, right: Int, bottom: Int)?
        for _ in 0..<EXRHeader.maximumAttributes {
            let name = try text()
            if name.isEmpty { break }
            let type = try text()
            let length = try u32(at)
            let value = try reader.range(at: at + 4, count: length)
            at = value.lowerBound
            switch (name, type) {
            case ("channels", "chlist"):
                while at < value.upperBound - 17, channels.count < EXRHeader.maximumChannels {
                    let name = try text()
                    if name.isEmpty { break }
                    guard let kind = Channel.Kind(rawValue: try u32(at)) else { throw reader.corrupt("a channel") }
                    let channel = Channel(name: name, kind: kind, across: try u32(at + 8), down: try u32(at + 12))
                    guard channel.across > 0, channel.down > 0 else { throw reader.corrupt("a channel") }
                    isSubsampled = isSubsampled || channel.across > 1 || channel.down > 1
                    channels.append(channel)
                    at += 16
                }
            case ("compression", _):
                let kind = try reader.u8(at: at)
                guard let compression = Compression(rawValue: kind) else {
                    throw .unsupported(input: reader.name, reason: "compression \(kind) is not known")
                }
                (self.compression, hasCompression) = (compression, true)
            case ("dataWindow", "box2i"):
                (left, top) = (try i32(at), try i32(at + 4))
                size = PixelSize(width: try i32(at + 8) - left + 1, height: try i32(at + 12) - top + 1)
                hasWindow = true
            case ("displayWindow", "box2i"):
                display = (try i32(at), try i32(at + 4), try i32(at + 8), try i32(at + 12))
            case ("tiles", "tiledesc"):
                tile = PixelSize(width: try u32(at), height: try u32(at + 4))
            case ("preview", "preview"):
                let size = PixelSize(width: try u32(at), height: try u32(at + 4))
                if !size.isEmpty, size.pixelCount <= (length - 8) / 4 {
                    preview = (size, (at + 8)..<(at + 8 + 4 * size.pixelCount))
                }
            default: break
            }
            at = value.upperBound
        }
        tableOffset = at
        guard hasWindow, hasCompression else { throw reader.corrupt("its header has no data window or compression") }
        guard !size.isEmpty else { throw reader.corrupt("a side of zero pixels") }
        shown = PixelRect(x: 0, y: 0, width: size.width, height: size.height)
        if let display {
            let window = PixelRect(
                x: display.left - left, y: display.top - top, width: display.right - display.left + 1,
                height: display.bottom - display.top + 1)
            // A window that shows nothing of the image is a mistake.
            if window.clipped(to: size) != nil { shown = window }
        }
        if version & 0x200 == 0 { tile = nil }
        if version & 0x200 != 0 {
            guard let tile, !tile.isEmpty, tile.longestSide <= EXRHeader.longestTileSide else {
                throw reader.corrupt("its header has no size of tiles")
            }
        }
        let kinds: Set<Compression> = [.none, .rle, .zips, .zip, .piz, .pxr24]
        refusal =
            version & 0x800 != 0 ? "deep images have no decoder here"
            : version & 0x1000 != 0 ? "images of several parts have no decoder here"
            : !kinds.contains(compression) ? "images of compression \(compression) have no decoder here"
            : isSubsampled ? "subsampled channels have no decoder here"
            : colors == nil ? "no channels are red, green and blue, or luminance" : nil
    }

    /// Indices of red, green, blue, or of luminance alone, and then of alpha: without a layer, or else of the first
    /// layer that has them.
    var colors: [Int]? {
        func index(_ name: String) -> Int? { channels.firstIndex { $0.name == name } }
        var layers = [""]
        for channel in channels {
            if let dot = channel.name.lastIndex(of: ".") { layers.append(String(channel.name[...dot])) }
        }
        for layer in layers {
            let alpha = index(layer + "A").map { [$0] } ?? []
            if let r = index(layer + "R"), let g = index(layer + "G"), let b = index(layer + "B") {
                return [r, g, b] + alpha
            }
            if let y = index(layer + "Y") { return [y] + alpha }
        }
        return nil
    }

    /// Bytes of a row of all channels, none of which is subsampled.
    var bytesPerRow: Int { bytesPerPixel * size.width }
    var bytesPerPixel: Int { channels.reduce(0) { $0 + $1.kind.bytes } }
}
