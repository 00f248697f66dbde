public import VitrineCore
import VitrineDatabase
public import VitrineNetwork

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An error of a download. Existing files are unchanged after it.
public enum DownloadError: Error, Sendable {
    /// The address cannot be downloaded: it is empty, has no host, or is not `http` or `https`.
    case invalidURL(String, reason: String)
    /// The name or directory is not valid.
    case invalidDestination(String, reason: String)
    /// The transfer failed.
    case network(NetworkError)
    /// The file could not be written: no permission, no space, or another file with its name.
    case file(FileError)
    /// The file system has too little space, in bytes, including the reserve that stays free.
    case insufficientSpace(path: String, needed: Int, available: Int)
    /// The file has another checksum. It was deleted.
    case checksum(path: String, expected: Checksum, actual: Checksum)
    /// The file has another length. It was deleted.
    case size(path: String, expected: Int, actual: Int)
    /// The journal could not be read or written.
    ///
    /// ``DownloadManager/setListAside()`` moves a damaged one out of the way.
    case journal(path: String, message: String, isDamaged: Bool)
    /// Another program, or another manager in this one, uses the list of downloads.
    case inUse(path: String)
    /// The error of the agent or of an earlier run of the program.
    ///
    /// `code` is its ``code``, and `message` its ``description``.
    case reported(code: Int, message: String)
    /// The agent is not available, or was stopped.
    case agent(reason: String)
    /// The agent did not reply in time. `process` is its number, if the system reports it.
    case agentTimedOut(process: Int32?, after: Duration)
    /// The process ended each time while it ran this download, which is therefore not run again by itself.
    ///
    /// ``Download/retry()`` runs it.
    case endsProcess(url: String, count: Int)
    /// The record of the download in the journal is damaged. The download is listed as failed and is not followed.
    ///
    /// ``Download/remove()`` removes it. Its partial file stays.
    case damagedRecord(id: String)
    /// The download does not exist; it may have been removed.
    case unknown(id: String)
    /// The download was cancelled.
    case cancelled

    /// A number that is the same in all releases, for logs and scripts.
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
        case .reported(let code, _): code
        case .agent: -632
        case .agentTimedOut: -633
        case .endsProcess: -634
        case .damagedRecord: -635
        case .unknown: -640
        case .cancelled: -641
        }
    }

    /// Whether a later attempt may succeed without any change.
    var isTemporary: Bool {
        switch self {
        // The process that still writes the part file was told to stop, or killed.
        case .network(.busy): true
        case .network(let error): error.isRetryable
        default: false
        }
    }

    /// Whether another source of the same file cannot help.
    var isLocal: Bool {
        switch self {
        case .network(.busy): true
        case .network, .checksum, .size: false
        default: true
        }
    }

    /// Whether the partial file has become useless.
    var isFinal: Bool {
        switch self {
        // A file that is to be kept has the name, so the loaded one cannot be placed.
        case .checksum, .size, .file(.alreadyExists): true
        default: false
        }
    }

    /// The delay that the server asks for.
    var retryDelay: Duration? {
        guard case .network(.status(_, let head)) = self, let value = head.headers["Retry-After"] else {
            return nil
        }
        return RetryAfter.delay(value, now: WallClock.system.now, upTo: .seconds(Int64.max / 2))
    }

    /// Whether the server asks for a delay of more than a day. The download fails then instead of waiting.
    var demandsTooLongADelay: Bool { retryDelay.map { $0 > RetryAfter.longest } ?? false }

    /// Whether the server was not reached, so that the network may be the reason.
    var isUnreached: Bool {
        switch self {
        case .network(.nameNotResolved), .network(.notConnected): true
        default: false
        }
    }
}

extension DownloadError: LocalizedError, CustomStringConvertible {
    /// The ``description``.
    public var errorDescription: String? { description }

    /// A sentence that names the file, address or agent and the reason.
    public var description: String {
        switch self {
        case .invalidURL(let url, let reason):
            ErrorText.sentence("\"\(ErrorText.shortened(url))\" cannot be downloaded: \(reason)")
        case .invalidDestination(let path, let reason):
            ErrorText.sentence("\"\(path)\" cannot be the destination: \(reason)")
        case .network(let error): error.description
        case .file(let error): error.description
        case .insufficientSpace(let path, let needed, let available):
            "Not enough space for \(path): \(ByteCount(needed)) are needed, \(ByteCount(available)) are available."
        case .checksum(let path, let expected, let actual):
            "\(path) was deleted because its checksum is \(actual), not \(expected)."
        case .size(let path, let expected, let actual):
            "\(path) was deleted because it has \(actual) bytes, not \(expected)."
        case .journal(let path, let message, true):
            "The list of downloads at \(path) is damaged: \(ErrorText.withoutStop(message)). Set it aside with "
                + "\"vitrine download reset\", or rename the file, to begin an empty list. Downloaded files stay."
        case .journal(_, let message, false): ErrorText.sentence("The list of downloads cannot be used: \(message)")
        case .inUse(let path): "Another program uses the list of downloads at \(path)."
        case .reported(_, let message): message
        case .agent(let reason): ErrorText.sentence("The download agent cannot be used: \(reason)")
        case .agentTimedOut(let process, let time): Self.timeoutText(process, time)
        case .endsProcess(let url, let count):
            "\(ErrorText.shortened(url)) is not retried automatically: the downloading process ended \(count) times "
                + "while it ran. Retry it to run it once more, or remove it."
        case .damagedRecord(let id):
            "The record of the download \(id) is damaged, so that it cannot be resumed. Remove it with "
                + "\"vitrine download remove\", and add its address again."
        case .unknown(let id): "The download \(id) does not exist."
        case .cancelled: "The download was cancelled."
        }
    }

    private static func timeoutText(_ process: Int32?, _ time: Duration) -> String {
        let seconds = (time / .seconds(1) * 10).rounded() / 10
        let name = process.map { "process \($0)" } ?? "vitrine-agent"
        let command = process.map { "kill -9 \($0)" } ?? "pkill -9 -x vitrine-agent"
        return "The download agent, \(name), has not answered for \(seconds) s. If it remains stuck, end it with "
            + "\"\(command)\" and try again. Its downloads resume."
    }
}

extension DownloadError: ErrorWithInput {
    package var namedInput: String? {
        switch self {
        case .invalidURL(let url, _): url
        case .network(let error): error.namedInput
        case .file(let error): error.namedInput
        default: nil
        }
    }

    package var textWithoutInput: String {
        switch self {
        case .invalidURL(_, let reason): "it cannot be downloaded: \(reason)"
        case .network(let error): error.textWithoutInput
        case .file(let error): error.textWithoutInput
        default: ErrorText.withoutStop(description)
        }
    }
}

extension DownloadError {
    static func reported(_ failure: DownloadStatus.Failure) -> DownloadError {
        .reported(code: failure.code, message: failure.message)
    }

    /// Creates the error for a failure of the journal's database.
    init(_ error: DatabaseError) {
        let isDamaged = error.reason == .corrupt || error.reason == .other
        self = .journal(
            path: error.path, message: isDamaged ? error.message : error.description, isDamaged: isDamaged)
    }
}
