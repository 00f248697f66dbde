import VitrineCore
import VitrineDownloads
import VitrineNetwork

/// Shows how downloads come on until each is settled: bars on a terminal, or a JSON object for each change.
struct DownloadFollower {
    private let asJSON: Bool
    private let board = ProgressDisplay()

    init(asJSON: Bool) { self.asJSON = asJSON }

    /// Follows downloads, and tells of each how it has ended.
    ///
    /// - Returns: How many have no file.
    func follow(_ downloads: [Download]) async -> Int {
        let drawing = Task { [board] in await board.run() }
        let failures = await withTaskGroup(of: Bool.self) { group in
            for (number, download) in downloads.enumerated() {
                group.addTask { await self.follow(download, number) }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 0 : 1 }
        }
        drawing.cancel()
        await drawing.value
        board.clear()
        return failures
    }

    /// - Returns: Whether it has its file.
    private func follow(_ download: Download, _ number: Int) async -> Bool {
        let progress = TransferProgress()
        board.add(number, name: download.status.map { FilePath.name(of: $0.path) } ?? "", progress)
        defer { board.remove(number) }
        var last = download.status
        for await status in download.updates {
            last = status
            progress.update { step in
                (step.received, step.total) = (status.received, status.total)
            }
            if status.state.isSettled { break }
            if asJSON { DownloadReport(status).print(asJSON: true) }
        }
        board.remove(number)
        board.clear()
        guard let last else {
            Diagnostics.write("\(download.id.prefix(8))  \(download.url.absoluteString): it was removed")
            return false
        }
        let reason = await ending(of: download, last)
        DownloadReport(last, error: reason).print(asJSON: asJSON)
        return last.state == .completed
    }

    /// Why nothing more is heard of it, where its status does not tell.
    private func ending(of download: Download, _ status: DownloadStatus) async -> String? {
        guard !status.state.isSettled else { return nil }
        do throws(DownloadError) { _ = try await download.file } catch { return error.description }
        return nil
    }
}
