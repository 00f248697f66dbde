import VitrineCore
public import VitrineImaging

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

extension ImageStore {
    /// The calls of an ``ImageStore`` that block the calling thread until the disk is done.
    public struct Blocking: Sendable {
        let store: ImageStore
        var cancellation: CancellationToken?

        var files: FileStore.Blocking { .init(store: store.files, cancellation: cancellation) }
        var thumbnails: FileStore.Blocking { .init(store: store.thumbnails, cancellation: cancellation) }
        var configuration: Configuration { store.configuration }

        // MARK: Saving

        /// The blocking form of ``ImageStore/save(_:as:replacing:)-(PixelImage,_,_)``.
        @discardableResult
        public func save(_ image: PixelImage, as name: String? = nil, replacing: Bool = true) throws(StoreError) -> String {
            try save(as: name, replacing: replacing) { () throws(ImageError) in
                try PreparedImage(image, name: name, configuration)
            }
        }

        /// The blocking form of ``ImageStore/save(_:as:replacing:)-([UInt8],_,_)``.
        @discardableResult
        package func save(
            _ bytes: [UInt8], as name: String? = nil, replacing: Bool = true
        ) throws(StoreError) -> String {
            try save(as: name, replacing: replacing) { () throws(ImageError) in
                try PreparedImage(
                    .bytes(bytes, name: name ?? "picture"), name: name, configuration: configuration,
                    cancellation: cancellation)
            }
        }

        /// The blocking form of ``ImageStore/save(fileAt:as:replacing:)``.
        @discardableResult
        package func save(
            fileAt path: String, as name: String? = nil, replacing: Bool = true
        ) throws(StoreError) -> String {
            try save(as: name, replacing: replacing) { () throws(ImageError) in
                try PreparedImage(.file(path), name: name, configuration: configuration, cancellation: cancellation)
            }
        }

        private func save(
            as name: String?, replacing: Bool, _ prepare: () throws(ImageError) -> PreparedImage
        ) throws(StoreError) -> String {
            if let name { _ = try store.files.path(of: name) }
            let picture: PreparedImage
            do throws(ImageError) {
                picture = try prepare()
            } catch {
                throw StoreError(error, name: name ?? "")
            }
            if let name {
                try place(picture, as: name, replacing: replacing)
                return name
            }
            while true {
                let name = StoreClock.name(fileExtension: picture.format.fileExtension)
                do throws(StoreError) {
                    try place(picture, as: name, replacing: false)
                    return name
                } catch .alreadyExists {
                    // Another process had the same microsecond.
                }
            }
        }

        /// Writes both files, then renames them. The image comes last, so that a new image always has its thumbnail. A
        /// crash before that leaves a thumbnail with another modification time than the image.
        private func place(_ picture: PreparedImage, as name: String, replacing: Bool) throws(StoreError) {
            try files.makeDirectory()
            let original = try files.writer(name, replacing: replacing)
            try files.named(name) { () throws(FileError) in
                switch picture.contents {
                case .bytes(let bytes): try files.append(bytes, to: original)
                case .file(let path): try original.append(contentsOf: path, cancellation: cancellation)
                }
                try files.checkCancellation(original)
            }
            guard let bytes = picture.thumbnail else {
                return try files.named(name) { () throws(FileError) in try original.commit() }
            }
            try thumbnails.makeDirectory()
            let small = try thumbnails.writer(name, replacing: true)
            try files.named(name) { () throws(FileError) in try small.write(bytes) }
            if configuration.durability == .full { try files.synchronize([original, small]) }
            try ThumbnailPair.whileLocked(store) { () throws(StoreError) in
                let path = try store.files.path(of: name)
                let previous = ThumbnailPair.modified(path)
                guard replacing || previous == nil else { throw .alreadyExists(name: name) }
                let stamp = StoreClock.stamp(after: previous)
                try bothDurably(name) { () throws(StoreError) in
                    try files.named(name) { () throws(FileError) in
                        try small.setModified(stamp)
                        try original.setModified(stamp)
                        try small.place()
                        try original.place()
                    }
                }
            }
        }

        /// Changes names in both directories; see ``FileStore/Blocking/durably(_:_:)``.
        private func bothDurably(
            _ name: String, _ body: () throws(StoreError) -> Void
        ) throws(StoreError) {
            guard Directory.isDirectory(store.thumbnails.directory) else { return try files.durably(name, body) }
            try files.durably(name) { () throws(StoreError) in try thumbnails.durably(name, body) }
        }

        // MARK: Managing

        /// The blocking form of ``ImageStore/delete(_:)``.
        @discardableResult
        public func delete(_ name: String) throws(StoreError) -> Bool {
            _ = try store.files.path(of: name)
            return try ThumbnailPair.whileLocked(store) { () throws(StoreError) in
                let found = try files.delete(name)
                try thumbnails.delete(name)
                return found
            }
        }

        /// The blocking form of ``ImageStore/rename(_:to:replacing:)``.
        public func rename(_ name: String, to newName: String, replacing: Bool = false) throws(StoreError) {
            let path = try files.regularFile(name)
            let newPath = try store.files.path(of: newName)
            guard path != newPath else { return }
            let (small, newSmall) = (try store.thumbnails.path(of: name), try store.thumbnails.path(of: newName))
            try ThumbnailPair.whileLocked(store) { () throws(StoreError) in
                guard replacing || ThumbnailPair.modified(newPath) == nil else { throw .alreadyExists(name: newName) }
                try bothDurably(newName) { () throws(StoreError) in
                    // The thumbnail first, so that nobody sees the new name without one.
                    if ThumbnailPair.isPair(path, small) {
                        try FileStore.Blocking.move(
                            small, to: newSmall, name: name, newName: newName, replacing: true)
                    }
                    try FileStore.Blocking.move(
                        path, to: newPath, name: name, newName: newName, replacing: replacing)
                }
            }
        }

        /// The blocking form of ``ImageStore/exists(_:)``.
        public func exists(_ name: String) -> Bool { files.exists(name) }

        /// The blocking form of ``ImageStore/names``.
        public var names: [String] {
            get throws(StoreError) {
                thumbnails.open()
                return try files.names
            }
        }

        /// The blocking form of ``ImageStore/list(by:ascending:)``.
        package func list(
            by order: DirectoryListing.Order = .name, ascending: Bool = true
        ) throws(StoreError) -> [DirectoryListing.Item] {
            thumbnails.open()
            return try files.list(by: order, ascending: ascending)
        }

        /// The blocking form of ``ImageStore/removeTemporaryFiles(olderThan:)``.
        @discardableResult
        package func removeTemporaryFiles(olderThan age: Duration = .seconds(60)) throws(StoreError) -> Int {
            var removed = try files.removeTemporaryFiles(olderThan: age) + thumbnails.removeTemporaryFiles(olderThan: age)
            removed += try ThumbnailPair.whileLocked(store) { () throws(StoreError) in
                var orphans = 0
                for name in try thumbnails.names where !files.exists(name) {
                    if try thumbnails.delete(name) { orphans += 1 }
                }
                return orphans
            }
            return removed
        }
    }
}
