@_spi(Files) import VitrineCore

#if canImport(Darwin)
/// Watches directories of stores: not on this system.
struct ChangeWatch {
    static let shared = ChangeWatch()

    func changes(in store: FileStore) -> StoreChanges {
        let (signals, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let mailbox = ChangeMailbox(continuation)
        mailbox.fail(.notWatched(directory: store.directory, reason: "directories are not watched on this system"))
        return StoreChanges(mailbox: mailbox, signals: signals)
    }
}
#else
#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// Watches directories of stores, with one thread for all, which is there while anybody listens.
final class ChangeWatch: Sendable {
    static let shared = ChangeWatch()

    private let state = Locked<WatchedDirectories?>(nil)

    /// Returns the changes in a store from now on.
    func changes(in store: FileStore) -> StoreChanges {
        let (signals, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let mailbox = ChangeMailbox(continuation)
        if let reason = listen(mailbox, store) {
            mailbox.fail(.notWatched(directory: store.directory, reason: reason))
        } else {
            let id = ObjectIdentifier(mailbox)
            // The listener is kept until then, so its identifier is nobody else's.
            continuation.onTermination = { [self] _ in state.withLock { $0?.remove(id) } }
        }
        return StoreChanges(mailbox: mailbox, signals: signals)
    }

    /// - Returns: Why there will be no changes; nil if there will.
    private func listen(_ mailbox: ChangeMailbox, _ store: FileStore) -> String? {
        state.withLock { state in
            if state != nil { return state?.add(mailbox, store) }
            guard let events = DirectoryEvents(kinds: .contents) else {
                return "the system allows no more watchers (fs.inotify.max_user_instances)"
            }
            let descriptor = events.descriptor
            var directories = WatchedDirectories(events)
            if let failure = directories.add(mailbox, store) { return failure }
            guard Thread.start(name: "vitrine-changes", body: { [self] in run(descriptor) }) else {
                return "the system allows no more threads"
            }
            state = directories
            return nil
        }
    }

    /// Runs the thread until the last subscriber is gone, which closes its watch.
    private func run(_ descriptor: Int32) {
        var timeout: Int32 = -1
        while true {
            var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            _ = poll(&polled, 1, timeout)
            let (deliveries, isWaiting) = state.withLock { state -> ([WatchedDirectories.Delivery], Bool?) in
                guard let deliveries = state?.read() else { return ([], nil) }
                if state?.isEmpty != false {
                    state = nil
                    return (deliveries, nil)
                }
                return (deliveries, state?.isWaiting)
            }
            for delivery in deliveries { delivery.perform() }
            guard let isWaiting else { return }
            timeout = isWaiting ? Int32(WatchedDirectories.renaming / .milliseconds(1)) + 1 : -1
        }
    }
}

/// The directories of stores that somebody listens to. For use from one thread at a time.
///
/// A directory that is not there is waited for in the nearest one above it that is.
struct WatchedDirectories {
    /// The changes to deliver to a subscriber.
    struct Delivery {
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
        /// The name that must appear in the watched directory; nil if it is the directory of the store.
        var awaited: String?
    }

    /// How long a file that was renamed away is waited for under its new name: both notices come from one system call,
    /// which may be interrupted between them.
    static let renaming = Duration.milliseconds(200)

    private let events: DirectoryEvents
    private var listeners: [ObjectIdentifier: Listener] = [:]

    init(_ events: DirectoryEvents) { self.events = events }

    /// Whether there are no subscribers.
    var isEmpty: Bool { listeners.isEmpty }

    /// Whether a renaming waits for its second half.
    var isWaiting: Bool { listeners.values.contains { $0.reader.isWaiting } }

    /// Adds a subscriber to the changes of a store.
    ///
    /// - Returns: The reason why this is not possible; nil if it is.
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

    /// Returns the changes to deliver for the available events.
    mutating func read() -> [Delivery] {
        guard let notices = events.read() else { return listeners.keys.map { settle($0, tells: true) } }
        var byWatch: [Int32: [DirectoryEvents.Event]] = [:]
        for notice in notices { byWatch[notice.watch, default: []].append(notice) }
        var deliveries: [Delivery] = []
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
                deliveries.append(Delivery(mailbox: listener.mailbox, changes: changes))
                if moves { deliveries.append(settle(id, tells: true)) }
            }
        }
        return deliveries
    }

    /// Finds a subscriber's directory again, and returns the changes to deliver.
    ///
    /// - Parameter tells: Whether changes may have been missed in any case; otherwise only if the directory exists now.
    private mutating func settle(_ id: ObjectIdentifier, tells: Bool) -> Delivery {
        guard var listener = listeners[id] else { preconditionFailure("The subscriber must exist.") }
        var delivery = Delivery(mailbox: listener.mailbox)
        let previous = listener.watch
        listener.reader.reset()
        switch place(of: listener.reader.directory) {
        case .watch(let watch, let awaited):
            (listener.watch, listener.awaited) = (watch, awaited)
            listeners[id] = listener
            if tells || awaited == nil { delivery.changes = [.resync] }
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
