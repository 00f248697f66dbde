import Logging
import VitrineCache
public import VitrineCore

/// A durable store of small values by key and group.
///
/// ```swift
/// let store = try KeyValueStore(named: "player")
/// store[Settings.volume] = 0.7                                   // a typed key, see ValueKey
/// try await store.set("Ada", forKey: "name", in: "user.profile").committed()
/// let name = try store.value(String.self, forKey: "name", in: "user.profile")
/// ```
///
/// - **Reads are synchronous**, from memory or from the file. Reading a small value from the file takes about 5 µs.
/// - **Writes return at once** and reach the file in order, many in one transaction. A read sees all earlier writes of
///   this process. ``WriteTask`` reports when the value is stored. A write waits while more than
///   32 MiB are queued.
/// - Values smaller than ``Configuration/memoryThreshold`` are also kept in memory, up to
///   ``Configuration/memoryCapacity``.
/// - Several processes may share a directory. The values in memory are at most 0.1 s older than the file.
/// - A damaged file is renamed and logged, and the store continues with an empty file. A file is damaged only if several
///   new connections find damage in it. It stays in place while another process uses it; calls throw until then.
/// - After an error of the system, for example a failed read, the next call tries again.
/// - A directory that is deleted or replaced while the store is open is created again. Writes notice this at once,
///   reads within 0.1 s.
///
/// The store never evicts values.
public final class KeyValueStore: Sendable {
    /// The options of a store.
    public struct Configuration: Sendable {
        /// The version of the program. If another version wrote last, and it is not in ``compatibleVersions``, opening
        /// the store removes all groups but the reserve group. Default nil: no check.
        public var version: String?
        /// The versions whose values this version can read.
        public var compatibleVersions: [String] = []
        /// The size from which values are kept in memory only on request. Default 1 MiB.
        public var memoryThreshold: ByteCount = .mebibytes(1)
        /// The limit of the memory for values, including those kept on request. Default 8 MiB.
        public var memoryCapacity: ByteCount = .mebibytes(8)
        /// The number of queued bytes above which a write waits. Default 32 MiB.
        package var queueCapacity: ByteCount = .mebibytes(32)
        /// Whether committed values survive a power failure. Default `Durability.full`.
        public var durability = Durability.full
        /// The interval at which reads check for changes by other processes and for a deleted file. Default 0.1 s.
        package var sharingInterval: Duration = .milliseconds(100)

        /// Creates the default options.
        public init() {}
    }

    private struct State {
        var session: ValueSession
        var damagedFiles: [String] = []
    }

    /// The options of this store.
    package let configuration: Configuration
    private let state: Locked<State>

    /// Opens the store in a directory, which is created if needed. Blocks for some milliseconds.
    ///
    /// - Throws: ``StoreError/file(_:)`` or ``StoreError/database(_:)``.
    public init(directory: String, configuration: Configuration = .init()) throws(StoreError) {
        self.configuration = configuration
        let (session, damaged) = try Self.open(directory, configuration)
        state = Locked(State(session: session, damagedFiles: damaged.map { [$0] } ?? []))
    }

    /// Opens the store with a name in the user's data directory, on Linux `~/.local/share/NAME`. Blocks.
    ///
    /// - Parameters:
    ///   - name: One path component. Characters that file names cannot contain are escaped.
    ///   - directories: The directories of the user. Default those of the current user.
    ///   - configuration: The options of the store.
    /// - Throws: ``StoreError/file(_:)`` or ``StoreError/database(_:)``.
    public convenience init(
        named name: String, in directories: Directories = .current, configuration: Configuration = .init()
    ) throws(StoreError) {
        let path: String
        do throws(FileError) {
            path = try directories.dataDirectory(for: name)
        } catch {
            throw .file(error)
        }
        try self.init(directory: path, configuration: configuration)
    }

    private static func open(
        _ directory: String, _ configuration: Configuration, replacing suspect: ValueSession? = nil
    ) throws(StoreError) -> (ValueSession, damaged: String?) {
        let database = ValueDatabase(directory: directory)
        let damaged = try database.prepare(replacing: suspect)
        if let damaged {
            Log.logger("values").error("Moved a damaged file aside", metadata: ["path": "\(damaged)"])
        }
        return (try ValueSession(directory: directory, configuration: configuration, database: database), damaged)
    }

    // MARK: Directory

    /// The directory of the store.
    public var directory: String { state.withLock { $0.session.directory } }

    /// The paths of damaged files that this object has renamed. The store does not read them again.
    package var damagedFiles: [String] { state.withLock { $0.damagedFiles } }

    /// Continues with the values in another directory. Earlier writes still reach the previous directory. Blocks.
    ///
    /// - Throws: ``StoreError`` if the directory cannot be used. The store then stays in its directory.
    public func changeDirectory(to directory: String) throws(StoreError) {
        let (session, damaged) = try Self.open(directory, configuration)
        state.withLock { state in
            state.session = session
            if let damaged { state.damagedFiles.append(damaged) }
        }
    }

    /// The session for reading. It is replaced if its file seems damaged or is, checked at intervals, deleted.
    var session: ValueSession {
        get throws(StoreError) { try session(checkingNow: false) }
    }

    /// Performs a write in the current session, which is replaced first if its file seems damaged or is deleted.
    func writing(_ change: (ValueSession) -> WriteTask) -> WriteTask {
        do throws(StoreError) {
            return change(try session(checkingNow: true))
        } catch {
            state.withLock { $0.session }.report(error)
            return WriteTask(failed: error)
        }
    }

    private func session(checkingNow: Bool) throws(StoreError) -> ValueSession {
        try state.withLock { state throws(StoreError) in
            let isSuspect = state.session.isSuspect
            guard isSuspect || state.session.isLost(checkingNow: checkingNow) else { return state.session }
            let directory = state.session.directory
            if !isSuspect {
                Log.logger("values").notice("The values were deleted while open", metadata: ["path": "\(directory)"])
            }
            let opened = try Self.open(directory, configuration, replacing: isSuspect ? state.session : nil)
            state.session = opened.0
            if let damaged = opened.damaged { state.damagedFiles.append(damaged) }
            return state.session
        }
    }

    /// The sorted names of the values in memory.
    package var memoryKeys: [String] { state.withLock { $0.session }.memoryKeys.sorted() }

    /// Returns when all earlier writes are stored.
    ///
    /// - Throws: The first ``StoreError`` of a write since the previous call.
    public func flush() async throws(StoreError) {
        let blocking = blocking
        try await BlockingExecutor.shared.run { () throws(StoreError) in try blocking.flush() }
    }

    /// The blocking forms of calls that wait for the disk.
    public var blocking: Blocking { Blocking(store: self) }

    // MARK: Values

    /// Returns the value for a key. ``ValueKey`` also reads `Codable` values and lists, and has a default value.
    ///
    /// - Parameters:
    ///   - type: The type of the value.
    ///   - key: The key; any text.
    ///   - group: The group of the key.
    ///   - keepInMemory: Whether to keep the value in memory after reading it from disk. Default nil: if it is smaller
    ///     than ``Configuration/memoryThreshold``.
    /// - Returns: nil if there is no value.
    /// - Throws: ``StoreError/invalidData(name:underlying:)`` if the stored value has another type. It stays in the
    ///   store. Numbers convert to another numeric type that can represent the same value.
    public func value<Value: CacheableValue>(
        _ type: Value.Type = Value.self, forKey key: String, in group: GroupPath = .standard,
        keepInMemory: Bool? = nil
    ) throws(StoreError) -> Value? {
        try decoded(group, key: key, keepInMemory: keepInMemory) { try $0.value(as: type) }
    }

    /// Stores a value for a key, or removes the key if the value is nil.
    @discardableResult
    public func set(
        _ value: (some CacheableValue)?, forKey key: String, in group: GroupPath = .standard,
        keepInMemory: Bool? = nil
    ) -> WriteTask {
        write(group, key: key, keepInMemory: keepInMemory) { try value.map { try StoredValue($0) } }
    }

    /// Removes the value for a key. An unknown key is ignored.
    @discardableResult
    public func remove(_ key: String, in group: GroupPath = .standard) -> WriteTask {
        writing { $0.set(nil, group: group, key: key, keepInMemory: nil) }
    }

    // MARK: Typed keys

    /// Accesses the value of a typed key. A stored value that cannot be read is logged, and reading returns the default
    /// value; ``value(for:)`` throws instead.
    public subscript<Value>(key: ValueKey<Value>) -> Value {
        get { logged(key.group, key: key.name) { () throws(StoreError) in try value(for: key) } ?? key.defaultValue }
        set { set(newValue, for: key) }
    }

    /// Returns the value of a typed key, or its default value.
    ///
    /// - Throws: ``StoreError``, like ``value(_:forKey:in:keepInMemory:)``.
    public func value<Value>(for key: ValueKey<Value>) throws(StoreError) -> Value {
        try decoded(key.group, key: key.name, keepInMemory: key.keepInMemory, decode: key.decode) ?? key.defaultValue
    }

    /// Stores the value of a typed key.
    @discardableResult
    public func set<Value>(_ value: Value, for key: ValueKey<Value>) -> WriteTask {
        write(key.group, key: key.name, keepInMemory: key.keepInMemory) { try key.encode(value) }
    }

    /// Removes the value of a typed key. Reads then return its default value.
    @discardableResult
    public func remove<Value>(_ key: ValueKey<Value>) -> WriteTask { remove(key.name, in: key.group) }

    /// Appends an element to the list of a typed key, which is created if there is none.
    ///
    /// A list that has the key's maximum count stays as it is; ``prepend(_:to:)`` makes room for a new element. Elements
    /// that other processes append at the same time are kept.
    @discardableResult
    public func append<Element: CacheableValue>(_ element: Element, to key: ValueKey<[Element]>) -> WriteTask {
        insert(element, atEnd: true, of: key)
    }

    /// Inserts an element at the beginning of the list of a typed key, which is created if there is none.
    ///
    /// If the list then has more elements than the key's maximum count, the last ones are removed. So a list of recent
    /// items has the newest first. Elements that other processes insert at the same time are kept.
    @discardableResult
    public func prepend<Element: CacheableValue>(_ element: Element, to key: ValueKey<[Element]>) -> WriteTask {
        insert(element, atEnd: false, of: key)
    }

    private func insert<Element: CacheableValue>(
        _ element: Element, atEnd: Bool, of key: ValueKey<[Element]>
    ) -> WriteTask {
        let bytes: [UInt8]
        do {
            bytes = try element.cacheBytes()
        } catch {
            return refused(key.group, key: key.name, error: error)
        }
        return writing { session in
            session.update(key.group, key: key.name, keepInMemory: key.keepInMemory) { stored in
                guard stored == nil || stored?.kind == .list else {
                    throw CacheableValueError.notRepresentable(type: "list")
                }
                let list = try ListBytes.inserting(
                    bytes, atEnd: atEnd, of: stored?.bytes ?? [], maximumCount: key.maximumCount)
                return StoredValue(kind: .list, bytes: list)
            }
        }
    }

    // MARK: Implementation

    private func logged<Value>(
        _ group: GroupPath, key: String, body: () throws(StoreError) -> Value?
    ) -> Value? {
        do throws(StoreError) {
            return try body()
        } catch {
            Log.logger("values").error("Cannot read a value: \(error)", metadata: ["group": "\(group)"])
            return nil
        }
    }

    private func decoded<Value>(
        _ group: GroupPath, key: String, keepInMemory: Bool?, decode: (StoredValue) throws -> Value
    ) throws(StoreError) -> Value? {
        guard let stored = try stored(group, key: key, keepInMemory: keepInMemory) else { return nil }
        do {
            return try decode(stored)
        } catch {
            throw .invalidData(name: Self.name(group, key), underlying: error)
        }
    }

    /// Reads the stored bytes. If the file turns out to be damaged, it is replaced, and the empty one is read.
    private func stored(_ group: GroupPath, key: String, keepInMemory: Bool?) throws(StoreError) -> StoredValue? {
        let session = try session
        do throws(StoreError) {
            return try session.value(group, key, keepInMemory: keepInMemory)
        } catch {
            let next = try self.session
            guard next !== session else { throw error }
            return try next.value(group, key, keepInMemory: keepInMemory)
        }
    }

    private func write(
        _ group: GroupPath, key: String, keepInMemory: Bool?, encode: () throws -> StoredValue?
    ) -> WriteTask {
        do {
            let value = try encode()
            return writing { $0.set(value, group: group, key: key, keepInMemory: keepInMemory) }
        } catch {
            return refused(group, key: key, error: error)
        }
    }

    private func refused(_ group: GroupPath, key: String, error: any Error) -> WriteTask {
        let error = StoreError.notEncodable(name: Self.name(group, key), underlying: error)
        return writing { session in
            session.report(error)
            return WriteTask(failed: error)
        }
    }

    private static func name(_ group: GroupPath, _ key: String) -> String {
        group == .standard ? key : "\(group)/\(key)"
    }
}
