#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCache
import VitrineCore

/// One resource that is being loaded, in any number of formats, and who waits for it. Touched under the lock of
/// ``ResourceLoads`` only.
struct ResourceLoad<Value: CacheableValue> {
    /// A party and what it wants.
    struct Member {
        let party: ResourceSubscriber<Value>
        let format: FormatName
        var depth: CacheLevel
        var priority: Priority
    }

    /// How a format's value is looked for.
    enum Stage: Sendable {
        /// The levels are looked at, and nothing else.
        case reading
        /// The levels are looked at, then the source is asked and its answer decoded.
        case fetching
    }

    /// One format's value on its way.
    struct Run {
        let stage: Stage
        /// Tells it from others of the same load: what an earlier one says does not count.
        let number: Int
        /// Its handle; nil until it is known.
        var fetch: FetchTask<Value>?
    }

    let url: URL
    /// Tells the load from others of the same resource.
    let id: Int
    /// Asks the source, for all formats.
    var fetcher: WatchedFetcher<Value>
    var progress: TransferProgress
    var members: [Member] = []
    var runs: [FormatName: Run] = [:]
    /// The number of the run that stores what came when nobody waited; nil if there is none.
    var storing: Int?
    /// Whether the source was asked, and whether it has answered.
    var hasAsked = false, hasAnswered = false

    /// Whether somebody looks as far as the source, or what came from it is being stored.
    var isTransferring: Bool { storing != nil || runs.values.contains { $0.stage == .fetching } }

    /// Whether nothing is going on.
    var isOver: Bool { storing == nil && runs.isEmpty }

    /// The highest priority among those who wait for a format.
    func priority(of format: FormatName) -> Priority {
        members.lazy.filter { $0.format == format }.map(\.priority).max() ?? .low
    }

    /// Whether somebody waits for a format.
    func isWanted(_ format: FormatName) -> Bool { members.contains { $0.format == format } }

    // MARK: Coming and going

    /// Takes a party in. One who waits for the same already is the same party: it goes deeper if it wants to.
    mutating func add(_ member: Member, keeping kept: inout [ResourceSubscriber<Value>.Kept]) {
        let party = member.party
        let index = members.firstIndex { other in
            guard other.format == member.format else { return false }
            if party.isPrefetch { return other.party.isPrefetch }
            guard let observer = party.observer, other.party.observer == observer else { return false }
            return other.party.isWaiting(keeping: &kept)
        }
        guard let index else { return members.append(member) }
        members[index].depth = max(members[index].depth, member.depth)
        members[index].priority = party.isPrefetch ? max(members[index].priority, member.priority) : member.priority
    }

    /// Forgets who has gone or left.
    mutating func prune(keeping kept: inout [ResourceSubscriber<Value>.Kept]) {
        members.removeAll { !$0.party.isWaiting(keeping: &kept) }
    }

    /// Ends runs that nobody waits for any more, as far as that ends no transfer that is to go on.
    ///
    /// - Parameters:
    ///   - policy: What becomes of a transfer that nobody waits for.
    ///   - keepsOriginals: Whether originals are stored for other formats' sake.
    /// - Returns: The handles to cancel, and whether what has come is to be stored.
    mutating func abandon(
        _ policy: CancellationPolicy, keepsOriginals: Bool
    ) -> (cancelled: [FetchTask<Value>], stores: Bool) {
        let idle = runs.filter { !isWanted($0.key) }
        let isTransferWanted = runs.contains { $0.value.stage == .fetching && isWanted($0.key) }
        // A transfer that is under way ends with the last run: those that are idle hold it.
        let keepsTransfer = hasAsked && !hasAnswered && (isTransferWanted || goesOn(policy))
        let ended = idle.filter { $0.value.stage == .reading || !keepsTransfer }
        for format in ended.keys { runs[format] = nil }
        let stores = ended.contains { format, run in
            run.stage == .fetching && (format == .original || keepsOriginals && fetcher.storesOriginal)
        }
        return (ended.values.compactMap(\.fetch), hasAnswered && !isTransferWanted && stores)
    }

    /// Whether a transfer that has begun goes on without anyone.
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
