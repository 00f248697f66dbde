import Foundation
import VitrineCore
import VitrineNetwork

/// What `vitrine fetch` does for each address.
struct FetchJob: Sendable {
    let loader: NetworkLoader
    let options: RequestOptions
    /// What the one thing fetched is known by; nil for its address.
    let identity: String?
    let board: TransferBoard

    func run(_ number: Int, _ item: FetchItem) async -> FetchReport {
        let start = ContinuousClock.now
        var report = FetchReport(url: item.name)
        do {
            try await fetch(number, item, &report)
        } catch {
            report.error = Diagnostics.describe(error).reason
        }
        report.milliseconds = (ContinuousClock.now - start) / .milliseconds(1)
        return report
    }

    private func fetch(
        _ number: Int, _ item: FetchItem, _ report: inout FetchReport
    ) async throws(NetworkError) {
        let progress = TransferProgress()
        board.add(number, name: item.name, progress)
        defer { board.remove(number) }
        var settings = DownloadOptions()
        settings.identity = identity
        let file = try await loader.download(
            options.request(for: item.url), to: item.output, options: settings, progress: progress)
        report.output = item.output
        report.status = file.head.status
        report.type = file.head.contentType
        report.bytes = file.length
        report.resumed = file.resumedLength
    }
}
