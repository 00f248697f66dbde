#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
import Logging
public import VitrineCore

extension KeyValueStore {
    // MARK: Any cacheable type

    /// The value stored under a name.
    ///
    /// - Parameters:
    ///   - type: What it is read as.
    ///   - key: The name; any text.
    ///   - group: The group the name is in.
    ///   - keepInMemory: Whether to keep it in memory when it was read from disk; nil, the default: if it is smaller
    ///     than ``Configuration/memoryThreshold``.
    /// - Returns: nil if there is none.
    /// - Throws: ``CacheError/invalidData(key:underlying:)`` if what is stored is no such value; it stays. Numbers are
    ///   read as another kind of number if that has the same value.
    public func value<Value: CacheableValue>(
        _ type: Value.Type = Value.self, forKey key: String, in group: GroupPath = .standard,
        keepInMemory: Bool? = nil
    ) throws(CacheError) -> Value? {
        try decoded(group, key, keepInMemory) { try $0.value(as: type) }
    }

    /// Stores a value under a name, or removes it if it is nil.
    @discardableResult
    public func set(
        _ value: (some CacheableValue)?, forKey key: String, in group: GroupPath = .standard,
        keepInMemory: Bool? = nil
    ) -> WriteTask {
        write(group, key, keepInMemory) { try value.map { try StoredValue($0) } }
    }

    /// Removes a value; an unknown name is harmless.
    @discardableResult
    public func remove(_ key: String, in group: GroupPath = .standard) -> WriteTask {
        writing { $0.set(nil, group, key, keepInMemory: nil) }
    }

    /// The `Codable` value stored under a name, as ``value(_:forKey:in:keepInMemory:)``.
    public func codable<Value: Codable & Sendable>(
        _ type: Value.Type = Value.self, forKey key: String, in group: GroupPath = .standard,
        keepInMemory: Bool? = nil
    ) throws(CacheError) -> Value? {
        try value(CodableBox<Value>.self, forKey: key, in: group, keepInMemory: keepInMemory)?.value
    }

    /// Stores a `Codable` value under a name, or removes it if it is nil.
    @discardableResult
    public func set<Value: Codable & Sendable>(
        codable value: Value?, forKey key: String, in group: GroupPath = .standard, keepInMemory: Bool? = nil
    ) -> WriteTask {
        set(value.map { CodableBox($0) }, forKey: key, in: group, keepInMemory: keepInMemory)
    }

    // MARK: Typed keys

    /// Reads and writes the value of a key. What cannot be read is logged and gives the default; whoever must know uses
    /// ``value(for:)``.
    public subscript<Value>(key: ValueKey<Value>) -> Value {
        get { logged(key.group, key.name) { () throws(CacheError) in try value(for: key) } ?? key.defaultValue }
        set { set(newValue, for: key) }
    }

    /// The value of a key, or its default.
    ///
    /// - Throws: ``CacheError``, as ``value(_:forKey:in:keepInMemory:)``.
    public func value<Value>(for key: ValueKey<Value>) throws(CacheError) -> Value {
        try decoded(key.group, key.name, key.keepInMemory, key.decode) ?? key.defaultValue
    }

    /// Stores the value of a key.
    @discardableResult
    public func set<Value>(_ value: Value, for key: ValueKey<Value>) -> WriteTask {
        write(key.group, key.name, key.keepInMemory) { try key.encode(value) }
    }

    /// Removes the value of a key, which then has its default.
    @discardableResult
    public func remove<Value>(_ key: ValueKey<Value>) -> WriteTask { remove(key.name, in: key.group) }

    // MARK: Plain values

    /// The truth value of a name; false if there is none, or, logged, if something else is stored.
    public func bool(forKey key: String, in group: GroupPath = .standard) -> Bool { plain(key, group) ?? false }
    /// The number of a name; 0 if there is none, or, logged, if something else is stored.
    public func int(forKey key: String, in group: GroupPath = .standard) -> Int { plain(key, group) ?? 0 }
    /// The number of a name; 0 if there is none, or, logged, if something else is stored.
    public func uint(forKey key: String, in group: GroupPath = .standard) -> UInt { plain(key, group) ?? 0 }
    /// The number of a name; 0 if there is none, or, logged, if something else is stored.
    public func float(forKey key: String, in group: GroupPath = .standard) -> Float { plain(key, group) ?? 0 }
    /// The number of a name, to the last bit; 0 if there is none, or, logged, if something else is stored.
    public func double(forKey key: String, in group: GroupPath = .standard) -> Double { plain(key, group) ?? 0 }
    /// The text of a name; nil if there is none, or, logged, if something else is stored.
    public func string(forKey key: String, in group: GroupPath = .standard) -> String? { plain(key, group) }
    /// The time of a name; nil if there is none, or, logged, if something else is stored.
    public func date(forKey key: String, in group: GroupPath = .standard) -> Date? { plain(key, group) }
    /// The bytes of a name; nil if there are none, or, logged, if something else is stored.
    public func data(forKey key: String, in group: GroupPath = .standard) -> Data? { plain(key, group) }

    private func plain<Value: CacheableValue>(_ key: String, _ group: GroupPath) -> Value? {
        logged(group, key) { () throws(CacheError) in try value(Value.self, forKey: key, in: group) } ?? nil
    }

    private func logged<Value>(
        _ group: GroupPath, _ key: String, _ body: () throws(CacheError) -> Value
    ) -> Value? {
        do throws(CacheError) {
            return try body()
        } catch {
            Log.logger("values").error("A value was not read: \(error)", metadata: ["group": "\(group)"])
            return nil
        }
    }

    // MARK: Lists

    /// The list stored under a name, nil if there is none.
    ///
    /// - Throws: ``CacheError``, as ``value(_:forKey:in:keepInMemory:)``.
    public func list<Element: CacheableValue>(
        of type: Element.Type = Element.self, forKey key: String, in group: GroupPath = .standard
    ) throws(CacheError) -> [Element]? {
        try value(CacheableList<Element>.self, forKey: key, in: group)?.elements
    }

    /// Stores a list.
    ///
    /// - Parameters:
    ///   - list: The elements.
    ///   - key: The name; any text.
    ///   - group: The group the name is in.
    ///   - maximumCount: How many elements are kept at most; nil, the default, for all.
    ///   - end: From which end they are kept. Default the last; the first is what the ancestor kept.
    @discardableResult
    public func set<Element: CacheableValue>(
        list: [Element], forKey key: String, in group: GroupPath = .standard, maximumCount: Int? = nil,
        keeping end: KeptEnd = .last
    ) -> WriteTask {
        set(CacheableList(end.limit(list, to: maximumCount)), forKey: key, in: group)
    }

    /// Adds an element at the end of a list, which begins with it if there is none. If there are then too many, those
    /// in front go. Elements that other processes add at the same time are kept.
    @discardableResult
    public func append(
        _ element: some CacheableValue, toListForKey key: String, in group: GroupPath = .standard,
        maximumCount: Int? = nil
    ) -> WriteTask {
        append(element, group, key, maximumCount, nil)
    }

    /// Adds an element at the end of a key's list, within its maximum count.
    @discardableResult
    public func append<Element: CacheableValue>(_ element: Element, to key: ValueKey<[Element]>) -> WriteTask {
        append(element, key.group, key.name, key.maximumCount, key.keepInMemory)
    }

    private func append(
        _ element: some CacheableValue, _ group: GroupPath, _ key: String, _ maximumCount: Int?, _ keepInMemory: Bool?
    ) -> WriteTask {
        let bytes: [UInt8]
        do {
            bytes = try element.cacheBytes()
        } catch {
            return refused(group, key, error)
        }
        return writing { session in
            session.update(group, key, keepInMemory: keepInMemory) { stored in
                guard stored == nil || stored?.kind == .list else {
                    throw CacheableValueError.notRepresentable(type: "list")
                }
                let list = try ListBytes.appending(bytes, to: stored?.bytes ?? [], maximumCount: maximumCount)
                return StoredValue(kind: .list, bytes: list)
            }
        }
    }

    // MARK: Ways down

    private func decoded<Value>(
        _ group: GroupPath, _ key: String, _ keepInMemory: Bool?, _ decode: (StoredValue) throws -> Value
    ) throws(CacheError) -> Value? {
        guard let stored = try stored(group, key, keepInMemory) else { return nil }
        do {
            return try decode(stored)
        } catch {
            throw .invalidData(key: CacheKey(group.description, key), underlying: error)
        }
    }

    /// What is stored. A damaged file is replaced, and then nothing is.
    private func stored(_ group: GroupPath, _ key: String, _ keepInMemory: Bool?) throws(CacheError) -> StoredValue? {
        let session = try session
        do throws(CacheError) {
            return try session.value(group, key, keepInMemory: keepInMemory)
        } catch {
            let next = try self.session
            guard next !== session else { throw error }
            return try next.value(group, key, keepInMemory: keepInMemory)
        }
    }

    private func write(
        _ group: GroupPath, _ key: String, _ keepInMemory: Bool?, _ encode: () throws -> StoredValue?
    ) -> WriteTask {
        do {
            let value = try encode()
            return writing { $0.set(value, group, key, keepInMemory: keepInMemory) }
        } catch {
            return refused(group, key, error)
        }
    }

    private func refused(_ group: GroupPath, _ key: String, _ error: any Error) -> WriteTask {
        let error = CacheError.notEncodable(key: CacheKey(group.description, key), underlying: error)
        return writing { session in
            session.report(error)
            return WriteTask(failed: error)
        }
    }
}
