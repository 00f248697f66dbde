#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCache
import VitrineCore

/// What is being loaded, one load for each resource, and for whom (R80, R85–R87).
///
/// Lock order: this one, then those of parties, progresses and fetchers. Fetches are begun and cancelled, and parties
/// told, outside of it.
final class ResourceLoads<Value: CacheableValue>: Sendable {
    typealias Load = ResourceLoad<Value>
    typealias Party = ResourceSubscriber<Value>

    struct State {
        var lastNumber = 0
        var loads: [CacheKey: Load] = [:]
        /// Observers whose outcome is known but has not reached them.
        var undelivered: [CacheKey: [(party: Party, format: FormatName)]] = [:]

        mutating func number() -> Int {
            lastNumber += 1
            return lastNumber
        }
    }

    /// Something that is to begin, outside of the lock.
    enum Start: Sendable {
        case run(FormatName, Load.Stage, number: Int, Priority)
        case storing(number: Int)
    }

    /// What is to be done about a load, outside of the lock.
    struct Consequences: Sendable {
        let key: CacheKey
        var fetcher: WatchedFetcher<Value>
        var cancelled: [FetchTask<Value>] = []
        var starts: [Start] = []
        /// Fetchers that are not needed any more.
        var forgotten: [WatchedFetcher<Value>] = []
    }

    let cache: Cache<Value>
    let state = Locked(State())

    init(_ cache: Cache<Value>) { self.cache = cache }

    // MARK: Joining

    /// Joins the load of a resource, and begins what there is to begin for it. The party is told once, where its
    /// `delivery` says.
    ///
    /// - Parameters:
    ///   - depth: `.disk` or `.source`.
    ///   - fetcher: Loads it, if nothing does yet.
    ///   - progress: How far that fetcher is.
    func join(
        _ party: Party, _ url: URL, _ format: FormatName, _ depth: CacheLevel, _ priority: Priority,
        _ fetcher: any Fetcher<Value>, _ progress: TransferProgress
    ) {
        let key = fetcher.key
        var kept: [ResourceSubscriber<Value>.Kept] = []
        let consequences: Consequences? = state.withLock { state in
            guard !party.isOver else { return nil }
            var load = state.loads[key] ?? newLoad(url, fetcher, progress, key, number: state.number())
            var consequences = Consequences(key: key, fetcher: load.fetcher)
            if !load.isTransferring, state.loads[key] != nil {
                // What an earlier transfer did says nothing of the next.
                consequences.forgotten = [load.fetcher]
                load.fetcher = watched(fetcher, key, load.id)
                load.progress = progress
                load.hasAsked = false
                load.hasAnswered = false
                consequences.fetcher = load.fetcher
            }
            load.add(Load.Member(party: party, format: format, depth: depth, priority: priority), keeping: &kept)
            if load.runs[format] == nil, load.storing == nil {
                let stage: Load.Stage = depth > .disk ? .fetching : .reading
                consequences.starts = [Self.begin(format, stage, &load, number: state.number())]
            }
            state.loads[key] = load
            return consequences
        }
        if let consequences { perform(consequences) }
        followPriority(key, format)
        withExtendedLifetime(kept) {}
    }

    private func newLoad(
        _ url: URL, _ fetcher: any Fetcher<Value>, _ progress: TransferProgress, _ key: CacheKey, number: Int
    ) -> Load {
        Load(url: url, id: number, fetcher: watched(fetcher, key, number), progress: progress)
    }

    private func watched(_ fetcher: any Fetcher<Value>, _ key: CacheKey, _ id: Int) -> WatchedFetcher<Value> {
        WatchedFetcher(
            fetcher, willAsk: { [weak self] in self?.asked(key, id, by: $0) },
            hasAnswered: { [weak self] in self?.answered(key, id, by: $0) })
    }

    /// Notes that a format's value is on its way from now on.
    static func begin(_ format: FormatName, _ stage: Load.Stage, _ load: inout Load, number: Int) -> Start {
        load.runs[format] = Load.Run(stage: stage, number: number)
        return .run(format, stage, number: number, load.priority(of: format))
    }

    // MARK: Doing

    func perform(_ consequences: Consequences) {
        let (key, fetcher) = (consequences.key, consequences.fetcher)
        for fetch in consequences.cancelled { fetch.cancel() }
        for fetcher in consequences.forgotten { fetcher.forget() }
        for start in consequences.starts {
            switch start {
            case .run(let format, .reading, let number, let priority):
                follow(cache.fetchStored(forKey: key, format: format, priority: priority), key, format, number)
            case .run(let format, .fetching, let number, let priority):
                follow(cache.fetch(from: fetcher, format: format, priority: priority), key, format, number)
            case .storing(let number):
                Task {
                    // The cache logs what it cannot store; nobody waits here.
                    try? await cache.prefetch(from: fetcher, to: .disk, priority: .low)
                    stored(key, number)
                }
            }
        }
    }

    /// Waits for the end of a run.
    private func follow(_ fetch: FetchTask<Value>, _ key: CacheKey, _ format: FormatName, _ number: Int) {
        let isCurrent = state.withLock { state in
            guard state.loads[key]?.runs[format]?.number == number else { return false }
            state.loads[key]?.runs[format]?.fetch = fetch
            return true
        }
        // Nobody waited any more before it was known.
        guard isCurrent else { return fetch.cancel() }
        fetch.onEnd(on: .immediate) { [self] outcome in ended(key, format, number, outcome) }
        followPriority(key, format)
    }

    /// Lets a run be as urgent as the most urgent of those who wait.
    func followPriority(_ key: CacheKey, _ format: FormatName) {
        while true {
            let wanted: (FetchTask<Value>, Priority)? = state.withLock { state in
                guard let load = state.loads[key], let fetch = load.runs[format]?.fetch else { return nil }
                return (fetch, load.priority(of: format))
            }
            guard let (fetch, priority) = wanted, fetch.priority != priority else { return }
            // Looks once more: another thread may be changing it as well.
            fetch.priority = priority
        }
    }

    // MARK: For tests

    /// How many resources are being loaded.
    var count: Int { state.withLock { $0.loads.count } }

    /// How many wait for a resource.
    func waiters(_ key: CacheKey) -> Int { state.withLock { $0.loads[key]?.members.count ?? 0 } }

    /// How far a resource's transfer is; nil if it is not being loaded.
    func transfer(_ key: CacheKey) -> TransferProgress.Step? { state.withLock { $0.loads[key]?.progress }?.current }

    /// How urgent a format's value is; nil if it is not on its way.
    func priority(_ key: CacheKey, _ format: FormatName) -> Priority? {
        state.withLock { $0.loads[key]?.runs[format]?.fetch }?.priority
    }
}

extension ResourceLoads {
    // MARK: What the fetcher tells

    /// The source is being asked: what is stored was looked at, in vain.
    func asked(_ key: CacheKey, _ id: Int, by fetcher: WatchedFetcher<Value>) {
        state.withLock { state in
            guard let load = state.loads[key], load.id == id, load.fetcher === fetcher else { return }
            state.loads[key]?.hasAsked = true
            state.loads[key]?.hasAnswered = false
        }
    }

    /// The source has answered. What nobody waits for any more is not decoded; if nobody waits at all the answer is
    /// stored as it is (R85).
    func answered(_ key: CacheKey, _ id: Int, by fetcher: WatchedFetcher<Value>) {
        var kept: [ResourceSubscriber<Value>.Kept] = []
        let consequences: Consequences? = state.withLock { state in
            guard var load = state.loads[key], load.id == id, load.fetcher === fetcher, load.hasAsked,
                load.storing == nil
            else { return nil }
            load.hasAnswered = true
            return settle(&load, .processing, key, &state, keeping: &kept)
        }
        if let consequences { perform(consequences) }
        withExtendedLifetime(kept) {}
    }

    /// Ends what nobody waits for any more, and the load with the last of it.
    private func settle(
        _ load: inout Load, _ policy: CancellationPolicy, _ key: CacheKey, _ state: inout State,
        keeping kept: inout [ResourceSubscriber<Value>.Kept]
    ) -> Consequences {
        var consequences = Consequences(key: key, fetcher: load.fetcher)
        load.prune(keeping: &kept)
        let (cancelled, stores) = load.abandon(
            policy, keepsOriginals: cache.configuration.storesOriginals)
        consequences.cancelled = cancelled
        if stores, load.storing == nil {
            let number = state.number()
            load.storing = number
            load.fetcher.replay()
            consequences.starts = [.storing(number: number)]
        }
        state.loads[key] = load.isOver ? nil : load
        if load.isOver { consequences.forgotten = [load.fetcher] }
        return consequences
    }

    // MARK: What the cache tells

    /// A run has ended: those who waited are told, but who may look further than it did looks further.
    func ended(_ key: CacheKey, _ format: FormatName, _ number: Int, _ outcome: Result<Value, CacheError>) {
        let (consequences, told, url) = state.withLock { state -> (Consequences?, [Party], URL?) in
            guard var load = state.loads[key], let run = load.runs[format], run.number == number else {
                return (nil, [], nil)
            }
            var goesFurther = false
            if run.stage == .reading, case .failure = outcome { goesFurther = true }
            let told = load.members.filter { $0.format == format && !(goesFurther && $0.depth > .disk) }.map(\.party)
            load.members.removeAll { $0.format == format && !(goesFurther && $0.depth > .disk) }
            load.runs[format] = nil
            for party in told where party.observer != nil {
                state.undelivered[key, default: []].append((party, format))
            }
            var consequences = Consequences(key: key, fetcher: load.fetcher)
            // While something is being stored they wait for that.
            if load.isWanted(format), load.storing == nil {
                consequences.starts = [Self.begin(format, .fetching, &load, number: state.number())]
            }
            state.loads[key] = load.isOver ? nil : load
            if load.isOver { consequences.forgotten = [load.fetcher] }
            return (consequences, told, load.url)
        }
        if let consequences { perform(consequences) }
        if let url { deliver(outcome, to: told, key, url) }
    }

    /// What came when nobody waited is stored: who has come meanwhile gets it.
    func stored(_ key: CacheKey, _ number: Int) {
        let consequences: Consequences? = state.withLock { state in
            guard var load = state.loads[key], load.storing == number else { return nil }
            load.storing = nil
            var consequences = Consequences(key: key, fetcher: load.fetcher)
            for format in Set(load.members.map(\.format)) where load.runs[format] == nil {
                consequences.starts.append(Self.begin(format, .fetching, &load, number: state.number()))
            }
            state.loads[key] = load.isOver ? nil : load
            if load.isOver { consequences.forgotten = [load.fetcher] }
            return consequences
        }
        if let consequences { perform(consequences) }
    }

    private func deliver(_ outcome: Result<Value, CacheError>, to parties: [Party], _ key: CacheKey, _ url: URL) {
        for party in parties {
            guard party.observer != nil else {
                party.tell(outcome, url)
                continue
            }
            party.delivery.perform { [self] in
                state.withLock { state in
                    state.undelivered[key]?.removeAll { $0.party === party }
                    if state.undelivered[key]?.isEmpty == true { state.undelivered[key] = nil }
                }
                party.tell(outcome, url)
            }
        }
    }

    // MARK: Leaving

    /// An observer leaves the load of a resource (R87).
    ///
    /// - Parameter format: nil for all.
    func cancel(_ key: CacheKey, _ format: FormatName?, _ observer: ObjectIdentifier, _ policy: CancellationPolicy) {
        leave(key, policy) { $0.party.observer == observer && (format == nil || $0.format == format) }
        state.withLock { state in
            for (party, itsFormat) in state.undelivered[key] ?? []
            where party.observer == observer && (format == nil || itsFormat == format) {
                party.leave()
            }
        }
    }

    /// A caller leaves, and ends what nobody else waits for.
    func leave(_ key: CacheKey, _ party: Party) {
        party.leave()
        leave(key, .unconditional) { $0.party === party }
    }

    private func leave(_ key: CacheKey, _ policy: CancellationPolicy, _ goes: (Load.Member) -> Bool) {
        var kept: [ResourceSubscriber<Value>.Kept] = []
        let (consequences, formats) = state.withLock { state -> (Consequences?, [FormatName]) in
            guard var load = state.loads[key] else { return (nil, []) }
            let leaving = load.members.filter(goes)
            guard !leaving.isEmpty else { return (nil, []) }
            for member in leaving { member.party.leave() }
            return (settle(&load, policy, key, &state, keeping: &kept), leaving.map(\.format))
        }
        if let consequences { perform(consequences) }
        for format in formats { followPriority(key, format) }
        withExtendedLifetime(kept) {}
    }
}
