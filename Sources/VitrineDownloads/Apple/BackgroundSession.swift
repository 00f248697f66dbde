#if canImport(Darwin) && !os(macOS)
import Foundation
import VitrineCore

/// The used part of a background session, which ``SystemSession`` and the session of tests implement.
protocol BackgroundSession: Sendable {
    /// Returns the tasks of the session, also from earlier runs of the program.
    func tasks() async -> [any BackgroundTask]

    /// Returns a task that starts from the beginning. Tasks wait until they are resumed.
    func task(with request: URLRequest) -> any BackgroundTask

    /// Returns a task that resumes where another one was stopped.
    func task(resuming data: Data) -> any BackgroundTask
}

/// The used part of a task of such a session.
protocol BackgroundTask: AnyObject, Sendable {
    var taskIdentifier: Int { get }
    /// The identifier of its download.
    var taskDescription: String? { get set }
    /// From 0 to 1.
    var priority: Float { get set }
    func resume()
    func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void)
}

extension URLSessionDownloadTask: BackgroundTask {}

/// The background session of the system. Type-checked, not run on a device.
final class SystemSession: BackgroundSession {
    private let session: URLSession

    /// - Parameter inbox: Receives at once the events of the time when the program did not run.
    init(identifier: String, inbox: TransferInbox) {
        let settings = URLSessionConfiguration.background(withIdentifier: identifier)
        settings.sessionSendsLaunchEvents = true
        settings.isDiscretionary = false
        settings.requestCachePolicy = .reloadIgnoringLocalCacheData
        settings.urlCache = nil
        settings.httpCookieStorage = nil
        settings.urlCredentialStorage = nil
        session = URLSession(configuration: settings, delegate: SessionEvents(inbox), delegateQueue: nil)
    }

    func tasks() async -> [any BackgroundTask] {
        await withCheckedContinuation { continuation in
            session.getAllTasks { tasks in
                continuation.resume(returning: tasks.compactMap { $0 as? URLSessionDownloadTask })
            }
        }
    }

    func task(with request: URLRequest) -> any BackgroundTask { session.downloadTask(with: request) }

    func task(resuming data: Data) -> any BackgroundTask { session.downloadTask(withResumeData: data) }
}

/// Passes the events of the session to the inbox, in order: the session has one queue for them.
private final class SessionEvents: NSObject, URLSessionDownloadDelegate {
    private let inbox: TransferInbox

    init(_ inbox: TransferInbox) { self.inbox = inbox }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        inbox.wrote(downloadTask, received: Int(totalBytesWritten), total: Int(totalBytesExpectedToWrite))
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
        inbox.finished(downloadTask, at: location, downloadTask.response)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let task = task as? URLSessionDownloadTask else { return }
        inbox.completed(task, error, resumeData: (error as? URLError)?.downloadTaskResumeData)
    }

    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) { inbox.deliveredAll() }
}
#endif
