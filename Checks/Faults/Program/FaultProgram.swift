// A program that uses each kind of store below a directory, for Checks/Faults/run. It reads commands, one a line, and
// answers each with lines that end in a line with a full stop:
//
//     write KIND VERSION   → KIND ok, or KIND error TEXT
//     read KIND            → KIND = VERSION, KIND missing, KIND wrong, or KIND error TEXT
import Foundation
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrineModels
import VitrineStores

@main
enum FaultProgram {
    static func main() async {
        guard CommandLine.arguments.count == 2 else { exit(64) }
        let stores = Stores(directory: CommandLine.arguments[1])
        while let line = readLine() {
            let words = line.split(separator: " ").map(String.init)
            guard words.count >= 2 else { continue }
            await answer(words, stores)
            say(".")
        }
    }

    private static func answer(_ words: [String], _ stores: Stores) async {
        let kind = words[1]
        do {
            if words[0] == "write", let version = words.last.flatMap({ Int($0) }) {
                try await stores.write(Stores.bytes(of: version), kind)
                say("\(kind) ok")
            } else if let bytes = try await stores.read(kind) {
                say("\(kind) \(Stores.version(of: bytes).map { "= \($0)" } ?? "wrong")")
            } else {
                say("\(kind) missing")
            }
        } catch {
            say("\(kind) error \(error)".replacing("\n", with: " "))
        }
    }

    private static func say(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = bytes.withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
    }
}

/// The stores below a directory. Each is opened when it is first used, and again if that failed.
private final class Stores {
    private let directory: String
    private var values: KeyValueStore?
    private var objects: ObjectStore?
    private lazy var disk = DiskCache(directory: directory + "/disk")
    private lazy var cache = ValueCache<[UInt8]>(name: "cache", configuration: CacheConfiguration(root: directory))

    init(directory: String) { self.directory = directory }

    /// The bytes of a version: recognizable, of different lengths, and longer than a page.
    static func bytes(of version: Int) -> [UInt8] {
        var state = UInt64(version) &* 0x9E37_79B9_7F4A_7C15 | 1
        let head = Array("version \(version)\n".utf8)
        return head + (0..<5000 + version % 7 * 3000).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: state >> 56)
        }
    }

    static func version(of found: [UInt8]) -> Int? {
        let head = String(decoding: found.prefix { $0 != 0x0A }, as: UTF8.self)
        guard head.hasPrefix("version "), let version = Int(head.dropFirst(8)) else { return nil }
        return found == bytes(of: version) ? version : nil
    }

    private func openValues() throws -> KeyValueStore {
        if let values { return values }
        var configuration = KeyValueStore.Configuration()
        configuration.memoryThreshold = .kibibytes(1)
        let opened = try KeyValueStore(directory: directory + "/values", configuration: configuration)
        values = opened
        return opened
    }

    private func openObjects() throws -> ObjectStore {
        if let objects { return objects }
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        let opened = try ObjectStore(at: directory + "/objects.sqlite")
        objects = opened
        return opened
    }

    private var files: FileStore { FileStore(.root(directory), path: ["files"]) }

    func write(_ bytes: [UInt8], _ kind: String) async throws {
        switch kind {
        case "file": try await files.save(bytes, as: "file")
        case "values": try await openValues().set(bytes, forKey: "value").committed()
        case "objects": try await openObjects().put(Data(bytes), for: "object")
        case "disk":
            try await disk.set(bytes, forKey: "entry")
            try await disk.flush()
        case "cache":
            try await cache.set(bytes, forKey: "entry", tags: ["tag"])
            try await cache.flush()
        default: throw FileError.notFound(path: kind)
        }
    }

    func read(_ kind: String) async throws -> [UInt8]? {
        switch kind {
        case "file":
            return await files.exists("file") ? try await files.load("file") : nil
        case "values": return try openValues().value([UInt8].self, forKey: "value")
        case "objects": return try openObjects().object(Data.self, for: "object").map { Array($0) }
        case "disk": return try await disk.bytes(forKey: "entry")
        // What is in memory is known to the process that wrote it.
        case "cache": return try await cache.value(forKey: "entry", levels: [.readDisk])
        default: throw FileError.notFound(path: kind)
        }
    }
}
