import VitrineCache
import VitrineCore

/// A fetcher that tells when it is asked and when it has answered, and that can give its answer again: a load nobody
/// waits for any more is given up without decoding, and its bytes are stored by another one (R85).
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
    }

    /// From now on the answer that was given is given again.
    func replay() { state.withLock { $0.isReplaying = true } }

    /// Nothing is kept or given again any more.
    func forget() {
        let answer = state.withLock { state in
            defer { state = State(isForgotten: true) }
            return state.answer
        }
        // Let go of outside the lock.
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
    /// Whether it answers the question: what refers to the stored entry needs one.
    fileprivate func fits(_ context: FetchContext) -> Bool {
        switch content {
        case .value, .bytes, .both: true
        case .unchanged, .stale: context.stored != nil && !context.isRefresh
        }
    }
}
