import Foundation

/// Real and hostile files that are not part of the repository: `$VITRINE_SHARED`, or the folder `shared` beside the
/// checkout. Tests that need them are skipped, with a message, when they are absent.
package enum Corpus {
    package static let root: URL? = {
        let beside = URL(filePath: #filePath).deletingLastPathComponent()  // Support
            .deletingLastPathComponent().deletingLastPathComponent()  // the checkout
            .deletingLastPathComponent().appending(path: "shared")
        let named = ProcessInfo.processInfo.environment["VITRINE_SHARED"].map { URL(filePath: $0) }
        return [named, beside].compactMap { $0 }.first {
            FileManager.default.fileExists(atPath: $0.appending(path: "corpus").path)
        }
    }()

    package static var isAvailable: Bool { root != nil }

    /// The path of one file of the corpus, for example `jpeg/progressive.jpg`; nil when it is absent.
    package static func file(_ name: String) -> String? {
        guard let path = root?.appending(path: "corpus").appending(path: name).path else { return nil }
        return FileManager.default.fileExists(atPath: path) ? path : nil
    }

    /// The paths of all files in a folder such as `corpus/png` or `hostile/svg`, sorted.
    package static func files(in folder: String) -> [String] {
        guard let directory = root?.appending(path: folder),
            let names = try? FileManager.default.subpathsOfDirectory(atPath: directory.path)
        else { return [] }
        return names.sorted().map { directory.appending(path: $0).path }.filter {
            var isDirectory: ObjCBool = false
            return FileManager.default.fileExists(atPath: $0, isDirectory: &isDirectory) && !isDirectory.boolValue
        }
    }
}
