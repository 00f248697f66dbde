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
    private let lease: EngineLease
    private var engine: DownloadEngine { lease.engine }

    init(id: String, url: URL, lease: EngineLease) {
        self.id = id
        self.url = url
        self.lease = lease
    }

    /// How it is now; nil after it was removed.
    public var status: DownloadStatus? { engine.board.status(of: id) }

    /// How it comes on.
    public var updates: DownloadUpdates { DownloadUpdates(board: engine.board, id: id) }

    /// The path of the file, when it is there.
    ///
    /// - Throws: Why it will not be: ``DownloadError``; ``DownloadError/cancelled`` also when the waiting task is
    ///   cancelled, which leaves the download alone. While it is paused this waits.
    public var file: String {
        get async throws(DownloadError) { try await engine.file(of: id) }
    }

    /// Stops it where it is. Harmless if it is over.
    public func pause() async throws(DownloadError) { try await engine.pause(id) }

    /// Lets it go on. Harmless if it is not paused.
    public func resume() async throws(DownloadError) { try await engine.resume(id) }

    /// Stops it and throws away what is there of it. It stays in the list; ``retry()`` begins it anew.
    public func cancel() async throws(DownloadError) { try await engine.cancel(id) }

    /// Begins it again where it was, after it failed or was cancelled; at once, if it is delayed.
    public func retry() async throws(DownloadError) { try await engine.retry(id) }

    /// Takes it off the list, and stops it if it is not over. A file that is complete stays.
    public func remove() async throws(DownloadError) { try await engine.remove(id) }

    /// Changes which of those that wait goes first. One that runs goes on.
    public func setPriority(_ priority: Priority) async throws(DownloadError) {
        try await engine.change(id) { record in
            record.request.priority = priority
            record.status.priority = priority
        }
    }

    /// Puts it directly before another one of the same priority; nil for behind all.
    public func move(before other: Download?) async throws(DownloadError) {
        try await engine.move(id, before: other?.id)
    }

    /// Limits how many bytes a second it takes, from now on; nil for as many as come.
    public func setMaximumRate(_ rate: ByteCount?) async throws(DownloadError) {
        try await engine.change(id) { $0.request.maximumRate = rate }
    }
}
