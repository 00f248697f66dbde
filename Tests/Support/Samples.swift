import Foundation

/// The sample pictures of the repository.
package enum Samples {
    package static let directory = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Samples")

    package static func path(_ name: String) -> String { directory.appending(path: name).path }

    package static func bytes(_ name: String) throws -> [UInt8] {
        try [UInt8](Data(contentsOf: directory.appending(path: name)))
    }

    /// Every picture, by file name: what has an extension. The rest is the script that makes them.
    package static let names: [String] =
        ((try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? [])
        .filter { $0.contains(".") && !$0.hasPrefix(".") && !others.contains($0) }.sorted()

    /// What is no picture: a document of three pages, and a film of five seconds.
    package static let others = ["lake.pdf", "lake.mp4"]
}
