import Dispatch
public import Logging
import Synchronization

extension RemoteTier {
    /// The configuration.
    public struct Configuration: Sendable {
        /// The servers.
        public var redis: RedisConfiguration
        /// The beginning of all keys: 1 to 64 letters, digits, dots, hyphens and underscores. Tiers with equal
        /// namespaces share their values.
        public var namespace: String
        /// The secrets that authenticate values: the first signs the values of this node, and any of them makes a value
        /// valid. With none, the default, values have a checksum, and all clients of the server can write valid ones.
        public var secrets: [[UInt8]] = []
        /// The most bytes of a value in the tier. Default: 1 MB.
        public var maximumValueSize = 1_000_000
        /// After which time a lease lapses whose holder does not extend it. Default: 5 seconds.
        public var leaseTime: Duration = .seconds(5)
        /// How long a lease is extended. Default: 60 seconds.
        public var maximumLeaseTime: Duration = .seconds(60)
        /// How long a look-up waits for the value of another node's lease. Default: 15 seconds.
        public var maximumWait: Duration = .seconds(15)
        /// The share of the time for which a value is fresh, at its end, in which a value that is still asked for is
        /// made anew by one node. Default: 0.1. 0 waits until it is stale.
        public var earlyRefresh = 0.1
        /// The most bytes that wait to be written. Default: 32 MB.
        public var writeQueueSize = 32_000_000
        /// The file that keeps the position up to which this node has applied purges; nil, the default, for none.
        ///
        /// With it, a node that was restarted learns exactly the purges that it has missed. Without it, each start
        /// delivers ``Invalidation/all``.
        public var positionPath: String?
        /// Takes the failures of the tier.
        public var logger = Logger(label: "vitrine.fleet")

        /// How often the journal is compared.
        package var heartbeat: Duration = .seconds(1)
        /// The time since any moment in the past.
        package var uptime: @Sendable () -> Duration = {
            .nanoseconds(Int64(clamping: DispatchTime.now().uptimeNanoseconds))
        }

        /// Creates a configuration with the defaults.
        public init(redis: RedisConfiguration, namespace: String = "vitrine") {
            (self.redis, self.namespace) = (redis, namespace)
        }
    }

    /// Counts of events since the tier was created.
    public struct Statistics: Sendable, Hashable {
        /// Look-ups that returned a fresh value.
        public var hits = 0
        /// Look-ups that returned a stale value.
        public var staleHits = 0
        /// Leases that were given to this node for values that did not exist.
        public var leases = 0
        /// Leases that were given to this node for values that exist.
        public var refreshes = 0
        /// Look-ups that waited for another node.
        public var waits = 0
        /// Look-ups that returned ``Lookup/bypass``.
        public var bypasses = 0
        /// Commands that failed.
        public var failures = 0
        /// Stored bytes that are no value, of another version, or damaged.
        public var damagedValues = 0
        /// Values that were stored.
        public var stores = 0
        /// Values that were not stored because their lease had lapsed or they were purged.
        public var fencedStores = 0
        /// Values that were not stored because too much was waiting or the tier could not be reached.
        public var droppedStores = 0
        /// Values that are too large to be shared.
        public var oversizedValues = 0
        /// Purges that were received.
        public var invalidations = 0
        /// How often a server was found not to answer.
        public var outages = 0
    }
}

/// Counts events.
final class TierCounters: Sendable {
    private let statistics = Mutex(RemoteTier.Statistics())

    func add(_ path: WritableKeyPath<RemoteTier.Statistics, Int>?) {
        guard let path else { return }
        statistics.withLock { $0[keyPath: path] += 1 }
    }

    var snapshot: RemoteTier.Statistics { statistics.withLock { $0 } }
}
