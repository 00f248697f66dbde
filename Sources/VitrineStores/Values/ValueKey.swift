import VitrineCache
public import VitrineCore

/// A typed key of a ``KeyValueStore``: a name, a group, and the value to use while nothing is stored.
///
/// <!-- prelude: let store = try KeyValueStore(directory: path) -->
/// ```swift
/// enum Settings {
///     static let volume = ValueKey<Double>("volume", default: 0.5)
///     static let lastUser = ValueKey<String?>("last user", in: "login")
///     static let theme = ValueKey<Theme>(codable: "theme", default: .dark)
///     static let recent = ValueKey<[String]>(list: "recent", maximumCount: 20)
/// }
/// store[Settings.volume] = 0.7
/// ```
public struct ValueKey<Value: Sendable>: Sendable {
    /// The key inside the group.
    package let name: String
    /// The group.
    package let group: GroupPath
    /// The value to use while nothing is stored.
    package let defaultValue: Value
    let keepInMemory: Bool?
    /// For lists: the number of elements to keep, from the first one on.
    let maximumCount: Int?
    let decode: @Sendable (StoredValue) throws -> Value
    /// Returns nil to remove the stored value.
    let encode: @Sendable (Value) throws -> StoredValue?

    private init(
        _ name: String, group: GroupPath, defaultValue: Value, keepInMemory: Bool?, maximumCount: Int? = nil,
        decode: @escaping @Sendable (StoredValue) throws -> Value,
        encode: @escaping @Sendable (Value) throws -> StoredValue?
    ) {
        self.name = name
        self.group = group
        self.defaultValue = defaultValue
        self.keepInMemory = keepInMemory
        self.maximumCount = maximumCount
        self.decode = decode
        self.encode = encode
    }

    /// Creates a key with a default value.
    ///
    /// - Parameters:
    ///   - name: The key inside the group.
    ///   - group: The group.
    ///   - defaultValue: The value to use while nothing is stored.
    ///   - keepInMemory: Whether the value is also kept in memory. Default nil: if it is smaller than
    ///     ``KeyValueStore/Configuration/memoryThreshold``.
    public init(
        _ name: String, in group: GroupPath = .standard, default defaultValue: Value, keepInMemory: Bool? = nil
    ) where Value: CacheableValue {
        self.init(name, group: group, defaultValue: defaultValue, keepInMemory: keepInMemory) {
            try $0.value(as: Value.self)
        } encode: {
            try StoredValue($0)
        }
    }

    /// Creates a key for an optional value. Setting nil removes the stored value.
    public init<Wrapped: CacheableValue>(
        _ name: String, in group: GroupPath = .standard, keepInMemory: Bool? = nil
    ) where Value == Wrapped? {
        self.init(name, group: group, defaultValue: nil, keepInMemory: keepInMemory) {
            try $0.value(as: Wrapped.self)
        } encode: {
            try $0.map { try StoredValue($0) }
        }
    }

    /// Creates a key for a `Codable` value with a default value.
    public init(
        codable name: String, in group: GroupPath = .standard, default defaultValue: Value, keepInMemory: Bool? = nil
    ) where Value: Codable {
        self.init(name, group: group, defaultValue: defaultValue, keepInMemory: keepInMemory) {
            try $0.value(as: CodableBox<Value>.self).value
        } encode: {
            try StoredValue(CodableBox($0))
        }
    }

    /// Creates a key for an optional `Codable` value. Setting nil removes the stored value.
    public init<Wrapped: Codable & Sendable>(
        codable name: String, in group: GroupPath = .standard, keepInMemory: Bool? = nil
    ) where Value == Wrapped? {
        self.init(name, group: group, defaultValue: nil, keepInMemory: keepInMemory) {
            try $0.value(as: CodableBox<Wrapped>.self).value
        } encode: {
            try $0.map { try StoredValue(CodableBox($0)) }
        }
    }

    /// Creates a key for a list, which is empty while nothing is stored.
    ///
    /// - Parameters:
    ///   - name: The key inside the group.
    ///   - group: The group.
    ///   - maximumCount: The number of elements to keep, from the first one on. Default: all.
    ///   - keepInMemory: As for other keys.
    public init<Element: CacheableValue>(
        list name: String, in group: GroupPath = .standard, maximumCount: Int? = nil, keepInMemory: Bool? = nil
    ) where Value == [Element] {
        let maximumCount = maximumCount.map { max(0, $0) }
        self.init(name, group: group, defaultValue: [], keepInMemory: keepInMemory, maximumCount: maximumCount) {
            try $0.value(as: CacheableList<Element>.self).elements
        } encode: {
            try StoredValue(CacheableList(Array($0.prefix(maximumCount ?? .max))))
        }
    }
}
