#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCore
import VitrineNetwork

/// Runs downloads in the order of the queue.
extension DownloadEngine {
    /// Starts waiting downloads up to the limits.
    func startWaiting() {
        state.withLock { state in
            guard !state.isShutDown, state.journal != nil else { return }
            let running = state.entries.values.filter { $0.task != nil && !$0.isAbandoned }
            var free = state.limit - running.count
            guard free > 0, !running.contains(where: \.isSuspect) else { return }
            var perHost = Dictionary(running.map { ($0.record.host, 1) }, uniquingKeysWith: +)
            var waiting = state.entries.values.filter {
                $0.record.status.state == .waiting && $0.task == nil && $0.isNoted && $0.pendingAction == nil
            }
            // A download that may have ended the process runs first and alone, so that others are not suspected.
            if let suspect = waiting.filter(\.isSuspect).min(by: { Self.precedes($0.record, $1.record) }) {
                waiting = [suspect]
            }
            for var entry in waiting.sorted(by: { Self.precedes($0.record, $1.record) }) where free > 0 {
                let host = entry.record.host
                guard perHost[host, default: 0] < state.limitPerHost else { continue }
                perHost[host, default: 0] += 1
                free -= 1
                entry.record.status.state = .running
                // Stored under the lock, so that a running download always has a task.
                entry.task = Task(executorPreference: transfers) { [record = entry.record, limit = entry.limit] in
                    await self.run(record, limit)
                }
                _ = keep(entry, in: &state)
            }
        }
    }

    /// Runs a download once.
    private func run(_ record: DownloadRecord, _ limit: RateLimit) async {
        await noteStart(record.id)
        let timer = Task { [weak self] in
            do { try await Task.sleep(for: Self.suspicionTime) } catch { return }
            await self?.clearSuspicion(of: record.id, received: nil)
        }
        defer { timer.cancel() }
        let rules = LimitedLoader.Rules([rateLimit, limit])
        let outcome = await LimitedLoader.$rules.withValue(rules) {
            await DownloadRun(engine: self, record: record, rules: rules).outcome()
        }
        await finish(record, outcome)
        startWaiting()
    }

    // MARK: Runs that may end the process

    /// The number of times the process may end during runs of a download before it is not run automatically.
    static let highestStarts = 3
    /// A run of this duration has not ended the process by its start.
    private static let suspicionTime = Duration.seconds(10)

    /// Stores durably that a run starts. If the process ends without storing its end, the run may have been the reason.
    private func noteStart(_ id: String) async {
        guard let journal = state.withLock({ $0.journal }) else { return }
        do throws(DownloadError) { try await journal.noteStart(id) } catch {
            log.error("The start of a download was not stored", metadata: ["id": "\(id)", "error": "\(error)"])
        }
    }

    /// Clears the suspicion of a run that has made progress or has run for a while.
    ///
    /// - Parameter received: The bytes received; nil if only time has passed.
    func clearSuspicion(of id: String, received: Int?) async {
        let journal = state.withLock { state -> Journal? in
            // Only suspected downloads need this.
            guard var entry = state.entries[id], entry.task != nil, entry.isSuspect else { return nil }
            if let received {
                guard received > entry.furthest else { return nil }
                entry.furthest = received
            }
            entry.isSuspect = false
            state.entries[id] = entry
            return state.journal
        }
        guard let journal else { return }
        do throws(DownloadError) { try await journal.clearStarts(id, received: received) } catch {
            log.error("The progress of a download was not stored", metadata: ["id": "\(id)", "error": "\(error)"])
        }
        startWaiting()
    }

    // MARK: The end of a run

    private enum Ending {
        /// The partial file must be deleted first.
        case discard
        case over(DownloadRecord, retryAfter: Duration?)
    }

    /// Updates a download after a run.
    private func finish(_ before: DownloadRecord, _ outcome: Result<DownloadRun.Success, DownloadError>) async {
        let isOffline = if case .failure(let error) = outcome {
            error.isUnreached && !configuration.hasRoute(before.host)
        } else { false }
        // A complete file is in place, and the run has deleted a useless one.
        var isDiscarded = if case .success = outcome { true } else { false }
        while true {
            switch end(before, outcome, isOffline: isOffline, isDiscarded: isDiscarded) {
            case nil: return
            case .discard?:
                await discardPart(of: before)
                isDiscarded = true
            case .over(let record, let delay)?:
                do throws(DownloadError) { try await save(record, endsRun: true) } catch {
                    log.error("A download was not stored", metadata: ["id": "\(record.id)", "error": "\(error)"])
                }
                state.withLock { $0.unstoredEnds -= 1 }
                broadcaster.touch()
                if let delay { scheduleRetry(record.id, after: delay) }
                return
            }
        }
    }

    /// - Returns: nil if the download is no longer on the list.
    private func end(
        _ before: DownloadRecord, _ outcome: Result<DownloadRun.Success, DownloadError>, isOffline: Bool,
        isDiscarded: Bool
    ) -> Ending? {
        state.withLock { state in
            guard var entry = state.entries[before.id] else { return nil }
            if !isDiscarded, entry.pendingAction == .cancel || entry.pendingAction == .remove { return .discard }
            entry.task = nil
            (entry.isSuspect, entry.isAbandoned) = (false, false)
            guard entry.pendingAction != .remove else {
                state.entries[before.id] = entry
                return nil
            }
            let pendingAction = entry.pendingAction.take()
            entry.record.status.speed = nil
            var delay: Duration?
            switch outcome {
            // It may have completed before a call could stop it.
            case .success(let success): entry.complete(success)
            case .failure(let error):
                // It may have been paused and resumed while it stopped, and then waits in the queue.
                if pendingAction == nil, entry.record.status.state == .running, !state.isShutDown {
                    delay = entry.fail(error, before: before.status.received, isOffline: isOffline, configuration)
                }
            }
            state.unstoredEnds += 1
            return .over(keep(entry, in: &state), retryAfter: delay)
        }
    }

    /// Deletes the partial file of a download that does not run, as its task.
    func discard(_ record: DownloadRecord) async {
        await discardPart(of: record)
        state.withLock { state in
            guard var entry = state.entries[record.id] else { return }
            entry.task = nil
            if entry.pendingAction == .cancel { entry.pendingAction = nil }
            state.entries[record.id] = entry
        }
        broadcaster.touch()
        startWaiting()
    }

    /// Deletes the partial file of a download. Only within its task.
    func discardPart(of record: DownloadRecord) async {
        if let carrier { return await carrier.discard(record) }
        let path = record.partPath
        await BlockingExecutor.shared.run {
            do throws(FileError) {
                // Also where only the files beside it exist.
                try PartialFile.open(path, identity: record.id)?.discard()
            } catch .notFound {
                // The directory does not exist either.
            } catch {
                Log.logger("downloads").warning("A partial file was not deleted", metadata: ["error": "\(error)"])
            }
        }
    }

    // MARK: Retrying

    /// Returns a delayed download to the queue after a delay.
    private func scheduleRetry(_ id: String, after delay: Duration) {
        let timer = Task { [weak self] in
            do { try await Task.sleep(for: delay) } catch { return }
            self?.wake(id)
        }
        let isWanted = state.withLock { state in
            guard !state.isShutDown, state.entries[id]?.record.status.state == .delayed else { return false }
            state.entries[id]?.timer = timer
            return true
        }
        // It was paused, cancelled or retried meanwhile.
        if !isWanted { timer.cancel() }
    }

    private func wake(_ id: String) {
        update(id) { entry in
            guard entry.record.status.state == .delayed else { return false }
            entry.cancelRetryTimer()
            entry.record.status.state = .waiting
            return true
        }
        startWaiting()
    }

    /// Retries at once the downloads that wait for a network, which may have returned.
    func networkChanged() {
        let ids = state.withLock { state in
            state.entries.values.filter { $0.isOffline && $0.record.status.state == .delayed }.map(\.record.id)
        }
        for id in ids { wake(id) }
    }
}

extension DownloadEngine.Entry {
    /// Notes its complete file.
    fileprivate mutating func complete(_ success: DownloadRun.Success) {
        record.status.state = .completed
        record.status.path = success.path
        record.status.received = success.length
        record.status.total = success.length
        record.status.restarts = (ByteCount(record.status.restarts) + ByteCount(success.restarts)).bytes
        record.status.failure = nil
        record.status.ended = Date()
        record.placing = nil
        error = nil
    }

    /// Notes a failed run.
    ///
    /// - Parameters:
    ///   - before: The number of bytes received before the run.
    ///   - isOffline: Whether the machine has no route to the host, so that the failure does not count.
    /// - Returns: The delay of the next attempt; nil for none, or an immediate one.
    fileprivate mutating func fail(
        _ error: DownloadError, before: Int, isOffline: Bool, _ configuration: DownloadManager.Configuration
    ) -> Duration? {
        self.error = error
        record.placing = nil
        record.status.failure = DownloadStatus.Failure(error)
        self.isOffline = isOffline
        if record.status.received > before, !hasLostBytes { failures = 0 }
        hasLostBytes = false
        if record.source < record.request.mirrors.count, !error.isLocal {
            // A mirror may have the file.
            record.source += 1
            record.status.state = .waiting
            return nil
        }
        record.source = 0
        offlineTries = isOffline ? min(offlineTries + 1, 100) : 0
        if !isOffline { failures += 1 }
        let mayRetry = isOffline || failures < max(1, record.request.attempts)
        guard error.isTemporary, !error.demandsTooLongADelay, mayRetry else {
            record.status.state = .failed
            record.status.ended = Date()
            return nil
        }
        let delay = error.retryDelay ?? configuration.delay(
            after: isOffline ? offlineTries : failures, jitter: .random(in: 0...1))
        record.status.state = .delayed
        record.status.retries &+= 1
        record.status.retryDate = Date() + delay / .seconds(1)
        return delay
    }
}
