// Types with names that SwiftUI and other modules have. `Both` imports them beside Vitrine.

public struct Image {
    public init(_ name: String) {}
}

public struct Color: Sendable {
    public static let red = Color()
}

public enum ContentMode { case fit, fill }

public final class Cache<Key: Hashable, Value> {
    private var values: [Key: Value] = [:]
    public init() {}
    public subscript(key: Key) -> Value? {
        get { values[key] }
        set { values[key] = newValue }
    }
}

public struct Format {
    public init(_ name: String) {}
}

public enum JSON { case null }

public enum Priority { case low, high }

@propertyWrapper public struct Shared<Value> {
    public var wrappedValue: Value
    public init(wrappedValue: Value) { self.wrappedValue = wrappedValue }
}
