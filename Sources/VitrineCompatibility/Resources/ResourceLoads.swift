#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCache
import VitrineCore
import VitrineNetwork

/// The running loads, one per resource, with their subscribers.
///
/// Lock order: this lock, then those of subscribers, progresses and fetchers. Fetches are started and cancelled, and
/// subscribers are notified, outside of the lock.
final class ResourceLoads<Value: CacheableValue>: Sendable {
    typealias Load = ResourceLoad<Value>
    typealias Subscriber = ResourceSubscriber<Value>

    struct State {
        var lastNumber = 0
        var loads: [CacheKey: Load] = [:]
        /// Observers that have an outcome but have not been notified.
        var undelivered: [CacheKey: [(subscriber: Subscriber, format: FormatName)]] = [:]

        mutating func number() -> Int {
            lastNumber += 1
            return lastNumber
        }
    }

    /// A run to start outside of the lock.
    fileprivate enum Start: Sendable {
        case run(FormatName, Load.Stage, number: Int, RequestPriority)
        case storing(number: Int)
    }

    /// The effects of a change, which are performed outside of the lock.
    fileprivate struct Effects: Sendable {
        let key: CacheKey
        var fetcher: WatchedFetcher<Value>
        var cancelled: [FetchTask<Value>] = []
        var starts: [Start] = []
        /// The fetchers to release.
        var forgotten: [WatchedFetcher<Value>] = []
    }

    let cache: ValueCache<Value>
    let state = Locked(State())

    init(_ cache: ValueCache<Value>) { self.cache = cache }

    // MARK: Joining

    /// Adds a subscriber to the load of a resource and starts the load if necessary.
    ///
    /// - Parameters:
    ///   - subscriber: The subscriber, which is notified once on its queue.
    ///   - url: The URL of the resource.
    ///   - format: The format of the value.
    ///   - depth: `.disk` or `.source`.
    ///   - priority: The priority.
    ///   - fetcher: The fetcher of a new load.
    ///   - progress: The progress of that fetcher.
    func join(
        _ subscriber: Subscriber, url: URL, format: FormatName, depth: CacheLevel, priority: RequestPriority,
        fetcher: any Fetcher<Value>, progress: TransferProgress
    ) {
        let key = fetcher.key
        var kept: [ResourceSubscriber<Value>.Kept] = []
        let effects: Effects? = state.withLock { state in
            guard !subscriber.isOver else { return nil }
            var load =
                state.loads[key] ?? newLoad(url, fetcher: fetcher, progress: progress, key: key, number: state.number())
            var effects = Effects(key: key, fetcher: load.fetcher)
            if !load.isTransferring, state.loads[key] != nil {
                // The state of an earlier transfer does not apply to the next.
                effects.forgotten = [load.fetcher]
                load.fetcher = watched(fetcher, key: key, id: load.id)
                load.progress = progress
                load.hasAsked = false
                load.hasAnswered = false
                effects.fetcher = load.fetcher
            }
            load.add(
                Load.Member(subscriber: subscriber, format: format, depth: depth, priority: priority), keeping: &kept)
            if load.runs[format] == nil, load.storing == nil {
                let stage: Load.Stage = depth > .disk ? .fetching : .reading
                effects.starts = [Self.begin(format, stage: stage, load: &load, number: state.number())]
            }
            state.loads[key] = load
            return effects
        }
        if let effects { perform(effects) }
        followPriority(key, format)
        withExtendedLifetime(kept) {}
    }

    private func newLoad(
        _ url: URL, fetcher: any Fetcher<Value>, progress: TransferProgress, key: CacheKey, number: Int
    ) -> Load {
        Load(url: url, id: number, fetcher: watched(fetcher, key: key, id: number), progress: progress)
    }

    private func watched(_ fetcher: any Fetcher<Value>, key: CacheKey, id: Int) -> WatchedFetcher<Value> {
        WatchedFetcher(
            fetcher, willAsk: { [weak self] in self?.asked(key, id, by: $0) },
            hasAnswered: { [weak self] in self?.answered(key, id, by: $0) })
    }

    /// Records a new run of a format.
    fileprivate static func begin(_ format: FormatName, stage: Load.Stage, load: inout Load, number: Int) -> Start {
        load.runs[format] = Load.Run(stage: stage, number: number)
        return .run(format, stage, number: number, load.priority(of: format))
    }

    // MARK: Effects

    fileprivate func perform(_ effects: Effects) {
        let (key, fetcher) = (effects.key, effects.fetcher)
        for fetch in effects.cancelled { fetch.cancel() }
        for fetcher in effects.forgotten { fetcher.forget() }
        for start in effects.starts {
            switch start {
            case .run(let format, .reading, let number, let priority):
                follow(
                    cache.fetchStored(forKey: key, format: format, priority: priority), key: key, format: format,
                    number: number)
            case .run(let format, .fetching, let number, let priority):
                follow(
                    cache.fetch(from: fetcher, format: format, priority: priority), key: key, format: format,
                    number: number)
            case .storing(let number):
                Task {
                    // The cache logs failures; there are no subscribers.
                    try? await cache.prefetch(from: fetcher, to: .disk, priority: .low)
                    stored(key, number)
                }
            }
        }
    }

    /// Follows a run to its end.
    private func follow(_ fetch: FetchTask<Value>, key: CacheKey, format: FormatName, number: Int) {
        let isCurrent = state.withLock { state in
            guard state.loads[key]?.runs[format]?.number == number else { return false }
            state.loads[key]?.runs[format]?.fetch = fetch
            return true
        }
        // The last subscriber left before the handle was known.
        guard isCurrent else { return fetch.cancel() }
        fetch.onEnd(on: .immediate) { [self] outcome in ended(key, format: format, number: number, outcome: outcome) }
        followPriority(key, format)
    }

    /// Sets the priority of a run to the highest of its subscribers.
    private func followPriority(_ key: CacheKey, _ format: FormatName) {
        while true {
            let wanted: (FetchTask<Value>, RequestPriority)? = state.withLock { state in
                guard let load = state.loads[key], let fetch = load.runs[format]?.fetch else { return nil }
                return (fetch, load.priority(of: format))
            }
            guard let (fetch, priority) = wanted, fetch.priority != priority else { return }
            // Check again, because another thread may change it as well.
            fetch.priority = priority
        }
    }

    // MARK: Inspection

    /// The number of running loads.
    var count: Int { state.withLock { $0.loads.count } }

    /// Returns the number of subscribers of a resource.
    func waiters(_ key: CacheKey) -> Int { state.withLock { $0.loads[key]?.members.count ?? 0 } }

    /// Returns the progress of a resource; nil if it is not being loaded.
    func transfer(_ key: CacheKey) -> TransferProgress.Step? { state.withLock { $0.loads[key]?.progress }?.current }

    /// Returns the priority of a format's load; nil if it is not being loaded.
    func priority(_ key: CacheKey, _ format: FormatName) -> RequestPriority? {
        state.withLock { $0.loads[key]?.runs[format]?.fetch }?.priority
    }
}

extension ResourceLoads {
    // MARK: Events of the fetcher

    /// Called when the source is fetched, because no level has the value.
    func asked(_ key: CacheKey, _ id: Int, by fetcher: WatchedFetcher<Value>) {
        state.withLock { state in
            guard let load = state.loads[key], load.id == id, load.fetcher === fetcher else { return }
            state.loads[key]?.hasAsked = true
            state.loads[key]?.hasAnswered = false
        }
    }

    /// Called when the source has answered. Formats without subscribers are not decoded. Without any subscribers, the
    /// bytes are stored as they are.
    func answered(_ key: CacheKey, _ id: Int, by fetcher: WatchedFetcher<Value>) {
        var kept: [ResourceSubscriber<Value>.Kept] = []
        let effects: Effects? = state.withLock { state in
            guard var load = state.loads[key], load.id == id, load.fetcher === fetcher, load.hasAsked,
                load.storing == nil
            else { return nil }
            load.hasAnswered = true
            return settle(&load, policy: .processing, key: key, state: &state, keeping: &kept)
        }
        if let effects { perform(effects) }
        withExtendedLifetime(kept) {}
    }

    /// Ends runs without subscribers, and the load with its last run.
    private func settle(
        _ load: inout Load, policy: CancellationPolicy, key: CacheKey, state: inout State,
        keeping kept: inout [ResourceSubscriber<Value>.Kept]
    ) -> Effects {
        var effects = Effects(key: key, fetcher: load.fetcher)
        load.prune(keeping: &kept)
        let (cancelled, stores) = load.abandon(
            policy, keepsOriginals: cache.configuration.storesOriginals)
        effects.cancelled = cancelled
        if stores, load.storing == nil {
            let number = state.number()
            load.storing = number
            load.fetcher.replay()
            effects.starts = [.storing(number: number)]
        }
        state.loads[key] = load.isOver ? nil : load
        if load.isOver { effects.forgotten = [load.fetcher] }
        return effects
    }

    // MARK: Events of the cache

    /// Called when a run has ended. Notifies its subscribers, except those with a greater depth, for which a new run
    /// starts.
    func ended(_ key: CacheKey, format: FormatName, number: Int, outcome: Result<Value, CacheError>) {
        let (effects, told, url) = state.withLock { state -> (Effects?, [Subscriber], URL?) in
            guard var load = state.loads[key], let run = load.runs[format], run.number == number else {
                return (nil, [], nil)
            }
            let goesFurther = if run.stage == .reading, case .failure = outcome { true } else { false }
            let isTold: (Load.Member) -> Bool = { $0.format == format && !(goesFurther && $0.depth > .disk) }
            let told = load.members.filter(isTold).map(\.subscriber)
            load.members.removeAll(where: isTold)
            load.runs[format] = nil
            for subscriber in told where subscriber.observer != nil {
                state.undelivered[key, default: []].append((subscriber, format))
            }
            var effects = Effects(key: key, fetcher: load.fetcher)
            // While bytes are being stored, subscribers wait for that.
            if load.isWanted(format), load.storing == nil {
                effects.starts = [Self.begin(format, stage: .fetching, load: &load, number: state.number())]
            }
            state.loads[key] = load.isOver ? nil : load
            if load.isOver { effects.forgotten = [load.fetcher] }
            return (effects, told, load.url)
        }
        if let effects { perform(effects) }
        if let url { deliver(outcome, to: told, key: key, url: url) }
    }

    /// Called when bytes without subscribers are stored. Subscribers that joined meanwhile receive them.
    func stored(_ key: CacheKey, _ number: Int) {
        let effects: Effects? = state.withLock { state in
            guard var load = state.loads[key], load.storing == number else { return nil }
            load.storing = nil
            var effects = Effects(key: key, fetcher: load.fetcher)
            for format in Set(load.members.map(\.format)) where load.runs[format] == nil {
                effects.starts.append(Self.begin(format, stage: .fetching, load: &load, number: state.number()))
            }
            state.loads[key] = load.isOver ? nil : load
            if load.isOver { effects.forgotten = [load.fetcher] }
            return effects
        }
        if let effects { perform(effects) }
    }

    private func deliver(
        _ outcome: Result<Value, CacheError>, to subscribers: [Subscriber], key: CacheKey, url: URL
    ) {
        for subscriber in subscribers {
            guard subscriber.observer != nil else {
                subscriber.notify(outcome, url)
                continue
            }
            subscriber.delivery.perform { [self] in
                state.withLock { state in
                    state.undelivered[key]?.removeAll { $0.subscriber === subscriber }
                    if state.undelivered[key]?.isEmpty == true { state.undelivered[key] = nil }
                }
                subscriber.notify(outcome, url)
            }
        }
    }

    // MARK: Cancellation

    /// Cancels the requests of an observer.
    ///
    /// - Parameters:
    ///   - key: The key of the resource.
    ///   - format: The format, or nil for all.
    ///   - observer: The observer.
    ///   - policy: Decides about a transfer without subscribers.
    func cancel(_ key: CacheKey, format: FormatName?, observer: ObjectIdentifier, policy: CancellationPolicy) {
        leave(key, policy: policy) { $0.subscriber.observer == observer && (format == nil || $0.format == format) }
        state.withLock { state in
            for (subscriber, itsFormat) in state.undelivered[key] ?? []
            where subscriber.observer == observer && (format == nil || itsFormat == format) {
                subscriber.leave()
            }
        }
    }

    /// Cancels the request of a caller and ends a transfer without other subscribers.
    func leave(_ key: CacheKey, _ subscriber: Subscriber) {
        subscriber.leave()
        leave(key, policy: .unconditional) { $0.subscriber === subscriber }
    }

    private func leave(_ key: CacheKey, policy: CancellationPolicy, goes: (Load.Member) -> Bool) {
        var kept: [ResourceSubscriber<Value>.Kept] = []
        let (effects, formats) = state.withLock { state -> (Effects?, [FormatName]) in
            guard var load = state.loads[key] else { return (nil, []) }
            let leaving = load.members.filter(goes)
            guard !leaving.isEmpty else { return (nil, []) }
            for member in leaving { member.subscriber.leave() }
            return (settle(&load, policy: policy, key: key, state: &state, keeping: &kept), leaving.map(\.format))
        }
        if let effects { perform(effects) }
        for format in formats { followPriority(key, format) }
        withExtendedLifetime(kept) {}
    }
}
