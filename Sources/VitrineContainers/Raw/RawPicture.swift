import VitrineImageCore

/// Candidates for images of raw files. A candidate must be a JPEG file of 8 bits a channel that lies inside the
/// input; cameras keep sensor data as lossless JPEG.
enum RawPicture {
    /// Bytes of an image that is copied, to mend or to rebuild it.
    private static let maximumCopy = 16 << 20

    /// A JPEG file at this place; nil when there is none.
    static func jpeg(_ reader: ByteReader, at offset: Int, count: Int) -> EmbeddedPicture? {
        guard count > 4, let range = try? reader.range(at: offset, count: count) else { return nil }
        // Of a file that is elsewhere: seen when it is here.
        if reader.source.lacks(range) { return EmbeddedPicture(content: .range(range)) }
        return JPEGPicture.size(reader, range).map { EmbeddedPicture(content: .range(range), size: $0) }
    }

    /// A JPEG file whose first byte is wrong, as Minolta stores it.
    static func mendedJPEG(_ reader: ByteReader, at offset: Int, count: Int) -> EmbeddedPicture? {
        guard count > 4, count <= maximumCopy, let range = try? reader.range(at: offset, count: count),
            (try? reader.u16(at: offset &+ 1)) == 0xD8FF, var bytes = try? reader.bytes(range)
        else { return nil }
        bytes[0] = 0xFF
        let copy = ByteReader(ByteSource(bytes: bytes, name: reader.name))
        guard let size = JPEGPicture.size(copy, 0..<bytes.count) else { return nil }
        return EmbeddedPicture(content: .bytes(bytes), size: size)
    }

    /// A JPEG XL codestream or file at this place; nil when there is none.
    static func jxl(_ reader: ByteReader, at offset: Int, count: Int) -> EmbeddedPicture? {
        guard count > 12, let range = try? reader.range(at: offset, count: count),
            (try? reader.u16(at: offset)) == 0xFF0A || reader.matches("\0\0\0\u{C}JXL ", at: offset)
        else { return nil }
        return EmbeddedPicture(content: .range(range))
    }

    /// Rows of 8-bit red, green and blue as a Windows bitmap; nil when they lie outside the input.
    ///
    /// - Parameter stride: Bytes from one row to the next.
    static func bitmap(
        _ reader: ByteReader, at offset: Int, size: PixelSize, stride: Int
    ) -> EmbeddedPicture? {
        let (width, height) = (size.width, size.height)
        guard (1...1_024).contains(width), (1...1_024).contains(height), stride >= 3 * width, stride <= 1 << 16,
            let range = try? reader.range(at: offset, count: stride * (height - 1) + 3 * width),
            let rows = try? reader.bytes(range)
        else { return nil }
        let padded = (3 * width + 3) & ~3
        var file: [UInt8] = [0x42, 0x4D]
        func append(_ value: Int, _ count: Int = 4) {
            for i in 0..<count { file.append(UInt8(truncatingIfNeeded: value >> (8 * i))) }
        }
        for value in [54 + padded * height, 0, 54, 40, width] { append(value) }
        append(-height)  // the first row is the top one
        append(1, 2)
        append(24, 2)
        for value in [0, padded * height, 2_835, 2_835, 0, 0] { append(value) }
        for y in 0..<height {
            for x in 0..<width {
                let at = y * stride + 3 * x
                file += [rows[at + 2], rows[at + 1], rows[at]]
            }
            append(0, padded - 3 * width)
        }
        return EmbeddedPicture(content: .bytes(file), size: size)
    }

    /// A turn in degrees clockwise.
    static func orientation(degrees: Int) -> Orientation? {
        switch degrees {
        case 0: .up
        case 90, -270: .right
        case 180, -180: .down
        case 270, -90: .left
        default: nil
        }
    }
}
