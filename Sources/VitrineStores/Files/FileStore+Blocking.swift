import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

extension FileStore {
    /// The calls of a ``FileStore`` that block the calling thread until the disk is done.
    public struct Blocking: Sendable {
        let store: FileStore
        var cancellation: CancellationToken?

        /// The most files that are held open at once.
        private static let openFiles = 64

        // MARK: Saving

        /// The blocking form of ``FileStore/save(_:as:replacing:)``.
        public func save(_ bytes: [UInt8], as name: String, replacing: Bool = true) throws(StoreError) {
            try write(name, replacing: replacing) { writer throws(FileError) in try append(bytes, to: writer) }
        }

        /// The blocking form of ``FileStore/save(_:fileExtension:)``.
        package func save(_ bytes: [UInt8], fileExtension: String? = nil) throws(StoreError) -> String {
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

        /// The blocking form of ``FileStore/save(fileAt:as:replacing:)``.
        package func save(fileAt path: String, as name: String, replacing: Bool = true) throws(StoreError) {
            try write(name, replacing: replacing) { writer throws(FileError) in
                try writer.append(contentsOf: path, cancellation: cancellation)
            }
        }

        /// The blocking form of ``FileStore/save(_:)``.
        package func save(_ files: [(name: String, bytes: [UInt8])]) throws(StoreError) {
            guard !files.isEmpty else { return }
            try makeDirectory()
            // A process has so many descriptors and no more.
            let isReleasing = files.count > Self.openFiles
            let group = try isReleasing ? temporaryGroup() : nil
            // Until all are in their places.
            defer { withExtendedLifetime(group) {} }
            var writers: [AtomicFileWriter] = []
            for file in files {
                let writer = try self.writer(file.name, replacing: true, group: group)
                try named(file.name) { () throws(FileError) in
                    try append(file.bytes, to: writer)
                    try checkCancellation(writer)
                }
                if isReleasing { writer.release() }
                writers.append(writer)
            }
            if store.durability == .full { try synchronize(writers) }
            try durably(files[0].name) { () throws(StoreError) in
                for (file, writer) in zip(files, writers) {
                    try named(file.name) { () throws(FileError) in try writer.place() }
                }
            }
        }

        private func temporaryGroup() throws(StoreError) -> TemporaryGroup {
            do throws(FileError) {
                return try TemporaryGroup(in: store.directory)
            } catch {
                throw .file(error.about(store.directory))
            }
        }

        /// Returns a writer for a file that is written in pieces. The file appears with ``StoreWriter/commit()``.
        package func writer(for name: String, replacing: Bool = true) throws(StoreError) -> StoreWriter {
            try makeDirectory()
            return StoreWriter(try writer(name, replacing: replacing), name: name)
        }

        // MARK: Loading

        /// The blocking form of ``FileStore/load(_:)``.
        public func load(_ name: String) throws(StoreError) -> [UInt8] {
            let path = try regularFile(name)
            return try named(name) { () throws(FileError) in try FileContents.read(path) }
        }

        /// The blocking form of ``FileStore/map(_:)``.
        package func map(_ name: String) throws(StoreError) -> MappedFile {
            let path = try regularFile(name)
            return try named(name) { () throws(FileError) in try MappedFile(path: path) }
        }

        // MARK: Managing

        /// The blocking form of ``FileStore/delete(_:)``.
        @discardableResult
        public func delete(_ name: String) throws(StoreError) -> Bool {
            let path = try store.path(of: name)
            // A missing directory, or a file in its place, is a missing file as well. Nothing needs to be durable then.
            guard FilePath.exists(path) else { return false }
            return try durably(name) { () throws(StoreError) in
                if unlink(path) == 0 { return true }
                if errno == ENOENT || errno == ENOTDIR { return false }
                throw StoreError(FileError(operation: "unlink", path: path, code: errno), name: name)
            }
        }

        /// The blocking form of ``FileStore/rename(_:to:replacing:)``.
        public func rename(_ name: String, to newName: String, replacing: Bool = false) throws(StoreError) {
            let (path, newPath) = (try regularFile(name), try store.path(of: newName))
            try durably(newName) { () throws(StoreError) in
                try Self.move(path, to: newPath, name: name, newName: newName, replacing: replacing)
            }
        }

        /// The blocking form of ``FileStore/exists(_:)``.
        public func exists(_ name: String) -> Bool { (try? regularFile(name)) != nil }

        /// The blocking form of ``FileStore/list(by:ascending:)``.
        package func list(
            by order: DirectoryListing.Order = .name, ascending: Bool = true
        ) throws(StoreError) -> [DirectoryListing.Item] {
            open()
            return try ofDirectory([]) { () throws(FileError) in
                try DirectoryListing.items(in: store.directory, by: order, ascending: ascending).filter {
                    $0.isRegularFile && isName($0.name)
                }
            }
        }

        /// The blocking form of ``FileStore/names``.
        public var names: [String] {
            get throws(StoreError) {
                var names = try ofDirectory([]) { () throws(FileError) in
                    try Directory.names(ofFilesIn: store.directory)
                }
                open(names)
                names.removeAll { StoreName.isForeign($0, reserved: store.reservedName) }
                return names
            }
        }

        /// The blocking form of ``FileStore/totalSize``.
        package var totalSize: ByteCount {
            get throws(StoreError) { try list().reduce(.zero) { $0 + $1.size } }
        }

        /// The blocking form of ``FileStore/removeTemporaryFiles(olderThan:)``.
        @discardableResult
        package func removeTemporaryFiles(olderThan age: Duration = .seconds(60)) throws(StoreError) -> Int {
            try ofDirectory(0) { () throws(FileError) in
                try AtomicFile.removeStaleTemporaries(in: store.directory, olderThan: age)
            }
        }
    }
}
