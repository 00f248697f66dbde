import Foundation
package import Logging
import NIOCore
import NIOPosix
import Synchronization
import VitrineCore
import VitrineFleet
import VitrineNetwork
package import VitrineS3

/// Results in a bucket, which survive the loss of nodes and of the tier.
///
/// A purge writes an object named by the digest of its tag. Results count if they were stored after the purges of all
/// their tags, by the clock of the bucket's server. Nodes list the purges again when they look for a result and have
/// not listed them for five seconds, or a push said that there is a new one.
package final class DurableResults: Sendable {
    /// The settings.
    package struct Configuration: Sendable {
        /// The beginning of all object names; empty or with a slash at its end.
        package var prefix = ""
        /// How long a look-up may take. Default: 2 seconds.
        package var timeout: Duration = .seconds(2)
        /// The most bytes that wait to be written. Default: 64 MB.
        package var queueBytes = 64_000_000
        /// How long a list of purges is used. Default: 5 seconds.
        package var purgeInterval: Duration = .seconds(5)

        /// Creates the defaults.
        package init() {}
    }

    /// Counts of events.
    package struct Statistics: Sendable, Hashable {
        package var hits = 0
        package var misses = 0
        /// Results that a purge has made void.
        package var purged = 0
        /// Objects that are no results of their key.
        package var damaged = 0
        /// Look-ups that failed, took too long, or were not made because the store does not answer.
        package var failures = 0
        package var writes = 0
        /// Results that another node had written.
        package var existing = 0
        package var failedWrites = 0
        /// Writes that were dropped, because too much was waiting or the store does not answer.
        package var droppedWrites = 0
    }

    enum Found: Sendable {
        /// - Parameter isAbsent: Whether there is no object of the key.
        case missing(isAbsent: Bool)
        case found(SharedResult)
    }

    private struct Purges {
        /// When each digest was purged, by the clock of the server.
        var times: [String: Duration] = [:]
        var listed: ContinuousClock.Instant?
        var version = 0
        /// Purges of this node that are not written.
        var unwritten: Set<String> = []
    }

    private static let all = "all"

    private let configuration: Configuration
    private let bucket: S3Bucket
    private let store: S3ResultStore
    private let logger: Logger
    private let purges = Mutex(Purges())
    private let writes: WriteQueue
    private let statistics = Mutex(Statistics())
    private let breaker = CallBreaker()

    package init(_ bucket: S3Bucket, _ configuration: Configuration, logger: Logger) {
        (self.bucket, self.configuration, self.logger) = (bucket, configuration, logger)
        store = S3ResultStore(bucket, prefix: configuration.prefix + "results/")
        writes = WriteQueue(limit: configuration.queueBytes, writers: 4)
    }

    /// Counts of events since the server started.
    package var counts: Statistics { statistics.withLock { $0 } }
    /// Whether the store answers.
    package var isUp: Bool { !breaker.isOpen }
    /// The bytes that wait to be written.
    package var queuedBytes: Int { writes.bytes }

    private func count(_ path: WritableKeyPath<Statistics, Int>) { statistics.withLock { $0[keyPath: path] += 1 } }

    // MARK: Look-up

    /// Returns the result of a key.
    ///
    /// - Parameter job: The work that would make it.
    func find(_ job: RenderJob, _ key: String) async -> Found {
        guard let began = breaker.begin() else {
            count(\.failures)
            return .missing(isAbsent: false)
        }
        let task = Task { await self.outcome(of: key, job) }
        let result: Result<Found, S3Error>? = await task.value(within: configuration.timeout)
        task.cancel()
        switch result {
        case .success(let found)?:
            end(nil, began)
            return found
        case .failure(let error)?: end(error, began)
        case nil: end(.network(configuration.prefix, .timedOut(url: "s3", reason: "it took too long")), began)
        }
        count(\.failures)
        return .missing(isAbsent: false)
    }

    private func end(_ error: S3Error?, _ began: ContinuousClock.Instant) {
        switch breaker.end(isFailure: error != nil, began: began) {
        case .opened:
            let reason = error?.description ?? ""
            logger.warning("The store of results does not answer", metadata: ["error": "\(reason)"])
        case .closed: logger.notice("The store of results answers again")
        case nil: break
        }
    }

    private func outcome(of key: String, _ job: RenderJob) async -> Result<Found, S3Error> {
        do throws(S3Error) {
            try await listPurges()
            guard let (entry, stored) = try await store.find(key) else {
                count(\.misses)
                return .success(.missing(isAbsent: true))
            }
            guard entry.contentType == SharedResult.mediaType,
                let result = try? SharedResult(bytes: entry.bytes, for: job)
            else {
                count(\.damaged)
                return .success(.missing(isAbsent: false))
            }
            guard !isPurged(job.source.tags + result.tags, stored) else {
                count(\.purged)
                return .success(.missing(isAbsent: false))
            }
            count(\.hits)
            return .success(.found(result))
        } catch .damaged(let address, let reason) {
            count(\.damaged)
            logger.warning("An object is no result", metadata: ["object": "\(address)", "reason": "\(reason)"])
            return .success(.missing(isAbsent: false))
        } catch {
            return .failure(error)
        }
    }

    private func isPurged(_ tags: [String], _ stored: Duration?) -> Bool {
        purges.withLock { purges in
            let digests = tags.map { PurgeTag.digest(in: $0) } + [Self.all]
            // Times of servers are whole seconds: of the same second, the purge counts.
            return digests.contains { digest in
                purges.unwritten.contains(digest)
                    || purges.times[digest].map { purge in stored.map { $0 <= purge } ?? true } ?? false
            }
        }
    }

    // MARK: Purges

    private var purgePrefix: String { configuration.prefix + "purges/" }

    /// Lets the next look-up list the purges.
    func forgetPurges() {
        purges.withLock { purges in
            purges.listed = nil
            purges.version += 1
        }
    }

    private func listPurges() async throws(S3Error) {
        let (version, isCurrent, unwritten) = purges.withLock { purges in
            let isCurrent = purges.listed.map { $0 + configuration.purgeInterval > .now } ?? false
            return (purges.version, isCurrent, purges.unwritten)
        }
        for digest in unwritten { try await write(digest) }
        guard !isCurrent else { return }
        let began = ContinuousClock.now
        var times: [String: Duration] = [:]
        var listing = bucket.list(prefix: purgePrefix).makeAsyncIterator()
        while let object = try await listing.next(isolation: nil) {
            times[String(object.key.dropFirst(purgePrefix.utf8.count))] = object.lastModified ?? .seconds(1 << 40)
        }
        purges.withLock { purges in
            for (digest, time) in times { purges.times[digest] = max(time, purges.times[digest] ?? time) }
            if purges.version == version { purges.listed = began }
        }
    }

    /// Makes the results of a digest void; all for nil.
    ///
    /// - Returns: Whether the purge is written. Otherwise it counts on this node, and is written before the next
    ///   look-up.
    func purge(_ digest: String?) async -> Bool {
        let digest = digest ?? Self.all
        purges.withLock { _ = $0.unwritten.insert(digest) }
        do throws(S3Error) {
            try await write(digest)
            return true
        } catch {
            logger.error("A purge could not be written to the store of results", metadata: ["error": "\(error)"])
            return false
        }
    }

    private func write(_ digest: String) async throws(S3Error) {
        let name = purgePrefix + digest
        try await bucket.put([], as: name, type: "application/octet-stream")
        let time = try await bucket.head(name).lastModified
        purges.withLock { purges in
            purges.times[digest] = max(time ?? .seconds(1 << 40), purges.times[digest] ?? .zero)
            purges.unwritten.remove(digest)
        }
    }

    // MARK: Writes

    /// Writes a result in the background.
    ///
    /// - Parameters:
    ///   - replacing: Whether there may be an object of the key.
    ///   - isCurrent: Whether the result was not purged meanwhile.
    func put(_ bytes: [UInt8], for key: String, replacing: Bool, isCurrent: @escaping @Sendable () -> Bool) {
        let isQueued = writes.append(cost: bytes.count) { [self] in
            guard isCurrent() else { return }
            guard let began = breaker.begin() else { return count(\.droppedWrites) }
            await write(bytes, for: key, replacing: replacing, isCurrent: isCurrent, began: began)
        }
        if !isQueued { count(\.droppedWrites) }
    }

    private func write(
        _ bytes: [UInt8], for key: String, replacing: Bool, isCurrent: @Sendable () -> Bool,
        began: ContinuousClock.Instant
    ) async {
        let created = Duration.milliseconds(Int64(Date().timeIntervalSince1970 * 1_000))
        let entry = S3ResultStore.Entry(bytes: bytes, contentType: SharedResult.mediaType, created: created)
        do throws(S3Error) {
            try await put(entry, for: key, replacing: replacing)
            end(nil, began)
            // A purge in the meantime may be older than the object.
            if !isCurrent() { try await store.remove(key) }
        } catch .alreadyExists {
            end(nil, began)
            count(\.existing)
        } catch {
            end(error, began)
            count(\.failedWrites)
        }
    }

    private func put(_ entry: S3ResultStore.Entry, for key: String, replacing: Bool) async throws(S3Error) {
        if !replacing {
            do throws(S3Error) {
                try await store.put(entry, for: key, replacing: false)
                return count(\.writes)
            } catch .notSupported {
                // This server has no conditional writes.
            }
        }
        try await store.put(entry, for: key)
        count(\.writes)
    }

    /// Waits until nothing waits to be written, for at most a time.
    package func flush(atMost time: Duration) async {
        await writes.flush(atMost: time, on: MultiThreadedEventLoopGroup.singleton.any())
    }
}

/// Stops calls to a server that does not answer, but for single attempts.
package final class CallBreaker: Sendable {
    /// A change by the end of a call.
    package enum Change: Sendable { case opened, closed }

    private struct State {
        var failures = 0
        /// When the next attempt may be made; nil if all calls may.
        var until: ContinuousClock.Instant?
        /// Calls that began before do not count: they are from the time before the breaker opened.
        var since: ContinuousClock.Instant?
        var pause = Duration.seconds(1)
    }

    private static let limit = 3
    private let state = Mutex(State())

    /// Creates a breaker that permits calls.
    package init() {}

    /// Whether the server is found not to answer.
    package var isOpen: Bool { state.withLock { $0.until != nil } }

    /// The beginning of a call; nil if it must not be made. While the server does not answer, one in each pause may.
    package func begin(at now: ContinuousClock.Instant = .now) -> ContinuousClock.Instant? {
        state.withLock { state in
            guard let until = state.until else { return now }
            guard now >= until else { return nil }
            (state.until, state.since) = (now + state.pause, now)
            return now
        }
    }

    /// Counts the end of a call.
    package func end(
        isFailure: Bool, began: ContinuousClock.Instant, at now: ContinuousClock.Instant = .now
    ) -> Change? {
        state.withLock { state in
            guard isFailure else {
                defer { state = State() }
                return state.until == nil ? nil : .closed
            }
            if let since = state.since, began < since { return nil }
            state.failures += 1
            guard state.failures >= Self.limit else { return nil }
            let isNew = state.until == nil
            if !isNew { state.pause = min(state.pause * 2, .seconds(30)) }
            (state.until, state.since) = (now + state.pause, now)
            return isNew ? .opened : nil
        }
    }
}
