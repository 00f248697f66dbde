import Foundation
public import Logging
public import NIOCore
import NIOPosix
import Synchronization

/// A cache that the nodes of a fleet share, in Redis, so that each value is made once.
///
/// ```swift
/// let tier = try RemoteTier(.init(redis: RedisConfiguration(url: "redis://cache.internal"), namespace: "images"))
/// switch await tier.lookup(RemoteKey(group: source, name: options)) {
/// case .value(let value, let refresh):
///     // Serve `value.contents`. With a lease, also make it anew, and store it.
/// case .lease(let lease):
///     // Make the value for all nodes; then lease.store(bytes, freshFor: .seconds(3_600)).
/// case .bypass:
///     // Make the value for this request only.
/// }
/// ```
///
/// A tier only makes things faster. If servers are slow, full, unreachable or answer nonsense, look-ups return
/// ``Lookup/bypass`` within ``RedisConfiguration/commandTimeout``, and at once after a few failures. Nothing throws.
/// Failures are counted in ``statistics`` and logged once until they end.
///
/// Each node that keeps copies of its own must apply ``invalidations``.
public final class RemoteTier: Sendable {
    /// The configuration.
    public struct Configuration: Sendable {
        /// The servers.
        public var redis: RedisConfiguration
        /// The beginning of all keys: 1 to 64 letters, digits, dots, hyphens and underscores. Tiers with equal
        /// namespaces share their values.
        public var namespace: String
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

    /// A value of the tier.
    public struct Value: Sendable {
        /// The bytes.
        public let contents: ByteBuffer
        /// The media type; empty if none was stored.
        public let contentType: String
        /// How long ago it was stored.
        public let age: Duration
        /// How long it is fresh from now on; negative if it is stale.
        public let freshness: Duration

        /// Whether it is used only while it is made anew.
        public var isStale: Bool { freshness <= .zero }
    }

    /// The result of a look-up.
    public enum Lookup: Sendable {
        /// The value. With a lease, this node is the one to make it anew.
        case value(Value, refresh: Lease?)
        /// There is no value, and this node is the one to make it.
        case lease(Lease)
        /// The tier does not help: the value is to be made without it.
        case bypass
    }

    /// Values that are no longer valid.
    public enum Invalidation: Sendable, Hashable {
        /// One value.
        case key(RemoteKey)
        /// All values of the group with this digest; see ``RemoteKey/digest(of:)``.
        case group(String)
        /// All values: all were purged, or it cannot be told which.
        case all

        /// `GROUP/NAME` or `GROUP`.
        init?(_ text: some StringProtocol) {
            let parts = text.split(separator: "/", omittingEmptySubsequences: false)
            guard (1...2).contains(parts.count), parts.allSatisfy({ RemoteKey.isDigest($0) }) else { return nil }
            self =
                parts.count == 1
                ? .group(String(parts[0]))
                : .key(RemoteKey(groupDigest: String(parts[0]), nameDigest: String(parts[1])))
        }

        /// Whether a key is among the values.
        public func includes(_ key: RemoteKey) -> Bool {
            switch self {
            case .key(let other): key == other
            case .group(let group): key.group == group
            case .all: true
            }
        }
    }

    /// The purges of all nodes, also of this one, in order.
    ///
    /// A purge counts as applied when the next one is asked for. Only one task may iterate. More than 10,000 purges that
    /// were not taken become ``Invalidation/all``. The sequence ends with ``shutDown()``.
    public struct Invalidations: AsyncSequence, Sendable {
        let queue: InvalidationQueue

        /// Gives one purge after the other.
        public struct Iterator: AsyncIteratorProtocol {
            let queue: InvalidationQueue

            public mutating func next() async -> Invalidation? { await queue.next() }
        }

        public func makeAsyncIterator() -> Iterator { Iterator(queue: queue) }
    }

    /// Whether the tier works.
    public enum Status: Sendable, Hashable {
        /// The first connection is being made.
        case connecting
        /// Values are shared, and purges are followed.
        case up
        /// The tier does not help, or not all of it.
        case down(RedisError)
    }

    /// What has happened since the tier was created.
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

    /// The configuration.
    public let configuration: Configuration
    private let client: RedisClient
    private let journal: TierJournal
    private let leases: HeldLeases
    private let waiters: TierWaiters
    private let writes: TierWriteQueue
    private let log: TierLog
    private let counters: TierCounters
    /// The values that another node refreshes, and until when this node does not ask again.
    private let refreshing = Mutex<[RemoteKey: ContinuousClock.Instant]>([:])
    private let pending = Mutex<[Invalidation]>([])
    private let tasks = Mutex<[Task<Void, Never>]>([])

    /// Creates a tier and begins to connect.
    ///
    /// - Throws: ``RedisError/invalidConfiguration(_:)``.
    public init(_ configuration: Configuration) throws(RedisError) {
        self.configuration = configuration
        let name = configuration.namespace.utf8
        guard (1...64).contains(name.count), name.allSatisfy(Self.isAllowed) else {
            throw .invalidConfiguration("the namespace is not 1 to 64 letters, digits, dots, hyphens and underscores")
        }
        guard configuration.leaseTime >= .milliseconds(10), configuration.maximumValueSize > 0,
            configuration.maximumWait >= .zero, (0..<1).contains(configuration.earlyRefresh)
        else { throw .invalidConfiguration("a time, a size or a share of the tier is out of range") }
        let log = TierLog(configuration.logger)
        let counters = TierCounters()
        let waiters = TierWaiters()
        let leases = HeldLeases()
        // Nodes with a larger limit on values do not break the connections of others.
        client = try RedisClient(
            configuration.redis, maximumReply: max(64_000_000, 2 * configuration.maximumValueSize)
        ) { event in
            let name = event.address?.description ?? "master"
            switch event.change {
            case .up: log.clear("server \(name)")
            case .down(let error):
                counters.add(\.outages)
                log.note("server \(name)", "The Redis server \(name) is not used at the moment: \(error)")
            }
        }
        writes = TierWriteQueue(limit: configuration.writeQueueSize)
        (self.log, self.counters, self.waiters, self.leases) = (log, counters, waiters, leases)
        let announcer = Announcer()
        journal = TierJournal(
            client, configuration, log, wake: { waiters.wake($0) },
            purged: {
                counters.add(\.invalidations)
                leases.revoke($0)
                waiters.wake($0)
            },
            opened: { await announcer.tier.withLock { $0.tier }?.announcePending() })
        announcer.tier.withLock { $0.tier = self }
        let journal = journal
        let following = Task { await journal.run() }
        let extending = Task { [weak self] in
            while !Task.isCancelled {
                try? await Task.sleep(for: configuration.leaseTime / 3)
                guard let self else { return }
                await extendLeases()
            }
        }
        tasks.withLock { $0 = [following, extending] }
    }

    /// Lets the journal refer to the tier that is created after it.
    private final class Announcer: Sendable {
        struct Reference: Sendable {
            weak var tier: RemoteTier?
        }
        let tier = Mutex(Reference())
    }

    deinit {
        for task in tasks.withLock({ $0 }) { task.cancel() }
        journal.end()
        client.shutDown()
    }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case 48...57, 65...90, 97...122, UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"): true
        default: false
        }
    }

    /// 16 hexadecimal digits.
    static func randomDigits() -> String {
        withUnsafeBytes(of: UInt64.random(in: .min ... .max)) { Array($0) }.hexadecimal
    }

    static func isRandomDigits(_ text: some StringProtocol) -> Bool {
        text.utf8.count == 16 && text.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
    }

    /// Waits until the tier works.
    ///
    /// A program calls it to report a wrong password or address at its start. It need not wait: a tier that does not
    /// work yet returns ``Lookup/bypass``.
    ///
    /// - Throws: The reason for which the tier does not work after the time.
    public func connect(within time: Duration = .seconds(5)) async throws(RedisError) {
        await journal.waitUntilConnected(atMost: time)
        switch status {
        case .up: return
        case .connecting: throw .timedOut
        case .down(let error): throw error
        }
    }

    /// Whether the tier works.
    public var status: Status {
        switch client.error {
        case .unavailable?: journal.lastError.map { .down($0) } ?? .connecting
        case let error?: .down(error)
        case nil where journal.isConnected: .up
        case nil: journal.lastError.map { .down($0) } ?? .connecting
        }
    }

    /// What has happened since the tier was created.
    public var statistics: Statistics { counters.snapshot }

    /// The purges of all nodes.
    public var invalidations: Invalidations { Invalidations(queue: journal.invalidations) }

    /// The look-ups that wait for other nodes.
    package var waitingCount: Int { waiters.count }

    /// Waits until no value waits to be written.
    public func flush() async { await writes.flush(atMost: .seconds(30), on: client.group.any()) }

    /// Writes what waits to be written, for at most five seconds, and ends all connections. Look-ups return
    /// ``Lookup/bypass`` from then on.
    public func shutDown() async {
        for core in leases.all where core.end() { release(core) }
        await writes.flush(atMost: .seconds(5), on: client.group.any())
        let tasks = tasks.withLock { $0 }
        for task in tasks { task.cancel() }
        client.shutDown()
        for task in tasks { await task.value }
        journal.end()
        waiters.wake(.all)
    }

    // MARK: Look-up

    /// Returns a value, or the right to make it, or neither.
    ///
    /// If another node makes the value, the look-up waits for it: until it is stored, for at most
    /// ``Configuration/maximumWait``, and not beyond the deadline or the cancellation of the task.
    public func lookup(_ key: RemoteKey, deadline: ContinuousClock.Instant? = nil) async -> Lookup {
        let result = await result(for: key, deadline)
        switch result {
        case .value(let value, let refresh):
            counters.add(value.isStale ? \.staleHits : \.hits)
            if refresh != nil { counters.add(\.refreshes) }
        case .lease: counters.add(\.leases)
        case .bypass: counters.add(\.bypasses)
        }
        return result
    }

    private func result(for key: RemoteKey, _ deadline: ContinuousClock.Instant?) async -> Lookup {
        let end = min(deadline ?? .now + .seconds(86_400), .now + configuration.maximumWait)
        var hasWaited = false
        while !Task.isCancelled {
            guard let epoch = journal.epoch, !pending.withLock({ $0.contains { $0.includes(key) } }) else {
                return .bypass
            }
            let names = TierNames(configuration.namespace, epoch: epoch, key)
            let signal = waiters.add(key)
            defer { waiters.remove(signal, key) }
            do throws(RedisError) {
                var damaged = ByteBuffer()
                let reply = try await client.call(
                    RESPCommand("MGET", .text(names.value), .text(names.generation)), key: names.value)
                guard let items = reply.items, items.count == 2 else { throw .protocolViolation("another reply to MGET") }
                if let stored = items[0].bytes {
                    if let found = await found(stored, generation: items[1].text, key, names) { return found }
                    damaged = stored.getSlice(
                        at: stored.readerIndex, length: min(stored.readableBytes, TierValue.headerSize)) ?? damaged
                }
                switch try await grant(key, names, replacing: damaged) {
                case .lease(let lease): return .lease(lease)
                case .value(let stored, let generation):
                    return await found(stored, generation: generation, key, names) ?? .bypass
                case .wait(let time):
                    if !hasWaited { counters.add(\.waits) }
                    hasWaited = true
                    // Without announcements the value is looked for; lapsed leases are not asked for all at once.
                    let limit = journal.isConnected ? time + .milliseconds(Int.random(in: 1...10)) : .milliseconds(50)
                    await signal.wait(atMost: min(limit, end - .now), on: client.group.any())
                    if ContinuousClock.now >= end { return .bypass }
                }
            } catch {
                fail(error)
                return .bypass
            }
        }
        return .bypass
    }

    private enum Grant {
        case value(ByteBuffer, generation: String)
        case lease(Lease)
        case wait(Duration)
    }

    /// Asks for a lease.
    ///
    /// - Parameter damaged: The beginning of a value that does not count; nil to leave any value out of account.
    private func grant(_ key: RemoteKey, _ names: TierNames, replacing damaged: ByteBuffer?) async throws(RedisError)
        -> Grant
    {
        let token = Self.randomDigits()
        let reply = try await client.run(
            TierScripts.lease, keys: [names.value, names.lease, names.generation],
            [
                .text(token), .text("\(configuration.leaseTime.wholeMilliseconds)"), .text(Self.randomDigits()),
                damaged == nil ? "1" : "0", .bytes(damaged ?? ByteBuffer()),
            ])
        guard let items = reply.items, items.count >= 2 else { throw .protocolViolation("another reply to a script") }
        switch items[0].text {
        case "value":
            guard items.count == 3, let bytes = items[1].bytes, let generation = items[2].text else { break }
            return .value(bytes, generation: generation)
        case "lease":
            guard let generation = items[1].text, Self.isRandomDigits(generation) else { break }
            let core = LeaseCore(key, names, token: token, generation: generation)
            leases.add(core)
            return .lease(Lease(core, self))
        case "wait":
            guard let time = items[1].integer else { break }
            // A lease has no more time than this, whatever the server says.
            let limit = configuration.leaseTime
            return .wait(time < 0 ? limit : min(limit, .milliseconds(time + 1)))
        default: break
        }
        throw .protocolViolation("another reply to a script")
    }

    /// The value in stored bytes; nil if they are to be replaced.
    private func found(
        _ stored: ByteBuffer, generation: String?, _ key: RemoteKey, _ names: TierNames
    ) async -> Lookup? {
        guard stored.readableBytes <= configuration.maximumValueSize + TierValue.headerSize + 65_535 else {
            counters.add(\.oversizedValues)
            return .bypass
        }
        guard let now = journal.now else { return .bypass }
        let value: TierValue
        switch Self.parsed(stored, key, generation) {
        case .success(let parsed): value = parsed
        case .failure(.outdated): return nil
        case .failure(let damage):
            counters.add(\.damagedValues)
            log.note("value \(damage)", "A value of the tier is not used (\(damage)): \(names.value)")
            return nil
        }
        // The clocks of servers that follow each other as masters may differ a little.
        guard value.created <= now + .seconds(60), value.freshUntil >= value.created else {
            counters.add(\.damagedValues)
            log.note("value clock", "A value of the tier is from the future and not used: \(names.value)")
            return nil
        }
        guard !value.isUnshared else { return .bypass }
        let result = Value(
            contents: value.contents, contentType: value.contentType, age: max(.zero, now - value.created),
            freshness: value.freshUntil - now)
        let early = (value.freshUntil - value.created) * configuration.earlyRefresh
        guard result.freshness <= early else { return .value(result, refresh: nil) }
        return .value(result, refresh: await refreshLease(key, names))
    }

    private static func parsed(
        _ stored: ByteBuffer, _ key: RemoteKey, _ generation: String?
    ) -> Result<TierValue, TierValue.Damage> {
        Result { () throws(TierValue.Damage) in try TierValue(stored: stored, key: key, generation: generation) }
    }

    /// The lease to make a value anew that is still used; nil if another request or node has it.
    private func refreshLease(_ key: RemoteKey, _ names: TierNames) async -> Lease? {
        let now = ContinuousClock.now
        let isFirst = refreshing.withLock { refreshing in
            if let until = refreshing[key], until > now { return false }
            if refreshing.count >= 10_000 { refreshing.removeAll() }
            // Others do not ask until this request has its answer.
            refreshing[key] = now + configuration.redis.commandTimeout
            return true
        }
        guard isFirst else { return nil }
        do throws(RedisError) {
            switch try await grant(key, names, replacing: nil) {
            case .lease(let lease):
                refreshing.withLock { $0[key] = now + configuration.leaseTime }
                return lease
            case .wait(let time):
                refreshing.withLock { $0[key] = now + time }
                return nil
            case .value: return nil
            }
        } catch {
            fail(error)
            return nil
        }
    }

    private func fail(_ error: RedisError) {
        counters.add(\.failures)
        switch error {
        // The server is logged once.
        case .unavailable, .unreachable, .timedOut: break
        default: log.note("command \(error)", "The tier is not used for a request: \(error)")
        }
    }

    // MARK: Leases

    func write(
        _ contents: ByteBuffer, _ contentType: String, freshFor: Duration, staleFor: Duration, of core: LeaseCore
    ) {
        leases.remove(core)
        refreshing.withLock { $0[core.key] = nil }
        let isOversized = contents.readableBytes > configuration.maximumValueSize
        if isOversized { counters.add(\.oversizedValues) }
        let isQueued = writes.append(cost: isOversized ? 1_024 : contents.readableBytes + 1_024) { [self] in
            // No time reaches further than 292,000 years in milliseconds.
            let longest = Duration.seconds(3_155_760_000)
            var fresh = min(max(freshFor, .zero), longest)
            if isOversized { fresh = min(fresh, .seconds(300)) }
            guard let now = journal.now else { return drop(core) }
            var value = TierValue(generation: core.generation, created: now, freshUntil: now + fresh)
            value.isUnshared = isOversized
            if !isOversized { (value.contents, value.contentType) = (contents, contentType) }
            let time = fresh + (isOversized ? .zero : min(max(staleFor, .zero), longest))
            await store(value, for: max(1, time.wholeMilliseconds), core)
        }
        if !isQueued { drop(core) }
    }

    private func drop(_ core: LeaseCore) {
        counters.add(\.droppedStores)
        log.note("write queue", "Values are not stored in the tier because it is too slow")
        Task { [self] in await end(core) }
    }

    private func store(_ value: TierValue, for milliseconds: Int64, _ core: LeaseCore) async {
        do throws(RedisError) {
            let reply = try await client.run(
                TierScripts.store, keys: [core.names.value, core.names.lease, core.names.generation],
                [
                    .text(core.token), .text(core.generation), .bytes(value.encoded(key: core.key)),
                    .text("\(milliseconds)"), .text(journal.channel), .text(Self.message(core.key)),
                ])
            counters.add(reply.integer == 1 ? (value.isUnshared ? nil : \.stores) : \.fencedStores)
        } catch {
            fail(error)
            counters.add(\.droppedStores)
        }
    }

    private static func message(_ key: RemoteKey) -> String { "wake \(key.group)/\(key.name)" }

    func release(_ core: LeaseCore) {
        leases.remove(core)
        refreshing.withLock { $0[core.key] = nil }
        if !writes.append(cost: 1_024, { [self] in await end(core) }) { counters.add(\.droppedStores) }
    }

    private func end(_ core: LeaseCore) async {
        do throws(RedisError) {
            _ = try await client.run(
                TierScripts.release, keys: [core.names.lease],
                [.text(core.token), .text(journal.channel), .text(Self.message(core.key))])
        } catch {
            fail(error)
        }
    }

    private func extendLeases() async {
        let time = "\(configuration.leaseTime.wholeMilliseconds)"
        for core in leases.all {
            guard ContinuousClock.now - core.began < configuration.maximumLeaseTime else { continue }
            do throws(RedisError) {
                _ = try await client.run(
                    TierScripts.extend, keys: [core.names.lease, core.names.generation], [.text(core.token), .text(time)])
            } catch {
                fail(error)
            }
        }
    }

    // MARK: Purges

    /// Removes a value from the tier, and from the caches of all nodes that apply ``invalidations``.
    ///
    /// A lease of the value is void: the value being made is not stored.
    ///
    /// - Returns: Whether the purge was announced. If the tier cannot be reached, the purge is announced when it can be
    ///   again; until then this node does not use the values that were purged, but other nodes do.
    @discardableResult public func purge(_ key: RemoteKey) async -> Bool { await purge(.key(key)) }

    /// Removes all values of a group; see ``RemoteKey/init(group:name:)`` and ``purge(_:)-(RemoteKey)``.
    @discardableResult public func purge(group: String) async -> Bool {
        await purge(.group(RemoteKey.digest(of: group)))
    }

    /// Removes all values of the namespace; see ``purge(_:)-(RemoteKey)``.
    @discardableResult public func purgeAll() async -> Bool { await purge(.all) }

    private func purge(_ invalidation: Invalidation) async -> Bool {
        leases.revoke(invalidation)
        // Until it is announced, this node at least does not use the values.
        pending.withLock { pending in
            if pending.count >= 1_024 { pending = [.all] }
            if invalidation == .all { pending = [] }
            if !pending.contains(.all), !pending.contains(invalidation) { pending.append(invalidation) }
        }
        return await announce(invalidation)
    }

    private func announce(_ invalidation: Invalidation) async -> Bool {
        do throws(RedisError) {
            try await carryOut(invalidation)
            pending.withLock { pending in pending.removeAll { $0 == invalidation } }
            return true
        } catch {
            fail(error)
            log.note("purge", "A purge waits until the tier can be reached: \(error)")
            return false
        }
    }

    private func carryOut(_ invalidation: Invalidation) async throws(RedisError) {
        guard let epoch = journal.epoch else { throw .unavailable }
        let timeout = configuration.redis.connectTimeout
        let kind: String
        let content: String
        switch invalidation {
        case .key(let key):
            let names = TierNames(configuration.namespace, epoch: epoch, key)
            (kind, content) = ("key", "\(key.group)/\(key.name)")
            _ = try await client.run(
                TierScripts.remove, keys: [names.value, names.lease],
                [.text(journal.channel), .text(Self.message(key))], timeout: timeout)
        case .group(let group):
            let key = RemoteKey(groupDigest: group, nameDigest: group)
            (kind, content) = ("group", group)
            _ = try await client.run(
                TierScripts.remove, keys: [TierNames(configuration.namespace, epoch: epoch, key).generation],
                [.text(journal.channel), .text("wake \(group)")], timeout: timeout)
        case .all: (kind, content) = ("all", Self.randomDigits())
        }
        _ = try await client.run(
            TierScripts.announce, keys: [journal.journalKey, journal.epochKey],
            [.text(kind), .text(content), .text(journal.channel), .text("\(TierJournal.length)")], timeout: timeout)
    }

    private func announcePending() async {
        for invalidation in pending.withLock({ $0 }) {
            guard await announce(invalidation) else { return }
        }
        log.clear("purge")
    }
}

/// Counts what happens.
final class TierCounters: Sendable {
    private let statistics = Mutex(RemoteTier.Statistics())

    func add(_ path: WritableKeyPath<RemoteTier.Statistics, Int>?) {
        guard let path else { return }
        statistics.withLock { $0[keyPath: path] += 1 }
    }

    var snapshot: RemoteTier.Statistics { statistics.withLock { $0 } }
}
