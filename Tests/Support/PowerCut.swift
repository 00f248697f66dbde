import Foundation

/// What a disk may hold after the power went away at a moment of a recording.
///
/// What a file held at its last synchronisation is there. Of what was written later each page of 4 KiB is there or not
/// by chance, in any order. Names are there as ``NameOrder`` says. Disks are allowed to do all of this; most do less.
package struct PowerCut {
    /// Which changes of names are on the disk.
    package enum NameOrder: Sendable {
        /// All in order, up to some moment after the last synchronisation of anything: one journal, as ext4 has it.
        case oneJournal
        /// In each directory those before its last synchronisation, and some more in order: what POSIX promises.
        case eachDirectory
    }

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

    /// One change of names in one directory.
    private struct NameChange {
        var files: [(path: String, file: File?)] = []
        var directory: String?
        /// The directory in which it is.
        var place: String {
            let path = directory ?? files.first?.path ?? ""
            return (path as NSString).deletingLastPathComponent
        }
    }

    /// Names as the program saw them, and those that are on the disk.
    private var seen: [String: File] = [:]
    private var stored: [String: File] = [:]
    private var directories: [String] = []
    /// Changes of names that are not on the disk for sure, by directory.
    private var pending: [String: [NameChange]] = [:]

    /// - Parameters:
    ///   - operations: The recording.
    ///   - moment: How many of them happened.
    ///   - chance: Of a page that was not synchronised to be there.
    ///   - order: Which changes of names are on the disk.
    package init(
        _ operations: [FileOperation], moment: Int, chance: Double, order: NameOrder = .oneJournal,
        random: inout SeededGenerator
    ) {
        let synchronized = operations[..<moment].lastIndex { if case .synchronize = $0 { true } else { false } } ?? 0
        let named = Int.random(in: synchronized...moment, using: &random)
        for (index, operation) in operations[..<moment].enumerated() {
            guard let change = apply(operation) else { continue }
            switch order {
            case .oneJournal: if index < named { store(change) }
            case .eachDirectory: pending[change.place, default: []].append(change)
            }
        }
        for place in pending.keys.sorted() {
            let changes = pending[place] ?? []
            for change in changes.prefix(Int.random(in: 0...changes.count, using: &random)) { store(change) }
        }
        // In an order that does not change from run to run.
        for path in stored.keys.sorted() {
            if let file = stored[path] { keepSome(of: file, chance: chance, random: &random) }
        }
    }

    private mutating func store(_ change: NameChange) {
        for (path, file) in change.files { stored[path] = file }
        if let directory = change.directory { directories.append(directory) }
    }

    /// Does what the program did.
    ///
    /// - Returns: The change of names, if it is one.
    private mutating func apply(_ operation: FileOperation) -> NameChange? {
        switch operation {
        case .create(let path):
            guard seen[path] == nil else { return nil }
            let file = File()
            seen[path] = file
            return NameChange(files: [(path, file)])
        case .makeDirectory(let path): return NameChange(directory: path)
        case .rename(let from, let to):
            let file = seen.removeValue(forKey: from)
            seen[to] = file
            return NameChange(files: [(from, nil), (to, file)])
        case .link(let from, let to):
            seen[to] = seen[from]
            return NameChange(files: [(to, seen[from])])
        case .symbolicLink(let path, let target):
            let file = File()
            file.target = target
            seen[path] = file
            return NameChange(files: [(path, file)])
        case .unlink(let path):
            seen[path] = nil
            return NameChange(files: [(path, nil)])
        case .write(let path, let offset, let bytes):
            guard let file = seen[path] else { return nil }
            file.pending.append((offset ?? file.position, bytes))
            if offset == nil { file.position += bytes.count }
            return nil
        case .truncate(let path, let size):
            let known = seen[path]
            let file = known ?? File()
            seen[path] = file
            for change in file.pending { file.apply(change) }
            file.pending = []
            file.bytes = Array(file.bytes.prefix(size)) + [UInt8](repeating: 0, count: max(0, size - file.bytes.count))
            file.position = 0
            return known == nil ? NameChange(files: [(path, file)]) : nil
        case .synchronize(let path):
            if let changes = pending.removeValue(forKey: path) {
                for change in changes { store(change) }
            }
            guard let file = seen[path] else { return nil }
            for change in file.pending { file.apply(change) }
            file.pending = []
            return nil
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
        // Those above first: what is below a directory without a name is lost.
        for path in directories.sorted() where path != recorded {
            let target = directory + path.dropFirst(recorded.count)
            let parent = (target as NSString).deletingLastPathComponent
            guard FileManager.default.fileExists(atPath: parent) else { continue }
            try FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: true)
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
