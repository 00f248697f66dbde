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

    /// Adds received bytes to the part file.
    func extendPart(_ bytes: some Sequence<UInt8>) throws {
        guard let head = PartialHead(bytes: Array(try Data(contentsOf: URL(filePath: headPath)))),
            let file = try PartialFile.open(partPath, identity: head.identity)
        else { throw CocoaError(.fileReadCorruptFile) }
        try Array(bytes).withUnsafeBytes { try file.append($0) }
        file.release()
    }

    /// Changes a byte of a file, as a failing disk does.
    static func damage(_ path: String, at offset: Int) throws {
        let file = try FileHandle(forUpdating: URL(filePath: path))
        defer { try? file.close() }
        try file.seek(toOffset: UInt64(offset))
        guard let byte = try file.read(upToCount: 1)?.first else { throw CocoaError(.fileReadCorruptFile) }
        try file.seek(toOffset: UInt64(offset))
        try file.write(contentsOf: Data([byte ^ 0x10]))
    }
}
#endif
