import Foundation

/// The sample pictures of the repository.
enum Samples {
    static let directory = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Samples")

    static func path(_ name: String) -> String { directory.appending(path: name).path }

    static func bytes(_ name: String) throws -> [UInt8] {
        try [UInt8](Data(contentsOf: directory.appending(path: name)))
    }

    /// Every picture, by file name.
    static let names: [String] = ((try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? [])
        .filter { $0 != "make-samples" && !$0.hasPrefix(".") }.sorted()
}
