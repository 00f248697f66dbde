import CVitrineFileSystem
import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The steps of the calls.
extension FileStore.Blocking {
    /// Writes a file, whole or not at all.
    func write(
        _ name: String, replacing: Bool, _ body: (AtomicFileWriter) throws(FileError) -> Void
    ) throws(StoreError) {
        try makeDirectory()
        let writer = try writer(name, replacing: replacing)
        try named(name) { () throws(FileError) in
            try body(writer)
            try checkCancellation(writer)
            try writer.commit()
        }
    }

    /// Writes bytes, of which a few are still written after a cancellation.
    func append(_ bytes: [UInt8], to writer: AtomicFileWriter) throws(FileError) {
        let step = 1 << 20
        guard cancellation != nil, bytes.count > step else { return try writer.write(bytes) }
        let result = bytes.withUnsafeBytes { bytes -> Result<Void, FileError> in
            Result { () throws(FileError) in
                for start in stride(from: 0, to: bytes.count, by: step) {
                    try checkCancellation(writer)
                    let end = min(bytes.count, start + step)
                    try writer.write(UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
                }
            }
        }
        try result.get()
    }

    func checkCancellation(_ writer: AtomicFileWriter) throws(FileError) {
        if let cancellation, cancellation.isCancelled { throw .cancelled(path: writer.path) }
    }

    func writer(
        _ name: String, replacing: Bool, group: TemporaryGroup? = nil
    ) throws(StoreError) -> AtomicFileWriter {
        let path = try store.path(of: name)
        // What a link points to is not the store's.
        var options: AtomicFile.Options = .replacesSpecialFiles
        if store.durability == .full { options.insert(.durable) }
        if !replacing { options.insert(.doNotReplace) }
        return try named(name) { () throws(FileError) in
            try AtomicFileWriter(path: path, options: options, group: group)
        }
    }

    /// Makes the directory, with its name on the medium if the store is durable.
    func makeDirectory() throws(StoreError) {
        guard !Directory.isDirectory(store.directory) else { return open() }
        do throws(FileError) {
            try Directory.create(store.directory, isDurable: store.durability == .full)
        } catch {
            throw .file(error)
        }
    }

    /// Removes the temporary files of dead writers, when this process uses the directory for the first time.
    ///
    /// - Parameter names: The names in the directory; read from it if the caller does not have them.
    func open(_ names: [String]? = nil) {
        guard OpenedDirectories.isFirstUse(of: store.directory) else { return }
        // Both are care for others' failures: a directory that is only readable is used all the same.
        if let names {
            AtomicFile.removeTemporariesOfDeadWriters(among: names, in: store.directory)
        } else {
            _ = try? AtomicFile.removeTemporariesOfDeadWriters(in: store.directory)
        }
        // Whoever made it may have been killed before its name was on the medium.
        if store.durability == .full { try? Directory.synchronizeName(of: store.directory) }
    }

    /// The path of a file that is there.
    func regularFile(_ name: String) throws(StoreError) -> String {
        let path = try store.path(of: name)
        var status = stat()
        guard lstat(path, &status) == 0 else {
            if errno == ENOTDIR { throw .notFound(name: name) }
            throw StoreError(FileError(operation: "lstat", path: path, code: errno), name: name)
        }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .notFound(name: name) }
        return path
    }

    package static func move(
        _ path: String, to newPath: String, name: String, newName: String, replacing: Bool
    ) throws(StoreError) {
        let code: Int32
        if replacing {
            code = systemRename(path, newPath) == 0 ? 0 : errno
        } else {
            code = cfilesystem_rename_exclusive(path, newPath)
        }
        switch code {
        case 0: break
        case EEXIST, EISDIR: throw .alreadyExists(name: newName)
        case ENOENT: throw .notFound(name: name)
        default: throw .file(FileError(operation: "rename", path: newPath, code: code))
        }
    }

    /// Changes names in the directory, and returns when that is on the medium, if the store is durable.
    ///
    /// The directory is opened before the change: a lack of descriptors or of permission leaves all as it was.
    ///
    /// - Throws: ``StoreError/notDurable(name:error:)`` after a change; nothing was changed after any other error.
    func durably<R>(_ name: String, _ body: () throws(StoreError) -> R) throws(StoreError) -> R {
        guard store.durability == .full else { return try body() }
        let directory: FileDescriptor
        do throws(FileError) {
            directory = try FileDescriptor(opening: store.directory, flags: O_RDONLY | O_DIRECTORY)
        } catch {
            throw .file(error)
        }
        let result = try body()
        let code = directory.synchronizationFailure()
        guard code == 0 else {
            throw .notDurable(name: name, error: .notDurable(path: FilePath.join(store.directory, name), code: code))
        }
        return result
    }

    /// One by one while they are few: the rest of the file system may have much to write. Files that are released are
    /// never few.
    func synchronize(_ writers: [AtomicFileWriter]) throws(StoreError) {
        do throws(FileError) {
            if writers.count <= 4 {
                for writer in writers { try writer.synchronize() }
            } else {
                let directory = try FileDescriptor(opening: store.directory, flags: O_RDONLY | O_DIRECTORY)
                let code = cfilesystem_synchronize_all(directory.number)
                guard code == 0 else { throw FileError(operation: "syncfs", path: store.directory, code: code) }
            }
        } catch {
            throw .file(error)
        }
    }

    func isName(_ name: String) -> Bool {
        (try? StoreName.check(name, reserved: store.reservedName)) != nil
    }

    /// A directory that is not there yet has nothing in it.
    func ofDirectory<R>(_ none: R, _ body: () throws(FileError) -> R) throws(StoreError) -> R {
        do throws(FileError) {
            return try body()
        } catch .notFound(let path) where path == store.directory {
            return none
        } catch {
            throw .file(error)
        }
    }

    func named<R>(_ name: String, _ body: () throws(FileError) -> R) throws(StoreError) -> R {
        do throws(FileError) {
            return try body()
        } catch {
            throw StoreError(error, name: name)
        }
    }
}

/// The directories of stores that this process has used.
private enum OpenedDirectories {
    private static let known = Locked<Set<String>>([])
    /// Beyond it, all are forgotten, and looked at again.
    private static let limit = 4096

    static func isFirstUse(of directory: String) -> Bool {
        known.withLock { known in
            if known.count >= limit { known = [] }
            return known.insert(directory).inserted
        }
    }
}

// A method of the store hides the C function of the same name.
private func systemRename(_ from: String, _ to: String) -> Int32 { rename(from, to) }
