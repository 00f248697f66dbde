#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// What to do with a response and with what is stored.
public struct CacheUpdate: Sendable {
    /// What answers the request.
    public enum Answer: Sendable, Hashable {
        /// What came; nothing of it is stored.
        case response
        /// What came, to be stored with this head once its body is whole. A body that breaks off, or whose length is
        /// not what `Content-Length` says, must not be kept.
        case storing(StoredResponse)
        /// The stored response at this place, in its refreshed form: the server has confirmed it.
        case confirmed(Int)
        /// The stored response at this place although it is stale: the server failed.
        case stale(Int)
        /// Nothing yet: the confirmation is of something that is not stored. Send the request again as the requester
        /// made it.
        case repetition
    }

    /// What answers the request.
    public var answer: Answer
    /// New heads for stored responses, whose bodies stay.
    public var refreshed: [Int: StoredResponse] = [:]
    /// Places of stored responses to remove: at once, or with ``Answer/storing(_:)`` when the new body is whole. One
    /// that is also the answer is removed after it has been given.
    public var removed: Set<Int> = []
    /// Other URLs under which everything is to be removed, or kept as ``StoredResponse/invalidated()``.
    public var invalidated: [URL] = []
}
