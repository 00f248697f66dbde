#if !canImport(Darwin)
@_spi(Files) import VitrineCore

#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// Makes changes of a store out of the notices of its directory. For use from one thread at a time.
struct ChangeReader {
    typealias Event = DirectoryEvents.Event

    /// A version of a file, which differs after each change.
    struct Version: Equatable {
        var inode: UInt64
        var links: Int
        var size: Int
        var seconds: Int
        var nanoseconds: Int
    }

    let directory: String
    let reservedName: String?
    // The end of what was read: the first half of a renaming, whose second half is not there yet.
    private var rest: [Event] = []
    private var restedAt = ContinuousClock.now
    // Files that appeared by a rename, whose writer will also close them.
    private var placed: [String: Version] = [:]
    // A file that was made and not told of yet: whoever writes it will close it.
    private var made: String?

    init(directory: String, reservedName: String?) {
        self.directory = directory
        self.reservedName = reservedName
    }

    /// Whether something waits for its second half.
    var isWaiting: Bool { !rest.isEmpty }

    /// Whether that has been so for a time.
    func hasWaited(_ duration: Duration) -> Bool { isWaiting && ContinuousClock.now - restedAt >= duration }

    /// Returns the changes that a sequence of events means.
    ///
    /// - Parameters:
    ///   - events: The events of this directory.
    ///   - isLast: Whether no more events follow. The first half of a renaming then means that the file left the
    ///     directory.
    mutating func changes(_ events: [Event], isLast: Bool = false) -> [StoreChange] {
        guard isLast || !events.isEmpty else { return [] }
        let all = rest + events
        rest = []
        var changes: [StoreChange] = []
        var index = 0
        while index < all.count {
            let event = all[index]
            index += 1
            guard !event.concernsDirectory, !event.name.isEmpty else { continue }
            guard event.isOf(IN_MOVED_FROM) else {
                if let change = change(event), change != changes.last { changes.append(change) }
                continue
            }
            // While a directory has something renamed in it, nothing else can appear or go.
            let next = all[index...].firstIndex { $0.isOf(IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE) }
            if next == nil, !isLast {
                rest = Array(all[(index - 1)...])
                restedAt = .now
                return changes
            }
            if let next, all[next].isOf(IN_MOVED_TO), all[next].cookie == event.cookie {
                let between = all[index..<next].compactMap { change($0) }
                changes += between
                index = next + 1
                if let change = renaming(from: event.name, to: all[next].name) { changes.append(change) }
            } else if isName(event.name) {
                changes.append(.deleted(name: event.name))
            }
        }
        return changes
    }

    /// Forgets the read events, because the directory is no longer that of the store.
    mutating func reset() {
        rest = []
        placed = [:]
        made = nil
    }

    private mutating func renaming(from name: String, to newName: String) -> StoreChange? {
        let isNew = isName(newName)
        let placed = self.placed.removeValue(forKey: name)
        if isName(name) {
            guard isNew else { return .deleted(name: name) }
            self.placed[newName] = placed
            return .renamed(name: name, to: newName)
        }
        guard isNew else { return nil }
        return arrival(newName)
    }

    /// A file that got its name by a rename.
    private mutating func arrival(_ name: String) -> StoreChange? {
        switch look(name) {
        case .file(let version):
            // Bounded: seldom do so many wait for their writers to close them.
            if placed.count >= 1024 { placed = [:] }
            placed[name] = version
            return .saved(name: name)
        // The next notice tells where it went.
        case .gone: return .saved(name: name)
        case .other: return nil
        }
    }

    /// Returns the change that an event, other than a renaming, means.
    private mutating func change(_ event: Event) -> StoreChange? {
        let name = event.name
        guard isName(name) else { return linked(event) }
        if event.isOf(IN_DELETE) {
            placed[name] = nil
            return .deleted(name: name)
        }
        if event.isOf(IN_MOVED_TO) { return arrival(name) }
        switch look(name) {
        case .other: return nil
        case .gone: return .saved(name: name)
        case .file(let version):
            if event.isOf(IN_CREATE), version.links == 1 {
                made = name
                return nil
            }
            if made == name { made = nil }
            // The writer of what was told already closes it.
            if event.isOf(IN_CLOSE_WRITE), placed.removeValue(forKey: name) == version { return nil }
            return .saved(name: name)
        }
    }

    /// Where the file system cannot rename without replacing, a save is a link, and the end of the temporary name.
    private mutating func linked(_ event: Event) -> StoreChange? {
        guard event.isOf(IN_DELETE), event.name.hasPrefix(AtomicFile.temporaryPrefix), let name = made else {
            return nil
        }
        made = nil
        return .saved(name: name)
    }

    private func isName(_ name: String) -> Bool {
        (try? StoreName.check(name, reserved: reservedName)) != nil
    }

    private enum Look {
        case file(Version)
        /// A directory, a link and the like.
        case other
        case gone
    }

    private func look(_ name: String) -> Look {
        var status = stat()
        guard lstat(FilePath.join(directory, name), &status) == 0 else { return .gone }
        guard status.st_mode & S_IFMT == S_IFREG else { return .other }
        return .file(
            Version(
                inode: UInt64(status.st_ino), links: Int(status.st_nlink), size: Int(status.st_size),
                seconds: Int(status.modified.tv_sec), nanoseconds: Int(status.modified.tv_nsec)))
    }
}

extension DirectoryEvents.Event {
    fileprivate func isOf(_ kinds: Int32) -> Bool { mask & UInt32(kinds) != 0 }
}
#endif
