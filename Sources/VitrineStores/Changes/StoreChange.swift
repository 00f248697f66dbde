import VitrineCore

/// A change in a store by any process.
public enum StoreChange: Sendable, Hashable {
    /// A file was saved. A file that is saved repeatedly may be reported more often. A file that another program writes
    /// in place is reported when it is closed.
    case saved(name: String)
    /// A file was renamed, and replaced an existing file with the new name.
    case renamed(name: String, to: String)
    /// A file was deleted.
    case deleted(name: String)
    /// More changes than can be reported one by one: read the whole list again. This happens if changes come faster
    /// than they are read, and when the directory of the store appears, disappears or is moved.
    case resync
}

/// The changes in a store since ``FileStore/changes`` was called, in order. For one iterator.
struct StoreChanges: AsyncSequence, Sendable {
    typealias Element = StoreChange
    typealias Failure = StoreError

    let mailbox: ChangeMailbox
    let signals: AsyncStream<Void>

    func makeAsyncIterator() -> Iterator {
        Iterator(mailbox: mailbox, signals: signals.makeAsyncIterator())
    }

    struct Iterator: AsyncIteratorProtocol {
        let mailbox: ChangeMailbox
        var signals: AsyncStream<Void>.Iterator
        var taken: ArraySlice<StoreChange> = []

        /// Returns the next change, waiting for it; nil when the task is cancelled.
        mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(StoreError) -> StoreChange? {
            while true {
                if let change = taken.popFirst() { return change }
                taken = try mailbox.take()[...]
                if !taken.isEmpty { continue }
                guard await signals.next(isolation: actor) != nil else {
                    // Something may have come with the end.
                    taken = try mailbox.take()[...]
                    return taken.popFirst()
                }
            }
        }
    }
}

extension FileStore {
    /// Returns the changes in the store from now on, by this process and others.
    ///
    /// ```swift
    /// for try await change in store.changes {
    ///     switch change {
    ///     case .saved(let name): await show(name)
    ///     case .renamed(let name, let newName): rename(name, newName)
    ///     case .deleted(let name): remove(name)
    ///     case .resync: try await show(store.names)
    ///     }
    /// }
    /// ```
    ///
    /// The sequence is for one iterator. It ends when its task is cancelled. It throws
    /// ``StoreError/notWatched(directory:reason:)`` if the system supports no notifications or has reached their limit.
    ///
    /// Each call returns a sequence of its own, which buffers up to 4096 changes; more become ``StoreChange/resync``. A
    /// reported change may already be outdated; another one then follows. The directory need not exist yet. Renaming a
    /// parent directory is not noticed, and neither are changes by other machines on a network file system.
    public var changes: some AsyncSequence<StoreChange, StoreError> & Sendable {
        ChangeWatch.shared.changes(in: self)
    }
}

extension ImageStore {
    /// Returns the changes of images from now on, by this process and others; see ``FileStore/changes``. Changes of
    /// thumbnails are not reported. When a saved or renamed image is reported, its thumbnail is in place.
    public var changes: some AsyncSequence<StoreChange, StoreError> & Sendable { files.changes }
}

/// The changes that a subscriber has not read yet. Their number is bounded.
final class ChangeMailbox: Sendable {
    private struct State {
        var changes: [StoreChange] = []
        var failure: StoreError?
    }

    /// The most changes that are kept.
    static let capacity = 4096

    private let state = Locked(State())
    private let signal: AsyncStream<Void>.Continuation

    init(_ signal: AsyncStream<Void>.Continuation) { self.signal = signal }

    /// Adds changes, which its reader then wakes up for.
    func add(_ changes: [StoreChange]) {
        guard !changes.isEmpty else { return }
        state.withLock { state in
            if state.changes.count + changes.count > Self.capacity {
                state.changes = [.resync]
            } else if changes != [.resync] || state.changes.last != .resync {
                state.changes += changes
            }
        }
        signal.yield()
    }

    /// Ends the listener's sequence with an error.
    func fail(_ error: StoreError) {
        state.withLock { $0.failure = error }
        signal.finish()
    }

    /// Returns the unread changes.
    ///
    /// - Throws: The error of the watch, after all changes before it.
    func take() throws(StoreError) -> [StoreChange] {
        try state.withLock { state throws(StoreError) in
            if state.changes.isEmpty, let failure = state.failure {
                // Once: afterwards the sequence has ended.
                state.failure = nil
                throw failure
            }
            defer { state.changes = [] }
            return state.changes
        }
    }
}
