import Foundation
import VitrineImaging
import VitrinePipeline

/// Every page of a PDF at 200 pixels, against `pdftoppm`, which draws all of them in one process.
struct PDFBenchmark {
    static let side = 200
    let path: String
    let rounds: Int

    /// Contenders run alternately; the table gives medians.
    func run() async throws {
        let count = try PDFDocument(.file(path)).info().pageCount
        var samples: [[Sample]] = [[], [], []]
        for round in 0...rounds {
            let results = [
                try await Sample.take { try await pages(1...count, threads: 1) },
                try await Sample.take { try await pages(1...count, threads: 2) },
                try await Sample.take { try pdftoppm() },
            ]
            // The first round only warms up.
            if round > 0 { for index in results.indices { samples[index].append(results[index]) } }
        }
        print("| \(count) pages → \(Self.side) | CPU ms a page | pages a CPU second | pages a second | ratio of CPU |")
        print("|---|---:|---:|---:|---:|")
        let names = ["Vitrine, one helper", "Vitrine, two helpers", "`pdftoppm -scale-to \(Self.side)`"]
        let peer = median(samples[2].map(\.cpu))
        for (name, samples) in zip(names, samples) {
            let cpu = median(samples.map(\.cpu)), wall = median(samples.map(\.wall))
            print(
                "| \(name) | \(text(cpu / Double(count) * 1_000)) | \(text(Double(count) / cpu)) "
                    + "| \(text(Double(count) / wall)) | \(text(cpu / peer)) |")
        }
    }

    /// All pages from a file that no helper has open yet, and the helpers' end.
    private func pages(_ numbers: ClosedRange<Int>, threads: Int) async throws {
        let input = PDFDocument(.file(path))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, number) in numbers.enumerated() {
                // As many pages at once as threads.
                if index >= threads { try await group.next() }
                group.addTask { _ = try await input.page(number).image(RenderRequest(size: PixelSize(Self.side))) }
            }
            try await group.waitForAll()
        }
        ImagePipeline.endIdleHelpers()
    }

    private func pdftoppm() throws {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/pdftoppm")
        process.arguments = ["-scale-to", "\(Self.side)", path]
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
    }
}

/// What one run took, in seconds.
struct Sample {
    /// Of this process and of those that have ended meanwhile.
    var cpu: Double
    var wall: Double

    static func take(_ body: () async throws -> Void) async rethrows -> Sample {
        let (cpu, start) = (processorTime(), ContinuousClock.now)
        try await body()
        let wall = ContinuousClock.now - start
        return Sample(
            cpu: processorTime() - cpu,
            wall: Double(wall.components.seconds) + Double(wall.components.attoseconds) * 1e-18)
    }

    private static func processorTime() -> Double {
        [RUSAGE_SELF, RUSAGE_CHILDREN].reduce(0) { sum, who in
            var usage = rusage()
            getrusage(Int32(who.rawValue), &usage)
            return [usage.ru_utime, usage.ru_stime].reduce(sum) {
                $0 + Double($1.tv_sec) + Double($1.tv_usec) * 1e-6
            }
        }
    }
}

func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

func text(_ value: Double) -> String { String(format: value < 10 ? "%.2f" : "%.0f", value) }
