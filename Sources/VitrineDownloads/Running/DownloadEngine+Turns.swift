#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCore
import VitrineNetwork

/// Running downloads in turn.
extension DownloadEngine {
    /// Lets as many run as may.
    func pump() {
        state.withLock { state in
            guard !state.isShutDown, state.journal != nil else { return }
            let running = state.entries.values.filter { $0.task != nil }
            var free = state.limit - running.count
            guard free > 0 else { return }
            var perHost = Dictionary(running.map { ($0.record.host, 1) }, uniquingKeysWith: +)
            let waiting = state.entries.values.filter {
                $0.record.status.state == .waiting && $0.task == nil && $0.isNoted && $0.wish == nil
            }
            for var entry in waiting.sorted(by: { Self.precedes($0.record, $1.record) }) where free > 0 {
                let host = entry.record.host
                guard perHost[host, default: 0] < state.limitPerHost else { continue }
                perHost[host, default: 0] += 1
                free -= 1
                entry.record.status.state = .running
                // Bound before the lock is let go, so that nobody finds it running without a task.
                entry.task = Task { [record = entry.record, limit = entry.limit] in await self.run(record, limit) }
                _ = keep(entry, in: &state)
            }
        }
    }

    /// One run, from its turn to its end.
    private func run(_ record: DownloadRecord, _ limit: RateLimit) async {
        let rules = LimitedLoader.Rules([rateLimit, limit])
        let outcome = await LimitedLoader.$rules.withValue(rules) {
            await DownloadRun(engine: self, record: record, rules: rules).outcome()
        }
        await finish(record, outcome)
        pump()
    }

    // MARK: The end of a run

    private enum Ending {
        /// What is there has to be thrown away first.
        case discard
        case over(DownloadRecord, retryAfter: Duration?)
    }

    /// What becomes of a download after a run.
    private func finish(_ before: DownloadRecord, _ outcome: Result<DownloadRun.Success, DownloadError>) async {
        // What is whole has its name, and what cannot be used was thrown away by the run.
        var isDiscarded = if case .success = outcome { true } else { false }
        while true {
            switch end(before, outcome, isDiscarded: isDiscarded) {
            case nil: return
            case .discard?:
                await discardPart(of: before)
                isDiscarded = true
            case .over(let record, let delay)?:
                do throws(DownloadError) { try await save(record) } catch {
                    log.error("A download was not noted", metadata: ["id": "\(record.id)", "error": "\(error)"])
                }
                if let delay { ring(record.id, after: delay) }
                return
            }
        }
    }

    /// - Returns: nil if it is no longer on the list.
    private func end(
        _ before: DownloadRecord, _ outcome: Result<DownloadRun.Success, DownloadError>, isDiscarded: Bool
    ) -> Ending? {
        state.withLock { state in
            guard var entry = state.entries[before.id] else { return nil }
            if !isDiscarded, entry.wish == .cancel || entry.wish == .remove { return .discard }
            entry.task = nil
            guard entry.wish != .remove else {
                state.entries[before.id] = entry
                return nil
            }
            let wish = entry.wish.take()
            entry.record.status.speed = nil
            var delay: Duration?
            switch outcome {
            // It may have been quicker than whoever wanted to stop it.
            case .success(let success): entry.complete(success)
            case .failure(let error):
                // It may have been paused and let go on while it stopped: then its turn comes again.
                if wish == nil, entry.record.status.state == .running, !state.isShutDown {
                    delay = entry.fail(error, before: before.status.received)
                }
            }
            return .over(keep(entry, in: &state), retryAfter: delay)
        }
    }

    /// Throws away what is there of a download that does not run, as its task.
    func discard(_ record: DownloadRecord) async {
        await discardPart(of: record)
        state.withLock { state in
            guard var entry = state.entries[record.id] else { return }
            entry.task = nil
            if entry.wish == .cancel { entry.wish = nil }
            state.entries[record.id] = entry
        }
        board.touch()
        pump()
    }

    /// What is there of a download is not wanted any more. Only within its task.
    func discardPart(of record: DownloadRecord) async {
        if let carrier { return await carrier.discard(record) }
        let path = record.partPath
        await BlockingExecutor.shared.run {
            do throws(FileError) {
                // Also where there is only what is kept beside it.
                try PartialFile.open(path, identity: record.id)?.discard()
            } catch .notFound {
                // The directory is gone, too.
            } catch {
                Log.logger("downloads").warning("A part file stays", metadata: ["error": "\(error)"])
            }
        }
    }

    // MARK: Trying again

    /// Puts a delayed download into the line again, later.
    private func ring(_ id: String, after delay: Duration) {
        let alarm = Task { [weak self] in
            do { try await Task.sleep(for: delay) } catch { return }
            self?.wake(id)
        }
        let isWanted = state.withLock { state in
            guard !state.isShutDown, state.entries[id]?.record.status.state == .delayed else { return false }
            state.entries[id]?.alarm = alarm
            return true
        }
        // It was paused, cancelled or tried again meanwhile.
        if !isWanted { alarm.cancel() }
    }

    private func wake(_ id: String) {
        update(id) { entry in
            guard entry.record.status.state == .delayed else { return false }
            entry.stopAlarm()
            entry.record.status.state = .waiting
            return true
        }
        pump()
    }

    /// There may be a network again: what waits for one is tried at once.
    func networkChanged() {
        let ids = state.withLock { state in
            state.entries.values.filter { $0.isOffline && $0.record.status.state == .delayed }.map(\.record.id)
        }
        for id in ids { wake(id) }
    }
}

extension DownloadEngine.Entry {
    /// Its file is there.
    fileprivate mutating func complete(_ success: DownloadRun.Success) {
        record.status.state = .completed
        record.status.path = success.path
        record.status.received = success.length
        record.status.total = success.length
        record.status.restarts += success.restarts
        record.status.failure = nil
        record.status.ended = Date()
        record.placing = nil
        error = nil
    }

    /// A run of it has failed.
    ///
    /// - Parameter before: How much was there when the run began.
    /// - Returns: After how long it is tried again; nil for not at all, or at once.
    fileprivate mutating func fail(_ error: DownloadError, before: Int) -> Duration? {
        self.error = error
        record.placing = nil
        record.status.failure = DownloadStatus.Failure(error)
        isOffline = error.isOffline
        if record.status.received > before { failures = 0 }
        if record.source < record.request.mirrors.count, !error.isLocal {
            // Another place may have it, now.
            record.source += 1
            record.status.state = .waiting
            return nil
        }
        record.source = 0
        if !error.isOffline { failures += 1 }
        guard error.isTemporary, failures < max(1, record.request.attempts) else {
            record.status.state = .failed
            record.status.ended = Date()
            return nil
        }
        var policy = RetryPolicy()
        (policy.base, policy.maximumDelay) = (.seconds(2), .seconds(60))
        let delay = error.retryDelay ?? max(.milliseconds(500), policy.delay(before: max(1, failures)))
        record.status.state = .delayed
        record.status.retries += 1
        record.status.retryDate = Date() + delay / .seconds(1)
        return delay
    }
}
