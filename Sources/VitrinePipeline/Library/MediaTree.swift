import VitrineCore
import VitrineImaging

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
