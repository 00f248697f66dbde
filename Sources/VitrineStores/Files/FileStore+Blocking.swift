import CFileSystem
public import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

extension FileStore {
    /// A store's calls for threads that may block.
    public struct Blocking: Sendable {
        let store: FileStore

        // MARK: Saving

        /// As ``FileStore/save(_:as:replacing:)``.
        public func save(_ bytes: [UInt8], as name: String, replacing: Bool = true) throws(StoreError) {
            try write(name, replacing: replacing) { writer throws(FileError) in try writer.write(bytes) }
        }

        /// As ``FileStore/save(_:fileExtension:)``.
        public func save(_ bytes: [UInt8], fileExtension: String? = nil) throws(StoreError) -> String {
            while true {
                let name = StoreClock.name(fileExtension: fileExtension)
                do throws(StoreError) {
                    try save(bytes, as: name, replacing: false)
                    return name
                } catch .alreadyExists {
                    // Another process had the same microsecond.
                }
            }
        }

        /// As ``FileStore/save(fileAt:as:replacing:)``.
        public func save(fileAt path: String, as name: String, replacing: Bool = true) throws(StoreError) {
            try write(name, replacing: replacing) { writer throws(FileError) in try writer.append(contentsOf: path) }
        }

        /// As ``FileStore/save(_:)-([(name:String,bytes:[UInt8])])``.
        public func save(_ files: [(name: String, bytes: [UInt8])]) throws(StoreError) {
            guard !files.isEmpty else { return }
            try makeDirectory()
            var writers: [AtomicFileWriter] = []
            for file in files {
                let writer = try self.writer(file.name, replacing: true)
                try named(file.name) { () throws(FileError) in try writer.write(file.bytes) }
                writers.append(writer)
            }
            if store.durability == .full { try synchronize(writers) }
            for (file, writer) in zip(files, writers) {
                try named(file.name) { () throws(FileError) in try writer.place() }
            }
            try synchronizeDirectory()
        }

        /// A writer for a file of the store, which appears with ``StoreWriter/commit()``: for what comes in pieces.
        public func writer(for name: String, replacing: Bool = true) throws(StoreError) -> StoreWriter {
            try makeDirectory()
            return StoreWriter(try writer(name, replacing: replacing), name: name)
        }

        // MARK: Loading

        /// As ``FileStore/load(_:)``.
        public func load(_ name: String) throws(StoreError) -> [UInt8] {
            let path = try regularFile(name)
            return try named(name) { () throws(FileError) in try FileContents.read(path) }
        }

        /// As ``FileStore/map(_:)``.
        public func map(_ name: String) throws(StoreError) -> MappedFile {
            let path = try regularFile(name)
            return try named(name) { () throws(FileError) in try MappedFile(path: path) }
        }

        // MARK: Managing

        /// As ``FileStore/delete(_:)``.
        @discardableResult
        public func delete(_ name: String) throws(StoreError) -> Bool {
            let path = try store.path(of: name)
            guard unlink(path) == 0 else {
                // A missing directory, or a file in its place, is a missing file as well.
                if errno == ENOENT || errno == ENOTDIR { return false }
                throw StoreError(FileError(operation: "unlink", path: path, code: errno), name: name)
            }
            try synchronizeDirectory()
            return true
        }

        /// As ``FileStore/rename(_:to:replacing:)``.
        public func rename(_ name: String, to newName: String, replacing: Bool = false) throws(StoreError) {
            let (path, newPath) = (try regularFile(name), try store.path(of: newName))
            try Self.move(path, to: newPath, name: name, newName: newName, replacing: replacing)
            try synchronizeDirectory()
        }

        /// As ``FileStore/exists(_:)``.
        public func exists(_ name: String) -> Bool { (try? regularFile(name)) != nil }

        /// As ``FileStore/list(by:ascending:)``.
        public func list(
            by order: DirectoryListing.Order = .name, ascending: Bool = true
        ) throws(StoreError) -> [DirectoryListing.Item] {
            try ofDirectory([]) { () throws(FileError) in
                try DirectoryListing.items(in: store.directory, by: order, ascending: ascending).filter {
                    $0.isRegularFile && isName($0.name)
                }
            }
        }

        /// As ``FileStore/names``.
        public var names: [String] {
            get throws(StoreError) {
                let names = try ofDirectory([]) { () throws(FileError) in
                    try Directory.names(ofFilesIn: store.directory)
                }
                return names.filter(isName).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
            }
        }

        /// As ``FileStore/totalSize``.
        public var totalSize: ByteCount {
            get throws(StoreError) { try list().reduce(.zero) { $0 + $1.size } }
        }

        /// As ``FileStore/removeLitter(olderThan:)``.
        @discardableResult
        public func removeLitter(olderThan age: Duration = .seconds(60)) throws(StoreError) -> Int {
            try ofDirectory(0) { () throws(FileError) in
                try AtomicFile.removeStaleTemporaries(in: store.directory, olderThan: age)
            }
        }

        // MARK: Parts

        /// Writes a file, whole or not at all.
        private func write(
            _ name: String, replacing: Bool, _ body: (AtomicFileWriter) throws(FileError) -> Void
        ) throws(StoreError) {
            try makeDirectory()
            let writer = try writer(name, replacing: replacing)
            try named(name) { () throws(FileError) in
                try body(writer)
                try writer.commit()
            }
        }

        func writer(_ name: String, replacing: Bool) throws(StoreError) -> AtomicFileWriter {
            let path = try store.path(of: name)
            var options: AtomicFile.Options = store.durability == .full ? .durable : []
            if !replacing { options.insert(.doNotReplace) }
            return try named(name) { () throws(FileError) in
                // What a link points to is not the store's.
                try AtomicFileWriter(path: path, options: options, followsLinks: false)
            }
        }

        func makeDirectory() throws(StoreError) {
            do throws(FileError) {
                if Directory.isDirectory(store.directory) { return }
                try Directory.create(store.directory)
            } catch {
                throw .file(error)
            }
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

        static func move(
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

        func synchronizeDirectory() throws(StoreError) {
            guard store.durability == .full else { return }
            do throws(FileError) {
                try FileDescriptor(opening: store.directory, flags: O_RDONLY | O_DIRECTORY).synchronize()
            } catch {
                throw .file(error)
            }
        }

        /// One by one while they are few: the rest of the file system may have much to write.
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

        private func isName(_ name: String) -> Bool {
            (try? StoreName.check(name, reserved: store.reservedName)) != nil
        }

        /// A directory that is not there yet has nothing in it.
        private func ofDirectory<R>(_ none: R, _ body: () throws(FileError) -> R) throws(StoreError) -> R {
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
}

// A method above hides the C function of the same name.
private func systemRename(_ from: String, _ to: String) -> Int32 { rename(from, to) }
