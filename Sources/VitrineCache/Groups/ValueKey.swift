public import VitrineCore

/// A name for a value in a ``KeyValueStore`` with its type, its group and what counts while nothing is stored (R28).
///
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
    /// The name inside the group.
    public let name: String
    /// The group.
    public let group: GroupPath
    /// What is read while nothing is stored.
    public let defaultValue: Value
    /// Whether the value is also kept in memory; nil: if it is smaller than the store's threshold (R24).
    public let keepInMemory: Bool?
    /// For lists: how many elements are kept at most.
    let maximumCount: Int?
    let decode: @Sendable (StoredValue) throws -> Value
    /// nil for a value that is stored by removing what is there.
    let encode: @Sendable (Value) throws -> StoredValue?

    private init(
        _ name: String, _ group: GroupPath, _ defaultValue: Value, _ keepInMemory: Bool?, maximumCount: Int? = nil,
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

    /// A value that is `defaultValue` until it is set.
    public init(
        _ name: String, in group: GroupPath = .standard, default defaultValue: Value, keepInMemory: Bool? = nil
    ) where Value: CacheableValue {
        self.init(name, group, defaultValue, keepInMemory) {
            try $0.value(as: Value.self)
        } encode: {
            try StoredValue($0)
        }
    }

    /// A value that is nil until it is set, and removed by setting nil.
    public init<Wrapped: CacheableValue>(
        _ name: String, in group: GroupPath = .standard, keepInMemory: Bool? = nil
    ) where Value == Wrapped? {
        self.init(name, group, nil, keepInMemory) {
            try $0.value(as: Wrapped.self)
        } encode: {
            try $0.map { try StoredValue($0) }
        }
    }

    /// A `Codable` value that is `defaultValue` until it is set.
    public init(
        codable name: String, in group: GroupPath = .standard, default defaultValue: Value, keepInMemory: Bool? = nil
    ) where Value: Codable {
        self.init(name, group, defaultValue, keepInMemory) {
            try $0.value(as: CodableBox<Value>.self).value
        } encode: {
            try StoredValue(CodableBox($0))
        }
    }

    /// A `Codable` value that is nil until it is set, and removed by setting nil.
    public init<Wrapped: Codable & Sendable>(
        codable name: String, in group: GroupPath = .standard, keepInMemory: Bool? = nil
    ) where Value == Wrapped? {
        self.init(name, group, nil, keepInMemory) {
            try $0.value(as: CodableBox<Wrapped>.self).value
        } encode: {
            try $0.map { try StoredValue(CodableBox($0)) }
        }
    }

    /// A list that is empty until it is set. With a maximum count the oldest elements, those in front, go first (R23).
    public init<Element: CacheableValue>(
        list name: String, in group: GroupPath = .standard, maximumCount: Int? = nil, keepInMemory: Bool? = nil
    ) where Value == [Element] {
        self.init(name, group, [], keepInMemory, maximumCount: maximumCount) {
            try $0.value(as: CacheableList<Element>.self).elements
        } encode: {
            try StoredValue(CacheableList(KeptEnd.last.limit($0, to: maximumCount)))
        }
    }
}

/// An end of a list.
public enum KeptEnd: Sendable, Hashable {
    case first, last

    /// At most so many elements, from this end.
    func limit<Element>(_ elements: [Element], to maximumCount: Int?) -> [Element] {
        guard let count = maximumCount.map({ max(0, $0) }), elements.count > count else { return elements }
        return Array(self == .first ? elements.prefix(count) : elements.suffix(count))
    }
}
