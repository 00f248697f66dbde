#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCore

/// The status of a download at one moment.
public struct DownloadStatus: Sendable, Hashable, Identifiable {
    /// The state of a download.
    public enum State: Sendable, Hashable, CaseIterable {
        /// It waits for a free slot.
        case waiting
        /// It is loading.
        case running
        /// It failed and will be retried, see ``DownloadStatus/retryDate``. Without a network, it waits for one.
        case delayed
        /// It was paused.
        case paused
        /// The file is complete.
        case completed
        /// It failed and is not retried; ``Download/retry()`` resumes it.
        case failed
        /// It was cancelled, and its partial file was deleted.
        case cancelled

        /// Whether the state changes only by a call: completed, failed, cancelled or paused.
        public var isSettled: Bool {
            switch self {
            case .completed, .failed, .cancelled, .paused: true
            case .waiting, .running, .delayed: false
            }
        }

        /// Whether it has ended: ``isSettled``, and not paused.
        package var isOver: Bool { isSettled && self != .paused }

        /// The name in journals, messages of the agent and reports.
        package var name: String {
            switch self {
            case .waiting: "waiting"
            case .running: "running"
            case .delayed: "delayed"
            case .paused: "paused"
            case .completed: "completed"
            case .failed: "failed"
            case .cancelled: "cancelled"
            }
        }

        /// - Returns: nil for any other name.
        package init?(name: String) {
            guard let found = Self.allCases.first(where: { $0.name == name }) else { return nil }
            self = found
        }
    }

    /// The stored form of an error.
    package struct Failure: Sendable, Hashable, Codable {
        /// The ``DownloadError/code`` of the error.
        package let code: Int
        /// A sentence for people.
        package let message: String

        init(_ error: DownloadError) {
            code = error.code
            message = error.description
        }
    }

    /// The identifier of the download.
    public let id: String
    /// The requested address.
    public let url: URL
    /// The state of the download.
    public internal(set) var state = State.waiting
    /// The path of the file. Until the file is complete, the expected path.
    public internal(set) var path: String
    /// The number of bytes received.
    public internal(set) var received = 0
    /// The length of the file, or nil if it is not known yet.
    public internal(set) var total: Int?
    /// The transfer rate of the last seconds in bytes per second, or nil while the download does not run.
    public internal(set) var speed: Double?
    /// The number of times the transfer started again because the source had changed.
    package internal(set) var restarts = 0
    /// The number of retries.
    package internal(set) var retries = 0
    /// The priority among waiting downloads.
    public internal(set) var priority: RequestPriority
    /// The reason why it failed or is delayed.
    package internal(set) var failure: Failure?
    /// The time of the next attempt of a ``State/delayed`` download.
    public internal(set) var retryDate: Date?
    /// The time of the request.
    package let added: Date
    /// The time of the end.
    package internal(set) var ended: Date?

    init(id: String, url: URL, path: String, priority: RequestPriority, added: Date) {
        self.id = id
        self.url = url
        self.path = path
        self.priority = priority
        self.added = added
    }

    /// The reason why it failed or is delayed, as ``DownloadError/reported(code:message:)``.
    ///
    /// ``Download/file`` throws the original error if it occurred in this process.
    public var error: DownloadError? { failure.map { .reported($0) } }

    /// The fraction received, from 0 to 1, or nil while the total is not known.
    public var fraction: Double? {
        if state == .completed { return 1 }
        guard let total, total > 0 else { return nil }
        return min(1, Double(max(0, received)) / Double(total))
    }

    /// The estimated remaining time in seconds, or nil if it is not known.
    public var timeLeft: Double? {
        guard state == .running, let total, let speed, speed > 0 else { return nil }
        // In floating point, as the numbers may come from another process.
        return max(0, Double(total) - Double(received)) / speed
    }
}

extension DownloadStatus: StoredForm {
    private enum Keys: String, CodingKey {
        case id, url, state, path, received, total, speed, restarts, retries, priority, failure, retryDate, added, ended
    }

    /// A number above any possible count, and far from an overflow.
    private static let highestCount = 1 << 40

    /// Decodes a status. Numbers of a journal or another process are limited to valid ranges, so that computing with
    /// them is safe.
    package init(stored decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: Keys.self)
        id = try values.decode(String.self, forKey: .id)
        url = try values.decode(URL.self, forKey: .url)
        state = try values.decodeNamed(forKey: .state, State.init(name:))
        path = try values.decode(String.self, forKey: .path)
        received = max(0, try values.decode(Int.self, forKey: .received))
        total = try values.decodeIfPresent(Int.self, forKey: .total).map { max(0, $0) }
        speed = try values.decodeIfPresent(Double.self, forKey: .speed).map { min(max(0, $0), 1e15) }
        restarts = min(max(0, try values.decode(Int.self, forKey: .restarts)), Self.highestCount)
        retries = min(max(0, try values.decode(Int.self, forKey: .retries)), Self.highestCount)
        priority = try values.decode(RequestPriority.self, forKey: .priority)
        failure = try values.decodeIfPresent(Failure.self, forKey: .failure)
        retryDate = try values.decodeIfPresent(Date.self, forKey: .retryDate)
        added = try values.decode(Date.self, forKey: .added)
        ended = try values.decodeIfPresent(Date.self, forKey: .ended)
    }

    package func store(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: Keys.self)
        try values.encode(id, forKey: .id)
        try values.encode(url, forKey: .url)
        try values.encode(state.name, forKey: .state)
        try values.encode(path, forKey: .path)
        try values.encode(received, forKey: .received)
        try values.encodeIfPresent(total, forKey: .total)
        try values.encodeIfPresent(speed, forKey: .speed)
        try values.encode(restarts, forKey: .restarts)
        try values.encode(retries, forKey: .retries)
        try values.encode(priority, forKey: .priority)
        try values.encodeIfPresent(failure, forKey: .failure)
        try values.encodeIfPresent(retryDate, forKey: .retryDate)
        try values.encode(added, forKey: .added)
        try values.encodeIfPresent(ended, forKey: .ended)
    }
}
