public import VitrineCore
public import VitrineImaging

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

extension ImageStore {
    /// A store's calls for threads that may block.
    public struct Blocking: Sendable {
        let store: ImageStore

        private var files: FileStore.Blocking { store.files.blocking }
        private var thumbnails: FileStore.Blocking { store.thumbnails.blocking }
        private var configuration: Configuration { store.configuration }

        // MARK: Saving

        /// As ``ImageStore/save(_:as:replacing:)-(Image,_,_)``.
        @discardableResult
        public func save(_ image: Image, as name: String? = nil, replacing: Bool = true) throws(StoreError) -> String {
            try save(as: name, replacing: replacing) { () throws(ImageError) in
                try PreparedPicture(image, name: name, configuration)
            }
        }

        /// As ``ImageStore/save(_:as:replacing:)-([UInt8],_,_)``.
        @discardableResult
        public func save(_ bytes: [UInt8], as name: String? = nil, replacing: Bool = true) throws(StoreError) -> String {
            try save(as: name, replacing: replacing) { () throws(ImageError) in
                try PreparedPicture(.bytes(bytes, name: name ?? "picture"), name: name, configuration)
            }
        }

        /// As ``ImageStore/save(fileAt:as:replacing:)``.
        @discardableResult
        public func save(
            fileAt path: String, as name: String? = nil, replacing: Bool = true
        ) throws(StoreError) -> String {
            try save(as: name, replacing: replacing) { () throws(ImageError) in
                try PreparedPicture(.file(path), name: name, configuration)
            }
        }

        private func save(
            as name: String?, replacing: Bool, _ prepare: () throws(ImageError) -> PreparedPicture
        ) throws(StoreError) -> String {
            if let name { _ = try store.files.path(of: name) }
            let picture: PreparedPicture
            do throws(ImageError) {
                picture = try prepare()
            } catch {
                throw .image(name: name ?? "", error: error)
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

        /// Writes both files, then lets them appear. The picture comes last: nobody sees a new one without its
        /// thumbnail, and a crash before it leaves a thumbnail whose time of change is not the picture's.
        private func place(_ picture: PreparedPicture, as name: String, replacing: Bool) throws(StoreError) {
            try files.makeDirectory()
            let original = try files.writer(name, replacing: replacing)
            try files.named(name) { () throws(FileError) in
                switch picture.contents {
                case .bytes(let bytes): try original.write(bytes)
                case .file(let path): try original.append(contentsOf: path)
                }
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
                try files.named(name) { () throws(FileError) in
                    try small.setModified(stamp)
                    try original.setModified(stamp)
                    try small.place()
                    try original.place()
                }
            }
            try thumbnails.synchronizeDirectory()
            try files.synchronizeDirectory()
        }

        // MARK: Loading

        /// As ``ImageStore/image(_:as:)``.
        public func image(_ name: String, as version: Version = .original) throws(StoreError) -> Image {
            guard store.keeps(version) else {
                return try decode(.file(try files.regularFile(name)), name)
            }
            return try decode(.bytes(try load(name, as: .thumbnail), name: name), name)
        }

        /// As ``ImageStore/image(_:at:)``.
        public func image(_ name: String, at resizer: ImageResizer) throws(StoreError) -> Image {
            let path = try files.regularFile(name)
            if store.keeps(.thumbnail), let small = try largeThumbnail(name, path, resizer) {
                return try decode(.file(small), name, at: resizer)
            }
            return try decode(.file(path), name, at: resizer)
        }

        /// The path of the thumbnail if it shows the same as the picture would at this size.
        private func largeThumbnail(
            _ name: String, _ path: String, _ resizer: ImageResizer
        ) throws(StoreError) -> String? {
            let small = try store.thumbnails.path(of: name)
            guard ThumbnailPair.isPair(path, small), let info = try? ImageInfo(of: .file(path)),
                let target = try? resizer.targetSize(for: info.size),
                let thumbnail = try? ImageInfo(of: .file(small)).size
            else { return nil }
            return target.width * 2 <= thumbnail.width && target.height * 2 <= thumbnail.height ? small : nil
        }

        /// As ``ImageStore/load(_:as:)``.
        public func load(_ name: String, as version: Version = .original) throws(StoreError) -> [UInt8] {
            let path = try files.regularFile(name)
            guard store.keeps(version) else { return try files.load(name) }
            let small = try store.thumbnails.path(of: name)
            if ThumbnailPair.isPair(path, small), let bytes = try? thumbnails.load(name),
                ThumbnailPair.isPair(path, small)
            {
                return bytes
            }
            return try makeThumbnail(name, path)
        }

        /// Makes a thumbnail of the picture that is there, and keeps it unless the picture is replaced meanwhile.
        private func makeThumbnail(_ name: String, _ path: String) throws(StoreError) -> [UInt8] {
            let stamp = ThumbnailPair.modified(path)
            let bytes: [UInt8]
            do throws(ImageError) {
                let format = try ImageInfo(of: .file(path), limits: configuration.limits).format
                let image = try PreparedPicture.thumbnail(of: path, configuration)
                guard let made = try PreparedPicture.thumbnail(of: image, format, configuration) else { return [] }
                bytes = made
            } catch {
                throw .image(name: name, error: error)
            }
            // A store that cannot be written to has its thumbnails made each time.
            try? keep(bytes, as: name, path, stamp)
            return bytes
        }

        private func keep(
            _ bytes: [UInt8], as name: String, _ path: String, _ stamp: Duration?
        ) throws(StoreError) {
            guard let stamp else { return }
            try thumbnails.makeDirectory()
            let writer = try thumbnails.writer(name, replacing: true)
            try files.named(name) { () throws(FileError) in
                try writer.write(bytes)
                try writer.setModified(stamp)
            }
            try ThumbnailPair.whileLocked(store) { () throws(StoreError) in
                guard ThumbnailPair.modified(path) == stamp else { return }
                try files.named(name) { () throws(FileError) in try writer.place() }
            }
        }

        private func decode(
            _ input: ImageInput, _ name: String, at resizer: ImageResizer = .none
        ) throws(StoreError) -> Image {
            do throws(ImageError) {
                return try ImageDecoder(limits: configuration.limits).decode(input, at: resizer)
            } catch {
                throw .image(name: name, error: error)
            }
        }

        // MARK: Managing

        /// As ``ImageStore/delete(_:)``.
        @discardableResult
        public func delete(_ name: String) throws(StoreError) -> Bool {
            _ = try store.files.path(of: name)
            return try ThumbnailPair.whileLocked(store) { () throws(StoreError) in
                let found = try files.delete(name)
                try thumbnails.delete(name)
                return found
            }
        }

        /// As ``ImageStore/rename(_:to:replacing:)``.
        public func rename(_ name: String, to newName: String, replacing: Bool = false) throws(StoreError) {
            let path = try files.regularFile(name)
            let newPath = try store.files.path(of: newName)
            guard path != newPath else { return }
            let (small, newSmall) = (try store.thumbnails.path(of: name), try store.thumbnails.path(of: newName))
            try ThumbnailPair.whileLocked(store) { () throws(StoreError) in
                guard replacing || ThumbnailPair.modified(newPath) == nil else { throw .alreadyExists(name: newName) }
                // The thumbnail first, so that nobody sees the new name without one.
                if ThumbnailPair.isPair(path, small) {
                    try FileStore.Blocking.move(
                        small, to: newSmall, name: name, newName: newName, replacing: true)
                }
                try FileStore.Blocking.move(path, to: newPath, name: name, newName: newName, replacing: replacing)
            }
            try thumbnails.synchronizeDirectory()
            try files.synchronizeDirectory()
        }

        /// As ``ImageStore/exists(_:)``.
        public func exists(_ name: String) -> Bool { files.exists(name) }

        /// As ``ImageStore/names``.
        public var names: [String] { get throws(StoreError) { try files.names } }

        /// As ``ImageStore/list(by:ascending:)``.
        public func list(
            by order: DirectoryListing.Order = .name, ascending: Bool = true
        ) throws(StoreError) -> [DirectoryListing.Item] {
            try files.list(by: order, ascending: ascending)
        }

        /// As ``ImageStore/removeLitter(olderThan:)``.
        @discardableResult
        public func removeLitter(olderThan age: Duration = .seconds(60)) throws(StoreError) -> Int {
            var removed = try files.removeLitter(olderThan: age) + thumbnails.removeLitter(olderThan: age)
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
