// A codec for a format that the package does not read: Sun raster files of 32 bits a pixel.
import Foundation
import Vitrine

extension ImageFormat {
    static let sunRaster = ImageFormat("sun-raster", mediaTypes: ["image/x-sun-raster"], fileExtensions: ["ras"])
}

let codec = Codec(.sunRaster) { prefix in
    prefix.starts(with: [0x59, 0xA6, 0x6A, 0x95])
} info: { source in
    let header = try source.bytes(at: 0, count: 32)
    guard header.count == 32 else { throw ImageError.truncated(input: source.name) }
    func number(_ at: Int) -> Int { header[at..<at + 4].reduce(0) { $0 << 8 | Int($1) } }
    // The depth, the kind (3: red before blue), and the length of a table of colors.
    guard number(12) == 32, number(20) == 3, number(28) == 0 else {
        throw ImageError.unsupported(input: source.name, reason: "a Sun raster file of another kind")
    }
    return ImageInfo(format: .sunRaster, storedSize: PixelSize(width: number(4), height: number(8)))
} decode: { source, request in
    // The size has been checked against the limits.
    let size = request.info.storedSize
    let pixels = try source.bytes(at: 32, count: 4 * size.pixelCount)
    guard pixels.count == 4 * size.pixelCount else { throw ImageError.truncated(input: source.name) }
    return try PixelImage(width: size.width, height: size.height, layout: .xrgb8, alpha: .opaque, bytes: pixels)
}

/// The header of a file.
func header(width: Int, height: Int) -> [UInt8] {
    [0x59A6_6A95, width, height, 32, 4 * width * height, 3, 0, 0].flatMap { number in
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
    }
}

let directory = FileManager.default.temporaryDirectory.appending(path: "vitrine-decoder-\(UUID().uuidString)")
try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
defer { try? FileManager.default.removeItem(at: directory) }
let file = directory.appending(path: "rainbow.ras")
var pixels: [UInt8] = []
for y in UInt8(0)..<100 {
    for x in UInt8(0)..<200 { pixels += [0, x, y, 128] }
}
try Data(header(width: 200, height: 100) + pixels).write(to: file)

print("before:", ImageFormat.detect(header(width: 1, height: 1))?.rawValue ?? "no image")
try ImageDecoder.register(codec)

let info = try await ImageDecoder().info(of: .file(file.path))
print("after:", info.format, info.size, info.format.mediaType)

let thumbnail = try await ImagePipeline.shared.image(for: ImageRequest(file, resizing: .fit(50)))
print("thumbnail:", thumbnail.size, "- blue:", thumbnail[25, 12].blue)

// An announcement beyond the limits is refused before the codec is asked for pixels.
do {
    _ = try await ImageDecoder().image(from: .bytes(header(width: 60_000, height: 60_000), name: "bomb"))
} catch ImageError.limitExceeded(_, let limit, _, let allowed) {
    print("refused: at most", allowed, limit)
}
