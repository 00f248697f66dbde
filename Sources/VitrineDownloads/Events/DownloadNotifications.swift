import Foundation

extension Notification.Name {
    /// A download has come on, ten times a second at most (R120). The object is the ``Download``, the user
    /// information has ``DownloadNotification/progress``.
    public static let downloadProgressDidChange = Notification.Name("DownloadProgressNotification")
    /// A download is over (R120). The object is the ``Download``, the user information has
    /// ``DownloadNotification/error`` if it did not end well.
    public static let downloadDidComplete = Notification.Name("DownloadDidComplete")
}

/// The keys of the user information of notifications of downloads (R120).
public enum DownloadNotification {
    /// A `Double` from 0 to 1.
    public static let progress = "progress"
    /// A ``DownloadStatus/Failure``.
    public static let error = "CompleteError"
}

/// Tells observers of the notification centre what happens on a board, in order.
enum NotificationPoster {
    /// Runs until the task is cancelled, or the lease has gone.
    ///
    /// - Parameter lease: Gives the lease of the handles that are posted; nil when nobody has it any more.
    static func run(_ board: StatusBroadcaster, lease: @Sendable () -> BackendLease?) async {
        var version = 0
        var ends: [String: Date] = [:]
        while let news = await board.next(after: version, of: nil) {
            version = news.version
            guard let status = news.status, status.state.isOver else {
                ends[news.id] = nil
                if news.isFresh, let status = news.status { post(status, lease) }
                continue
            }
            // A status that changes after the end, as by another priority, is no second end.
            guard news.isFresh, status.ended == nil || ends[news.id] != status.ended else { continue }
            ends[news.id] = status.ended
            post(status, lease)
        }
    }

    private static func post(_ status: DownloadStatus, _ lease: () -> BackendLease?) {
        guard let lease = lease() else { return }
        let center = NotificationCenter.default
        let subject = Download(status, lease: lease)
        if status.state.isOver {
            var details: [AnyHashable: Any] = [:]
            if let failure = status.failure { details[DownloadNotification.error] = failure }
            center.post(name: .downloadDidComplete, object: subject, userInfo: details)
        } else if let fraction = status.fraction {
            center.post(
                name: .downloadProgressDidChange, object: subject, userInfo: [DownloadNotification.progress: fraction])
        }
    }
}
