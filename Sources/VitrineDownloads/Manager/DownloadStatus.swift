#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCore

/// A download as it is at one moment.
public struct DownloadStatus: Sendable, Hashable, Codable, Identifiable {
    /// How far a download is.
    public enum State: String, Sendable, Hashable, Codable, CaseIterable {
        /// It waits for its turn.
        case waiting
        /// It is being loaded.
        case running
        /// It failed for now and is tried again, see ``DownloadStatus/retryDate``; without a network when there is one.
        case delayed
        /// Somebody paused it.
        case paused
        /// The file is there.
        case completed
        /// It is not tried any more; ``Download/retry()`` begins again where it was.
        case failed
        /// Somebody cancelled it; what was there of it is gone.
        case cancelled

        /// Whether nothing more happens by itself.
        public var isSettled: Bool {
            switch self {
            case .completed, .failed, .cancelled, .paused: true
            case .waiting, .running, .delayed: false
            }
        }

        /// Whether it is over: ``isSettled``, and not paused.
        public var isOver: Bool { isSettled && self != .paused }
    }

    /// Why it failed, or is delayed.
    public struct Failure: Sendable, Hashable, Codable {
        /// ``DownloadError/code``.
        public let code: Int
        /// A sentence for people.
        public let message: String

        init(_ error: DownloadError) {
            code = error.code
            message = error.description
        }
    }

    /// What it is known by.
    public let id: String
    /// What was asked for.
    public let url: URL
    public internal(set) var state = State.waiting
    /// Where the file is, or will be as far as that is known.
    public internal(set) var path: String
    /// How many bytes are there.
    public internal(set) var received = 0
    /// How many there will be; nil while that is not known.
    public internal(set) var total: Int?
    /// Bytes a second, over the last seconds; nil while it does not run.
    public internal(set) var speed: Double?
    /// How often what was there had to be given up, because the source had changed.
    public internal(set) var restarts = 0
    /// How often it was tried again.
    public internal(set) var retries = 0
    public internal(set) var priority: Priority
    /// Why it failed, or is delayed.
    public internal(set) var failure: Failure?
    /// When it is tried again, if it is ``State/delayed``.
    public internal(set) var retryDate: Date?
    /// When it was asked for.
    public let added: Date
    /// When it was over.
    public internal(set) var ended: Date?

    init(id: String, url: URL, path: String, priority: Priority, added: Date) {
        self.id = id
        self.url = url
        self.path = path
        self.priority = priority
        self.added = added
    }

    private enum CodingKeys: String, CodingKey {
        case id, url, state, path, received, total, speed, restarts, retries, priority, failure, retryDate, added, ended
    }

    /// Numbers from a journal or another process are brought to where they mean something, so that nobody who computes
    /// with them has to look.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        id = try values.decode(String.self, forKey: .id)
        url = try values.decode(URL.self, forKey: .url)
        state = try values.decode(State.self, forKey: .state)
        path = try values.decode(String.self, forKey: .path)
        received = max(0, try values.decode(Int.self, forKey: .received))
        total = try values.decodeIfPresent(Int.self, forKey: .total).map { max(0, $0) }
        speed = try values.decodeIfPresent(Double.self, forKey: .speed).map { min(max(0, $0), 1e15) }
        restarts = min(max(0, try values.decode(Int.self, forKey: .restarts)), Self.highestCount)
        retries = min(max(0, try values.decode(Int.self, forKey: .retries)), Self.highestCount)
        priority = try values.decode(Priority.self, forKey: .priority)
        failure = try values.decodeIfPresent(Failure.self, forKey: .failure)
        retryDate = try values.decodeIfPresent(Date.self, forKey: .retryDate)
        added = try values.decode(Date.self, forKey: .added)
        ended = try values.decodeIfPresent(Date.self, forKey: .ended)
    }

    /// Far more than will ever happen, and far from where adding one ends a program.
    private static let highestCount = 1 << 40

    /// From 0 to 1 (R120); nil while the total is not known.
    public var fraction: Double? {
        if state == .completed { return 1 }
        guard let total, total > 0 else { return nil }
        return min(1, Double(max(0, received)) / Double(total))
    }

    /// The seconds it will probably take; nil while nobody can tell.
    public var timeLeft: Double? {
        guard state == .running, let total, let speed, speed > 0 else { return nil }
        // As numbers that may come from another process.
        return max(0, Double(total) - Double(received)) / speed
    }
}
