public import VitrineCore
import VitrineDatabase

extension KeyValueStore {
    /// What is directly in a group (R27).
    public enum Child: Sendable, Hashable {
        /// A value, by its key.
        case item(String)
        /// A group with something in it or below it, by its name.
        case group(String)
    }

    // MARK: Removing

    /// Removes a group with all groups in it. One call whatever is in it; an unknown group is harmless.
    @discardableResult
    public func removeGroup(_ group: GroupPath) -> WriteTask {
        writing { $0.remove(.group(group.text)) }
    }

    /// Removes everything.
    ///
    /// - Parameter keepingReserve: Leave the reserve group. Default true.
    @discardableResult
    public func removeAll(keepingReserve: Bool = true) -> WriteTask {
        writing { $0.remove(keepingReserve ? .allButReserve : .everything) }
    }

    // MARK: Asking

    /// What is directly in a group, values first, each in the order of their names' bytes.
    public func children(of group: GroupPath) async throws(CacheError) -> [Child] {
        let blocking = blocking
        return try await BlockingExecutor.shared.run { () throws(CacheError) in
            var children: [Child] = []
            try blocking.forEachChild(of: group) { child in
                children.append(child)
                return true
            }
            return children
        }
    }

    /// The names of the groups that are in no other group and have something in or below them; the default and the
    /// reserve group have no names.
    public func groups() async throws(CacheError) -> [String] {
        let blocking = blocking
        return try await BlockingExecutor.shared.run { () throws(CacheError) in try blocking.groups() }
    }

    /// How many values there are, in a group and below it or, for nil, in all.
    public func count(in group: GroupPath? = nil) async throws(CacheError) -> Int {
        let blocking = blocking
        return try await BlockingExecutor.shared.run { () throws(CacheError) in try blocking.count(in: group) }
    }

    /// Bytes of all values, in a group and below it or, for nil, in all. Names and the file's own needs do not count.
    public func size(of group: GroupPath? = nil) async throws(CacheError) -> ByteCount {
        let blocking = blocking
        return try await BlockingExecutor.shared.run { () throws(CacheError) in try blocking.size(of: group) }
    }

    /// The calls of a ``KeyValueStore`` that wait for the disk. Never on the cooperative pool.
    public struct Blocking: Sendable {
        let store: KeyValueStore

        /// ``KeyValueStore/flush()``.
        public func flush() throws(CacheError) {
            let session = try store.session
            session.waitForWrites()
            if let error = session.takeFailure() { throw error }
        }

        /// Goes through what is directly in a group, values first, each in the order of their names' bytes. The store
        /// may be changed meanwhile.
        ///
        /// - Parameters:
        ///   - group: Where to look.
        ///   - body: Returns whether to go on.
        public func forEachChild(of group: GroupPath, _ body: (Child) -> Bool) throws(CacheError) {
            let session = try settled()
            let path = group.text
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

        /// ``KeyValueStore/groups()``.
        public func groups() throws(CacheError) -> [String] {
            var names: [String] = []
            try forEachGroup(below: GroupPath.namedRoot, try settled()) { name in
                names.append(name)
                return true
            }
            return names
        }

        /// ``KeyValueStore/count(in:)``.
        public func count(in group: GroupPath? = nil) throws(CacheError) -> Int { try sum(group).count }

        /// ``KeyValueStore/size(of:)``.
        public func size(of group: GroupPath? = nil) throws(CacheError) -> ByteCount {
            ByteCount(try sum(group).bytes)
        }

        private func sum(_ group: GroupPath?) throws(CacheError) -> (count: Int, bytes: Int) {
            let extent = group.map { ValueExtent.group($0.text) } ?? .everything
            return try settled().read { database throws(DatabaseError) in try ValueTable.sum(extent, database) }
        }

        private func forEachGroup(
            below path: String, _ session: ValueSession, _ body: (String) -> Bool
        ) throws(CacheError) {
            var last: String?
            while true {
                let after = last
                let stored = try session.read { database throws(DatabaseError) in
                    try ValueTable.nextGroup(below: path, after: after, database)
                }
                guard let stored else { return }
                guard body(GroupPath.firstName(stored[...]).name) else { return }
                last = stored
            }
        }

        /// The session, once its file holds what was written so far.
        private func settled() throws(CacheError) -> ValueSession {
            let session = try store.session
            session.waitForWrites()
            return session
        }
    }
}
