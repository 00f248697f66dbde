public import NIOCore
import Synchronization

/// The right to make a value, for all nodes.
///
/// The holder makes the value and calls ``store(_:contentType:freshFor:staleFor:)``, or ``release()`` if there is none.
/// A lease that is deinitialized is released. It is extended as long as it exists, for at most
/// ``RemoteTier/Configuration/maximumLeaseTime``. If its process dies or is suspended, it lapses after
/// ``RemoteTier/Configuration/leaseTime``, another node gets it, and a late value is not stored.
public final class Lease: Sendable {
    let core: LeaseCore
    private let tier: RemoteTier

    init(_ core: LeaseCore, _ tier: RemoteTier) { (self.core, self.tier) = (core, tier) }

    deinit { release() }

    /// The key of the value.
    public var key: RemoteKey { core.key }

    /// Whether the value was purged since the lease was given, so that the node's own caches must not keep it either.
    public var isRevoked: Bool { core.isRevoked.load(ordering: .acquiring) }

    /// Stores the value in the tier and ends the lease. Returns at once; the value is written in the background.
    ///
    /// The value is dropped if the lease has lapsed, if the value was purged meanwhile, if too much is waiting to be
    /// written, or if the tier cannot be reached. Values of more than ``RemoteTier/Configuration/maximumValueSize``
    /// are not shared: the tier remembers for at most five minutes that each node makes them itself.
    ///
    /// - Parameters:
    ///   - contents: The value.
    ///   - contentType: Its media type.
    ///   - freshFor: How long it needs no refresh.
    ///   - staleFor: How long it is used afterwards while one node makes it anew.
    public func store(
        _ contents: ByteBuffer, contentType: String = "", freshFor: Duration, staleFor: Duration = .zero
    ) {
        guard core.end() else { return }
        tier.write(contents, contentType, freshFor: freshFor, staleFor: staleFor, of: core)
    }

    /// Ends the lease because the value cannot be shared, for example if its source failed.
    ///
    /// Look-ups return ``RemoteTier/Lookup/bypass`` for the time, at most five minutes, instead of giving the lease to
    /// one node after the other.
    public func decline(for time: Duration) {
        guard core.end() else { return }
        tier.writeMark(for: time, of: core, keepsLease: false)
    }

    /// Lets all nodes that wait go on without the value, and keeps the lease.
    ///
    /// Look-ups return ``RemoteTier/Lookup/bypass`` for the time, at most five minutes, or until
    /// ``store(_:contentType:freshFor:staleFor:)``.
    public func excuse(for time: Duration) { tier.writeMark(for: time, of: core, keepsLease: true) }

    /// Ends the lease without a value. A node that waits gets it.
    public func release() {
        guard core.end() else { return }
        tier.release(core)
    }
}

/// The state that a lease and the tier share.
final class LeaseCore: Sendable {
    let key: RemoteKey
    let names: TierNames
    let token: String
    let generation: String
    let began: ContinuousClock.Instant
    let isRevoked = Atomic(false)
    private let isEnded = Atomic(false)

    init(_ key: RemoteKey, _ names: TierNames, token: String, generation: String) {
        (self.key, self.names, self.token, self.generation) = (key, names, token, generation)
        began = .now
    }

    /// Returns whether the lease had not ended before.
    func end() -> Bool { !isEnded.exchange(true, ordering: .acquiringAndReleasing) }
}

/// The keys of a value in Redis. Those of a group share a hash tag.
struct TierNames: Sendable {
    let value: String
    let lease: String
    let generation: String

    init(_ namespace: String, epoch: String, _ key: RemoteKey) {
        let group = "{\(namespace):\(epoch):\(key.group)}"
        (value, lease, generation) = ("\(group):\(key.name):v", "\(group):\(key.name):l", "\(group):g")
    }
}

/// The leases that this node holds.
final class HeldLeases: Sendable {
    private let cores = Mutex<[String: LeaseCore]>([:])

    func add(_ core: LeaseCore) { cores.withLock { $0[core.token] = core } }

    func remove(_ core: LeaseCore) { cores.withLock { $0[core.token] = nil } }

    var all: [LeaseCore] { cores.withLock { Array($0.values) } }

    func revoke(_ invalidation: RemoteTier.Invalidation) {
        cores.withLock { cores in
            for core in cores.values where invalidation.includes(core.key) {
                core.isRevoked.store(true, ordering: .releasing)
            }
        }
    }
}

/// The requests of this node that wait for values.
final class TierWaiters: Sendable {
    private let signals = Mutex<[RemoteKey: [Signal]]>([:])

    func add(_ key: RemoteKey) -> Signal {
        let signal = Signal()
        signals.withLock { $0[key, default: []].append(signal) }
        return signal
    }

    func remove(_ signal: Signal, _ key: RemoteKey) {
        signals.withLock { signals in
            signals[key]?.removeAll { $0 === signal }
            if signals[key]?.isEmpty == true { signals[key] = nil }
        }
    }

    func wake(_ invalidation: RemoteTier.Invalidation) {
        let woken = signals.withLock { signals -> [Signal] in
            if case .key(let key) = invalidation { return signals[key] ?? [] }
            return signals.filter { invalidation.includes($0.key) }.flatMap(\.value)
        }
        for signal in woken { signal.fire() }
    }

    var count: Int { signals.withLock { $0.values.reduce(0) { $0 + $1.count } } }
}
