import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

extension MediaTree {
    /// The entries of one directory that could belong to the library.
    private struct Listing {
        var files: [(name: String, stamp: Stamp)] = []
        var folders: [(name: String, identity: Identity, isLink: Bool)] = []
    }

    /// Directories that are still to be looked at.
    private struct Agenda {
        var folders: [(path: String, identity: Identity)] = []
        /// Behind all others, so that a directory is known by its own name rather than by a link's.
        var links: [(path: String, identity: Identity)] = []

        mutating func next() -> (path: String, identity: Identity)? { folders.popLast() ?? links.popLast() }
    }

    /// Checks everything: lists new directories, and all known ones once more.
    ///
    /// - Throws: ``ImagePipelineError/unreadable(source:reason:)`` when the root cannot be listed; the library is empty
    ///   then.
    mutating func scan() throws(ImagePipelineError) {
        guard let status = Self.status(root), status.st_mode & S_IFMT == S_IFDIR else {
            let reason = String(cString: strerror(Self.status(root) == nil ? errno : ENOTDIR))
            remove(folder: root)
            throw .unreadable(source: root, reason: reason)
        }
        if folders[root]?.identity != Identity(status) {
            remove(folder: root)
            enter(root, Identity(status))
        }
        do throws(FileError) {
            _ = try Directory.names(in: root)
        } catch {
            remove(folder: root)
            throw .unreadable(source: root, reason: "\(error)")
        }
        refresh(folders: Set(folders.keys), files: [])
    }

    /// Looks at some directories and files again, and at directories in them that are new.
    mutating func refresh(folders dirty: Set<String>, files: Set<String>) {
        var listings: [String: Listing] = [:]
        for path in dirty.sorted() where folders[path] != nil {
            guard let listing = list(path) else {
                remove(folder: path)
                continue
            }
            listings[path] = listing
        }
        // First what is gone, everywhere: what was moved is gone from one place and new at another.
        for (path, listing) in listings { removeMissing(in: path, listing) }
        var agenda = Agenda()
        // One that was replaced by another is listed anew, as that one.
        for path in listings.keys.sorted() where folders[path] != nil {
            if let listing = listings[path] { add(listing, in: path, &agenda) }
        }
        while let next = agenda.next() { add(folder: next.path, next.identity, &agenda) }
        for path in files { refresh(file: path) }
    }

    /// Forgets a directory and all below it.
    mutating func remove(folder path: String) {
        folders[FilePath.parent(of: path)]?.folders.remove(Self.name(of: path))
        var paths = [path]
        while let path = paths.popLast() {
            guard let folder = folders.removeValue(forKey: path) else { continue }
            if places[folder.identity] == path { places[folder.identity] = nil }
            if let watch = folder.watch { endWatch(watch) }
            for name in folder.files { remove(file: FilePath.join(path, name), in: path) }
            paths += folder.folders.map { FilePath.join(path, $0) }
        }
    }

    private mutating func enter(_ path: String, _ identity: Identity) {
        folders[path] = Folder(identity: identity)
        places[identity] = path
    }

    /// The present entries of a directory; nil if it is gone or is tagged as a cache.
    private mutating func list(_ path: String) -> Listing? {
        // Watched before it is read, so that nothing falls between.
        if folders[path]?.watch == nil { folders[path]?.watch = watch(path) }
        guard let names = try? Directory.names(in: path) else { return nil }
        if path != root, names.contains("CACHEDIR.TAG"), Self.isCache(path) { return nil }
        var listing = Listing()
        for name in names where !Self.isHidden(name) {
            let item = FilePath.join(path, name)
            guard let status = Self.status(item) else { continue }
            switch status.st_mode & S_IFMT {
            case S_IFREG where isWanted(file: name): listing.files.append((name, Stamp(status)))
            case S_IFDIR where !options.skippedDirectories.contains(name):
                var own = stat()
                let isLink = lstat(item, &own) == 0 && own.st_mode & S_IFMT == S_IFLNK
                if !isLink || options.followsDirectoryLinks {
                    listing.folders.append((name, Identity(status), isLink))
                }
            default: break
            }
        }
        return listing
    }

    private static func isCache(_ path: String) -> Bool {
        let signature = Array("Signature: 8a477f597d28d172789f06886806bc55".utf8)
        return (try? FileContents.read(FilePath.join(path, "CACHEDIR.TAG"), limit: 1 << 16))?.starts(with: signature)
            ?? false
    }

    private mutating func removeMissing(in path: String, _ listing: Listing) {
        guard let folder = folders[path] else { return }
        for name in folder.files.subtracting(listing.files.map(\.name)) {
            remove(file: FilePath.join(path, name), in: path)
        }
        for name in folder.folders {
            let place = FilePath.join(path, name)
            let found = listing.folders.first { $0.name == name }
            if found == nil || found?.identity != folders[place]?.identity { remove(folder: place) }
        }
    }

    private mutating func add(_ listing: Listing, in path: String, _ agenda: inout Agenda) {
        for file in listing.files { note(file: file.name, file.stamp, in: path) }
        for folder in listing.folders {
            let place = FilePath.join(path, folder.name)
            guard folders[place] == nil else { continue }
            if folder.isLink {
                agenda.links.append((place, folder.identity))
            } else {
                agenda.folders.append((place, folder.identity))
            }
        }
    }

    private mutating func add(folder path: String, _ identity: Identity, _ agenda: inout Agenda) {
        guard folders[path] == nil, folders[FilePath.parent(of: path)] != nil else { return }
        if let other = places[identity] {
            // A circle, or the same under another name; unless that is where it was before it was moved.
            guard Self.status(other).map(Identity.init) != identity else { return }
            remove(folder: other)
        }
        enter(path, identity)
        guard let listing = list(path) else { return remove(folder: path) }
        folders[FilePath.parent(of: path)]?.folders.insert(Self.name(of: path))
        add(listing, in: path, &agenda)
    }
}
