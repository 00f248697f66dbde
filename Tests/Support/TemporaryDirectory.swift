import Foundation
import Synchronization

/// A directory for one test, removed with the object, and once more at the process's end: what was queued for a cache is
/// written also when the cache and its directory have gone.
package final class TemporaryDirectory: Sendable {
    package let path: String
    private static let all = Mutex<[String]>([])
    private static let removesAllAtExit: Void = {
        _ = atexit {
            for path in TemporaryDirectory.all.withLock({ $0 }) { try? FileManager.default.removeItem(atPath: path) }
        }
    }()

    package init() throws {
        path = FileManager.default.temporaryDirectory.appending(path: "vitrine-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        Self.all.withLock { $0.append(path) }
        Self.removesAllAtExit
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    package func file(_ name: String) -> String { path + "/" + name }

    package func write(_ text: String, to name: String) throws {
        let target = URL(filePath: file(name))
        try FileManager.default.createDirectory(
            at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: target)
    }

    package func read(_ name: String) -> String? {
        FileManager.default.contents(atPath: file(name)).map { String(decoding: $0, as: UTF8.self) }
    }

    package var names: [String] { (try? FileManager.default.contentsOfDirectory(atPath: path).sorted()) ?? [] }
}
