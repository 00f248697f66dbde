#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCache
import VitrineCore

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
