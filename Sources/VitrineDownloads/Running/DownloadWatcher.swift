import VitrineCore
import VitrineNetwork

/// Watches one transfer: shows how far it is, ten times a second at most, and stops it before the disk is full.
final class DownloadWatcher: Sendable {
    private let id: String
    private let engine: DownloadEngine
    private let progress: TransferProgress
    private let directory: String
    private let expectedSize: Int?
    private let stop: @Sendable () -> Void
    private let found = Locked<DownloadError?>(nil)

    init(
        _ id: String, _ engine: DownloadEngine, _ progress: TransferProgress, _ directory: String, _ expectedSize: Int?,
        stop: @escaping @Sendable () -> Void
    ) {
        self.id = id
        self.engine = engine
        self.progress = progress
        self.directory = directory
        self.expectedSize = expectedSize
        self.stop = stop
    }

    /// Why it stopped the transfer.
    var failure: DownloadError? { found.withLock { $0 } }

    /// Runs until the task is cancelled.
    func run() async {
        var meter = SpeedMeter()
        var nextCheck = ContinuousClock.now
        var checkedTotal: Int?
        while true {
            let step = progress.current
            let now = ContinuousClock.now
            meter.measure(step.received, at: now)
            show(step, meter.speed)
            if let problem = sizeProblem(step) { return end(with: problem) }
            if now >= nextCheck || checkedTotal != step.total {
                nextCheck = now + .seconds(1)
                checkedTotal = step.total
                if let problem = await spaceProblem(step) { return end(with: problem) }
            }
            do { try await Task.sleep(for: .milliseconds(100)) } catch { break }
        }
        show(progress.current, meter.speed)
    }

    private func end(with problem: DownloadError) {
        found.withLock { $0 = problem }
        stop()
    }

    private func show(_ step: TransferProgress.Step, _ speed: Double?) {
        engine.update(id) { entry in
            guard entry.record.status.state == .running else { return false }
            let before = entry.record.status
            entry.record.status.received = step.received
            entry.record.status.total = step.total ?? expectedSize
            entry.record.status.speed = speed
            return entry.record.status != before
        }
    }

    /// Before anything is loaded in vain.
    private func sizeProblem(_ step: TransferProgress.Step) -> DownloadError? {
        guard let expectedSize, let total = step.total, total != expectedSize else { return nil }
        return .size(path: directory, expected: expectedSize, actual: total)
    }

    private func spaceProblem(_ step: TransferProgress.Step) async -> DownloadError? {
        let reserve = engine.configuration.reservedSpace.bytes
        let needed = max(0, (step.total ?? expectedSize ?? step.received) - step.received)
        guard let available = await BlockingExecutor.shared.run({ [directory] in FreeSpace.bytes(at: directory) }),
            available < needed + reserve
        else { return nil }
        return .insufficientSpace(path: directory, needed: needed + reserve, available: available)
    }
}
