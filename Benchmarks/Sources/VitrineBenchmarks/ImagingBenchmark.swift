import ArgumentParser
import Foundation

/// Thumbnails of every kind against the peers: processor time and peak memory.
struct ImagingBenchmark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "imaging")

    @Option(help: "The directory Scripts/make-inputs wrote.")
    var inputs: String

    @Option(help: "The shared corpus of real photographs; its cases are left out without it.")
    var corpus: String?

    @Option(help: "Measurements of each contender per case; medians are printed.")
    var rounds = 5

    @Option(help: "Seconds of processor time per measurement.")
    var minimumSeconds = 0.4

    @Option(help: "Only cases whose name contains this.")
    var only: String?

    /// One comparison: the second contender is the reference of the ratio.
    private struct Case {
        var name: String
        var size: Int
        var files: [String]
        var contenders: [Contender]
        /// Largest ratio to the second contender that meets the target.
        var target: Double?
    }

    func run() async throws {
        let runner = Runner(rounds: rounds, minimumSeconds: minimumSeconds)
        print("| case | contender | CPU ms | ratio | target | peak MB | over idle MB |")
        print("|---|---|---:|---:|---:|---:|---:|")
        for item in cases where only.map(item.name.contains) ?? true {
            let results = runner.compare(item.contenders + [.idle], size: item.size, files: item.files)
            let reference = results[item.contenders.last ?? .libvips]?.cpu ?? .nan
            let idle = results[.idle]?.peak ?? .nan
            for (i, contender) in item.contenders.enumerated() {
                guard let m = results[contender] else {
                    print("| \(item.name) | \(contender.title) | failed | | | | |")
                    continue
                }
                let worker = m.childPeak > 0 ? " + \(number(m.childPeak)) worker" : ""
                print(
                    "| \(i == 0 ? item.name : "") | \(contender.title) | \(number(m.cpu)) "
                        + "| \(String(format: "%.3f", m.cpu / reference)) "
                        + "| \(i == 0 ? item.target.map { "≤ \($0)" } ?? "" : "") "
                        + "| \(number(m.peak))\(worker) | \(number(m.peak - idle)) |")
            }
        }
    }

    private func number(_ value: Double) -> String {
        value < 10 ? String(format: "%.2f", value) : String(format: "%.1f", value)
    }

    private var cases: [Case] {
        func file(_ name: String) -> [String] { ["\(inputs)/\(name)"] }
        var all = [
            Case(name: "24 MP JPEG → 200", size: 200, files: file("24mp.jpg"),
                contenders: [.vitrine, .turboEighth], target: 0.5),
            Case(name: "24 MP JPEG → 200, libvips", size: 200, files: file("24mp.jpg"),
                contenders: [.vitrine, .libvips], target: 0.45),
            Case(name: "24 MP JPEG 4:2:2 → 200", size: 200, files: file("24mp-422.jpg"),
                contenders: [.vitrine, .libvips], target: 0.45),
            Case(name: "24 MP JPEG 4:4:4 → 200", size: 200, files: file("24mp-444.jpg"),
                contenders: [.vitrine, .libvips], target: 0.45),
            Case(name: "24 MP progressive JPEG → 200", size: 200, files: file("24mp-progressive.jpg"),
                contenders: [.vitrine, .libvips], target: 0.04),
            Case(name: "100 MP JPEG → 200", size: 200, files: file("100mp.jpg"),
                contenders: [.vitrine, .libvips], target: 0.45),
            Case(name: "100 MP progressive JPEG → 200", size: 200, files: file("100mp-progressive.jpg"),
                contenders: [.vitrine, .libvips], target: 0.04),
            Case(name: "24 MP JPEG → 400", size: 400, files: file("24mp.jpg"),
                contenders: [.vitrine, .libvips], target: nil),
            Case(name: "24 MP JPEG → 800", size: 800, files: file("24mp.jpg"),
                contenders: [.vitrine, .libvips], target: 0.5),
            Case(name: "24 MP JPEG → 1600", size: 1600, files: file("24mp.jpg"),
                contenders: [.vitrine, .libvips], target: 0.65),
            Case(name: "640 px JPEG → 200", size: 200, files: file("640.jpg"),
                contenders: [.vitrine, .libvips], target: 0.25),
            Case(name: "12 MP PNG → 200", size: 200, files: file("12mp.png"),
                contenders: [.vitrine, .libvips], target: 0.45),
            Case(name: "12 MP PNG with alpha → 200", size: 200, files: file("12mp-rgba.png"),
                contenders: [.vitrine, .libvips], target: 0.45),
            Case(name: "12 MP AVIF → 200", size: 200, files: file("12mp.avif"),
                contenders: [.vitrine, .vitrineDefault, .libvips], target: 0.3),
            Case(name: "12 MP WebP → 200", size: 200, files: file("12mp.webp"),
                contenders: [.vitrine, .vitrineDefault, .libvips], target: 1.05),
            Case(name: "12 MP JPEG XL → 200", size: 200, files: file("12mp.jxl"),
                contenders: [.vitrine, .vitrineDefault, .libvips], target: 0.25),
            Case(name: "12 MP JPEG XL → 800", size: 800, files: file("12mp.jxl"),
                contenders: [.vitrineDefault, .libvips], target: 1.05),
            Case(name: "12 MP HEIC → 400", size: 400, files: file("photo.heic"),
                contenders: [.vitrine, .libvips], target: 0.4),
            Case(name: "12 MP HEIC → 1600", size: 1600, files: file("photo.heic"),
                contenders: [.vitrine, .libvips], target: 0.4),
            Case(name: "TIFF 12 MP → 200", size: 200, files: file("12mp.tif"),
                contenders: [.vitrineDefault, .libvips], target: nil),
            Case(name: "isolation, 640 px JPEG → 200", size: 200, files: file("640.jpg"),
                contenders: [.vitrineWorker, .vitrine], target: 1.05),
        ]
        for (size, target) in [(800, 0.6), (1200, 0.65), (1600, 0.65)] {
            all.append(
                Case(name: "12 MP JPEG → \(size)", size: size, files: file("12mp.jpg"),
                    contenders: [.vitrine, .libvips], target: target))
            if let corpus {
                all.append(
                    Case(name: "14 MP JPEG 4:2:2 → \(size)", size: size,
                        files: ["\(corpus)/jpeg/nikon-d3100-14mp.jpg"], contenders: [.vitrine, .libvips],
                        target: target))
            }
        }
        if let corpus {
            let photos = ((try? FileManager.default.contentsOfDirectory(atPath: "\(corpus)/jpeg")) ?? [])
                .filter { $0.hasSuffix(".jpg") }.sorted().map { "\(corpus)/jpeg/\($0)" }
            all += [
                Case(name: "photos of the corpus together → 200", size: 200, files: photos,
                    contenders: [.vitrine, .libvips], target: 0.45),
                Case(name: "embedded preview, 10 MP → 160", size: 160, files: ["\(corpus)/jpeg/panasonic-lx7-mpo.jpg"],
                    contenders: [.vitrinePreview, .libvips], target: 0.1),
            ]
        }
        return all
    }
}
