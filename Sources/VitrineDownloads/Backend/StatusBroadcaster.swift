import VitrineCore
import VitrineNetwork

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The newest status of each download, for any number of subscribers. A slow subscriber skips statuses, but receives
/// the newest one. No queue is kept for it.
final class StatusBroadcaster: Broadcast {
    /// A change of one download.
    struct Change: Sendable {
        let id: String
        /// nil after it was removed, and for an unknown download.
        let status: DownloadStatus?
        /// Higher than the versions of all earlier changes.
        let version: Int
        /// Whether it is a new event, and not the state in which the list was read.
        let isFresh: Bool
        /// The last status before the removal, for tasks that wait for the end and have not seen it.
        var last: DownloadStatus?

        /// The last status, if the download completed and was removed since.
        var removedCompletion: DownloadStatus? { status == nil && last?.state == .completed ? last : nil }
    }

    struct State: BroadcastState {
        var newest: [String: Change] = [:]
        /// The changed download of each version, in order. Only the newest entry of each download is valid.
        var log: [(version: Int, id: String)] = []
        var version = 0
        var isClosed = false
        var waiters = BroadcastWaiters()

        mutating func add(_ id: String, _ status: DownloadStatus?, isFresh: Bool, last: DownloadStatus? = nil) {
            version += 1
            newest[id] = Change(id: id, status: status, version: version, isFresh: isFresh, last: last)
            log.append((version, id))
            if log.count > 2 * newest.count + 64 { compact() }
        }

        private mutating func compact() {
            log.removeAll { newest[$0.id]?.version != $0.version }
            // Old removals are forgotten.
            let removed = log.filter { newest[$0.id]?.status == nil }
            for entry in removed.dropLast(StatusBroadcaster.rememberedRemovals) { newest[entry.id] = nil }
            log.removeAll { newest[$0.id] == nil }
        }
    }

    private let state = Locked(State())

    func withState<R: Sendable>(_ body: (inout State) -> R) -> R { state.withLock { body(&$0) } }

    private static let rememberedRemovals = 1024

    // MARK: Changing

    /// Sets the status of a download, if it differs.
    ///
    /// - Parameter isFresh: Whether it is a new event.
    func show(_ status: DownloadStatus, isFresh: Bool = true) {
        change { state in
            if state.newest[status.id]?.status != status { state.add(status.id, status, isFresh: isFresh) }
        }
    }

    /// Removes a download.
    ///
    /// - Parameter last: Its last status, which may not have been shown here.
    func remove(_ id: String, last: DownloadStatus? = nil) {
        change { state in
            let known = state.newest[id]
            let isNew = known?.status != nil || last?.state == .completed && known?.removedCompletion == nil
            if isNew { state.add(id, nil, isFresh: true, last: last ?? known?.status) }
        }
    }

    /// Wakes tasks that wait for a condition that no status shows.
    func touch() { change { $0.version += 1 } }

    /// Ends all subscriptions.
    func close() { change { $0.isClosed = true } }

    // MARK: Reading

    /// The version of the last change.
    var version: Int { state.withLock { $0.version } }

    /// All statuses, and the version of the last change among them.
    var snapshot: (statuses: [DownloadStatus], version: Int) {
        state.withLock { ($0.newest.values.compactMap(\.status), $0.version) }
    }

    /// Returns the newest status of a download, or nil if there is none.
    func status(of id: String) -> DownloadStatus? { state.withLock { $0.newest[id]?.status } }

    /// Returns the oldest change after a version, once there is one.
    ///
    /// - Parameters:
    ///   - version: The version of the last change that the caller has seen; 0 for none.
    ///   - id: The download; nil for all.
    /// - Returns: nil when the task is cancelled, and after the end.
    func next(after version: Int, of id: String?) async -> Change? {
        while !Task.isCancelled {
            let (found, seen, isClosed) = state.withLock { state in
                (state.firstChange(after: version, of: id), state.version, state.isClosed)
            }
            if let found { return found }
            if isClosed { return nil }
            await waitForChange(since: seen)
        }
        return nil
    }
}

extension StatusBroadcaster.State {
    /// Returns the oldest valid change after a version.
    fileprivate func firstChange(after seen: Int, of id: String?) -> StatusBroadcaster.Change? {
        if let id {
            guard let newest = newest[id] else {
                return StatusBroadcaster.Change(id: id, status: nil, version: version, isFresh: false)
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
