#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The best that is there so far of a resource that several URLs stand for (R144).
public struct ProgressiveValue<Value: Sendable>: Sendable {
    /// Where it is from.
    public let url: URL
    /// The value.
    public let value: Value
    /// The URL's place in the list: 0 is the best.
    public let index: Int

    /// Whether nothing better is in the list.
    public var isBest: Bool { index == 0 }
}
