import VitrineCore

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

    /// What happens in a store from now on.
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

    /// The thread: until nobody listens any more, whereof the end of the last watch tells it.
    private func run(_ descriptor: Int32) {
        var timeout: Int32 = -1
        while true {
            var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            _ = poll(&polled, 1, timeout)
            let (deliveries, isWaiting) = state.withLock { state -> ([WatchedDirectories.CallbackQueue], Bool?) in
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
#endif
