import Dispatch
import VitrineCore

/// A body that is to be written: there already, or made when it is needed.
enum Body: Sendable {
    case ready([UInt8])
    case lazy(LazyBytes)

    /// The length, 0 while it is not known.
    var knownCount: Int {
        if case .ready(let bytes) = self { bytes.count } else { 0 }
    }

    func bytes() throws -> [UInt8] {
        switch self {
        case .ready(let bytes): bytes
        case .lazy(let lazy): try lazy.bytes()
        }
    }
}

/// Bytes that are made once, by the first thread that needs them; others wait for them. The closure is a user's, so no
/// lock is held while it runs.
final class LazyBytes: Sendable {
    private enum State {
        case pending(@Sendable () throws -> [UInt8])
        case running([DispatchSemaphore])
        case made(Result<[UInt8], any Error>)
    }

    private enum Step {
        case make(@Sendable () throws -> [UInt8])
        case wait(DispatchSemaphore)
        case take(Result<[UInt8], any Error>)
    }

    private let state: Locked<State>

    init(_ make: @escaping @Sendable () throws -> [UInt8]) { state = Locked(.pending(make)) }

    func bytes() throws -> [UInt8] {
        while true {
            switch nextStep() {
            case .take(let result): return try result.get()
            case .wait(let semaphore): semaphore.wait()
            case .make(let make):
                let result = Result { try make() }
                let waiting: [DispatchSemaphore] = state.withLock { state in
                    defer { state = .made(result) }
                    if case .running(let waiting) = state { return waiting }
                    return []
                }
                for semaphore in waiting { semaphore.signal() }
            }
        }
    }

    private func nextStep() -> Step {
        state.withLock { state in
            switch state {
            case .made(let result): return .take(result)
            case .pending(let make):
                state = .running([])
                return .make(make)
            case .running(let waiting):
                let semaphore = DispatchSemaphore(value: 0)
                state = .running(waiting + [semaphore])
                return .wait(semaphore)
            }
        }
    }
}

/// An entry to be written. Times are nanoseconds since 1970.
struct Put: Sendable {
    var body: Body
    var created: Int64
    var expires: Int64?
    var tag: [UInt8]
}

/// A change of an entry that leaves its body alone.
struct Patch: Sendable {
    /// When the entry begins to count anew; nil leaves it.
    var created: Int64?
    /// The new end of freshness, which may be none; the outer nil leaves it.
    var expires: Int64??
    /// The new tag; nil leaves it.
    var tag: [UInt8]?

    init(created: Int64? = nil, expires: Int64?? = nil, tag: [UInt8]? = nil) {
        self.created = created
        self.expires = expires
        self.tag = tag
    }

    func applied(to put: Put) -> Put {
        Put(
            body: put.body, created: created ?? put.created, expires: expires ?? put.expires, tag: tag ?? put.tag)
    }

    /// This one and then a later one.
    func followed(by later: Patch) -> Patch {
        Patch(created: later.created ?? created, expires: later.expires ?? expires, tag: later.tag ?? tag)
    }
}

/// What is to be done to the entry of one key.
enum Operation: Sendable {
    case put(Put)
    case remove
    case patch(Patch)

    /// This one and then a later one, as one.
    func followed(by later: Operation) -> Operation {
        guard case .patch(let patch) = later else { return later }
        switch self {
        case .put(let put): return .put(patch.applied(to: put))
        case .remove: return .remove
        case .patch(let first): return .patch(first.followed(by: patch))
        }
    }

    /// Bytes it keeps in memory.
    var heldBytes: Int {
        if case .put(let put) = self { put.body.knownCount + put.tag.count } else { 0 }
    }
}
