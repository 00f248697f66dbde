import Foundation
import VitrineCore
import VitrineStores

/// Who saves, lists or reads. Each block has a directory of its own.
enum Contender: String, CaseIterable {
    /// open, write, fsync, rename and fsync of the directory, which is held open.
    case plain
    /// `FileStore`, a call for each file.
    case store
    /// The same, awaited.
    case awaited
    /// `FileStore`, one call for all files.
    case group
    /// readdir over the names.
    case plainNames
    /// `FileStore.names`.
    case names
    /// `FileStore.list`.
    case list

    var isListing: Bool { [.plainNames, .names, .list].contains(self) }

    func run(_ directory: String, count: Int) async throws {
        let bytes = (0..<20_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let store = FileStore(.root(directory), path: [])
        let names = (0..<count).map { "picture-\($0).jpg" }
        switch self {
        case .plain:
            let plain = PlainFiles(directory)
            await Measurement.print(count: count) { for name in names { plain.save(bytes, as: name) } }
        case .store:
            try await Measurement.print(count: count) {
                for name in names { try store.blocking.save(bytes, as: name) }
            }
        case .awaited:
            try await Measurement.print(count: count) { for name in names { try await store.save(bytes, as: name) } }
        case .group:
            let files = names.map { (name: $0, bytes: bytes) }
            try await Measurement.print(count: count) { try await store.save(files) }
        case .plainNames:
            await Measurement.print(count: 1) { precondition(PlainFiles.count(directory) == count) }
        case .names:
            try await Measurement.print(count: 1) {
                let found = try store.blocking.names
                precondition(found.count == count)
            }
        case .list:
            try await Measurement.print(count: 1) {
                let found = try await store.list()
                precondition(found.count == count)
            }
        }
    }
}

/// The calls a program makes that has no store.
struct PlainFiles {
    private let directory: String
    private let descriptor: Int32

    init(_ directory: String) {
        self.directory = directory
        descriptor = open(directory, O_RDONLY | O_DIRECTORY)
        precondition(descriptor >= 0)
    }

    func save(_ bytes: [UInt8], as name: String) {
        let path = directory + "/" + name, temporary = directory + "/.new-" + name
        let file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        precondition(file >= 0)
        precondition(bytes.withUnsafeBytes { write(file, $0.baseAddress, $0.count) } == bytes.count)
        precondition(fsync(file) == 0)
        close(file)
        precondition(rename(temporary, path) == 0)
        precondition(fsync(descriptor) == 0)
    }

    /// How many regular files there are, each with its name as a string.
    static func count(_ directory: String) -> Int {
        guard let stream = opendir(directory) else { return -1 }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            guard Int(entry.pointee.d_type) == DT_REG else { continue }
            names.append(
                withUnsafePointer(to: &entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                })
        }
        return names.count
    }
}
