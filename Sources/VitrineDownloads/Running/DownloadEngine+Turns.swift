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
            let running = state.entries.values.filter { $0.task != nil && !$0.isAbandoned }
            var free = state.limit - running.count
            guard free > 0, !running.contains(where: \.isSuspect) else { return }
            var perHost = Dictionary(running.map { ($0.record.host, 1) }, uniquingKeysWith: +)
            var waiting = state.entries.values.filter {
                $0.record.status.state == .waiting && $0.task == nil && $0.isNoted && $0.wish == nil
            }
            // One that may have ended the process runs before others and alone, so that they are not taken for it.
            if let suspect = waiting.filter(\.isSuspect).min(by: { Self.precedes($0.record, $1.record) }) {
                waiting = [suspect]
            }
            for var entry in waiting.sorted(by: { Self.precedes($0.record, $1.record) }) where free > 0 {
                let host = entry.record.host
                guard perHost[host, default: 0] < state.limitPerHost else { continue }
                perHost[host, default: 0] += 1
                free -= 1
                entry.record.status.state = .running
                // Bound before the lock is let go, so that nobody finds it running without a task.
                entry.task = Task(executorPreference: transfers) { [record = entry.record, limit = entry.limit] in
                    await self.run(record, limit)
                }
                _ = keep(entry, in: &state)
            }
        }
    }

    /// One run, from its turn to its end.
    private func run(_ record: DownloadRecord, _ limit: RateLimit) async {
        await noteStart(record.id)
        let proof = Task { [weak self] in
            do { try await Task.sleep(for: Self.provingTime) } catch { return }
            await self?.prove(record.id, received: nil)
        }
        defer { proof.cancel() }
        let rules = LimitedLoader.Rules([rateLimit, limit])
        let outcome = await LimitedLoader.$rules.withValue(rules) {
            await DownloadRun(engine: self, record: record, rules: rules).outcome()
        }
        await finish(record, outcome)
        pump()
    }

    // MARK: Runs that end the process

    /// After how many ends of the process while it ran a download is not run any more by itself.
    static let highestStarts = 3
    /// A run that is so old has not ended the process by its beginning.
    private static let provingTime = Duration.seconds(10)

    /// Notes durably that a run begins: if the process ends without having heard of its end, it may have been the
    /// reason.
    private func noteStart(_ id: String) async {
        guard let journal = state.withLock({ $0.journal }) else { return }
        do throws(DownloadError) { try await journal.noteStart(id) } catch {
            log.error("The start of a download was not noted", metadata: ["id": "\(id)", "error": "\(error)"])
        }
    }

    /// A run has come further than any before, or has run for a while.
    ///
    /// - Parameter received: How far it has come; nil if only time has passed.
    func prove(_ id: String, received: Int?) async {
        let journal = state.withLock { state -> Journal? in
            // Others have nothing to be cleared of.
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
            log.error("The course of a download was not noted", metadata: ["id": "\(id)", "error": "\(error)"])
        }
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
        let isOffline = if case .failure(let error) = outcome {
            error.isUnreached && !configuration.hasRoute(before.host)
        } else { false }
        // What is whole has its name, and what cannot be used was thrown away by the run.
        var isDiscarded = if case .success = outcome { true } else { false }
        while true {
            switch end(before, outcome, isOffline: isOffline, isDiscarded: isDiscarded) {
            case nil: return
            case .discard?:
                await discardPart(of: before)
                isDiscarded = true
            case .over(let record, let delay)?:
                do throws(DownloadError) { try await save(record, endsRun: true) } catch {
                    log.error("A download was not noted", metadata: ["id": "\(record.id)", "error": "\(error)"])
                }
                if let delay { ring(record.id, after: delay) }
                return
            }
        }
    }

    /// - Returns: nil if it is no longer on the list.
    private func end(
        _ before: DownloadRecord, _ outcome: Result<DownloadRun.Success, DownloadError>, isOffline: Bool,
        isDiscarded: Bool
    ) -> Ending? {
        state.withLock { state in
            guard var entry = state.entries[before.id] else { return nil }
            if !isDiscarded, entry.wish == .cancel || entry.wish == .remove { return .discard }
            entry.task = nil
            (entry.isSuspect, entry.isAbandoned) = (false, false)
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
                    delay = entry.fail(error, before: before.status.received, isOffline: isOffline, configuration)
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
        record.status.restarts = (ByteCount(record.status.restarts) + ByteCount(success.restarts)).bytes
        record.status.failure = nil
        record.status.ended = Date()
        record.placing = nil
        error = nil
    }

    /// A run of it has failed.
    ///
    /// - Parameters:
    ///   - before: How much was there when the run began.
    ///   - isOffline: Whether the machine has no way to the host, which says nothing about the download.
    /// - Returns: After how long it is tried again; nil for not at all, or at once.
    fileprivate mutating func fail(
        _ error: DownloadError, before: Int, isOffline: Bool, _ configuration: DownloadManager.Configuration
    ) -> Duration? {
        self.error = error
        record.placing = nil
        record.status.failure = DownloadStatus.Failure(error)
        self.isOffline = isOffline
        if record.status.received > before { failures = 0 }
        if record.source < record.request.mirrors.count, !error.isLocal {
            // Another place may have it, now.
            record.source += 1
            record.status.state = .waiting
            return nil
        }
        record.source = 0
        offlineTries = isOffline ? min(offlineTries + 1, 100) : 0
        if !isOffline { failures += 1 }
        guard error.isTemporary, isOffline || failures < max(1, record.request.attempts) else {
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
