/// One frame control chunk (fcTL) of an animated PNG (PNG specification, third edition, §11.3.5.2).
struct PNGFrame: Sendable {
    /// What becomes of the frame's rectangle before the next frame.
    enum Disposal: UInt8, Sendable {
        case keep = 0
        case clear = 1
        case restore = 2
    }

    /// The length of the chunk's payload.
    static let byteCount = 26

    let width: Int
    let height: Int
    let x: Int
    let y: Int
    let disposal: Disposal
    /// Whether the frame is composed over what is there; otherwise it replaces it.
    let blends: Bool
    /// The first chunk with its pixels: IDAT or fdAT; nil until one has been found.
    var data: PNGChunk?

    /// Reads the payload; nil if it breaks a rule.
    init?(_ bytes: [UInt8]) {
        guard bytes.count == Self.byteCount, let disposal = Disposal(rawValue: bytes[24]), bytes[25] <= 1 else {
            return nil
        }
        width = Int(bytes.bigEndian32(at: 4))
        height = Int(bytes.bigEndian32(at: 8))
        x = Int(bytes.bigEndian32(at: 12))
        y = Int(bytes.bigEndian32(at: 16))
        self.disposal = disposal
        blends = bytes[25] == 1
    }

    /// Whether the frame lies within a canvas of the header's size and has pixels.
    func fits(_ header: PNGHeader) -> Bool {
        width > 0 && height > 0 && x <= header.width - width && y <= header.height - height
    }

    /// Whether nothing of what was there before can be seen through the frame.
    func replaces(_ header: PNGHeader) -> Bool {
        !blends && x == 0 && y == 0 && width == header.width && height == header.height
    }
}
