#if os(Linux)
import Foundation
import TestSupport
import VitrineCore
import VitrineNetwork

/// A loader for the loopback that waits for nothing before it repeats.
func makeDownloader(
    repetitions: Int = 0, _ change: (inout NetworkLoader.Configuration) -> Void = { _ in }
) -> NetworkLoader {
    var configuration = NetworkLoader.Configuration()
    configuration.retries.limit = repetitions
    configuration.retries.jitter = { 0 }
    change(&configuration)
    return NetworkLoader(makeLoader(), configuration)
}

/// A directory to download to.
struct Destination {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    var path: String { directory.file("file") }
    var partPath: String { PartialFile.path(for: path) }
    var headPath: String { PartialFile.headPath(partPath) }
    var bytes: [UInt8]? { FileManager.default.contents(atPath: path).map { Array($0) } }
    var names: [String] { directory.names }

    /// Changes what lies beside the part file, as another session might have left it.
    func rewriteHead(_ change: (inout PartialHead) -> Void) throws {
        let bytes = Array(try Data(contentsOf: URL(filePath: headPath)))
        guard var head = PartialHead(bytes: bytes) else { throw CocoaError(.fileReadCorruptFile) }
        change(&head)
        try Data(head.bytes()).write(to: URL(filePath: headPath))
    }

    /// Adds to the part file.
    func extendPart(_ bytes: some Sequence<UInt8>) throws {
        let file = try FileHandle(forWritingTo: URL(filePath: partPath))
        try file.seekToEnd()
        try file.write(contentsOf: Data(bytes))
        try file.close()
    }
}
#endif
