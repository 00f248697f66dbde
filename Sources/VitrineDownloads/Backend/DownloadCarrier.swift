import VitrineCore
import VitrineNetwork

/// Transfers files in place of the loader of a ``DownloadEngine``. The engine keeps the list, the queue, retries,
/// mirrors, checks and names.
protocol DownloadCarrier: AnyObject, Sendable {
    /// Receives the list before any download runs. Transfers of other downloads are stopped.
    func adopt(_ records: [DownloadRecord]) async

    /// Transfers a complete file and resumes an interrupted transfer.
    ///
    /// Cancelling the task stops the transfer and keeps its data. The transfer continues if the engine only shuts down,
    /// see ``DownloadEngine/leavesAlone(_:)``.
    func bring(_ run: DownloadRun) async throws(DownloadError) -> LoadedFile

    /// Deletes the data of a download without a running transfer.
    func discard(_ record: DownloadRecord) async

    /// Changes the priority of a download.
    func setPriority(_ priority: RequestPriority, of id: String)
}

/// A complete file before its verification.
struct LoadedFile: Sendable {
    let part: PartialFile
    /// The head of its response.
    let head: HTTPResponseHead
    /// The number of times the transfer started again.
    let restarts: Int
}
