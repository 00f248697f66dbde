import Foundation
import TestSupport
import VitrineCore
import VitrineImaging

/// Digests of all pictures that can be made from the seeds: by each decoder, by whole decodes with workers, by
/// processors and by encoders. Two runs in which fresh memory held different bytes must give the same.
enum FuzzDigests {
    static func print() {
        for target in FuzzTargets.all {
            for (index, seed) in target.beginnings(generated: 24).enumerated() {
                guard let samples = try? target.parse(seed) else { continue }
                Swift.print(target.name, index, StableHash.hash(samples.flatMap(\.self)))
            }
        }
        for name in Samples.names { whole(name) }
    }

    /// A sample on the way of a program, in a worker where it belongs there, and all that is made of it.
    private static func whole(_ name: String) {
        for (resizer, isSmall) in [(ImageResizer.none, false), (.fit(96), true)] {
            guard let image = try? ImageDecoder().decode(.file(Samples.path(name)), at: resizer) else {
                Swift.print(name, "refused")
                continue
            }
            digest(name, image)
            guard isSmall else { continue }
            let processors: [ImageProcessor] = [
                .blur(radius: 3), .sharpen(), .roundCorners(9), .circle(), .rotate(degrees: 30), .flip(.horizontal),
                .crop(x: 5, y: 6, width: 40, height: 20), .pixelate(block: 7), .border(color: .black),
                .resize(.fit(37)), .resize(.fit(150)), .trim(),
            ]
            for processor in processors {
                if let result = try? processor.process(image) { digest("\(name) \(processor.identifier)", result) }
            }
            for format in [OutputFormat.png, .jpeg(quality: 0.8), .webp(quality: 0.8), .gif] {
                if let bytes = try? image.encoded(as: format) { Swift.print(name, format, StableHash.hash(bytes)) }
            }
        }
    }

    private static func digest(_ name: String, _ image: PixelImage) {
        Swift.print(name, image.width, image.height, StableHash.hash(rows(of: image).flatMap(\.self)))
    }

    /// The pixels of an image without what stands behind each row.
    static func rows(of image: PixelImage) -> [[UInt8]] {
        image.withUnsafeBytes { bytes in
            (0..<image.height).map { y in
                Array(bytes[(y * image.bytesPerRow)...].prefix(image.width * PixelImage.bytesPerPixel))
            }
        }
    }
}
