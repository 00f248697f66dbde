import Foundation

/// A file of the test's own, removed with it.
final class ScratchFile {
    let path: String

    init(_ bytes: [UInt8], suffix: String = "pdf") throws {
        path = FileManager.default.temporaryDirectory.appending(path: "vitrine-\(UUID().uuidString).\(suffix)").path
        try Data(bytes).write(to: URL(filePath: path))
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }
}
