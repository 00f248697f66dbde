// A decoder for a format that the package does not read: plain pixmaps of Netpbm (P3), which are text.
import Foundation
import Vitrine

extension ImageFormat {
    static let pixmap = ImageFormat("ppm", mediaTypes: ["image/x-portable-pixmap"], fileExtensions: ["ppm"])
}

struct PixmapDecoder: ImageFormatDecoder {
    let format = ImageFormat.pixmap

    func recognizes(_ prefix: [UInt8]) -> Bool { prefix.starts(with: Array("P3\n".utf8)) }

    func info(of source: ByteSource) throws -> ImageInfo {
        let header = numbers(in: try source.bytes(at: 3, count: 512), upTo: 3)
        guard header.count == 3 else { throw ImageError.truncated(input: source.name) }
        guard header[2] == 255 else { throw ImageError.unsupported(input: source.name, reason: "not 8 bits a sample") }
        return ImageInfo(format: format, storedSize: PixelSize(width: header[0], height: header[1]))
    }

    // The size has been checked against the limits.
    func decode(_ source: ByteSource, _ request: DecodeRequest) throws -> Image {
        let size = request.info.storedSize
        let samples = numbers(in: try source.allBytes().dropFirst(3), upTo: 3 + 3 * size.pixelCount).dropFirst(3)
        guard samples.count == 3 * size.pixelCount else { throw ImageError.truncated(input: source.name) }
        let bytes = samples.map { UInt8(clamping: $0) }
        return try Image(width: size.width, height: size.height, layout: .rgb8, alpha: .opaque, bytes: bytes)
    }

    private func numbers(in text: some Sequence<UInt8>, upTo count: Int) -> [Int] {
        text.split(maxSplits: count) { $0 <= 32 }.prefix(count).compactMap { Int(String(decoding: $0, as: UTF8.self)) }
    }
}

let directory = FileManager.default.temporaryDirectory.appending(path: "vitrine-decoder-\(UUID().uuidString)")
try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
defer { try? FileManager.default.removeItem(at: directory) }
let file = directory.appending(path: "rainbow.ppm")
let rows = (0..<100).map { y in (0..<200).map { x in "\(x) \(y) 128" }.joined(separator: " ") }
try "P3\n200 100 255\n\(rows.joined(separator: "\n"))\n".write(to: file, atomically: true, encoding: .utf8)

print("before:", ImageFormat.detect([UInt8]("P3\n1 1 255\n".utf8))?.rawValue ?? "no image")
try ImageDecoder.register(PixmapDecoder())

let info = try await ImageDecoder().info(of: .file(file.path))
print("after:", info.format, info.size, info.format.mediaType)

let thumbnail = try await ImagePipeline.shared.image(for: ImageRequest(file, size: .fit(50)))
print("thumbnail:", thumbnail.size, "- blue:", thumbnail[25, 12].blue)

// An announcement beyond the limits is refused before the decoder is asked for pixels.
do {
    _ = try await ImageDecoder().image(from: .bytes([UInt8]("P3\n60000 60000 255\n".utf8), name: "bomb"))
} catch ImageError.limitExceeded(_, let limit, _, let allowed) {
    print("refused: at most", allowed, limit)
}
