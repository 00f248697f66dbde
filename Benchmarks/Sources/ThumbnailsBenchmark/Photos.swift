import Foundation
import VitrinePipeline

/// So many files that are links to a few photos in turn, in a directory that is removed with the object.
final class Photos: Sendable {
    let directory: String
    let paths: [String]

    init(_ count: Int, of photos: some Collection<String>) throws {
        let files = FileManager.default
        let photos = photos.map { URL(filePath: $0).path }
        let directory = files.temporaryDirectory.appending(path: "vitrine-benchmark-\(getpid())").path
        self.directory = directory
        try? files.removeItem(atPath: directory)
        try files.createDirectory(atPath: directory + "/photos", withIntermediateDirectories: true)
        paths = try (0..<count).map { index in
            let path = "\(directory)/photos/\(index).jpg"
            try files.createSymbolicLink(atPath: path, withDestinationPath: photos[index % photos.count])
            return path
        }
        print("\(count) files of \(photos.count) photos: \(photos.map { URL(filePath: $0).lastPathComponent })\n")
    }

    deinit { try? FileManager.default.removeItem(atPath: directory) }

    var sources: [BuiltInSource] { paths.map { .file($0) } }

    /// A directory that does not exist yet.
    func fresh() -> String { "\(directory)/\(UUID().uuidString)" }
}

/// What one run took, in seconds.
struct Sample {
    /// Of this process, the workers that have ended, and those that wait for more.
    var cpu = 0.0
    var wall = 0.0

    static func take(_ body: () async throws -> Void) async rethrows -> Sample {
        let (cpu, start) = (processorTime(), ContinuousClock.now)
        try await body()
        return Sample(cpu: processorTime() - cpu, wall: seconds(ContinuousClock.now - start))
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

func seconds(_ duration: Duration) -> Double {
    Double(duration.components.seconds) + Double(duration.components.attoseconds) * 1e-18
}

func median(_ values: [Double]) -> Double { values.isEmpty ? 0 : values.sorted()[values.count / 2] }

func text(_ value: Double) -> String { String(format: value < 10 ? "%.2f" : "%.0f", value) }
