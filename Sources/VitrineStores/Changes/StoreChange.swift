/// What happened in a store, by whichever process.
public enum StoreChange: Sendable, Hashable {
    /// There is a file by this name, with new contents perhaps: one that is saved again at once may be told of once
    /// more than it was saved. Other programs that write files in place are told of when they close them.
    case saved(name: String)
    /// A file has another name; one that had that before is gone.
    case renamed(name: String, to: String)
    /// There is no file by this name any more.
    case deleted(name: String)
    /// More happened than can be told one by one: whoever keeps a list makes it anew. So it is when changes come
    /// faster than they are taken, and when the store's directory appears, goes or is moved.
    case lookAgain
}

/// What happens in a store from the moment ``FileStore/changes`` was asked for, in order. For one loop.
///
/// The sequence ends when its task is cancelled. It fails with ``StoreError/notWatched(directory:reason:)`` where the
/// system has no notices, or has no more of them to give.
public struct StoreChanges: AsyncSequence, Sendable {
    public typealias Element = StoreChange
    public typealias Failure = StoreError

    let mailbox: ChangeMailbox
    let signals: AsyncStream<Void>

    public func makeAsyncIterator() -> Iterator {
        Iterator(mailbox: mailbox, signals: signals.makeAsyncIterator())
    }

    public struct Iterator: AsyncIteratorProtocol {
        let mailbox: ChangeMailbox
        var signals: AsyncStream<Void>.Iterator
        var taken: ArraySlice<StoreChange> = []

        public mutating func next(
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
    /// What happens in the store from now on, by this process and others.
    ///
    /// ```swift
    /// for try await change in store.changes {
    ///     switch change {
    ///     case .saved(let name): await show(name)
    ///     case .renamed(let name, let newName): rename(name, newName)
    ///     case .deleted(let name): remove(name)
    ///     case .lookAgain: try await show(store.names)
    ///     }
    /// }
    /// ```
    ///
    /// Each use gives a sequence of its own, which keeps up to 4096 changes for its reader; what is more is
    /// ``StoreChange/lookAgain``. A change may already be outdated when it is told: another one follows then. The
    /// directory need not exist yet. That one above it is moved is not noticed, nor what other machines do on a
    /// network file system.
    public var changes: StoreChanges { ChangeWatch.shared.changes(in: self) }
}

extension ImageStore {
    /// What happens to pictures from now on, by this process and others; see ``FileStore/changes``. Thumbnails are not
    /// told of: when a picture is told of as saved or renamed, its thumbnail is in place.
    public var changes: StoreChanges { files.changes }
}
