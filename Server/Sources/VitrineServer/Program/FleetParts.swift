import Crypto
import Foundation
import Logging
import VitrineCore
import VitrineFleet
import VitrineS3

/// The connections to servers that are shared with others, made once for all configurations.
struct SharedParts: Sendable {
    /// The buckets of sources; nil for none.
    let buckets: BucketSources?
    /// The results of the fleet; nil for none.
    let results: RemoteResults?

    /// - Throws: ``ConfigurationError`` for values and files that cannot be used.
    init(_ configuration: ServerConfiguration, _ logger: Logger) throws {
        let (fleet, s3) = (configuration.fleet, configuration.s3)
        let names = s3.buckets.filter { !$0.isEmpty }
        if names.isEmpty {
            buckets = nil
        } else {
            let client = try s3.client(
                timeout: .seconds(configuration.downloadTimeout),
                maximumBytes: ByteCount(configuration.maximumSourceBytes))
            buckets = BucketSources(Dictionary(names.map { ($0, client.bucket($0)) }) { first, _ in first })
        }
        let directory = configuration.diskCache.isEmpty ? nil : configuration.diskCache
        let tier = try fleet.tier(
            directory: directory, secrets: configuration.tierSecrets, logger: logger)
        var durable: DurableResults?
        if let place = BucketConfiguration.place(s3.resultStore) {
            let client = try s3.client(timeout: .seconds(60), maximumBytes: .megabytes(500))
            var own = DurableResults.Configuration()
            (own.prefix, own.timeout) = (place.prefix, .seconds(s3.resultTimeout))
            own.queueBytes = s3.resultQueueBytes
            durable = DurableResults(client.bucket(place.bucket), own, logger: logger)
        }
        let wait = fleet.redisWait > 0 ? fleet.redisWait : configuration.timeout / 2
        results = tier == nil && durable == nil
            ? nil : RemoteResults(tier: tier, durable: durable, wait: .seconds(wait))
    }
}

extension ServerConfiguration {
    /// The secrets of values in the tier, one for each pair of key and salt. No signature of a URL is made with them.
    var tierSecrets: [[UInt8]] {
        zip(keys, salts).map { key, salt in
            let code = HMAC<SHA256>.authenticationCode(
                for: Array("vitrine tier ".utf8) + salt, using: SymmetricKey(data: key))
            return Array(code)
        }
    }
}

extension RemoteResults {
    /// A word for `/debug`.
    package var status: String {
        switch tier?.status {
        case nil: "off"
        case .connecting: "connecting"
        case .up: "up"
        case .down(let error): "down: \(error)"
        }
    }

    /// Adds counts of events to the metrics.
    func collect(into registry: PrometheusRegistry) {
        if let tier {
            let counts = tier.statistics
            registry.setGauge("vitrine_tier_up", to: isUp ? 1 : 0)
            for (result, count) in [
                ("hit", counts.hits), ("stale", counts.staleHits), ("lease", counts.leases),
                ("bypass", counts.bypasses),
            ] {
                registry.setCounter("vitrine_tier_lookups_total", [("result", result)], to: Double(count))
            }
            for (result, count) in [
                ("stored", counts.stores), ("fenced", counts.fencedStores), ("dropped", counts.droppedStores),
                ("oversized", counts.oversizedValues),
            ] {
                registry.setCounter("vitrine_tier_writes_total", [("result", result)], to: Double(count))
            }
            for (name, count) in [
                ("refreshes", counts.refreshes), ("waits", counts.waits), ("failures", counts.failures),
                ("damaged_values", counts.damagedValues + damagedResults), ("invalidations", counts.invalidations),
                ("outages", counts.outages),
            ] {
                registry.setCounter("vitrine_tier_\(name)_total", to: Double(count))
            }
        }
        guard let durable else { return }
        let counts = durable.counts
        registry.setGauge("vitrine_store_up", to: durable.isUp ? 1 : 0)
        registry.setGauge("vitrine_store_queue_bytes", to: Double(durable.queuedBytes))
        for (result, count) in [
            ("hit", counts.hits), ("miss", counts.misses), ("purged", counts.purged), ("damaged", counts.damaged),
            ("failed", counts.failures),
        ] {
            registry.setCounter("vitrine_store_lookups_total", [("result", result)], to: Double(count))
        }
        for (result, count) in [
            ("stored", counts.writes), ("existing", counts.existing), ("failed", counts.failedWrites),
            ("dropped", counts.droppedWrites),
        ] {
            registry.setCounter("vitrine_store_writes_total", [("result", result)], to: Double(count))
        }
    }
}
