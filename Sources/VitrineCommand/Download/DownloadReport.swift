import VitrineCore
import VitrineDownloads
import VitrineNetwork

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The state of a download, as a line of text or JSON.
struct DownloadReport: Sendable, Encodable {
    let status: DownloadStatus
    /// The reason why its updates ended, if its status has none.
    var error: String?

    init(_ status: DownloadStatus, error: String? = nil) {
        self.status = status
        self.error = error ?? status.failure?.message
    }

    private enum CodingKeys: String, CodingKey {
        case id, url, state, path, received, total, fraction, speed, secondsLeft, restarts, retries, code, error
    }

    /// Every key is present. Values that do not apply are null.
    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(status.id, forKey: .id)
        try container.encode(status.url.absoluteString, forKey: .url)
        try container.encode(status.state.name, forKey: .state)
        try container.encode(status.path, forKey: .path)
        try container.encode(status.received, forKey: .received)
        try container.encode(status.total, forKey: .total)
        try container.encode(Self.rounded(status.fraction), forKey: .fraction)
        try container.encode(status.speed.map { $0.rounded() }, forKey: .speed)
        try container.encode(Self.rounded(status.timeLeft), forKey: .secondsLeft)
        try container.encode(status.restarts, forKey: .restarts)
        try container.encode(status.retries, forKey: .retries)
        try container.encode(status.failure?.code, forKey: .code)
        try container.encode(error, forKey: .error)
    }

    private static func rounded(_ number: Double?) -> Double? { number.map { ($0 * 1e4).rounded() / 1e4 } }

    /// Prints it to standard output, and the text of failures to standard error.
    func print(asJSON: Bool) {
        if asJSON { return Output.json(self) }
        let (id, url) = (status.id.prefix(8), status.url.absoluteString)
        let name = "\(id)  \(url)"
        // Most errors name the address.
        if let error {
            return Diagnostics.write("\(error.contains(url) ? "\(id)" : name): \(status.state.name): \(error)")
        }
        var parts = [status.state.name]
        if status.state == .completed {
            parts.append(ByteCount(status.received).formatted())
        } else {
            if let fraction = status.fraction { parts.append("\(Int(fraction * 100)) %") }
            if let speed = status.speed { parts.append("\(ByteCount(clamping: speed).formatted())/s") }
        }
        Output.row("\(name)  →  \(status.path)  \(parts.joined(separator: "  "))")
    }
}

extension ByteCount {
    /// Makes the nearest valid count.
    init(clamping number: Double) {
        self.init(number.isNaN ? 0 : Int(exactly: min(max(0, number), 0x1p62).rounded()) ?? 0)
    }
}

/// Shows the progress of downloads until all have finished: bars on a terminal, or a JSON object for each change.
struct DownloadFollower {
    private let asJSON: Bool
    private let display: TransferDisplay
    private let downloads: [Download]

    init(_ downloads: [Download], asJSON: Bool) {
        self.downloads = downloads
        self.asJSON = asJSON
        display = TransferDisplay(total: downloads.count)
    }

    /// Follows the downloads, and prints the result of each.
    ///
    /// - Returns: The number of downloads without a file.
    func follow() async -> Int {
        let drawing = Task { [display] in await display.run() }
        let failures = await withTaskGroup(of: Bool.self) { group in
            for (number, download) in downloads.enumerated() {
                group.addTask {
                    defer { display.finish() }
                    return await follow(download, number)
                }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 0 : 1 }
        }
        drawing.cancel()
        await drawing.value
        display.clear()
        return failures
    }

    /// - Returns: Whether the file is complete.
    private func follow(_ download: Download, _ number: Int) async -> Bool {
        let progress = TransferProgress()
        display.add(number, name: download.status.map { FilePath.name(of: $0.path) } ?? "", progress)
        defer { display.remove(number) }
        var last = download.status
        var toldDate: Date?
        for await status in download.updates {
            last = status
            if status.state == .delayed, let date = status.retryDate, date != toldDate {
                toldDate = date
                tellDelay(until: date, status)
            }
            progress.update { step in
                (step.received, step.total) = (status.received, status.total)
            }
            if status.state.isSettled { break }
            if asJSON { DownloadReport(status).print(asJSON: true) }
        }
        display.remove(number)
        display.clear()
        guard let last else {
            Diagnostics.write("\(download.id.prefix(8))  \(download.url.absoluteString): it was removed from the list")
            return false
        }
        let reason = await ending(of: download, last)
        DownloadReport(last, error: reason).print(asJSON: asJSON)
        return last.state == .completed
    }

    /// Tells how long a download waits, and why.
    private func tellDelay(until date: Date, _ status: DownloadStatus) {
        let seconds = Int(min(max(1, date.timeIntervalSinceNow.rounded(.up)), 1e9))
        display.clear()
        Diagnostics.write(
            "\(status.id.prefix(8))  \(status.url.absoluteString): the next attempt begins in "
                + (seconds < 120 ? "\(seconds) s" : "\(seconds / 60) min")
                + (status.failure.map { ": \($0.message)" } ?? ""))
    }

    /// The reason why its updates ended, if its status has none.
    private func ending(of download: Download, _ status: DownloadStatus) async -> String? {
        guard !status.state.isSettled else { return nil }
        do throws(DownloadError) { _ = try await download.file } catch { return error.description }
        return nil
    }
}
