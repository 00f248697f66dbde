#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCore

/// What handles ask for.
extension DownloadEngine {
    func perform(_ command: DownloadCommand, on id: String) async throws(DownloadError) {
        try await open()
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
                if entry.wish == nil { entry.wish = .pause }
                task.cancel()
            }
            entry.stopAlarm()
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
        pump()
    }

    private func retry(_ id: String) async throws(DownloadError) {
        let record = update(id) { entry in
            guard [.failed, .cancelled, .delayed].contains(entry.record.status.state) else { return false }
            entry.stopAlarm()
            entry.record.source = 0
            entry.queue()
            return true
        }
        if let record { try await save(record) }
        pump()
    }

    private func cancel(_ id: String) async throws(DownloadError) {
        var stopping: Task<Void, Never>?
        let record = update(id) { entry in
            guard !entry.record.status.state.isOver else { return false }
            entry.wish = .cancel
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

    /// Returns when a task that was told to stop has ended, or soon if it does not.
    private func end(of task: Task<Void, Never>, _ id: String) async {
        guard await task.hasEnded(within: configuration.stoppingTime) == false else { return }
        state.withLock { $0.entries[id]?.isAbandoned = true }
        log.error("A transfer does not stop", metadata: ["id": "\(id)"])
        pump()
    }

    /// Lets its task end, or gives it one that throws away what is there.
    private func stop(_ entry: inout Entry) -> Task<Void, Never> {
        entry.stopAlarm()
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
            entry.wish = .remove
            let task = stop(&entry)
            state.entries[id] = entry
            return task
        }
        await end(of: task, id)
        let isStuck = state.withLock { state in
            board.remove(id)
            let isStuck = state.entries[id]?.isAbandoned == true
            if !isStuck { state.entries[id] = nil }
            return isStuck
        }
        if isStuck {
            Task {
                await task.value
                self.state.withLock { $0.entries[id] = nil }
                self.board.touch()
            }
        }
        pump()
        if let journal = state.withLock({ $0.journal }) { try await journal.remove(id) }
    }

    private func change(_ id: String, _ body: (inout Entry) -> Void) async throws(DownloadError) {
        let record = update(id) { entry in
            body(&entry)
            return true
        }
        if let record { try await save(record) }
        pump()
    }

    private func move(_ id: String, before other: String?) async throws(DownloadError) {
        let changed = try state.withLock { state throws(DownloadError) -> [DownloadRecord] in
            guard let moved = state.entry(id)?.record else { throw .unknown(id: id) }
            guard id != other else { return [] }
            var line = state.records.filter { $0.id != id }.sorted { ($0.position, $0.id) < ($1.position, $1.id) }
            let index = other.map { other in line.firstIndex { $0.id == other } } ?? line.count
            guard let index else { throw .unknown(id: other ?? "") }
            line.insert(moved, at: index)
            // All places anew: halving the room between two would come to an end.
            return line.enumerated().compactMap { place, record in
                guard record.position != Double(place), var entry = state.entries[record.id] else { return nil }
                entry.record.position = Double(place)
                return keep(entry, in: &state)
            }
        }
        for record in changed { try await save(record) }
        pump()
    }

    func set(_ limits: DownloadLimits) async throws(DownloadError) {
        switch limits {
        case .count(let count, let perHost):
            state.withLock { state in
                state.limit = max(1, count)
                state.limitPerHost = max(1, perHost)
            }
            pump()
        case .rate(let rate): rateLimit.bytesPerSecond = rate?.bytes
        }
    }
}

extension DownloadEngine.Entry {
    /// Puts it into the line.
    fileprivate mutating func queue() {
        failures = 0
        record.status.state = .waiting
        record.status.failure = nil
        record.status.ended = nil
        // One that is still stopping begins again when it has.
        if wish == .pause { wish = nil }
    }
}

extension Task where Success == Void, Failure == Never {
    /// Waits for the end of a task no longer than a while.
    ///
    /// - Returns: Whether it has ended.
    func hasEnded(within limit: Duration) async -> Bool {
        let (ends, end) = AsyncStream<Bool>.makeStream()
        let alarm = Task<Void, Never> { @Sendable in
            do { try await Task<Never, Never>.sleep(for: limit) } catch { return }
            end.yield(false)
        }
        let waiting = Task<Void, Never> { @Sendable in
            await self.value
            end.yield(true)
        }
        defer {
            alarm.cancel()
            waiting.cancel()
        }
        // Also when the task that waits is cancelled: what it waits for is not.
        return await Task<Bool, Never> { @Sendable in
            for await hasEnded in ends { return hasEnded }
            return false
        }.value
    }
}
