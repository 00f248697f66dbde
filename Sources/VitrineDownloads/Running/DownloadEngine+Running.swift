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
        let records = state.withLock { state -> [DownloadRecord] in
            guard !state.isShutDown, state.journal != nil else { return [] }
            let running = state.entries.values.filter { $0.task != nil }
            var free = state.limit - running.count
            guard free > 0 else { return [] }
            var perHost = Dictionary(running.map { ($0.host, 1) }, uniquingKeysWith: +)
            let waiting = state.entries.values.filter { $0.record.status.state == .waiting && $0.task == nil }
            var started: [DownloadRecord] = []
            for entry in waiting.sorted(by: { Self.precedes($0.record, $1.record) }) where free > 0 {
                guard perHost[entry.host, default: 0] < state.limitPerHost else { continue }
                perHost[entry.host, default: 0] += 1
                free -= 1
                let id = entry.record.id
                state.entries[id]?.record.status.state = .running
                state.entries[id]?.stop = nil
                // Bound before the lock is let go, so that nobody finds it running without a task.
                state.entries[id]?.task = Task { await self.run(id) }
                if let record = state.entries[id]?.record { started.append(record) }
            }
            return started
        }
        for record in records { board.show(record.status) }
    }

    /// One run, from its turn to its end.
    private func run(_ id: String) async {
        guard let entry = state.withLock({ $0.entries[id] }) else { return }
        let before = entry.record.status.received
        let outcome = await LimitedLoader.$limits.withValue([rateLimit, entry.limit]) {
            do throws(DownloadError) {
                return Result<String, DownloadError>.success(try await load(entry.record))
            } catch {
                return .failure(error)
            }
        }
        await finish(id, outcome, before: before)
        pump()
        wakeIfSettled()
    }

    /// What becomes of a download after a run.
    private func finish(_ id: String, _ outcome: Result<String, DownloadError>, before: Int) async {
        var discarded: DownloadRecord?
        var alarm: Duration?
        let record = update(id) { entry in
            let stop = entry.stop.take()
            entry.task = nil
            entry.record.status.speed = nil
            if case .success(let path) = outcome {
                // It was quicker than whoever wanted to stop it.
                Self.complete(&entry, path)
                return true
            }
            guard case .failure(let error) = outcome else { return true }
            switch stop {
            case .pause?, .quit?: break
            case .cancel?, .remove?: discarded = entry.record
            case nil where entry.record.status.state == .running: alarm = Self.fail(&entry, error, before: before)
            // It was paused and let go on while it stopped: its turn comes again.
            case nil: break
            }
            return true
        }
        if let discarded { await discardPart(of: discarded) }
        guard let record else { return }
        if state.withLock({ $0.entries[id]?.stop == .remove }) { return }
        do { try await save(record) } catch {
            log.error("A download was not noted", metadata: ["id": "\(id)", "error": "\(error)"])
        }
        if let alarm { ring(id, after: alarm) }
        post(record.status)
    }

    private static func complete(_ entry: inout Entry, _ path: String) {
        entry.record.status.state = .completed
        entry.record.status.path = path
        entry.record.status.total = entry.record.status.received
        entry.record.status.failure = nil
        entry.record.status.ended = Date()
        entry.error = nil
    }

    /// - Returns: After how long it is tried again; nil for not at all.
    private static func fail(_ entry: inout Entry, _ error: DownloadError, before: Int) -> Duration? {
        entry.error = error
        entry.record.status.failure = DownloadStatus.Failure(error)
        entry.isOffline = error.isOffline
        if entry.record.status.received > before { entry.failures = 0 }
        let hasMirror = entry.record.source < entry.record.request.mirrors.count
        if hasMirror, !error.isLocal {
            // Another place may have it, now.
            entry.record.source += 1
            entry.record.status.state = .waiting
            return nil
        }
        entry.record.source = 0
        if !error.isOffline { entry.failures += 1 }
        guard error.isTemporary, entry.failures < max(1, entry.record.request.attempts) else {
            entry.record.status.state = .failed
            entry.record.status.ended = Date()
            return nil
        }
        var policy = RetryPolicy()
        (policy.base, policy.maximumDelay) = (.seconds(2), .seconds(60))
        let delay = error.retryDelay ?? max(.milliseconds(500), policy.delay(before: max(1, entry.failures)))
        entry.record.status.state = .delayed
        entry.record.status.retries += 1
        entry.record.status.retryDate = Date() + delay / .seconds(1)
        return delay
    }

    /// Puts a delayed download into the line again, later.
    private func ring(_ id: String, after delay: Duration) {
        let alarm = Task { [weak self] in
            try? await Task.sleep(for: delay)
            guard !Task.isCancelled else { return }
            self?.wake(id)
        }
        state.withLock { $0.entries[id]?.alarm = alarm }
    }

    private func wake(_ id: String) {
        update(id) { entry in
            guard entry.record.status.state == .delayed else { return false }
            entry.alarm = nil
            entry.record.status.state = .waiting
            entry.record.status.retryDate = nil
            return true
        }
        pump()
    }

    /// There may be a network again: what waits for one is tried at once.
    func networkChanged() {
        let ids = state.withLock { state in
            state.entries.values.filter { $0.isOffline && $0.record.status.state == .delayed }.map(\.record.id)
        }
        for id in ids {
            state.withLock { $0.entries[id]?.alarm }?.cancel()
            wake(id)
        }
    }

    // MARK: One try

    /// Where what is there of a download lies: beside its file, hidden.
    static func partPath(of record: DownloadRecord) -> String {
        PartialFile.path(for: FilePath.join(record.request.directory ?? "/", "." + record.id))
    }

    /// - Returns: The path of the file.
    private func load(_ record: DownloadRecord) async throws(DownloadError) -> String {
        let request = record.request
        let directory = request.directory ?? configuration.directory
        let partPath = Self.partPath(of: record)
        let part = try await Self.onFiles { () throws(FileError) in
            try Directory.create(directory, mode: 0o777)
            return try PartialFile.open(partPath, identity: record.id)
        }
        guard let part else { throw .file(.untrusted(path: partPath, reason: "somebody else is writing it")) }
        do throws(DownloadError) {
            let url = record.source == 0 ? request.url : request.mirrors[record.source - 1]
            let whole = try await transfer(record.id, url, request, part, directory)
            try await verify(part, request)
            let path = try await place(part, request, whole.head)
            update(record.id) { entry in
                entry.record.status.restarts += whole.restarts
                entry.record.status.received = whole.length
                return true
            }
            return path
        } catch {
            let isKept = !error.isFinal
            await BlockingExecutor.shared.run { isKept ? part.release() : part.discard() }
            throw error
        }
    }

    private func transfer(
        _ id: String, _ url: URL, _ request: DownloadRequest, _ part: PartialFile, _ directory: String
    ) async throws(DownloadError) -> (head: ResponseHead, length: Int, restarts: Int) {
        var wanted = DataRequest(url: url, headers: request.headers)
        wanted.maximumBodySize = .unlimited
        wanted.priority = request.priority
        let progress = TransferProgress()
        let work = Task { [loader, wanted] () -> Result<CompletedTransfer, NetworkError> in
            do throws(NetworkError) {
                return .success(try await loader.load(wanted, into: part, progress: progress))
            } catch {
                return .failure(error)
            }
        }
        let watcher = DownloadWatcher(id, self, progress, directory, request.expectedSize) { work.cancel() }
        let watching = Task { await watcher.run() }
        let result = await withTaskCancellationHandler {
            await work.value
        } onCancel: {
            work.cancel()
        }
        watching.cancel()
        await watching.value
        if let error = watcher.failure { throw error }
        switch result {
        case .success(let whole): return (whole.head, part.length, whole.restarts)
        case .failure(.cancelled): throw .cancelled
        case .failure(.file(let error)): throw .file(error)
        case .failure(let error): throw .network(error)
        }
    }

    /// Whether it is the file that was meant.
    private func verify(_ part: PartialFile, _ request: DownloadRequest) async throws(DownloadError) {
        if let expected = request.expectedSize, part.length != expected {
            throw .size(path: part.path, expected: expected, actual: part.length)
        }
        guard let expected = request.checksum else { return }
        let token = CancellationToken()
        let path = part.path
        let result = await withTaskCancellationHandler {
            await BlockingExecutor.shared.run {
                Result { () throws(FileError) in try Checksum.of(path, expected.algorithm, cancellation: token) }
            }
        } onCancel: {
            token.cancel()
        }
        let actual: Checksum?
        do throws(FileError) { actual = try result.get() } catch {
            if token.isCancelled { throw .cancelled }
            throw .file(error)
        }
        if let actual, actual != expected { throw .checksum(path: path, expected: expected, actual: actual) }
    }

    /// Gives the file its name.
    private func place(
        _ part: PartialFile, _ request: DownloadRequest, _ head: ResponseHead
    ) async throws(DownloadError) -> String {
        let name = request.name ?? DownloadName.name(for: head, from: request.url)
        let directory = request.directory ?? configuration.directory
        return try await Self.onFiles { () throws(FileError) in
            var number = 1
            while true {
                let path = FilePath.join(directory, DownloadName.numbered(name, number))
                do throws(FileError) {
                    try part.place(at: path, replaces: request.existing == .replace, isDurable: true)
                    return path
                } catch .alreadyExists where request.existing == .number && number < 10_000 {
                    number += 1
                }
            }
        }
    }
}
