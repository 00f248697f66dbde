import VitrineCore
import VitrineNetwork

/// The newest status of each download, for any number of followers. A slow follower misses what lies between, never the
/// newest; nothing is kept for it.
final class StatusBroadcaster: Broadcast {
    /// What is new of one download.
    struct News: Sendable {
        let id: String
        /// nil after it was removed, and for what never was there.
        let status: DownloadStatus?
        /// Higher than that of everything before.
        let version: Int
        /// Whether it happened while somebody could see it, rather than before the list was read.
        let isFresh: Bool
        /// How it was when it was removed, for those who wait for its end and have not seen it.
        var last: DownloadStatus?

        /// How it ended, if that was well and it was removed since.
        var removedCompletion: DownloadStatus? { status == nil && last?.state == .completed ? last : nil }
    }

    struct State: BroadcastState {
        var newest: [String: News] = [:]
        /// Which download changed with which version, in order. Only the newest entry of each counts.
        var log: [(version: Int, id: String)] = []
        var version = 0
        var isClosed = false
        var waiters = BroadcastWaiters()

        mutating func add(_ id: String, _ status: DownloadStatus?, isFresh: Bool, last: DownloadStatus? = nil) {
            version += 1
            newest[id] = News(id: id, status: status, version: version, isFresh: isFresh, last: last)
            log.append((version, id))
            if log.count > 2 * newest.count + 64 { compact() }
        }

        private mutating func compact() {
            log.removeAll { newest[$0.id]?.version != $0.version }
            // Of what was removed long ago nobody needs to hear any more.
            let removed = log.filter { newest[$0.id]?.status == nil }
            for entry in removed.dropLast(StatusBroadcaster.rememberedRemovals) { newest[entry.id] = nil }
            log.removeAll { newest[$0.id] == nil }
        }
    }

    private let state = Locked(State())

    func withState<R: Sendable>(_ body: (inout State) -> R) -> R { state.withLock { body(&$0) } }

    private static let rememberedRemovals = 1024

    // MARK: Showing

    /// Shows a status, unless it is shown already.
    ///
    /// - Parameter isFresh: Whether it has just come to be so.
    func show(_ status: DownloadStatus, isFresh: Bool = true) {
        change { state in
            if state.newest[status.id]?.status != status { state.add(status.id, status, isFresh: isFresh) }
        }
    }

    /// Forgets a download, but for its end.
    ///
    /// - Parameter last: How it was, where that may not have been shown here.
    func remove(_ id: String, last: DownloadStatus? = nil) {
        change { state in
            let known = state.newest[id]
            let isNews = known?.status != nil || last?.state == .completed && known?.removedCompletion == nil
            if isNews { state.add(id, nil, isFresh: true, last: last ?? known?.status) }
        }
    }

    /// Wakes those who wait for something that no status tells.
    func touch() { change { $0.version += 1 } }

    /// Nothing more will come: followers end.
    func close() { change { $0.isClosed = true } }

    // MARK: Looking

    /// How far the changes have come.
    var version: Int { state.withLock { $0.version } }

    /// Everything that is there, and how far the changes had come with it.
    var snapshot: (statuses: [DownloadStatus], version: Int) {
        state.withLock { ($0.newest.values.compactMap(\.status), $0.version) }
    }

    /// The newest status of a download; nil if there is none.
    func status(of id: String) -> DownloadStatus? { state.withLock { $0.newest[id]?.status } }

    /// What a follower has not seen yet, oldest first, once there is something.
    ///
    /// - Parameters:
    ///   - version: Of the last news it saw; 0 for none.
    ///   - id: The download; nil for all.
    /// - Returns: nil when the task is cancelled, and after the end.
    func next(after version: Int, of id: String?) async -> News? {
        while !Task.isCancelled {
            let (found, seen, isClosed) = state.withLock { ($0.news(after: version, of: id), $0.version, $0.isClosed) }
            if let found { return found }
            if isClosed { return nil }
            await waitForChange(since: seen)
        }
        return nil
    }
}

extension StatusBroadcaster.State {
    /// The oldest change that is younger than a version, of those that still count.
    fileprivate func news(after seen: Int, of id: String?) -> StatusBroadcaster.News? {
        if let id {
            guard let newest = newest[id] else {
                return StatusBroadcaster.News(id: id, status: nil, version: version, isFresh: false)
            }
            return newest.version > seen ? newest : nil
        }
        var low = 0, high = log.count
        while low < high {
            let middle = (low + high) / 2
            if log[middle].version > seen { high = middle } else { low = middle + 1 }
        }
        for entry in log[low...] {
            if let newest = newest[entry.id], newest.version == entry.version { return newest }
        }
        return nil
    }
}
