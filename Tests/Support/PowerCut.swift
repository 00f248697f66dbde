import Foundation

/// What a disk may hold after the power went away at a moment of a recording.
///
/// What a file held at its last synchronisation is there. Of what was written later each page of 4 KiB is there or not
/// by chance, in any order. Names are changed in order, up to some moment after the last synchronisation of anything:
/// one journal. Disks are allowed to do all of this; most do less.
package struct PowerCut {
    private final class File {
        var bytes: [UInt8] = []
        var pending: [(offset: Int, bytes: [UInt8])] = []
        var position = 0
        /// Where it leads, if it is a symbolic link.
        var target: String?

        /// Puts what was written in its place; what lies between is zeros.
        func apply(_ change: (offset: Int, bytes: [UInt8])) {
            if bytes.count < change.offset + change.bytes.count {
                bytes += [UInt8](repeating: 0, count: change.offset + change.bytes.count - bytes.count)
            }
            bytes.replaceSubrange(change.offset..<change.offset + change.bytes.count, with: change.bytes)
        }
    }

    /// Names as the program saw them, and those that are on the disk.
    private var seen: [String: File] = [:]
    private var stored: [String: File] = [:]
    private var directories: [String] = []

    /// - Parameters:
    ///   - operations: The recording.
    ///   - moment: How many of them happened.
    ///   - chance: Of a page that was not synchronised to be there.
    package init(_ operations: [FileOperation], moment: Int, chance: Double, random: inout SeededGenerator) {
        let synchronized = operations[..<moment].lastIndex { if case .synchronize = $0 { true } else { false } } ?? 0
        let named = Int.random(in: synchronized...moment, using: &random)
        for (index, operation) in operations[..<moment].enumerated() { apply(operation, isStored: index < named) }
        // In an order that does not change from run to run.
        for path in stored.keys.sorted() {
            if let file = stored[path] { keepSome(of: file, chance: chance, random: &random) }
        }
    }

    private mutating func apply(_ operation: FileOperation, isStored: Bool) {
        switch operation {
        case .create(let path):
            guard seen[path] == nil else { return }
            let file = File()
            seen[path] = file
            if isStored { stored[path] = file }
        case .makeDirectory(let path): if isStored { directories.append(path) }
        case .rename(let from, let to):
            seen[to] = seen.removeValue(forKey: from)
            if isStored { stored[to] = stored.removeValue(forKey: from) }
        case .link(let from, let to):
            seen[to] = seen[from]
            if isStored { stored[to] = stored[from] }
        case .symbolicLink(let path, let target):
            let file = File()
            file.target = target
            seen[path] = file
            if isStored { stored[path] = file }
        case .unlink(let path):
            seen[path] = nil
            if isStored { stored[path] = nil }
        case .write(let path, let offset, let bytes):
            guard let file = seen[path] else { return }
            file.pending.append((offset ?? file.position, bytes))
            if offset == nil { file.position += bytes.count }
        case .truncate(let path, let size):
            let file = seen[path] ?? File()
            seen[path] = file
            if isStored, stored[path] == nil { stored[path] = file }
            for change in file.pending { file.apply(change) }
            file.pending = []
            file.bytes = Array(file.bytes.prefix(size)) + [UInt8](repeating: 0, count: max(0, size - file.bytes.count))
            file.position = 0
        case .synchronize(let path):
            guard let file = seen[path] else { return }
            for change in file.pending { file.apply(change) }
            file.pending = []
        }
    }

    private func keepSome(of file: File, chance: Double, random: inout SeededGenerator) {
        for change in file.pending {
            var start = 0
            while start < change.bytes.count {
                let page = (change.offset + start) / 4096
                let end = min(change.bytes.count, (page + 1) * 4096 - change.offset)
                if Double.random(in: 0..<1, using: &random) < chance {
                    file.apply((change.offset + start, Array(change.bytes[start..<end])))
                }
                start = end
            }
        }
        file.pending = []
    }

    /// Makes the files, those below `recorded` below `directory`.
    package func write(from recorded: String, to directory: String) throws {
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        for path in directories where path != recorded {
            try FileManager.default.createDirectory(
                atPath: directory + path.dropFirst(recorded.count), withIntermediateDirectories: true)
        }
        for (path, file) in stored {
            let target = directory + path.dropFirst(recorded.count)
            // A name whose directory was removed later.
            let parent = (target as NSString).deletingLastPathComponent
            guard FileManager.default.fileExists(atPath: parent) else { continue }
            if let destination = file.target {
                try FileManager.default.createSymbolicLink(atPath: target, withDestinationPath: destination)
            } else {
                try Data(file.bytes).write(to: URL(filePath: target))
            }
        }
    }
}
