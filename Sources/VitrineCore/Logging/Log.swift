public import Logging

/// Makes the package's loggers (R29).
///
/// All labels begin with `vitrine.`, so that a program's log handler can filter them. What is written, where, and from
/// which level on is the program's business: `LoggingSystem.bootstrap(_:)` of swift-log.
public enum Log {
    /// What all labels begin with.
    public static let prefix = "vitrine."

    /// A logger for one part of the package.
    ///
    /// - Parameter part: For example `cache`, which makes the label `vitrine.cache`.
    public static func logger(_ part: String) -> Logger {
        Logger(label: prefix + part)
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
