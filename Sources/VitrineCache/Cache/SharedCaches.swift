#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
import VitrineCore

/// Ready-made caches for all parts of a program, below ``CacheConfiguration/defaultRoot``.
///
/// ```swift
/// let text = try await SharedCaches.strings.value(fromFile: "notes.txt")
/// SharedCaches.strings.memoryCapacity = .megabytes(8)
/// ```
///
/// Each cache is made at its first use, with the defaults, and can be replaced before and after that:
///
/// ```swift
/// var configuration = CacheConfiguration()
/// configuration.diskCapacity = .gigabytes(2)
/// SharedCaches.data = ValueCache(name: "data", configuration: configuration)
/// ```
///
/// Code that holds the replaced cache keeps using it. `import Vitrine` adds caches for images.
public enum SharedCaches {
    private static let places = (
        data: Replaceable { ValueCache<Data>(name: "shared-data") },
        strings: Replaceable { ValueCache<String>(name: "shared-strings") },
        json: Replaceable { ValueCache<JSONValue>(name: "shared-json") }
    )

    /// Bytes. Default: a cache named "shared-data".
    public static var data: ValueCache<Data> {
        get { places.data.value }
        set { places.data.value = newValue }
    }

    /// Text. Default: a cache named "shared-strings".
    public static var strings: ValueCache<String> {
        get { places.strings.value }
        set { places.strings.value = newValue }
    }

    /// JSON objects and arrays. Default: a cache named "shared-json".
    public static var json: ValueCache<JSONValue> {
        get { places.json.value }
        set { places.json.value = newValue }
    }
}

/// A value that is made at its first use and can be replaced at any time, by any thread.
package final class Replaceable<Value: Sendable>: Sendable {
    private let make: @Sendable () -> Value
    private let current = Locked<Value?>(nil)

    /// - Parameter make: Makes the first value. Must not use this object.
    package init(_ make: @escaping @Sendable () -> Value) { self.make = make }

    /// The value.
    package var value: Value {
        get {
            current.withLock { current in
                if let current { return current }
                let made = make()
                current = made
                return made
            }
        }
        set {
            let replaced = current.withLock { current in
                defer { current = newValue }
                return current
            }
            // Released outside the lock.
            _ = replaced
        }
    }
}
