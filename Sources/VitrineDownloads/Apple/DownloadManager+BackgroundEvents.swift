#if canImport(Darwin) && !os(macOS)
extension DownloadManager {
    /// Takes what the system wakes the program for when its downloads have come to an end (R119). Type-checked, not run
    /// on a device.
    ///
    /// ```swift
    /// func application(
    ///     _ application: UIApplication, handleEventsForBackgroundURLSession identifier: String,
    ///     completionHandler: @escaping () -> Void
    /// ) {
    ///     manager.handleEvents(forSession: identifier, completionHandler: completionHandler)
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - identifier: The session's.
    ///   - completionHandler: Called on the main actor when the session has reported everything and what it brought has
    ///     been verified and has its name; at once if the list of downloads cannot be read.
    /// - Returns: Whether the session is this manager's: one of ``Mode/agent`` with this
    ///   ``Configuration/identifier``. If not the handler is not called.
    @MainActor @discardableResult
    public func handleEvents(forSession identifier: String, completionHandler: @escaping () -> Void) -> Bool {
        guard identifier == configuration.identifier, let engine = lease.backend as? DownloadEngine,
            let transfers = engine.carrier as? BackgroundTransfers
        else { return false }
        Task {
            do throws(DownloadError) {
                try await restore()
                await engine.finish(transfers.inbox.delivered())
            } catch {
                engine.log.error("The list of downloads cannot be read", metadata: ["error": "\(error)"])
            }
            completionHandler()
        }
        return true
    }
}
#endif
