public import VitrineCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A handle of one download. The download continues without handles as long as its manager exists.
///
/// ```swift
/// let download = try await DownloadManager.shared.start("https://example.org/video.mkv")
/// for await status in download.updates { print(status.fraction ?? 0) }
/// let path = try await download.file
/// ```
public final class Download: Sendable, Identifiable {
    /// The identifier of the download, also in later runs of the program.
    public let id: String
    /// The requested address.
    public let url: URL
    private let lease: BackendLease
    /// Whether this handle removed the download. It then waits for nothing.
    private let isRemoved = Locked(false)

    init(_ status: DownloadStatus, lease: BackendLease) {
        id = status.id
        url = status.url
        self.lease = lease
    }

    /// The current status, or nil after the download was removed.
    public var status: DownloadStatus? { lease.backend.broadcaster.status(of: id) }

    /// The current status and each later one.
    ///
    /// While a download runs, there are at most ten a second. The sequence ends with the download or its removal; if it
    /// was removed after it completed, the completion comes first. A reader that falls behind skips statuses. Iterating
    /// keeps the downloads of the manager running.
    public var updates: some AsyncSequence<DownloadStatus, Never> & Sendable { DownloadUpdates(lease: lease, id: id) }

    /// The path of the file, once it is complete. A paused download makes this wait.
    ///
    /// - Throws: ``DownloadError`` if the download fails. Cancelling the waiting task throws
    ///   ``DownloadError/cancelled`` and does not affect the download.
    public var file: String {
        get async throws(DownloadError) {
            // The waiting task may hold the only reference.
            defer { withExtendedLifetime(lease) {} }
            if isRemoved.withLock({ $0 }) { throw .unknown(id: id) }
            return try await lease.backend.file(of: id)
        }
    }

    /// Pauses the download. Does nothing if it has ended.
    public func pause() async throws(DownloadError) { try await perform(.pause) }

    /// Resumes a paused download. Does nothing if it is not paused.
    public func resume() async throws(DownloadError) { try await perform(.resume) }

    /// Stops the download and deletes its partial file. It stays in the list; ``retry()`` starts it again.
    public func cancel() async throws(DownloadError) { try await perform(.cancel) }

    /// Resumes the download after it failed or was cancelled. A delayed download is retried at once.
    public func retry() async throws(DownloadError) { try await perform(.retry) }

    /// Removes the download from the list, and stops it if it has not ended. A complete file stays.
    ///
    /// Other tasks that wait for the download still receive its completion.
    public func remove() async throws(DownloadError) {
        try await perform(.remove)
        isRemoved.withLock { $0 = true }
    }

    /// Changes the order in which waiting downloads start. A running download continues.
    ///
    /// - Parameter priority: The new priority.
    public func setPriority(_ priority: RequestPriority) async throws(DownloadError) {
        try await perform(.setPriority(priority))
    }

    /// Moves the download in the order of its priority.
    ///
    /// - Parameter other: The download to precede, or nil to move it to the end.
    public func move(before other: Download?) async throws(DownloadError) {
        try await perform(.move(before: other?.id))
    }

    /// Limits the transfer rate of this download from now on.
    ///
    /// - Parameter rate: The maximum number of bytes per second, or nil for no limit.
    public func setMaximumRate(_ rate: ByteCount?) async throws(DownloadError) {
        try await perform(.setMaximumRate(rate))
    }

    private func perform(_ command: DownloadCommand) async throws(DownloadError) {
        defer { withExtendedLifetime(lease) {} }
        try await lease.backend.perform(command, on: id)
    }
}

/// The statuses of one download or of all, as ``Download/updates`` describes.
package struct DownloadUpdates: AsyncSequence, Sendable {
    package typealias Element = DownloadStatus
    package typealias Failure = Never

    let lease: BackendLease
    let id: String?

    package struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let lease: BackendLease
        fileprivate let id: String?
        private var version = 0
        private var isAtEnd = false

        fileprivate init(lease: BackendLease, id: String?) {
            self.lease = lease
            self.id = id
        }

        /// Returns the next status, or nil after the end, the removal of the download, or a cancellation.
        package mutating func next() async -> DownloadStatus? {
            while !isAtEnd, let update = await lease.backend.broadcaster.next(after: version, of: id) {
                version = update.version
                isAtEnd = id != nil && update.status?.state.isOver != false
                // Another task that waited for it may have removed it before this one read its completion.
                if let status = update.status ?? (id == nil ? nil : update.removedCompletion) { return status }
            }
            return nil
        }
    }

    package func makeAsyncIterator() -> AsyncIterator { AsyncIterator(lease: lease, id: id) }
}
