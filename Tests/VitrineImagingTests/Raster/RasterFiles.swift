import VitrineImaging

/// A small picture and files that hold it, made in code.
struct RasterPicture {
    let width: Int
    let height: Int
    /// Red, green, blue and alpha.
    var pixels: [UInt8]

    init(width: Int = 23, height: Int = 17, hasAlpha: Bool = true) {
        (self.width, self.height) = (width, height)
        pixels = (0..<(width * height)).flatMap { i -> [UInt8] in
            let (x, y) = (i % width, i / width)
            return [
                UInt8(x * 255 / width), UInt8(y * 255 / height), UInt8((x * y * 7) % 256),
                hasAlpha ? UInt8(max(0, 255 - (x + y) * 5)) : 255,
            ]
        }
    }

    var size: PixelSize { PixelSize(width: width, height: height) }

    /// Some channels of the rows from the top.
    func samples(_ channels: [Int]) -> [UInt8] {
        (0..<(width * height)).flatMap { i in channels.map { pixels[4 * i + $0] } }
    }

    /// The picture with the rows in the other order.
    var flipped: RasterPicture {
        var other = self
        let stride = 4 * width
        other.pixels = (0..<height).reversed().flatMap { pixels[($0 * stride)...].prefix(stride) }
        return other
    }

    /// Grey levels as opaque pixels.
    static func grays(_ levels: [UInt8]) -> [UInt8] {
        var pixels: [UInt8] = []
        for level in levels { pixels += [level, level, level, 255] }
        return pixels
    }

    /// Numbers in two or four bytes each.
    static func words(_ values: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        for value in values { bytes += [value, value] }  // v · 257
        return bytes
    }

    static func floats(_ values: [Float], isBig: Bool = true) -> [UInt8] {
        var bytes: [UInt8] = []
        for value in values {
            let bits = Int(value.bitPattern)
            bytes += isBig ? big32(bits) : little32(bits)
        }
        return bytes
    }

    static func big16(_ value: Int) -> [UInt8] { [UInt8(value >> 8 & 255), UInt8(value & 255)] }
    static func big32(_ value: Int) -> [UInt8] { big16(value >> 16) + big16(value) }
    static func little16(_ value: Int) -> [UInt8] { big16(value).reversed() }
    static func little32(_ value: Int) -> [UInt8] { big32(value).reversed() }

    // MARK: PSD

    /// A Photoshop file of planes of bytes, which are rows from the top.
    func psd(
        mode: Int, depth: Int = 8, planes: [[UInt8]], isPacked: Bool = true, isLarge: Bool = false, layers: Int? = nil,
        colors: [UInt8] = [], resources: [(Int, [UInt8])] = []
    ) -> [UInt8] {
        let big16 = RasterPicture.big16, big32 = RasterPicture.big32
        var file = Array("8BPS".utf8) + big16(isLarge ? 2 : 1) + [UInt8](repeating: 0, count: 6)
        file += big16(planes.count) + big32(height) + big32(width) + big16(depth) + big16(mode)
        file += big32(colors.count) + colors
        var blocks: [UInt8] = []
        for (identifier, data) in resources {
            blocks += Array("8BIM".utf8) + big16(identifier) + [0, 0] + big32(data.count) + data
            if data.count % 2 == 1 { blocks.append(0) }
        }
        file += big32(blocks.count) + blocks
        let section = layers.map { (isLarge ? big32(0) : []) + big32(2) + big16($0 & 0xFFFF) } ?? []
        file += (isLarge ? big32(0) : []) + big32(section.count) + section
        file += big16(isPacked ? 1 : 0)
        guard isPacked else { return file + planes.flatMap { $0 } }
        let rows = planes.flatMap { plane in
            let bytes = plane.count / height
            return (0..<height).map { RasterPicture.packBits(Array(plane[($0 * bytes)..<(($0 + 1) * bytes)])) }
        }
        file += rows.flatMap { isLarge ? big32($0.count) : big16($0.count) }
        return file + rows.flatMap { $0 }
    }

    static func packBits(_ row: [UInt8]) -> [UInt8] {
        var (result, at): ([UInt8], Int) = ([], 0)
        while at < row.count {
            var run = 1
            while at + run < row.count, run < 128, row[at + run] == row[at] { run += 1 }
            if run > 1 {
                result += [UInt8(bitPattern: Int8(1 - run)), row[at]]
                at += run
            } else {
                // A byte that stands for nothing, then one literal.
                result += [128, 0, row[at]]
                at += 1
            }
        }
        return result
    }

    // MARK: TGA

    func tga(
        type: Int, depth: Int, descriptor: Int, map: [UInt8] = [], mapDepth: Int = 0, data: [UInt8], footer: Bool = true
    ) -> [UInt8] {
        let little16 = RasterPicture.little16
        var file: [UInt8] = [3, map.isEmpty ? 0 : 1, UInt8(type)] + little16(0)
        file += little16(map.isEmpty ? 0 : map.count * 8 / mapDepth) + [UInt8(mapDepth)] + little16(0) + little16(0)
        file += little16(width) + little16(height) + [UInt8(depth), UInt8(descriptor)] + [1, 2, 3] + map + data
        return footer ? file + [UInt8](repeating: 0, count: 8) + Array("TRUEVISION-XFILE.\0".utf8) : file
    }

    // MARK: PCX

    func pcx(
        bits: Int, planes: Int, line: Int, data: [UInt8], palette: [UInt8] = [], isPacked: Bool = true
    ) -> [UInt8] {
        let little16 = RasterPicture.little16
        var file: [UInt8] = [10, 5, isPacked ? 1 : 0, UInt8(bits)] + little16(3) + little16(4)
        file += little16(width + 2) + little16(height + 3) + [0, 0, 0, 0]
        file += palette.count == 48 ? palette : [UInt8](repeating: 0, count: 48)
        file += [0, UInt8(planes)] + little16(line) + little16(1)
        file += [UInt8](repeating: 0, count: 128 - file.count)
        file += isPacked ? data.flatMap { $0 >= 0xC0 || $0 % 3 == 0 ? [0xC1, $0] : [$0] } : data
        return palette.count == 768 ? file + [12] + palette : file
    }

    // MARK: DDS

    func dds(
        flags: Int, code: String, bits: Int, masks: [Int] = [0, 0, 0, 0], data: [UInt8], dxgi: Int? = nil
    ) -> [UInt8] {
        let little32 = RasterPicture.little32
        var file = Array("DDS ".utf8) + [124, 0x1007, height, width, 0, 0, 0].flatMap(little32)
        file += [UInt8](repeating: 0, count: 44) + little32(32) + little32(flags)
        file += Array((code + "\0\0\0\0").utf8.prefix(4)) + little32(bits) + masks.flatMap(little32)
        file += [UInt8](repeating: 0, count: 128 - file.count)
        if let dxgi { file += [dxgi, 3, 0, 1, 0].flatMap(little32) }
        return file + data
    }
}
