import ArgumentParser
import CPeers
import Foundation
import VitrineImaging

/// How close a thumbnail comes to a Lanczos3 reduction of the full decode in floating point, in decibels.
struct QualityBenchmark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "quality")

    @Option(help: "Longest sides, in pixels.")
    var sizes = "200,400,800,1600"

    @Argument(help: "Pictures without alpha, in sRGB.")
    var files: [String]

    func run() async throws {
        guard peers_start() == 0 else { throw BenchmarkError.failed("libvips does not start") }
        print("| size | picture | Vitrine dB | libvips dB |")
        print("|---:|---|---:|---:|")
        for size in sizes.split(separator: ",").compactMap({ Int($0) }) {
            var sums = (0.0, 0.0, 0)
            for file in files {
                guard let (ours, theirs) = try measure(file, size: size) else { continue }
                print("| \(size) | \(URL(filePath: file).lastPathComponent) | \(decibels(ours)) | \(decibels(theirs)) |")
                sums = (sums.0 + ours, sums.1 + theirs, sums.2 + 1)
            }
            let n = Double(max(1, sums.2))
            print("| \(size) | **mean of \(sums.2)** | **\(decibels(sums.0 / n))** | **\(decibels(sums.1 / n))** |")
        }
    }

    private func decibels(_ value: Double) -> String { String(format: "%.2f", value) }

    private func measure(_ file: String, size: Int) throws -> (Double, Double)? {
        var resizer = ImageResizer.fit(width: size, height: size)
        resizer.allowsUpscaling = false
        let image = try ImageDecoder(isolation: .inProcess).decode(.file(file), at: resizer)
        let (w, h) = (Int32(image.width), Int32(image.height))
        var reference: UnsafeMutablePointer<UInt8>?
        var peer: UnsafeMutablePointer<UInt8>?
        var pw: Int32 = 0
        var ph: Int32 = 0
        guard peers_reference(file, w, h, &reference) == 0, let reference else { return nil }
        defer { peers_free(reference) }
        guard peers_vips_pixels(file, w, h, &peer, &pw, &ph) == 0, let peer, pw == w, ph == h else { return nil }
        defer { peers_free(peer) }
        var errors = (0.0, 0.0)
        image.withUnsafeBytes { ours in
            for y in 0..<image.height {
                for x in 0..<image.width {
                    for c in 0..<3 {
                        let i = (y * image.width + x) * 3 + c
                        let r = Double(reference[i])
                        let a = Double(ours[y * image.bytesPerRow + x * 4 + c]) - r
                        let b = Double(peer[i]) - r
                        errors = (errors.0 + a * a, errors.1 + b * b)
                    }
                }
            }
        }
        let samples = Double(image.width * image.height * 3)
        func psnr(_ sum: Double) -> Double { sum == 0 ? 99 : 10 * log10(255 * 255 / (sum / samples)) }
        return (psnr(errors.0), psnr(errors.1))
    }
}
