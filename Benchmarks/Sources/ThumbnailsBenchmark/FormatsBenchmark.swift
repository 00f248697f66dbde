import Foundation
import VitrineImaging
import VitrinePipeline

/// What thumbnails cost in each format they could be kept in: bytes, writing, and reading back.
struct FormatsBenchmark {
    static let side = 256
    let photos: [String]

    func run() async throws {
        var images: [PixelImage] = []
        for photo in photos {
            images.append(try await BuiltInSource.file(photo).image(RenderRequest(size: PixelSize(Self.side))))
        }
        let formats: [(String, OutputFormat)] = [
            ("JPEG 0.95", .jpeg(quality: 0.95)), ("PNG", .png), ("WebP 0.95", .webp(quality: 0.95)),
        ]
        print("| thumbnails of \(Self.side) | bytes | write, CPU µs | read, CPU µs |")
        print("|---|---:|---:|---:|")
        for (name, format) in formats {
            let files = try images.map { try $0.encoded(as: format) }
            let write = try time { for image in images { _ = try image.encoded(as: format) } }
            let read = try time { for file in files { _ = try PixelImage(cacheBytes: file) } }
            let bytes = files.map(\.count).reduce(0, +) / files.count
            print("| \(name) | \(bytes) | \(text(write)) | \(text(read)) |")
        }
    }

    /// Processor time of one picture, in microseconds.
    private func time(_ body: () throws -> Void) rethrows -> Double {
        var samples: [Double] = []
        for _ in 0..<15 {
            let start = clock()
            try body()
            samples.append(Double(clock() - start) / Double(photos.count))
        }
        return median(samples) * 1_000_000 / Double(CLOCKS_PER_SEC)
    }
}
