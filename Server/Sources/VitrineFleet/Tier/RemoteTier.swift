import Foundation
import Logging
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

    /// Whether the tier works.
    public enum Status: Sendable, Hashable {
        /// The first connection is being made.
        case connecting
        /// Values are shared, and purges are followed.
        case up
        /// The tier does not help, or not all of it.
        case down(RedisError)
    }

    /// The configuration.
    public let configuration: Configuration
    private let client: RedisClient
    private let journal: TierJournal
    private let leases: HeldLeases
    private let waiters: TierWaiters
    private let writes: WriteQueue
    private let log: TierLog
    private let counters: TierCounters
    /// The values that another node refreshes, and until when this node does not ask again.
    private let refreshing = Mutex<[RemoteKey: ContinuousClock.Instant]>([:])
    /// The purges that are not announced yet.
    private let pending = Mutex<[PendingPurge]>([])
    private let secrets: Mutex<[[UInt8]]>
    private let tasks = Mutex<[Task<Void, Never>]>([])

    /// Creates a tier and begins to connect.
    ///
    /// - Throws: ``RedisError/invalidConfiguration(_:)``.
    public init(_ configuration: Configuration) throws(RedisError) {
        self.configuration = configuration
        secrets = Mutex(configuration.secrets)
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
            let name = event.address.map { "the Redis server \($0)" } ?? "Redis"
            switch event.change {
            case .up: log.clear(name)
            case .down(let error):
                guard log.note(name, "The tier does not use \(name) at the moment: \(error)") else { return }
                counters.add(\.outages)
            }
        }
        writes = WriteQueue(limit: configuration.writeQueueSize, writers: 8)
        (self.log, self.counters, self.waiters, self.leases) = (log, counters, waiters, leases)
        let announcer = Announcer()
        journal = TierJournal(
            client, configuration: configuration, log: log, wake: { waiters.wake($0) },
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

    private struct PendingPurge {
        var invalidation: Invalidation
        /// Whether it is being announced.
        var isUnderWay = true
        /// Whether an attempt to announce it has failed.
        var hasFailed = false
    }

    /// Whether other nodes use values that this node has purged, because they could not be told.
    package var hasUnannouncedPurges: Bool { pending.withLock { $0.contains(where: \.hasFailed) } }

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

    /// Whether purges are followed, and those from before the connection was made are applied.
    package var isCaughtUp: Bool { journal.isCaughtUp }

    /// Counts of events since the tier was created.
    public var statistics: Statistics { counters.snapshot }

    /// The purges of all nodes.
    public var invalidations: Invalidations { Invalidations(queue: journal.invalidations) }

    /// The look-ups that wait for other nodes.
    package var waitingCount: Int { waiters.count }

    /// Waits until no value waits to be written.
    public func flush() async { await writes.flush(atMost: .seconds(30), on: client.group.any()) }

    /// Completes waiting writes, for at most five seconds, and ends all connections. Look-ups return
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
            guard let epoch = journal.epoch, !pending.withLock({ $0.contains { $0.invalidation.includes(key) } }) else {
                return .bypass
            }
            let names = TierNames(configuration.namespace, epoch: epoch, key)
            do throws(RedisError) {
                var damaged = ByteBuffer()
                let reply = try await client.call(
                    RESPCommand("MGET", .text(names.value), .text(names.generation)), key: names.value)
                guard let items = reply.items, items.count == 2 else {
                    throw .protocolViolation("another reply to MGET")
                }
                if let stored = items[0].bytes {
                    if let found = await found(stored, generation: items[1].text, key: key, names: names) {
                        return found
                    }
                    damaged = stored.getSlice(
                        at: stored.readerIndex, length: min(stored.readableBytes, TierValue.headerSize)) ?? damaged
                }
                // The value may be announced before the reply is here.
                let signal = waiters.add(key)
                defer { waiters.remove(signal, key) }
                switch try await grant(key, names, replacing: damaged) {
                case .lease(let lease): return .lease(lease)
                case .value(let stored, let generation):
                    return await found(stored, generation: generation, key: key, names: names) ?? .bypass
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
                .text(journal.nodeChannel),
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
        _ stored: ByteBuffer, generation: String?, key: RemoteKey, names: TierNames
    ) async -> Lookup? {
        guard stored.readableBytes <= configuration.maximumValueSize + TierValue.headerSize + 65_535 else {
            counters.add(\.oversizedValues)
            return .bypass
        }
        guard let now = journal.now else { return .bypass }
        let value: TierValue
        switch parsed(stored, key: key, generation: generation) {
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
        // Nodes know the time of the server to within half of a round trip.
        let age = max(.zero, now - value.created)
        let result = Value(
            contents: value.contents, contentType: value.contentType, age: age,
            freshness: value.freshUntil - value.created - age)
        let early = (value.freshUntil - value.created) * configuration.earlyRefresh
        guard result.freshness <= early else { return .value(result, refresh: nil) }
        return .value(result, refresh: await refreshLease(key, names))
    }

    private func parsed(
        _ stored: ByteBuffer, key: RemoteKey, generation: String?
    ) -> Result<TierValue, TierValue.Damage> {
        let secrets = secrets.withLock { $0 }
        return Result { () throws(TierValue.Damage) in
            try TierValue(stored: stored, key: key, generation: generation, secrets: secrets)
        }
    }

    /// Uses other secrets for values, instead of those of the configuration: ``Configuration/secrets``.
    public func authenticate(by secrets: [[UInt8]]) { self.secrets.withLock { $0 = secrets } }

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

    /// Tells all nodes for a time that they make a value themselves.
    func writeMark(for time: Duration, of core: LeaseCore, keepsLease: Bool) {
        if !keepsLease {
            leases.remove(core)
            refreshing.withLock { $0[core.key] = nil }
        }
        let time = min(max(time, .milliseconds(1)), .seconds(300))
        let isQueued = writes.append(cost: 1_024) { [self] in
            guard let now = journal.now else { return keepsLease ? () : drop(core) }
            var mark = TierValue(generation: core.generation, created: now, freshUntil: now + time)
            mark.isUnshared = true
            await store(mark, for: time.wholeMilliseconds, core, keepsLease: keepsLease)
        }
        if !isQueued, !keepsLease { drop(core) }
    }

    private func drop(_ core: LeaseCore) {
        counters.add(\.droppedStores)
        log.note("write queue", "Values are not stored in the tier because it is too slow")
        Task { [self] in await end(core) }
    }

    private func store(
        _ value: TierValue, for milliseconds: Int64, _ core: LeaseCore, keepsLease: Bool = false
    ) async {
        do throws(RedisError) {
            let bytes = value.encoded(key: core.key, secret: secrets.withLock { $0.first })
            let reply = try await client.run(
                TierScripts.store, keys: [core.names.value, core.names.lease, core.names.generation],
                [
                    .text(core.token), .text(core.generation), .bytes(bytes),
                    .text("\(milliseconds)"), .text(Self.message(core.key)), keepsLease ? "1" : "0",
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
                [.text(core.token), .text(Self.message(core.key))])
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
                    TierScripts.extend, keys: [core.names.lease, core.names.generation],
                    [.text(core.token), .text(time)])
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

    /// Removes all values from the tier, and those with a tag from the caches of all nodes; see
    /// ``purge(_:)-(RemoteKey)``.
    ///
    /// The tier does not know the tags of its values. Nodes do, and keep all other copies.
    @discardableResult public func purge(tag: String) async -> Bool {
        await purge(.tag(RemoteKey.digest(of: tag)))
    }

    /// Removes all values of the namespace; see ``purge(_:)-(RemoteKey)``.
    @discardableResult public func purgeAll() async -> Bool { await purge(.all) }

    package func purge(_ invalidation: Invalidation) async -> Bool {
        leases.revoke(invalidation)
        // Until it is announced, this node at least does not use the values.
        pending.withLock { pending in
            if pending.count >= 1_024 {
                pending = [PendingPurge(invalidation: .all, isUnderWay: false, hasFailed: true)]
            }
            pending.removeAll { $0.invalidation == invalidation }
            pending.append(PendingPurge(invalidation: invalidation))
        }
        return await announce(invalidation)
    }

    private func announce(_ invalidation: Invalidation) async -> Bool {
        do throws(RedisError) {
            try await carryOut(invalidation)
            pending.withLock { pending in pending.removeAll { $0.invalidation == invalidation } }
            return true
        } catch {
            fail(error)
            pending.withLock { pending in
                for index in pending.indices where pending[index].invalidation == invalidation {
                    (pending[index].isUnderWay, pending[index].hasFailed) = (false, true)
                }
            }
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
        case .tag(let tag): (kind, content) = ("tag", "\(tag)/\(Self.randomDigits())")
        case .all: (kind, content) = ("all", Self.randomDigits())
        }
        _ = try await client.run(
            TierScripts.announce, keys: [journal.journalKey, journal.epochKey],
            [.text(kind), .text(content), .text(journal.channel), .text("\(TierJournal.length)")], timeout: timeout)
    }

    private func nextPending() -> Invalidation? {
        pending.withLock { pending in
            guard let index = pending.firstIndex(where: { !$0.isUnderWay }) else { return nil }
            pending[index].isUnderWay = true
            return pending[index].invalidation
        }
    }

    private func announcePending() async {
        while let next = nextPending() {
            guard await announce(next) else { return }
        }
        log.clear("purge")
    }
}
