public import VitrineCore
import VitrineDatabase

extension KeyValueStore {
    /// A direct child of a group.
    public enum Child: Sendable, Hashable {
        /// A value, by its key.
        case item(String)
        /// A nonempty group, by its name.
        case group(String)
    }

    // MARK: Removing

    /// Removes a group and all groups inside it. An unknown group is ignored.
    @discardableResult
    public func removeGroup(_ group: GroupPath) -> WriteTask {
        writing { $0.remove(.group(group.storedText)) }
    }

    /// Removes all values.
    ///
    /// - Parameter keepingReserve: Whether the reserve group stays. Default true.
    @discardableResult
    public func removeAll(keepingReserve: Bool = true) -> WriteTask {
        writing { $0.remove(keepingReserve ? .allButReserve : .everything) }
    }

    // MARK: Enumerating

    /// Returns the direct children of a group: values first, both sorted by the bytes of their names. For nil, they are
    /// the nonempty top-level groups, without the default group and the reserve group.
    public func children(of group: GroupPath? = nil) async throws(StoreError) -> [Child] {
        let blocking = blocking
        return try await BlockingExecutor.shared.run { () throws(StoreError) in
            var children: [Child] = []
            try blocking.forEachChild(of: group) { child in
                children.append(child)
                return true
            }
            return children
        }
    }

    /// Returns the keys of the values in a group, sorted by their bytes.
    ///
    /// - Parameter group: The group. Default: `standard`. Groups inside it are not included.
    public func keys(in group: GroupPath = .standard) async throws(StoreError) -> [String] {
        let blocking = blocking
        return try await BlockingExecutor.shared.run { () throws(StoreError) in try blocking.keys(in: group) }
    }

    /// Returns the number of values in a group and the groups inside it, or in the whole store for nil.
    public func count(in group: GroupPath? = nil) async throws(StoreError) -> Int {
        let blocking = blocking
        return try await BlockingExecutor.shared.run { () throws(StoreError) in try blocking.sum(of: group).count }
    }

    /// Returns the size of the values in a group and the groups inside it, or in the whole store for nil. Keys and the
    /// overhead of the file do not count.
    package func size(of group: GroupPath? = nil) async throws(StoreError) -> ByteCount {
        let blocking = blocking
        return try await BlockingExecutor.shared.run { () throws(StoreError) in
            ByteCount(try blocking.sum(of: group).bytes)
        }
    }

    /// The calls of a ``KeyValueStore`` that block the calling thread until the disk is done.
    ///
    /// Do not call them on the cooperative thread pool.
    public struct Blocking: Sendable {
        let store: KeyValueStore

        /// Returns when all earlier writes are stored, like ``KeyValueStore/flush()``.
        public func flush() throws(StoreError) {
            let session = try store.session
            session.waitForWrites()
            if let error = session.takeFailure() { throw error }
        }

        /// Enumerates the direct children of a group: values first, both sorted by the bytes of their names.
        ///
        /// The store may change during the enumeration.
        ///
        /// - Parameters:
        ///   - group: The group to enumerate. Default nil: the store, whose children are the nonempty top-level groups.
        ///   - body: Receives each child and returns whether to continue.
        public func forEachChild(of group: GroupPath? = nil, _ body: (Child) -> Bool) throws(StoreError) {
            let session = try flushed()
            guard let path = group?.storedText else {
                return try forEachGroup(below: GroupPath.storedRoot, session) { body(.group($0)) }
            }
            var last: String?
            while true {
                let after = last
                let keys = try session.read { database throws(DatabaseError) in
                    try ValueTable.keys(in: path, after: after, limit: 256, database)
                }
                for key in keys where !body(.item(key)) { return }
                guard let end = keys.last else { break }
                last = end
            }
            try forEachGroup(below: path, session) { body(.group($0)) }
        }

        /// Returns the keys of the values in a group, like ``KeyValueStore/keys(in:)``.
        public func keys(in group: GroupPath = .standard) throws(StoreError) -> [String] {
            var keys: [String] = []
            try forEachChild(of: group) { child in
                guard case .item(let key) = child else { return false }
                keys.append(key)
                return true
            }
            return keys
        }

        /// Returns the number and size of the values in a group, or in the whole store for nil.
        package func sum(of group: GroupPath?) throws(StoreError) -> (count: Int, bytes: Int) {
            let extent = group.map { ValueExtent.group($0.storedText) } ?? .everything
            return try flushed().read { database throws(DatabaseError) in try ValueTable.sum(extent, database) }
        }

        private func forEachGroup(
            below path: String, _ session: ValueSession, _ body: (String) -> Bool
        ) throws(StoreError) {
            var last: String?
            while true {
                let after = last
                let stored = try session.read { database throws(DatabaseError) in
                    try ValueTable.nextGroup(below: path, after: after, database)
                }
                guard let stored else { return }
                guard body(GroupPath.firstName(ofStored: stored[...]).name) else { return }
                last = stored
            }
        }

        /// Returns the session once all earlier writes are in its file.
        private func flushed() throws(StoreError) -> ValueSession {
            let session = try store.session
            session.waitForWrites()
            return session
        }
    }
}
