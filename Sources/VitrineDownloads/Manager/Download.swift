#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCore

/// A handle of one download. It goes on without handles, as long as its manager is there.
///
/// ```swift
/// let download = try await DownloadManager.shared.start("https://example.org/film.mkv")
/// for await status in download.updates { print(status.fraction ?? 0) }
/// let path = try await download.file
/// ```
public final class Download: Sendable, Identifiable {
    /// What it is known by, also in later runs of the program.
    public let id: String
    /// What was asked for.
    public let url: URL
    private let lease: BackendLease
    /// Whether it was removed by this handle, which then waits for nothing.
    private let isRemoved = Locked(false)

    init(_ status: DownloadStatus, lease: BackendLease) {
        id = status.id
        url = status.url
        self.lease = lease
    }

    /// How it is now; nil after it was removed.
    public var status: DownloadStatus? { lease.backend.board.status(of: id) }

    /// How it comes on.
    public var updates: DownloadUpdates { DownloadUpdates(lease: lease, id: id) }

    /// The path of the file, when it is there.
    ///
    /// - Throws: Why it will not be: ``DownloadError``; ``DownloadError/cancelled`` also when the waiting task is
    ///   cancelled, which leaves the download alone. While it is paused this waits.
    public var file: String {
        get async throws(DownloadError) {
            // Who waits may have let go of everything else.
            defer { withExtendedLifetime(lease) {} }
            if isRemoved.withLock({ $0 }) { throw .unknown(id: id) }
            return try await lease.backend.file(of: id)
        }
    }

    /// Stops it where it is. Harmless if it is over.
    public func pause() async throws(DownloadError) { try await perform(.pause) }

    /// Lets it go on. Harmless if it is not paused.
    public func resume() async throws(DownloadError) { try await perform(.resume) }

    /// Stops it and throws away what is there of it. It stays in the list; ``retry()`` begins it anew.
    public func cancel() async throws(DownloadError) { try await perform(.cancel) }

    /// Begins it again where it was, after it failed or was cancelled; at once, if it is delayed.
    public func retry() async throws(DownloadError) { try await perform(.retry) }

    /// Takes it off the list, and stops it if it is not over. A file that is complete stays.
    /// Those who wait for it elsewhere still hear that it has completed.
    public func remove() async throws(DownloadError) {
        try await perform(.remove)
        isRemoved.withLock { $0 = true }
    }

    /// Changes which of those that wait goes first. One that runs goes on.
    public func setPriority(_ priority: Priority) async throws(DownloadError) {
        try await perform(.setPriority(priority))
    }

    /// Puts it directly before another one of the same priority; nil for behind all.
    public func move(before other: Download?) async throws(DownloadError) {
        try await perform(.move(before: other?.id))
    }

    /// Limits how many bytes a second it takes, from now on; nil for as many as come.
    public func setMaximumRate(_ rate: ByteCount?) async throws(DownloadError) {
        try await perform(.setMaximumRate(rate))
    }

    private func perform(_ command: DownloadCommand) async throws(DownloadError) {
        defer { withExtendedLifetime(lease) {} }
        try await lease.backend.perform(command, on: id)
    }
}
