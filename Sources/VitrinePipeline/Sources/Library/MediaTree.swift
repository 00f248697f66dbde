#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore
import VitrineImaging

/// The directories and files of a library. For use from one thread; all calls that access files block.
struct MediaTree {
    /// Identifies a file or directory independently of its path.
    struct Identity: Hashable {
        var device: UInt64
        var number: UInt64
    }

    /// Identifies one state of a file.
    struct Stamp: Equatable {
        var identity: Identity
        var size: Int
        var seconds: Int
        var nanoseconds: Int
    }

    struct Folder {
        var identity: Identity
        var watch: Int32?
        var files: Set<String> = []
        var folders: Set<String> = []
    }

    /// A file that is an asset, or whose content has to tell whether it is one.
    struct File {
        var stamp: Stamp
        var asset: MediaAsset?
    }

    let root: String
    let options: MediaLibrary.Options
    /// By path.
    var folders: [String: Folder] = [:]
    var files: [String: File] = [:]
    /// Where directories lie that are known.
    var places: [Identity: String] = [:]
    /// Files whose headers have to be read. May hold some that are gone, or twice.
    private(set) var unread: [String] = []
    /// Assets as they were at the last ``takeChanges()``, of those that changed since; nil for new ones.
    private var before: [String: MediaAsset?] = [:]
    /// Watches a directory; nil when that is not done or not possible.
    var watch: (String) -> Int32? = { _ in nil }
    var endWatch: (Int32) -> Void = { _ in }

    init(root: String, options: MediaLibrary.Options) {
        self.root = root
        self.options = options
    }

    // MARK: Files

    /// Looks at one file of a known directory.
    mutating func refresh(file path: String) {
        let parent = FilePath.parent(of: path)
        guard folders[parent] != nil else { return }
        let name = Self.name(of: path)
        guard let status = Self.status(path), status.st_mode & S_IFMT == S_IFREG, isWanted(file: name) else {
            return remove(file: path, in: parent)
        }
        note(file: name, Stamp(status), in: parent)
    }

    /// The last component of a path.
    static func name(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return path }
        return String(path[path.utf8.index(after: slash)...])
    }

    func isWanted(file name: String) -> Bool {
        guard !Self.isHidden(name) else { return false }
        switch MediaAsset.Kind.named(name) {
        // What the content says instead is found out with the header.
        case .kind, .doubtful: return true
        case .other: return false
        }
    }

    static func isHidden(_ name: String) -> Bool { name.utf8.first == UInt8(ascii: ".") }

    mutating func note(file name: String, _ stamp: Stamp, in folder: String) {
        let path = FilePath.join(folder, name)
        folders[folder]?.files.insert(name)
        let known = files[path]
        guard known?.stamp != stamp else { return }
        var asset: MediaAsset?
        if case .kind(let kind) = MediaAsset.Kind.named(name) {
            asset = MediaAsset(path: path, kind: kind, size: ByteCount(stamp.size), modified: stamp.modified)
        }
        if var old = known?.asset {
            // What the header said holds until it has been read again.
            if old.captureDate == old.modified { old.captureDate = stamp.modified }
            old.modified = stamp.modified
            old.size = ByteCount(stamp.size)
            old.isHeaderRead = false
            asset = old
        }
        set(File(stamp: stamp, asset: asset), at: path)
        if options.readsHeaders || asset == nil { unread.append(path) }
    }

    mutating func remove(file path: String, in folder: String) {
        folders[folder]?.files.remove(Self.name(of: path))
        set(nil, at: path)
    }

    private mutating func set(_ file: File?, at path: String) {
        if before.index(forKey: path) == nil { before.updateValue(visible(files[path]?.asset), forKey: path) }
        files[path] = file
    }

    private func visible(_ asset: MediaAsset?) -> MediaAsset? {
        asset.flatMap { options.kinds.contains($0.kind) ? $0 : nil }
    }

    // MARK: Headers

    /// Reads the headers of some files, for about as long as said.
    mutating func readHeaders(milliseconds: Int) {
        let start = ContinuousClock.now
        while let path = unread.popLast() {
            guard var file = files[path], !(file.asset?.isHeaderRead ?? false) else { continue }
            let header = MediaHeader(path: path, timeZone: options.timeZone)
            var asset = file.asset
            if asset == nil, let kind = header.kind {
                asset = MediaAsset(
                    path: path, kind: kind, size: ByteCount(file.stamp.size), modified: file.stamp.modified)
            }
            asset?.take(header)
            if header.kind == nil, MediaAsset.Kind.named(Self.name(of: path)) == .doubtful { asset = nil }
            file.asset = asset
            set(file, at: path)
            if ContinuousClock.now - start > .milliseconds(milliseconds) { return }
        }
    }

    // MARK: Results

    /// All assets, in the library's order.
    var assets: [MediaAsset] { files.values.compactMap { visible($0.asset) }.sorted(by: MediaAsset.precedes) }

    /// Returns the changes since the last call.
    mutating func takeChanges() -> MediaLibrary.Changes {
        var changes = MediaLibrary.Changes()
        for (path, old) in before {
            switch (old, visible(files[path]?.asset)) {
            case (nil, let new?): changes.added.append(new)
            case (let old?, nil): changes.removed.append(old)
            case (let old?, let new?) where old != new: changes.changed.append(new)
            default: break
            }
        }
        before = [:]
        changes.added.sort(by: MediaAsset.precedes)
        changes.removed.sort(by: MediaAsset.precedes)
        changes.changed.sort(by: MediaAsset.precedes)
        return changes
    }

    static func status(_ path: String) -> stat? {
        var status = stat()
        return systemStat(path, &status) == 0 ? status : nil
    }
}

// The type of the same name hides the C function within the extension below.
private func systemStat(_ path: String, _ status: inout stat) -> Int32 { stat(path, &status) }

extension MediaTree.Identity {
    init(_ status: stat) {
        device = UInt64(truncatingIfNeeded: status.st_dev)
        number = UInt64(truncatingIfNeeded: status.st_ino)
    }
}

extension MediaTree.Stamp {
    init(_ status: stat) {
        identity = MediaTree.Identity(status)
        size = Int(status.st_size)
        seconds = Int(status.modified.tv_sec)
        nanoseconds = Int(status.modified.tv_nsec)
    }

    var modified: Date { Date(timeIntervalSince1970: Double(seconds) + Double(nanoseconds) / 1e9) }
}

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
            throw .unreadable(source: root, reason: ErrorText.nested(error, about: root))
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
