/// What clients and the agent say to each other: one JSON object a line.
enum AgentProtocol {
    /// Only those of one version talk to each other.
    static let version = 1
}

/// What a client asks. Every question gets one reply of the same number.
package struct AgentQuestion: Sendable, Codable {
    let number: Int
    let call: AgentCall
}

/// What can be asked. Each may be asked again when a connection broke before its reply.
package enum AgentCall: Sendable, Codable {
    /// All statuses, now and whenever one changes.
    case watch
    case list
    case start(DownloadRequest, id: String)
    case perform(DownloadCommand, id: String)
    case set(DownloadLimits)
    case settled
    case info
    case stop

    /// Whether its reply comes when downloads have ended.
    var mayTakeLong: Bool {
        if case .settled = self { true } else { false }
    }
}

/// What the agent says.
package enum AgentMessage: Sendable, Codable {
    /// First of all.
    case hello(version: Int)
    case reply(number: Int, AgentReply)
    /// Everything there is.
    case snapshot([DownloadStatus])
    case status(DownloadStatus)
    /// - Parameter last: How it was, for those who wait for its end.
    case removed(id: String, last: DownloadStatus?)
    /// It was told to end: not to be started again for what its clients wait for.
    case stopping
}

/// The answer to a question.
package enum AgentReply: Sendable, Codable {
    case done
    case download(DownloadStatus)
    case list([DownloadStatus])
    case info(DownloadAgent.Info)
    case failed(DownloadStatus.Failure)

    /// As an error on the client's side, where the download is known.
    static func error(_ failure: DownloadStatus.Failure, id: String) -> DownloadError {
        switch failure.code {
        case DownloadError.unknown(id: "").code: .unknown(id: id)
        case DownloadError.cancelled.code: .cancelled
        default: .reported(failure)
        }
    }
}
