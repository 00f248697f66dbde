import VitrineCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Starts downloads.
extension DownloadEngine {
    func start(_ request: DownloadRequest, id: String) async throws(DownloadError) -> DownloadStatus {
        try request.check()
        try await open()
        guard DownloadRecord.isIdentifier(id) else { throw .unknown(id: id) }
        if let known = state.withLock({ Self.known(request, id: id, state: $0) }) {
            return try await resumeKnown(known, requestedAs: id)
        }
        let directory = request.directory ?? configuration.directory
        guard FilePath.isAbsolute(directory) else {
            throw .invalidDestination(directory, reason: "the path of the directory is not absolute")
        }
        try state.withLock { state throws(DownloadError) in try Self.checkTarget(of: request, in: directory, state) }
        try await Self.onFiles { () throws(FileError) in
            try Directory.create(directory, mode: 0o777)
            if request.existing == .keep, let name = request.name {
                let path = FilePath.join(directory, name)
                guard !FilePath.exists(path) else { throw .alreadyExists(path: path) }
            }
        }
        let (record, isNew) = state.withLock { state in
            // Another call may have started it meanwhile.
            if let known = Self.known(request, id: id, state: state) { return (known, false) }
            let entry = Entry(Self.record(request, id: id, in: directory, state: state), isNoted: false)
            return (keep(entry, in: &state), true)
        }
        guard isNew else { return try await resumeKnown(record, requestedAs: id) }
        do {
            try await save(record)
        } catch {
            state.withLock { $0.entries[record.id] = nil }
            broadcaster.remove(record.id)
            throw error
        }
        state.withLock { $0.entries[record.id]?.isNoted = true }
        startWaiting()
        return record.status
    }

    /// Returns the status of a known download, resumes it if it is paused, and retries it if it failed.
    ///
    /// - Parameter id: The identifier for a new download. If it differs, this is a new request for the known one.
    private func resumeKnown(
        _ known: DownloadRecord, requestedAs id: String
    ) async throws(DownloadError) -> DownloadStatus {
        if id != known.id, let journal = state.withLock({ $0.journal }) {
            state.withLock { $0.entries[known.id]?.isSuspect = false }
            try await journal.forgiveStarts(known.id)
            startWaiting()
        }
        if known.status.state == .paused { try await resume(known.id) }
        if id != known.id, known.status.state == .failed { try await retry(known.id) }
        return broadcaster.status(of: known.id) ?? known.status
    }

    /// Returns the download of the same request, or one that does all that the request asks for. A failed one counts, as
    /// its partial file does.
    private static func known(_ request: DownloadRequest, id: String, state: State) -> DownloadRecord? {
        if let entry = state.entry(id) { return entry.record }
        return state.entries.values.first { entry in
            (entry.isUnfinished || entry.hasFailed) && entry.record.serves(request)
        }?.record
    }

    /// Throws if a download of the same address with other options writes the same file.
    private static func checkTarget(
        of request: DownloadRequest, in directory: String, _ state: State
    ) throws(DownloadError) {
        let path = FilePath.join(directory, request.name ?? DownloadName.name(for: request.url))
        let isTaken = state.entries.values.contains { entry in
            entry.isUnfinished && entry.record.request.url == request.url && entry.record.status.path == path
        }
        if isTaken {
            throw .invalidDestination(
                path, reason: "it is being downloaded with other options; wait, or remove that download first")
        }
    }

    private static func record(
        _ request: DownloadRequest, id: String, in directory: String, state: State
    ) -> DownloadRecord {
        var request = request
        // An absolute path is independent of the current directory of the next run.
        request.directory = directory
        let proposed = request.name ?? DownloadName.name(for: request.url)
        // Downloads with the same name must not replace each other.
        var number = 1
        var path = FilePath.join(directory, proposed)
        while state.entries.values.contains(where: { $0.isUnfinished && $0.record.status.path == path }) {
            number += 1
            request.name = DownloadName.numbered(proposed, number)
            // The request did not choose this name, so an existing file stays.
            if request.existing == .replace { request.existing = .number }
            path = FilePath.join(directory, DownloadName.numbered(proposed, number))
        }
        let status = DownloadStatus(
            id: id, url: request.url, path: path, priority: request.priority, added: Date())
        let position = (state.entries.values.lazy.map(\.record.position).max() ?? 0) + 1
        return DownloadRecord(id: id, request: request, status: status, position: position, revision: 0)
    }
}

extension DownloadEngine.Entry {
    /// Whether it is on the list and has not ended.
    fileprivate var isUnfinished: Bool { pendingAction != .remove && !record.status.state.isOver }

    /// Whether it is on the list and has failed.
    fileprivate var hasFailed: Bool { pendingAction == nil && record.status.state == .failed }
}

extension DownloadRecord {
    /// Whether its name got a number when it was added, so that it replaces no file.
    private var isNumbered: Bool {
        request.existing == .number && request.name != nil && request.name != DownloadName.name(for: request.url)
    }

    /// Whether this download does everything that a request for the same address asks for.
    fileprivate func serves(_ other: DownloadRequest) -> Bool {
        request.url == other.url && request.headers == other.headers
            && (other.directory == nil || other.directory == directory)
            && (other.name == nil || other.name == request.name
                || FilePath.join(directory, other.name ?? "") == status.path)
            && (other.checksum == nil || other.checksum == request.checksum)
            && (other.expectedSize == nil || other.expectedSize == request.expectedSize)
            && (other.maximumRate == nil || other.maximumRate == request.maximumRate)
            && (other.existing == request.existing || isNumbered && other.existing == .replace)
            && other.mirrors.allSatisfy(request.mirrors.contains)
    }
}

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Commands of handles.
extension DownloadEngine {
    func perform(_ command: DownloadCommand, on id: String) async throws(DownloadError) {
        try await open()
        if let damaged = state.withLock({ $0.damaged[id] }) {
            guard command == .remove else { throw .damagedRecord(id: id) }
            return try await remove(damaged)
        }
        guard state.withLock({ $0.entry(id) != nil }) else { throw .unknown(id: id) }
        switch command {
        case .pause: try await pause(id)
        case .resume: try await resume(id)
        case .cancel: try await cancel(id)
        case .retry: try await retry(id)
        case .remove: try await remove(id)
        case .setPriority(let priority):
            try await change(id) { entry in
                entry.record.request.priority = priority
                entry.record.status.priority = priority
            }
            carrier?.setPriority(priority, of: id)
        case .move(let other): try await move(id, before: other)
        case .setMaximumRate(let rate):
            try await change(id) { entry in
                entry.record.request.maximumRate = rate
                entry.limit.bytesPerSecond = rate?.bytes
            }
        }
    }

    private func pause(_ id: String) async throws(DownloadError) {
        let record = update(id) { entry in
            guard !entry.record.status.state.isSettled else { return false }
            if let task = entry.task {
                if entry.pendingAction == nil { entry.pendingAction = .pause }
                task.cancel()
            }
            entry.cancelRetryTimer()
            entry.record.status.state = .paused
            entry.record.status.speed = nil
            return true
        }
        if let record { try await save(record) }
    }

    func resume(_ id: String) async throws(DownloadError) {
        let record = update(id) { entry in
            guard entry.record.status.state == .paused else { return false }
            entry.queue()
            return true
        }
        if let record { try await save(record) }
        startWaiting()
    }

    private func retry(_ id: String) async throws(DownloadError) {
        let record = update(id) { entry in
            guard [.failed, .cancelled, .delayed].contains(entry.record.status.state) else { return false }
            entry.cancelRetryTimer()
            entry.record.source = 0
            entry.queue()
            return true
        }
        if let record { try await save(record) }
        startWaiting()
    }

    private func cancel(_ id: String) async throws(DownloadError) {
        var stopping: Task<Void, Never>?
        let record = update(id) { entry in
            guard !entry.record.status.state.isOver else { return false }
            entry.pendingAction = .cancel
            stopping = self.stop(&entry)
            entry.record.status.state = .cancelled
            entry.record.status.received = 0
            entry.record.status.speed = nil
            entry.record.status.ended = Date()
            return true
        }
        guard let record else { return }
        try await save(record)
        if let stopping { await end(of: stopping, id) }
    }

    /// Returns when a cancelled task has ended, or after a time limit.
    private func end(of task: Task<Void, Never>, _ id: String) async {
        guard await task.hasEnded(within: configuration.stoppingTime) == false else { return }
        state.withLock { $0.entries[id]?.isAbandoned = true }
        log.error("A transfer did not stop in time", metadata: ["id": "\(id)"])
        startWaiting()
    }

    /// Cancels the task of a download, or starts one that deletes its partial file.
    private func stop(_ entry: inout Entry) -> Task<Void, Never> {
        entry.cancelRetryTimer()
        if let task = entry.task {
            task.cancel()
            return task
        }
        let task = Task { [record = entry.record] in await self.discard(record) }
        entry.task = task
        return task
    }

    private func remove(_ id: String) async throws(DownloadError) {
        let task = try state.withLock { state throws(DownloadError) in
            guard var entry = state.entry(id) else { throw .unknown(id: id) }
            entry.pendingAction = .remove
            let task = stop(&entry)
            state.entries[id] = entry
            return task
        }
        await end(of: task, id)
        let isStuck = state.withLock { state in
            broadcaster.remove(id)
            let isStuck = state.entries[id]?.isAbandoned == true
            if !isStuck { state.entries[id] = nil }
            return isStuck
        }
        if isStuck {
            Task {
                await task.value
                self.state.withLock { $0.entries[id] = nil }
                self.broadcaster.touch()
            }
        }
        startWaiting()
        if let journal = state.withLock({ $0.journal }) { try await journal.remove(id) }
    }

    private func remove(_ damaged: Journal.DamagedRecord) async throws(DownloadError) {
        if let journal = state.withLock({ $0.journal }) { try await journal.remove(key: damaged.key) }
        state.withLock { $0.damaged[damaged.status.id] = nil }
        broadcaster.remove(damaged.status.id)
    }

    private func change(_ id: String, _ body: (inout Entry) -> Void) async throws(DownloadError) {
        let record = update(id) { entry in
            body(&entry)
            return true
        }
        if let record { try await save(record) }
        startWaiting()
    }

    private func move(_ id: String, before other: String?) async throws(DownloadError) {
        let changed = try state.withLock { state throws(DownloadError) -> [DownloadRecord] in
            guard let moved = state.entry(id)?.record else { throw .unknown(id: id) }
            guard id != other else { return [] }
            var queue = state.records.filter { $0.id != id }.sorted { ($0.position, $0.id) < ($1.position, $1.id) }
            let index = other.map { other in queue.firstIndex { $0.id == other } } ?? queue.count
            guard let index else { throw .unknown(id: other ?? "") }
            queue.insert(moved, at: index)
            // All positions are renumbered: halving the gap between two is limited by precision.
            return queue.enumerated().compactMap { place, record in
                guard record.position != Double(place), var entry = state.entries[record.id] else { return nil }
                entry.record.position = Double(place)
                return keep(entry, in: &state)
            }
        }
        for record in changed { try await save(record) }
        startWaiting()
    }

    func set(_ limits: DownloadLimits) async throws(DownloadError) {
        switch limits {
        case .count(let count, let perHost):
            state.withLock { state in
                state.limit = max(1, count)
                state.limitPerHost = max(1, perHost)
            }
            startWaiting()
        case .rate(let rate): rateLimit.bytesPerSecond = rate?.bytes
        }
    }
}

extension DownloadEngine.Entry {
    /// Adds it to the queue.
    fileprivate mutating func queue() {
        failures = 0
        record.status.state = .waiting
        record.status.failure = nil
        record.status.ended = nil
        // A run that is still stopping restarts after that.
        if pendingAction == .pause { pendingAction = nil }
    }
}

extension Task where Success == Void, Failure == Never {
    /// Waits for the end of a task, up to a time limit.
    ///
    /// - Returns: Whether the task has ended.
    func hasEnded(within limit: Duration) async -> Bool {
        let (ends, end) = AsyncStream<Bool>.makeStream()
        let timer = Task<Void, Never> { @Sendable in
            do { try await Task<Never, Never>.sleep(for: limit) } catch { return }
            end.yield(false)
        }
        let waiting = Task<Void, Never> { @Sendable in
            await self.value
            end.yield(true)
        }
        defer {
            timer.cancel()
            waiting.cancel()
        }
        // In a task of its own, because cancelling the waiting task must not end the wait.
        return await Task<Bool, Never> { @Sendable in
            for await hasEnded in ends { return hasEnded }
            return false
        }.value
    }
}
