#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
import VitrineCore

/// Ready-made caches for everyone in the program (R3), below ``CacheConfiguration/defaultRoot``.
///
/// ```swift
/// let text = try await Shared.strings.value(fromFile: "notes.txt")
/// ```
///
/// `import Vitrine` adds one for images.
public enum Shared {
    /// Bytes, named "shared-data".
    public static let data = Cache<Data>(name: "shared-data")
    /// Text, named "shared-strings".
    public static let strings = Cache<String>(name: "shared-strings")
    /// JSON objects and arrays, named "shared-json".
    public static let json = Cache<JSON>(name: "shared-json")
}
