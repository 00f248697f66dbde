import VitrineCore
import VitrineNetwork

/// Watches one transfer: shows its progress at most ten times a second, and stops it before the disk is full.
final class DownloadWatcher: Sendable {
    private let record: DownloadRecord
    private let engine: DownloadEngine
    private let progress: TransferProgress
    private let found = Locked<DownloadError?>(nil)

    init(_ record: DownloadRecord, engine: DownloadEngine, progress: TransferProgress) {
        self.record = record
        self.engine = engine
        self.progress = progress
    }

    private var expectedSize: Int? { record.request.expectedSize }

    /// Whether to accept a body: it has the expected length, and there is space for it.
    func admits(_ head: HTTPResponseHead) async -> Bool {
        if let problem = Self.emptinessProblem(head) {
            found.withLock { $0 = problem }
            return false
        }
        // The length of an encoded body is not that of the file.
        guard head.status == 200 || head.status == 206, let length = head.contentLength, head.decodedFrom == nil,
            !head.headers.contains("Content-Encoding")
        else { return true }
        let isPart = head.status == 206
        let total = isPart ? head.headers["Content-Range"].flatMap(ContentRange.init)?.total : length
        // A body from the beginning replaces the bytes received so far.
        let given = ByteCount(isPart ? 0 : progress.current.received)
        let needed = ByteCount(length) - given
        let problem: DownloadError? =
            if let wrong = sizeProblem(total) {
                wrong
            } else {
                await spaceProblem(needed, of: ByteCount(total ?? length))
            }
        if let problem { found.withLock { $0 = problem } }
        return problem == nil
    }

    /// Returns an error for successful statuses without a file (RFC 9110, sections 15.3.5 and 15.3.6).
    static func emptinessProblem(_ head: HTTPResponseHead) -> DownloadError? {
        guard head.status == 204 || head.status == 205 else { return nil }
        return .network(.status(url: SourceURL.withoutCredentials(head.url.absoluteString), head))
    }

    /// The reason why it stopped the transfer.
    var failure: DownloadError? { found.withLock { $0 } }

    /// Runs until the task is cancelled.
    ///
    /// - Parameter stop: Ends the transfer.
    func run(stop: () -> Void) async {
        var meter = SpeedMeter()
        var isProven = false
        let furthest = engine.state.withLock { $0.entries[record.id]?.furthest } ?? 0
        var nextCheck = ContinuousClock.now
        var checkedTotal: Int?
        while true {
            let step = progress.current
            let now = ContinuousClock.now
            if !isProven, step.received > furthest {
                isProven = true
                await engine.clearSuspicion(of: record.id, received: step.received)
            }
            meter.measure(step.received, at: now)
            show(step, meter.speed)
            if now >= nextCheck || checkedTotal != step.total {
                nextCheck = now + .seconds(1)
                checkedTotal = step.total
                // The length of a body without a declared one is at least that of the received bytes.
                let size = ByteCount(step.total ?? expectedSize ?? step.received)
                if let problem = await spaceProblem(size - ByteCount(step.received), of: size) {
                    found.withLock { $0 = problem }
                    return stop()
                }
            }
            do { try await Task.sleep(for: .milliseconds(100)) } catch { break }
        }
        show(progress.current, meter.speed)
    }

    private func show(_ step: TransferProgress.Step, _ speed: Double?) {
        engine.update(record.id) { entry in
            guard entry.record.status.state == .running else { return false }
            let before = entry.record.status
            entry.record.status.received = step.received
            entry.record.status.total = step.total ?? self.expectedSize
            entry.record.status.speed = speed
            return entry.record.status != before
        }
    }

    /// Returns an error for an unexpected length, before anything is loaded in vain.
    private func sizeProblem(_ total: Int?) -> DownloadError? {
        guard let expectedSize, let total, total != expectedSize else { return nil }
        return .size(path: record.status.path, expected: expectedSize, actual: total)
    }

    /// - Parameters:
    ///   - length: The missing bytes. Any number of a server: sums saturate.
    ///   - size: The known size of the file. The reserve is not larger, so that a small file fits on a small disk.
    private func spaceProblem(_ length: ByteCount, of size: ByteCount) async -> DownloadError? {
        let needed = (length + min(engine.configuration.reservedSpace, size)).bytes
        guard let available = await BlockingExecutor.shared.run({ [record] in FreeSpace.bytes(at: record.directory) }),
            available < needed
        else { return nil }
        return .insufficientSpace(path: record.directory, needed: needed, available: available)
    }
}

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The rate of a transfer: an average with exponentially decreasing weights of older measurements.
private struct SpeedMeter {
    private var last: (bytes: Int, time: ContinuousClock.Instant)?
    /// Bytes per second; nil before the first measurement.
    private(set) var speed: Double?
    /// The number of seconds after which the weight of a measurement has fallen to about a third.
    private static let memory = 3.0

    /// Adds a measurement of the bytes received so far.
    mutating func measure(_ bytes: Int, at time: ContinuousClock.Instant) {
        guard let (before, start) = last, bytes >= before else {
            // The transfer has started, or started again.
            last = (bytes, time)
            speed = nil
            return
        }
        let seconds = (time - start) / .seconds(1)
        guard seconds >= 0.05 else { return }
        let current = (Double(bytes) - Double(before)) / seconds
        let weight = speed == nil ? 1 : 1 - exp(-seconds / Self.memory)
        speed = (speed ?? 0) + ((current - (speed ?? 0)) * weight)
        last = (bytes, time)
    }
}

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The free space of a file system.
private enum FreeSpace {
    /// Returns the bytes that this user may write below a directory, or nil if the system does not report it.
    static func bytes(at directory: String) -> Int? {
        var status = statvfs()
        guard PathText.withSystemPath(directory, failure: -1, { statvfs($0, &status) }) == 0 else { return nil }
        let (bytes, isTooMany) = Int(clamping: UInt64(status.f_bavail)).multipliedReportingOverflow(
            by: Int(clamping: UInt64(status.f_frsize)))
        return isTooMany ? .max : bytes
    }
}
