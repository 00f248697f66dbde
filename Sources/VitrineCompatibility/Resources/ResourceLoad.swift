#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCache
import VitrineCore
import VitrineNetwork

/// The load of one resource in any number of formats, with its subscribers. Accessed under the lock of
/// ``ResourceLoads`` only.
struct ResourceLoad<Value: CacheableValue> {
    /// A subscriber and its request.
    struct Member {
        let subscriber: ResourceSubscriber<Value>
        let format: FormatName
        var depth: CacheLevel
        var priority: RequestPriority
    }

    /// The stage of a format's value.
    enum Stage: Sendable {
        /// The cache levels are read.
        case reading
        /// The cache levels are read, then the source is fetched and decoded.
        case fetching
    }

    /// The load of one format.
    struct Run {
        let stage: Stage
        /// The identity of the run. Outcomes of earlier runs are ignored.
        let number: Int
        /// The handle, once it is known.
        var fetch: FetchTask<Value>?
    }

    let url: URL
    /// The identity of the load.
    let id: Int
    /// The fetcher for all formats.
    var fetcher: WatchedFetcher<Value>
    var progress: TransferProgress
    var members: [Member] = []
    var runs: [FormatName: Run] = [:]
    /// The number of the run that stores bytes without subscribers; nil if there is none.
    var storing: Int?
    /// Whether the source was fetched, and whether it has answered.
    var hasAsked = false, hasAnswered = false

    /// Whether a run fetches from the source, or its bytes are being stored.
    var isTransferring: Bool { storing != nil || runs.values.contains { $0.stage == .fetching } }

    /// Whether there are no runs.
    var isOver: Bool { storing == nil && runs.isEmpty }

    /// Returns the highest priority of a format's subscribers.
    func priority(of format: FormatName) -> RequestPriority {
        members.lazy.filter { $0.format == format }.map(\.priority).max() ?? .low
    }

    /// Returns whether a format has subscribers.
    func isWanted(_ format: FormatName) -> Bool { members.contains { $0.format == format } }

    // MARK: Subscribers

    /// Adds a subscriber. A second request of an observer for the same format is merged with the first and extends its
    /// depth.
    mutating func add(_ member: Member, keeping kept: inout [ResourceSubscriber<Value>.Kept]) {
        let subscriber = member.subscriber
        let index = members.firstIndex { other in
            guard other.format == member.format else { return false }
            if subscriber.isPrefetch { return other.subscriber.isPrefetch }
            guard let observer = subscriber.observer, other.subscriber.observer == observer else { return false }
            return other.subscriber.isWaiting(keeping: &kept)
        }
        guard let index else { return members.append(member) }
        members[index].depth = max(members[index].depth, member.depth)
        let priority = subscriber.isPrefetch ? max(members[index].priority, member.priority) : member.priority
        members[index].priority = priority
    }

    /// Removes cancelled and deinitialized subscribers.
    mutating func prune(keeping kept: inout [ResourceSubscriber<Value>.Kept]) {
        members.removeAll { !$0.subscriber.isWaiting(keeping: &kept) }
    }

    /// Ends runs without subscribers, unless their transfer has to continue.
    ///
    /// - Parameters:
    ///   - policy: Decides about a transfer without subscribers.
    ///   - keepsOriginals: Whether originals are stored for other formats.
    /// - Returns: The handles to cancel, and whether received bytes are to be stored.
    mutating func abandon(
        _ policy: CancellationPolicy, keepsOriginals: Bool
    ) -> (cancelled: [FetchTask<Value>], stores: Bool) {
        let idle = runs.filter { !isWanted($0.key) }
        let isTransferWanted = runs.contains { $0.value.stage == .fetching && isWanted($0.key) }
        // Idle runs keep a running transfer alive.
        let keepsTransfer = hasAsked && !hasAnswered && (isTransferWanted || goesOn(policy))
        let ended = idle.filter { $0.value.stage == .reading || !keepsTransfer }
        for format in ended.keys { runs[format] = nil }
        let stores = ended.contains { format, run in
            run.stage == .fetching && (format == .original || keepsOriginals && fetcher.storesOriginal)
        }
        return (ended.values.compactMap(\.fetch), hasAnswered && !isTransferWanted && stores)
    }

    /// Returns whether a transfer continues without subscribers.
    private func goesOn(_ policy: CancellationPolicy) -> Bool {
        let transfer = progress.current
        return switch policy {
        case .processing: true
        case .beforeResponse: transfer.isAnswered || transfer.received > 0
        case .beforeBody: transfer.received > 0
        case .unconditional: false
        }
    }
}

/// A fetcher that reports its start and its result, and can return the result again.
///
/// A load without subscribers is cancelled before it decodes. Another load then stores the bytes of the same result.
final class WatchedFetcher<Value: CacheableValue>: Fetcher {
    private struct State {
        var answer: FetchResult<Value>?
        var isReplaying = false
        var isForgotten = false
    }

    let key: CacheKey
    let storesOriginal: Bool
    let levels: CacheLevels
    let revalidates: Bool
    let bounds: String
    private let base: any Fetcher<Value>
    private let willAsk: @Sendable (WatchedFetcher) -> Void
    private let hasAnswered: @Sendable (WatchedFetcher) -> Void
    private let state = Locked(State())

    init(
        _ base: any Fetcher<Value>, willAsk: @escaping @Sendable (WatchedFetcher) -> Void,
        hasAnswered: @escaping @Sendable (WatchedFetcher) -> Void
    ) {
        self.base = base
        self.willAsk = willAsk
        self.hasAnswered = hasAnswered
        key = base.key
        storesOriginal = base.storesOriginal
        levels = base.levels
        revalidates = base.revalidates
        bounds = base.bounds
    }

    /// Makes further fetches return the stored result.
    func replay() { state.withLock { $0.isReplaying = true } }

    /// Releases the result and stores no further one.
    func forget() {
        let answer = state.withLock { state in
            defer { state = State(isForgotten: true) }
            return state.answer
        }
        // Released outside the lock.
        _ = answer
    }

    func fetch(_ context: FetchContext) async throws -> FetchResult<Value> {
        if let answer = state.withLock({ $0.isReplaying ? $0.answer : nil }), answer.fits(context) { return answer }
        willAsk(self)
        let fetched = try await base.fetch(context)
        state.withLock { state in
            if !state.isForgotten { state.answer = fetched }
        }
        hasAnswered(self)
        return fetched
    }
}

extension FetchResult {
    /// Returns whether the result fits a context: results that refer to the stored entry need one.
    fileprivate func fits(_ context: FetchContext) -> Bool {
        switch content {
        case .value, .bytes, .both, .gone: true
        case .unchanged, .stale: context.stored != nil && !context.isRefresh
        }
    }
}

/// A subscriber of a load: an observer or listener, held weakly; a caller; or a prefetch without any receiver.
final class ResourceSubscriber<Value: CacheableValue>: Sendable {
    /// An observer or listener that is retained until all locks are released.
    typealias Kept = any AnyObject & Sendable

    private struct State {
        weak var observer: (any LoadObserver<Value>)?
        weak var listener: (any ResourceListener<Value>)?
        var isOver = false

        var object: Kept? {
            if let observer { return observer }
            return listener
        }
    }

    /// The identity of the observer or listener, which may be deinitialized; nil for other subscribers.
    let observer: ObjectIdentifier?
    /// The queue of the notification.
    let delivery: CallbackQueue
    private let caller: (@Sendable (Result<Value, CacheError>) -> Void)?
    private let state: Locked<State>

    /// Creates the subscriber of an observer, which is notified on the main actor, or of a prefetch.
    init(observer: (any LoadObserver<Value>)?) {
        self.observer = observer.map(ObjectIdentifier.init)
        delivery = .main
        caller = nil
        state = Locked(State(observer: observer))
    }

    /// Creates the subscriber of a listener, which is notified at once.
    init(listener: any ResourceListener<Value>) {
        observer = ObjectIdentifier(listener)
        delivery = .immediate
        caller = nil
        state = Locked(State(listener: listener))
    }

    /// Creates the subscriber of a caller, which is notified at once.
    init(caller: @escaping @Sendable (Result<Value, CacheError>) -> Void) {
        observer = nil
        delivery = .immediate
        self.caller = caller
        state = Locked(State())
    }

    /// Whether the subscriber is a prefetch.
    var isPrefetch: Bool { observer == nil && caller == nil }

    /// Returns whether the subscriber waits.
    ///
    /// - Parameter kept: Receives the observer, which must be released outside of all locks. It may be the last
    ///   reference, and a `deinit` may call the cache.
    func isWaiting(keeping kept: inout [Kept]) -> Bool {
        let (isOver, object) = state.withLock { ($0.isOver, $0.object) }
        if let object { kept.append(object) }
        return !isOver && (observer == nil || object != nil)
    }

    /// Whether the subscriber was cancelled or notified.
    var isOver: Bool { state.withLock { $0.isOver } }

    /// Cancels the subscriber.
    func leave() { state.withLock { $0.isOver = true } }

    /// Notifies the subscriber, unless it was cancelled or notified before. Call it on ``delivery``.
    func notify(_ outcome: Result<Value, CacheError>, _ url: URL) {
        let state: State? = state.withLock { state in
            guard !state.isOver else { return nil }
            state.isOver = true
            return state
        }
        guard let state else { return }
        caller?(outcome)
        if let listener = state.listener {
            switch outcome {
            case .success(let value): listener.resourceDidLoad(value, from: url)
            case .failure(let error): listener.resourceDidFail(error, from: url)
            }
        }
        guard let observer = state.observer else { return }
        MainActor.assumeIsolated {
            switch outcome {
            case .success(let value): observer.resourceDidLoad(value, from: url)
            case .failure(let error): observer.resourceDidFail(error, from: url)
            }
        }
    }
}
