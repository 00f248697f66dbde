#if !canImport(Darwin)
import VitrineCore

#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// The directories of stores that somebody listens to. For use from one thread at a time.
///
/// A directory that is not there is waited for in the nearest one above it that is.
struct WatchedDirectories {
    /// What one listener is to be told.
    struct CallbackQueue {
        var mailbox: ChangeMailbox
        var changes: [StoreChange] = []
        var failure: StoreError?

        func perform() {
            mailbox.add(changes)
            if let failure { mailbox.fail(failure) }
        }
    }

    /// One listener's store.
    private struct Listener {
        let mailbox: ChangeMailbox
        var reader: ChangeReader
        var watch: Int32
        /// What is waited for in the directory that is watched; nil if that is the store's own.
        var awaited: String?
    }

    /// How long a file that was renamed away is waited for under its new name: both notices come from one system call,
    /// which may be interrupted between them.
    static let renaming = Duration.milliseconds(200)

    private let events: DirectoryEvents
    private var listeners: [ObjectIdentifier: Listener] = [:]

    init(_ events: DirectoryEvents) { self.events = events }

    /// Whether nobody listens.
    var isEmpty: Bool { listeners.isEmpty }

    /// Whether a renaming waits for its second half.
    var isWaiting: Bool { listeners.values.contains { $0.reader.isWaiting } }

    /// Tells a listener of what happens in a store from now on.
    ///
    /// - Returns: Why that is not possible; nil if it is.
    mutating func add(_ mailbox: ChangeMailbox, _ store: FileStore) -> String? {
        let reader = ChangeReader(directory: store.directory, reservedName: store.reservedName)
        switch place(of: store.directory) {
        case .watch(let watch, let awaited):
            listeners[ObjectIdentifier(mailbox)] = Listener(
                mailbox: mailbox, reader: reader, watch: watch, awaited: awaited)
            return nil
        case .failure(let reason): return reason
        }
    }

    /// Forgets a listener.
    mutating func remove(_ id: ObjectIdentifier) {
        guard let listener = listeners.removeValue(forKey: id) else { return }
        endIfUnused(listener.watch)
    }

    /// What the listeners are to be told of the notices that are there.
    mutating func read() -> [CallbackQueue] {
        guard let notices = events.read() else { return listeners.keys.map { settle($0, tells: true) } }
        var byWatch: [Int32: [DirectoryEvents.Event]] = [:]
        for notice in notices { byWatch[notice.watch, default: []].append(notice) }
        var deliveries: [CallbackQueue] = []
        for (id, listener) in listeners {
            let own = byWatch[listener.watch] ?? []
            // The directory is another one now, or may be.
            let moves = own.contains { $0.isEnd || $0.concernsItself }
            if let awaited = listener.awaited {
                guard moves || own.contains(where: { $0.name == awaited }) else { continue }
                deliveries.append(settle(id, tells: false))
            } else if !own.isEmpty || listener.reader.isWaiting {
                let isLast = moves || own.isEmpty && listener.reader.hasWaited(Self.renaming)
                let changes = listeners[id]?.reader.changes(own, isLast: isLast) ?? []
                deliveries.append(CallbackQueue(mailbox: listener.mailbox, changes: changes))
                if moves { deliveries.append(settle(id, tells: true)) }
            }
        }
        return deliveries
    }

    /// Finds a listener's directory anew, and says what to tell the listener.
    ///
    /// - Parameter tells: Whether something may have been missed in any case; else only if the directory is there now.
    private mutating func settle(_ id: ObjectIdentifier, tells: Bool) -> CallbackQueue {
        guard var listener = listeners[id] else { preconditionFailure("Only listeners that are there are settled.") }
        var delivery = CallbackQueue(mailbox: listener.mailbox)
        let previous = listener.watch
        listener.reader.reset()
        switch place(of: listener.reader.directory) {
        case .watch(let watch, let awaited):
            (listener.watch, listener.awaited) = (watch, awaited)
            listeners[id] = listener
            if tells || awaited == nil { delivery.changes = [.lookAgain] }
        case .failure(let reason):
            listeners[id] = nil
            delivery.failure = .notWatched(directory: listener.reader.directory, reason: reason)
        }
        endIfUnused(previous)
        return delivery
    }

    private enum Place {
        case watch(Int32, awaited: String?)
        case failure(String)
    }

    /// Watches a directory, or the nearest one above it that is there.
    private func place(of directory: String) -> Place {
        var (path, awaited): (String, String?) = (directory, nil)
        // What is below `path` and may have appeared since it was looked for.
        var below: String?
        while true {
            switch events.watch(path) {
            case .number(let number):
                if let missing = below, Directory.isDirectory(missing) {
                    endIfUnused(number)
                    (path, awaited, below) = (directory, nil, nil)
                    continue
                }
                return .watch(number, awaited: awaited)
            case .limitReached:
                return .failure("the system allows no more watched directories (fs.inotify.max_user_watches)")
            case .unavailable(let code):
                let parent = FilePath.parent(of: path)
                guard code == ENOENT || code == ENOTDIR, parent != path else {
                    return .failure(strerror(code).map { String(cString: $0) } ?? "error \(code)")
                }
                awaited = path.utf8.split(separator: UInt8(ascii: "/")).last.flatMap { String($0) }
                (below, path) = (path, parent)
            }
        }
    }

    /// Watches of the system are shared by the listeners of a directory.
    private func endIfUnused(_ watch: Int32) {
        if !listeners.values.contains(where: { $0.watch == watch }) { events.end(watch) }
    }
}
#endif
