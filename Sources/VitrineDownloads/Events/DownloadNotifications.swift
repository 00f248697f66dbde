import Foundation

extension Notification.Name {
    /// A download has come on, ten times a second at most (R120). The object is the ``Download``, the user
    /// information has ``DownloadNotification/progress``.
    public static let downloadProgressDidChange = Notification.Name("DownloadProgressNotification")
    /// A download is over (R120). The user information has ``DownloadNotification/error`` if it did not end well.
    public static let downloadDidComplete = Notification.Name("DownloadDidComplete")
}

/// The keys of the user information of notifications of downloads (R120).
public enum DownloadNotification {
    /// A `Double` from 0 to 1.
    public static let progress = "progress"
    /// A ``DownloadStatus/Failure``.
    public static let error = "CompleteError"
}

extension DownloadEngine {
    /// Tells observers of the notification centre.
    func post(_ status: DownloadStatus) {
        let center = NotificationCenter.default
        guard let lease = lease.withLock({ $0?.lease }) else { return }
        let subject = Download(id: status.id, url: status.url, lease: lease)
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
