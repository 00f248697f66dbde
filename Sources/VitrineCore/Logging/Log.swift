public import Logging

/// Makes the package's loggers (R29).
///
/// All labels begin with `vitrine.`, so that a program's log handler can filter them. What is written, where, and from
/// which level on is the program's business: `LoggingSystem.bootstrap(_:)` of swift-log. Messages and metadata may have
/// text of files and servers: control characters and the like are escaped before the handler gets them.
public enum Log {
    /// What all labels begin with.
    public static let prefix = "vitrine."

    /// A logger for one part of the package.
    ///
    /// - Parameter part: For example `cache`, which makes the label `vitrine.cache`.
    public static func logger(_ part: String) -> Logger {
        logger(part, handler: Logger(label: prefix + part).handler)
    }

    /// A logger for one part of the package that writes to a given handler.
    package static func logger(_ part: String, handler: any LogHandler) -> Logger {
        Logger(label: prefix + part) { _ in PrintableLogHandler(handler) }
    }
}

/// Hands everything on to a program's handler, escaped as ``Printable/line(_:)`` does.
private struct PrintableLogHandler: LogHandler {
    private var handler: any LogHandler

    init(_ handler: any LogHandler) { self.handler = handler }

    var logLevel: Logger.Level {
        get { handler.logLevel }
        set { handler.logLevel = newValue }
    }

    var metadata: Logger.Metadata {
        get { handler.metadata }
        set { handler.metadata = newValue.mapValues(Self.printable) }
    }

    var metadataProvider: Logger.MetadataProvider? {
        get { handler.metadataProvider }
        set { handler.metadataProvider = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { handler[metadataKey: key] }
        set { handler[metadataKey: key] = newValue.map(Self.printable) }
    }

    func log(event: LogEvent) {
        var event = event
        event.message = "\(Printable.line(event.message.description))"
        event.metadata = event.metadata?.mapValues(Self.printable)
        handler.log(event: event)
    }

    private static func printable(_ value: Logger.Metadata.Value) -> Logger.Metadata.Value {
        switch value {
        case .string(let text): .string(Printable.line(text))
        case .stringConvertible(let value): .string(Printable.line(value.description))
        case .dictionary(let values): .dictionary(values.mapValues(printable))
        case .array(let values): .array(values.map(printable))
        }
    }
}

extension Logger {
    /// Logs at level debug in debug builds; compiled out of release builds, message and all (R29).
    @inlinable
    package func debugOnly(
        _ message: @autoclosure () -> Logger.Message, metadata: @autoclosure () -> Logger.Metadata? = nil,
        file: String = #fileID, function: String = #function, line: UInt = #line
    ) {
        #if DEBUG
        debug(message(), metadata: metadata(), file: file, function: function, line: line)
        #endif
    }
}
