import VitrineCore
import VitrineNetwork

/// Brings the bytes of downloads in place of the loader of a ``DownloadEngine``, which keeps the list and does all
/// else: turns, tries, mirrors, checks and names.
protocol DownloadCarrier: AnyObject, Sendable {
    /// Learns what is on the list, before any of it runs: what else was being carried is stopped.
    func adopt(_ records: [DownloadRecord]) async

    /// Brings a whole file, going on with what is there of it. When the task is cancelled it stops, and keeps what is
    /// there; unless the engine ``DownloadEngine/leavesAlone(_:)`` the download, which then goes on by itself.
    func bring(_ run: DownloadRun) async throws(DownloadError) -> LoadedFile

    /// Throws away what is kept of a download that is not being brought.
    func discard(_ record: DownloadRecord) async

    /// Says how urgent a download has become.
    func setPriority(_ priority: Priority, of id: String)
}

/// A file of which nothing is missing, and at which nobody has looked yet.
struct LoadedFile: Sendable {
    let part: PartialFile
    /// What it came with.
    let head: HTTPResponseHead
    /// How many times what was there had to be given up.
    let restarts: Int
}
