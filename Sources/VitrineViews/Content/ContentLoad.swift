import VitrineCore

/// How far content has come.
enum ContentStep<Value: Sendable>: Sendable {
    /// Something to show until a better one is there.
    case interim(Value)
    /// There is no more.
    case done(Result<Value, any Error>)
}

/// What tells contents apart.
struct ContentIdentity: Hashable, Sendable {
    /// Whose keys they are.
    let owner: ObjectIdentifier?
    let key: CacheKey
    let form: String

    /// Tells those apart that have no key; 0 for all others.
    var number = 0

    /// Whether it equals no other.
    var isUnique: Bool { number != 0 }

    /// One that equals no other.
    static func unique() -> ContentIdentity {
        let number = last.withLock { last in
            last += 1
            return last
        }
        return ContentIdentity(owner: nil, key: "", form: "", number: number)
    }

    private static let last = Locked(0)
}

/// One load of content. Letting go of it is to cancel it.
final class ContentLoad: Sendable {
    private let cancelling: @Sendable () -> Void
    private let changing: @Sendable (Priority) -> Void

    init(cancel: @escaping @Sendable () -> Void = {}, priority: @escaping @Sendable (Priority) -> Void = { _ in }) {
        cancelling = cancel
        changing = priority
    }

    deinit { cancelling() }

    func setPriority(_ priority: Priority) { changing(priority) }
}
