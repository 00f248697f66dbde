public import VitrineCore
public import VitrineNetwork

/// Why a download did not begin, or did not end well. Files that were there are then as they were.
public enum DownloadError: Error, Sendable {
    /// The address is none that can be downloaded: empty, without a host, not `http` or `https` (R122).
    case invalidURL(String, reason: String)
    /// The name or directory cannot be used.
    case invalidDestination(String, reason: String)
    /// Nobody brought it.
    case network(NetworkError)
    /// It could not be written: no permission, no space, something else by that name.
    case file(FileError)
    /// There is not enough space for it, in bytes, with the reserve that is left untouched.
    case insufficientSpace(path: String, needed: Int, available: Int)
    /// The file is not the one that was meant; it was discarded.
    case checksum(path: String, expected: Checksum, actual: Checksum)
    /// The file does not have the length it should have; it was discarded.
    case size(path: String, expected: Int, actual: Int)
    /// The journal could not be read or written.
    case journal(DatabaseError)
    /// Another program, or another manager in this one, has the list of downloads.
    case inUse(path: String)
    /// What the agent, or an earlier run of the program, failed with.
    case reported(DownloadStatus.Failure)
    /// The process that carries the downloads is not there, or has been stopped.
    case agent(reason: String)
    /// The agent did not answer in time. `process` is its number where the system tells.
    case agentTimedOut(process: Int32?, after: Duration)
    /// The program or the agent that ran it ended each time while it ran, so that it is not run again by itself;
    /// ``Download/retry()`` runs it.
    case endsProcess(url: String, count: Int)
    /// There is no such download: it was removed.
    case unknown(id: String)
    /// It was cancelled.
    case cancelled

    /// A number that stays the same in all releases, for logs and scripts (R15).
    public var code: Int {
        switch self {
        case .invalidURL: -600
        case .invalidDestination: -601
        case .network(let error): error.code
        case .file: -610
        case .insufficientSpace: -611
        case .checksum: -620
        case .size: -621
        case .journal: -630
        case .inUse: -631
        case .reported(let failure): failure.code
        case .agent: -632
        case .agentTimedOut: -633
        case .endsProcess: -634
        case .unknown: -640
        case .cancelled: -641
        }
    }

    /// Whether it may go better later without anything being changed.
    var isTemporary: Bool {
        switch self {
        // Whoever still writes the part file has been told to stop, or killed.
        case .network(.busy): true
        case .network(let error): error.isRetryable
        default: false
        }
    }

    /// Whether no other place of the same file could change anything.
    var isLocal: Bool {
        switch self {
        case .network(.busy): true
        case .network, .checksum, .size: false
        default: true
        }
    }

    /// Whether what is there of the file is of no use any more.
    var isFinal: Bool {
        switch self {
        // With a file in the way that is to be kept, what was loaded has nowhere to go.
        case .checksum, .size, .file(.alreadyExists): true
        default: false
        }
    }

    /// When the server wants to be asked again.
    var retryDelay: Duration? {
        guard case .network(.status(_, let head)) = self, let value = head.headers["Retry-After"] else {
            return nil
        }
        return RetryAfter.delay(value, now: WallClock.system.now)
    }

    /// Whether the server was not reached, so that the reason may be the way to it.
    var isUnreached: Bool {
        switch self {
        case .network(.nameNotResolved), .network(.notConnected): true
        default: false
        }
    }
}

extension DownloadError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .invalidURL(let url, let reason): "\"\(url)\" cannot be downloaded: \(reason)."
        case .invalidDestination(let path, let reason): "\"\(path)\" cannot be the destination: \(reason)."
        case .network(let error): error.description
        case .file(let error): error.description
        case .insufficientSpace(let path, let needed, let available):
            "There is not enough space for \(path): \(ByteCount(needed)) are needed, \(ByteCount(available)) are left."
        case .checksum(let path, let expected, let actual):
            "\(path) is not the file that was meant and was discarded: its checksum is \(actual), not \(expected)."
        case .size(let path, let expected, let actual):
            "\(path) is not the file that was meant and was discarded: it has \(actual) bytes, not \(expected)."
        case .journal(let error) where error.reason == .corrupt || error.reason == .other:
            "The list of downloads at \(error.path) is damaged: \(error.message). Set it aside with "
                + "\"vitrine download reset\", or rename the file, to begin an empty list. Downloaded files stay."
        case .journal(let error): "The list of downloads cannot be used: \(error)"
        case .inUse(let path): "Another program has the list of downloads at \(path)."
        case .reported(let failure): failure.message
        case .agent(let reason): "The agent of downloads cannot be used: \(reason)."
        case .agentTimedOut(let process, let time): Self.timeoutText(process, time)
        case .endsProcess(let url, let count):
            "\(url) no longer runs by itself: the process that downloads ended \(count) times while it ran. "
                + "Retry it to run it once more, or remove it."
        case .unknown(let id): "There is no download \(id)."
        case .cancelled: "The download was cancelled."
        }
    }

    private static func timeoutText(_ process: Int32?, _ time: Duration) -> String {
        let seconds = (time / .seconds(1) * 10).rounded() / 10
        let name = process.map { "process \($0)" } ?? "vitrine-agent"
        let command = process.map { "kill -9 \($0)" } ?? "pkill -9 -x vitrine-agent"
        return "The agent of downloads, \(name), has not answered for \(seconds) s. If it stays so end it with "
            + "\"\(command)\" and try again: its downloads resume where they were."
    }
}
