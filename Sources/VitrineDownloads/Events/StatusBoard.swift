import VitrineCore

/// The newest status of each download, for any number of followers. A slow follower misses what lies between, never the
/// newest; nothing is kept for it.
final class StatusBoard: Sendable {
    private struct State {
        var newest: [String: (status: DownloadStatus, version: Int)] = [:]
        /// Which download changed with which version, in order. Only the newest of each download counts.
        var log: [(version: Int, id: String)] = []
        var version = 0
        var followers: [Int: CheckedContinuation<Void, Never>] = [:]
        var cancelled: Set<Int> = []
        var nextID = 0
    }

    private let state = Locked(State())

    /// Shows a status.
    func show(_ status: DownloadStatus) {
        let followers = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.version += 1
            state.newest[status.id] = (status, state.version)
            state.log.append((state.version, status.id))
            if state.log.count > 2 * state.newest.count + 64 {
                state.log.removeAll { state.newest[$0.id]?.version != $0.version }
            }
            return Self.takeFollowers(&state)
        }
        for follower in followers { follower.resume() }
    }

    /// Forgets a download.
    func remove(_ id: String) {
        let followers = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.newest[id] = nil
            state.version += 1
            return Self.takeFollowers(&state)
        }
        for follower in followers { follower.resume() }
    }

    private static func takeFollowers(_ state: inout State) -> [CheckedContinuation<Void, Never>] {
        defer { state.followers = [:] }
        return Array(state.followers.values)
    }

    /// The newest status of a download; nil if there is none.
    func status(of id: String) -> DownloadStatus? { state.withLock { $0.newest[id]?.status } }

    /// The next status that a follower has not seen, and its version.
    ///
    /// - Parameters:
    ///   - version: The last one seen; 0 for none.
    ///   - id: The download; nil for all.
    /// - Returns: nil when the task is cancelled, or the download is not there any more.
    func next(after version: Int, of id: String?) async -> (DownloadStatus, Int)? {
        while !Task.isCancelled {
            let (found, seen, isGone) = state.withLock { state in
                (Self.find(state, after: version, id), state.version, id.map { state.newest[$0] == nil } ?? false)
            }
            if let found { return found }
            if isGone { return nil }
            await wait(after: seen)
        }
        return nil
    }

    private static func find(_ state: State, after version: Int, _ id: String?) -> (DownloadStatus, Int)? {
        if let id {
            guard let newest = state.newest[id], newest.version > version else { return nil }
            return newest
        }
        var low = 0, high = state.log.count
        while low < high {
            let middle = (low + high) / 2
            if state.log[middle].version > version { high = middle } else { low = middle + 1 }
        }
        for entry in state.log[low...] {
            if let newest = state.newest[entry.id], newest.version == entry.version { return newest }
        }
        return nil
    }

    private func wait(after version: Int) async {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let mustWait = state.withLock { state in
                    guard state.version == version, state.cancelled.remove(id) == nil else { return false }
                    state.followers[id] = continuation
                    return true
                }
                if !mustWait { continuation.resume() }
            }
        } onCancel: {
            let follower = state.withLock { state in
                // The cancellation may come before the wait.
                if state.followers[id] == nil { state.cancelled.insert(id) }
                return state.followers.removeValue(forKey: id)
            }
            follower?.resume()
        }
        state.withLock { _ = $0.cancelled.remove(id) }
    }
}
