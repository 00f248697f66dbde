import Logging

/// Shows a warning of the library as a line of the command, if it names a setting that a user can change. Other messages
/// are left out, as the command has messages of its own.
struct NoticeLogHandler: LogHandler {
    var logLevel = Logger.Level.warning
    var metadata: Logger.Metadata = [:]

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        guard let setting = event.metadata?["setting"] else { return }
        Diagnostics.write("Note: \(event.message); \(setting)")
    }
}
