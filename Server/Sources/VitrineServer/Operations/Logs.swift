import Foundation
package import Logging
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Removes configured secrets and the credentials of URLs from texts.
package struct Redactor: Sendable {
    private let secrets: [String]

    /// - Parameter secrets: Texts of fewer than 4 characters are left in: they would be found everywhere.
    package init(secrets: [String] = []) {
        self.secrets = secrets.filter { $0.utf8.count >= 4 }.sorted { $0.utf8.count > $1.utf8.count }
    }

    package func callAsFunction(_ text: String) -> String {
        var text = text
        for secret in secrets where text.contains(secret) { text = text.replacing(secret, with: "***") }
        // In cleartext, or percent-encoded as within a path.
        for mark in ["://", "%3A%2F%2F", "%3a%2f%2f"] where text.contains(mark) {
            text = Self.withoutCredentials(text, mark)
        }
        return text
    }

    /// Hides the user and password after each `mark`, and values in the query that sign or authorize.
    private static func withoutCredentials(_ text: String, _ mark: String) -> String {
        var result = ""
        var rest = text[...]
        while let range = rest.firstRange(of: mark) {
            result += rest[..<range.upperBound]
            rest = rest[range.upperBound...]
            let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" && !$0.isWhitespace }
            if let end = authority.lastIndex(of: "@") {
                result += "***"
                rest = rest[end...]
            } else if let end = authority.firstRange(of: "%40") {
                result += "***"
                rest = rest[end.lowerBound...]
            }
        }
        result += rest
        for name in ["signature=", "token=", "sig=", "x-amz-credential=", "access_key=", "password="] {
            var from = result.startIndex
            while let found = result.range(of: name, options: .caseInsensitive, range: from..<result.endIndex) {
                let end = result[found.upperBound...].firstIndex { "&# \"".contains($0) } ?? result.endIndex
                let offset = result.utf8.distance(from: result.startIndex, to: found.upperBound)
                result.replaceSubrange(found.upperBound..<end, with: "***")
                from = result.utf8.index(result.startIndex, offsetBy: offset + 3)
            }
        }
        return result
    }
}

/// Lets a line about a failure into the log once a minute, however often it repeats.
final class RepeatedLines: Sendable {
    private struct Line {
        var until: Int64
        var left = 0
    }

    private static let pause: Int64 = 60_000_000_000
    private static let capacity = 1_000
    private let lines = Mutex<[String: Line]>([:])

    /// Returns how often the line was left out since it was written last; nil if it is to be left out now.
    ///
    /// - Parameter now: Nanoseconds of a clock that never goes back.
    func admit(_ name: String, now: Int64 = monotonicNanoseconds()) -> Int? {
        lines.withLock { lines in
            if let line = lines[name], now < line.until {
                lines[name]?.left += 1
                return nil
            }
            let left = lines[name]?.left ?? 0
            if lines.count >= Self.capacity, lines[name] == nil {
                lines = lines.filter { now < $0.value.until }
                if lines.count >= Self.capacity { lines = [:] }
            }
            lines[name] = Line(until: now + Self.pause)
            return left
        }
    }
}

/// Lets few lines about requests that are refused or abandoned into the log, so that clients cannot fill a disk.
final class RefusalLog: Sendable {
    private static let burst = 100.0
    private static let rate = 10.0
    private let state = Mutex((budget: burst, last: Int64(0), left: 0))

    /// Returns how many lines were left out since the last one; nil if this one is to be left out.
    ///
    /// - Parameter now: Nanoseconds of a clock that never goes back.
    func admit(now: Int64 = monotonicNanoseconds()) -> Int? {
        state.withLock { state in
            let earned = Double(max(now - state.last, 0)) / 1e9 * Self.rate
            (state.budget, state.last) = (min(state.budget + earned, Self.burst), now)
            guard state.budget >= 1 else {
                state.left += 1
                return nil
            }
            state.budget -= 1
            defer { state.left = 0 }
            return state.left
        }
    }
}

/// The form and the destination of log lines, shared by all loggers.
package final class LogOutput: Sendable {
    private struct State {
        var redactor: Redactor
        var level: Logger.Level
    }
    private let state: Mutex<State>
    private let repetitions = RepeatedLines()
    private let format: ServerConfiguration.LogFormat
    private let write: @Sendable (String) -> Void

    /// - Parameter write: Takes whole lines. Standard error by default.
    package init(
        format: ServerConfiguration.LogFormat, level: Logger.Level, redactor: Redactor = Redactor(),
        write: @escaping @Sendable (String) -> Void = LogOutput.writeToStandardError
    ) {
        self.format = format
        state = Mutex(State(redactor: redactor, level: level))
        self.write = write
    }

    package var level: Logger.Level { state.withLock { $0.level } }

    package func configure(level: Logger.Level, redactor: Redactor) {
        state.withLock { $0 = State(redactor: redactor, level: level) }
    }

    /// A logger that writes here.
    package func logger(label: String) -> Logger {
        Logger(label: label) { _ in ServerLogHandler(label: label, output: self) }
    }

    fileprivate func log(_ event: LogEvent, label: String, metadata: Logger.Metadata) {
        let state = state.withLock { $0 }
        guard event.level >= state.level else { return }
        var fields = metadata
        if let own = event.metadata { fields.merge(own) { $1 } }
        if let error = event.error { fields["error"] = "\(error)" }
        if event.level >= .warning {
            let own = fields.filter { $0.key != "request_id" }.sorted { $0.key < $1.key }
            let name = "\(label) \(event.level) \(event.message) \(own.map { "\($0.key)=\($0.value)" })"
            guard let left = repetitions.admit(name) else { return }
            if left > 0 { fields["repeated"] = .stringConvertible(left) }
        }
        let time = Self.timestamp(Date())
        switch format {
        case .json:
            var line = "{\"time\":\"\(time)\",\"level\":\"\(event.level.rawValue)\","
            line += "\"logger\":\(JSONText.quoted(label)),"
            line += "\"message\":\(JSONText.quoted(state.redactor(event.message.description)))"
            for (name, value) in fields.sorted(by: { $0.key < $1.key }) {
                line += ",\(JSONText.quoted(name)):\(Self.json(value, state.redactor))"
            }
            write(line + "}\n")
        case .text:
            var line = "\(time) \(event.level.rawValue) \(event.message.description)"
            for (name, value) in fields.sorted(by: { $0.key < $1.key }) { line += " \(name)=\(value)" }
            let lines = state.redactor(line).split(whereSeparator: \.isNewline)
            write(UnseenText.escaped(lines.joined(separator: " ")) + "\n")
        }
    }

    private static func json(_ value: Logger.MetadataValue, _ redactor: Redactor) -> String {
        switch value {
        case .dictionary(let values):
            "{"
                + values.sorted { $0.key < $1.key }
                .map { "\(JSONText.quoted($0.key)):\(json($0.value, redactor))" }.joined(separator: ",") + "}"
        case .array(let values): "[" + values.map { json($0, redactor) }.joined(separator: ",") + "]"
        case .stringConvertible(let value as Int): String(value)
        case .stringConvertible(let value as Double): JSONText.number(value)
        case .stringConvertible(let value as Bool): String(value)
        default: JSONText.quoted(redactor(value.description))
        }
    }

    /// UTC with milliseconds.
    static func timestamp(_ date: Date) -> String {
        let milliseconds = Int64((date.timeIntervalSince1970 * 1000).rounded(.down))
        var seconds = time_t(milliseconds / 1000)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func padded(_ value: some BinaryInteger, _ width: Int = 2) -> String {
            let text = String(value)
            return String(repeating: "0", count: max(width - text.count, 0)) + text
        }
        return "\(parts.tm_year + 1900)-\(padded(parts.tm_mon + 1))-\(padded(parts.tm_mday))"
            + "T\(padded(parts.tm_hour)):\(padded(parts.tm_min)):\(padded(parts.tm_sec))"
            + ".\(padded(milliseconds % 1000, 3))Z"
    }

    /// Writes a line at once, so that lines of several threads do not mix.
    package static let writeToStandardError: @Sendable (String) -> Void = { line in
        var line = line
        line.withUTF8 { bytes in
            var rest = UnsafeRawBufferPointer(bytes)
            while let start = rest.baseAddress, !rest.isEmpty {
                let count = systemWrite(STDERR_FILENO, start: start, count: rest.count)
                if count < 0 && errno == EINTR { continue }
                guard count > 0 else { return }
                rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
            }
        }
    }
}

private func systemWrite(_ descriptor: Int32, start: UnsafeRawPointer, count: Int) -> Int {
    write(descriptor, start, count)
}

/// A logger's end: it knows its metadata, and ``LogOutput`` the rest.
private struct ServerLogHandler: LogHandler {
    let label: String
    let output: LogOutput
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?
    /// Of this logger alone, if it was set.
    private var ownLevel: Logger.Level?

    init(label: String, output: LogOutput) {
        self.label = label
        self.output = output
    }

    var logLevel: Logger.Level {
        get { ownLevel ?? output.level }
        set { ownLevel = newValue }
    }

    subscript(metadataKey key: String) -> Logger.MetadataValue? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        var fields = metadataProvider?.get() ?? [:]
        fields.merge(metadata) { $1 }
        output.log(event, label: label, metadata: fields)
    }
}
