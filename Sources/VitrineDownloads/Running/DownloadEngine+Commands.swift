#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCore
import VitrineNetwork

/// What handles ask for.
extension DownloadEngine {
    private func require(_ id: String) throws(DownloadError) {
        guard state.withLock({ $0.entries[id] != nil }) else { throw .unknown(id: id) }
    }

    func pause(_ id: String) async throws(DownloadError) {
        try require(id)
        let record = update(id) { entry in
            guard !entry.record.status.state.isSettled else { return false }
            if let task = entry.task {
                entry.stop = .pause
                task.cancel()
            }
            entry.alarm?.cancel()
            entry.alarm = nil
            entry.record.status.state = .paused
            entry.record.status.retryDate = nil
            entry.record.status.speed = nil
            return true
        }
        if let record { try await save(record) }
    }

    func resume(_ id: String) async throws(DownloadError) {
        try require(id)
        let record = update(id) { entry in
            guard entry.record.status.state == .paused else { return false }
            Self.queue(&entry)
            return true
        }
        if let record { try await save(record) }
        pump()
    }

    func retry(_ id: String) async throws(DownloadError) {
        try require(id)
        let record = update(id) { entry in
            guard [.failed, .cancelled, .delayed].contains(entry.record.status.state) else { return false }
            entry.alarm?.cancel()
            entry.alarm = nil
            entry.record.source = 0
            Self.queue(&entry)
            return true
        }
        if let record { try await save(record) }
        pump()
    }

    private static func queue(_ entry: inout Entry) {
        entry.failures = 0
        entry.record.status.state = .waiting
        entry.record.status.failure = nil
        entry.record.status.retryDate = nil
        entry.record.status.ended = nil
        // One that is still stopping begins again when it has.
        if entry.stop == .pause { entry.stop = nil }
    }

    func cancel(_ id: String) async throws(DownloadError) {
        try require(id)
        var mustDiscard = false
        let record = update(id) { entry in
            guard !entry.record.status.state.isOver else { return false }
            if let task = entry.task {
                entry.stop = .cancel
                task.cancel()
            } else {
                mustDiscard = true
            }
            entry.alarm?.cancel()
            entry.alarm = nil
            entry.record.status.state = .cancelled
            entry.record.status.received = 0
            entry.record.status.speed = nil
            entry.record.status.retryDate = nil
            entry.record.status.ended = Date()
            return true
        }
        guard let record else { return }
        if mustDiscard { await discardPart(of: record) }
        try await save(record)
    }

    func remove(_ id: String) async throws(DownloadError) {
        let entry = state.withLock { state -> Entry? in
            guard var entry = state.entries[id] else { return nil }
            guard entry.task != nil else {
                state.entries[id] = nil
                return entry
            }
            entry.stop = .remove
            state.entries[id] = entry
            return entry
        }
        guard let entry else { throw .unknown(id: id) }
        entry.alarm?.cancel()
        if let task = entry.task {
            task.cancel()
            await task.value
        } else {
            await discardPart(of: entry.record)
        }
        board.remove(id)
        wakeIfSettled()
        if let journal = state.withLock({ $0.journal }) { try await journal.remove(id) }
    }

    func change(_ id: String, _ body: (inout DownloadRecord) -> Void) async throws(DownloadError) {
        try require(id)
        let record = update(id) { entry in
            body(&entry.record)
            entry.limit.bytesPerSecond = entry.record.request.maximumRate?.bytes
            return true
        }
        if let record { try await save(record) }
        pump()
    }

    func move(_ id: String, before other: String?) async throws(DownloadError) {
        let position = try state.withLock { state throws(DownloadError) -> Double in
            guard state.entries[id] != nil else { throw .unknown(id: id) }
            let others = state.entries.values.filter { $0.record.id != id }.map(\.record)
                .sorted { ($0.position, $0.id) < ($1.position, $1.id) }
            guard let other else { return (others.last?.position ?? 0) + 1 }
            guard let index = others.firstIndex(where: { $0.id == other }) else { throw .unknown(id: other) }
            let before = index > 0 ? others[index - 1].position : others[index].position - 2
            return (before + others[index].position) / 2
        }
        try await change(id) { $0.position = position }
    }

    func setLimit(_ limit: Int, perHost: Int) {
        state.withLock { state in
            state.limit = max(1, limit)
            state.limitPerHost = max(1, perHost)
        }
        pump()
    }

    func setMaximumRate(_ rate: ByteCount?) { rateLimit.bytesPerSecond = rate?.bytes }

    /// What is there of a download is not wanted any more.
    func discardPart(of record: DownloadRecord) async {
        let path = Self.partPath(of: record)
        await BlockingExecutor.shared.run {
            guard Self.exists(path) else { return }
            do throws(FileError) {
                try PartialFile.open(path, identity: record.id)?.discard()
            } catch {
                Log.logger("downloads").warning("A part file stays", metadata: ["error": "\(error)"])
            }
        }
    }

    // MARK: Waiting

    /// The path of a download's file, when it is there.
    func file(of id: String) async throws(DownloadError) -> String {
        var version = 0
        while let (status, next) = await board.next(after: version, of: id) {
            version = next
            switch status.state {
            case .completed: return status.path
            case .cancelled: throw .cancelled
            case .failed:
                throw state.withLock { $0.entries[id]?.error } ?? status.failure.map { .earlier($0) } ?? .cancelled
            case .waiting, .running, .delayed, .paused: break
            }
        }
        if Task.isCancelled { throw .cancelled }
        throw .unknown(id: id)
    }

    /// Returns when everything is settled.
    func settled() async throws(DownloadError) {
        let id = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let mustWait = state.withLock { state in
                    guard !Self.isSettled(state), state.cancelledWaiters.remove(id) == nil else { return false }
                    state.settledWaiters[id] = continuation
                    return true
                }
                if !mustWait { continuation.resume() }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                // The cancellation may come before the wait.
                if state.settledWaiters[id] == nil { state.cancelledWaiters.insert(id) }
                return state.settledWaiters.removeValue(forKey: id)
            }
            waiter?.resume()
        }
        state.withLock { _ = $0.cancelledWaiters.remove(id) }
        if Task.isCancelled { throw .cancelled }
    }

    private static func isSettled(_ state: State) -> Bool {
        state.entries.values.allSatisfy { $0.record.status.state.isSettled && $0.task == nil }
    }

    func wakeIfSettled() {
        let waiters = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            guard !state.settledWaiters.isEmpty, Self.isSettled(state) else { return [] }
            defer { state.settledWaiters = [:] }
            return Array(state.settledWaiters.values)
        }
        for waiter in waiters { waiter.resume() }
    }
}
