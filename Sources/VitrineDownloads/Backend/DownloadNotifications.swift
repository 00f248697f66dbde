// No program of this package observes notifications. Scripts/package builds them with VITRINE_NO_NOTIFICATIONS, so that
// they contain FoundationEssentials alone, and neither the rest of Foundation nor its Unicode data: some 40 MB each.
#if !VITRINE_NO_NOTIFICATIONS
import Foundation
import VitrineCore

extension Notification.Name {
    /// Posted when a download progresses, at most ten times a second.
    ///
    /// The object is the ``Download``. `Notification.downloadStatus` is its status at that moment.
    public static let downloadProgressDidChange = Notification.Name("DownloadProgressNotification")
    /// Posted when a download has ended.
    ///
    /// The object is the ``Download``. `Notification.downloadStatus` is its status at that moment.
    public static let downloadDidComplete = Notification.Name("DownloadDidComplete")
}

extension Download {
    /// The key of the ``DownloadStatus`` in the user information of download notifications.
    public static let statusKey = "DownloadStatus"
}

extension Notification {
    /// The status in a notification of a download; nil in any other.
    public var downloadStatus: DownloadStatus? { userInfo?[Download.statusKey] as? DownloadStatus }
}

/// Posts the changes of downloads to the notification centre, in order.
enum NotificationPoster {
    /// Runs until the task is cancelled or the lease is deinitialized.
    ///
    /// - Parameter lease: Returns the lease for the posted handles, or nil after its deinitialization.
    static func run(_ broadcaster: StatusBroadcaster, lease: @Sendable () -> BackendLease?) async {
        var version = 0
        var ends: [String: Date] = [:]
        while let update = await broadcaster.next(after: version, of: nil) {
            version = update.version
            guard let status = update.status, status.state.isOver else {
                ends[update.id] = nil
                if update.isFresh, let status = update.status { post(status, lease) }
                continue
            }
            // A change after the end, such as another priority, is not a second end.
            guard update.isFresh, status.ended == nil || ends[update.id] != status.ended else { continue }
            ends[update.id] = status.ended
            post(status, lease)
        }
    }

    private static func post(_ status: DownloadStatus, _ lease: () -> BackendLease?) {
        guard let lease = lease() else { return }
        let center = NotificationCenter.default
        let name: Notification.Name
        if status.state.isOver {
            name = .downloadDidComplete
        } else if status.fraction != nil {
            name = .downloadProgressDidChange
        } else {
            return
        }
        center.post(name: name, object: Download(status, lease: lease), userInfo: [Download.statusKey: status])
    }
}
#endif
