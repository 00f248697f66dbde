import VitrineCore
import VitrineDownloads
import VitrineImaging
import VitrineNetwork
import VitrinePipeline

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Standard output. All output goes through here, so that text from files and servers cannot control a terminal.
///
/// | Output | On a terminal | Into a pipe or file |
/// | --- | --- | --- |
/// | rows of several columns | escaped | escaped |
/// | a line that is one name or path | escaped | its bytes, as `ls` does |
/// | JSON | `\u` escapes | `\u` escapes |
/// | contents of files | unchanged | unchanged |
enum Output {
    private static let isTerminal = isatty(STDOUT_FILENO) == 1

    /// Writes a row of text for people.
    static func row(_ text: String) { write(Array((Printable.line(text) + "\n").utf8)) }

    /// Writes a label and its text: in a row for other programs, and as wide as the terminal for people.
    static func entry(_ label: String, _ text: String, at column: Int) {
        guard isTerminal else { return row(label.padded(to: column - 1) + " " + text) }
        let columns = TerminalSize.columns()
        for line in WrappedText.entry(label, text, at: column, columns: columns) { row(line) }
    }

    /// Writes several lines of the command's own text.
    static func text(_ text: String) { write(Array((Printable.lines(text) + "\n").utf8)) }

    /// Writes a line that is a single name or path, for other programs.
    static func name(_ text: String) {
        guard !isTerminal else { return row(text) }
        write(PathText.bytes(of: text) + [UInt8(ascii: "\n")])
    }

    /// Writes an object on one line.
    static func json(_ value: some Encodable) { row(JSONLine.text(value)) }

    /// Writes the contents of a file.
    static func contents(_ bytes: [UInt8]) { write(bytes) }

    /// Whether a write failed, for exit status 1.
    static var hasFailed: Bool { failure.withLock { $0 } }

    private static let failure = Locked(false)

    /// A full disk does not stop the work, which can also write files. The failure is printed once.
    private static func write(_ bytes: [UInt8]) {
        guard !Termination.hasBegun, let code = StandardStream.write(bytes, to: STDOUT_FILENO) else { return }
        let isFirst = failure.withLock { failed in
            defer { failed = true }
            return !failed
        }
        if isFirst { Diagnostics.write("standard output: \(String(cString: strerror(code)))") }
    }
}

/// Standard error. Failures to write to it are ignored, as there is no other place to report them.
enum Diagnostics {
    /// Writes one line, escaped by ``Printable/line(_:)``.
    static func write(_ line: String) {
        draw(Printable.line(line) + "\n")
    }

    /// Writes a message of the argument parser. It has several lines, and repeats words of the command line.
    static func writeUsage(_ text: String, words: [String]) {
        var text = text
        // A newline in a word must not look like a line of the message. Values can follow `=` and `-x`.
        for word in words where Printable.line(word) != word {
            let value = word.firstIndex(of: "=").map { word[word.index(after: $0)...] } ?? ""
            for part in [word[...], value, word.dropFirst(2)] where part.unicodeScalars.contains("\n") {
                text = text.replacing(part, with: Printable.line(String(part)))
            }
        }
        draw(Printable.lines(text) + "\n")
    }

    /// Writes text unchanged, to draw on a terminal.
    static func draw(_ text: String) {
        guard !Termination.hasBegun else { return }
        _ = StandardStream.write(Array(text.utf8), to: STDERR_FILENO)
    }

    /// Returns an error as input and reason, for a line `input: reason`.
    static func describe(_ error: any Error) -> (input: String?, reason: String) {
        switch error {
        case let error as ImageError: (error.input, tidied(error.reason) + advice(error))
        case let error as ImagePipelineError: (error.source, tidied(error.reason) + advice(error))
        case let error as NetworkError: (error.url, error.reason)
        case let failure as InputFailure: (failure.name, failure.reason)
        case let error as FileError: (error.path, error.cause)
        case is CancellationError: (nil, "cancelled")
        default: (nil, String(describing: error))
        }
    }

    /// The option that raises the limit which an error names; empty for other errors.
    private static func advice(_ error: any Error) -> String {
        let limit: ImageLimits.Kind? =
            switch error {
            case ImageError.limitExceeded(_, let limit, _, _): limit
            case ImagePipelineError.limitExceeded(_, let limit, _, _): limit
            default: nil
            }
        switch limit {
        case .pixels: return "; --max-pixels raises it"
        case .inputBytes: return "; --max-bytes raises it"
        default: return ""
        }
    }

    /// Codec libraries repeat their messages and end them with separators: returns the first and the last one.
    private static func tidied(_ reason: String) -> String {
        var parts: [String] = []
        for part in reason.split(separator: ";").map({ String($0.withoutSpacesAround) })
        where !part.isEmpty && !parts.contains(part) { parts.append(part) }
        if parts.count > 3 { parts = [parts[0], "…", parts[parts.count - 1]] }
        let text = parts.joined(separator: "; ")
        return text.hasSuffix(":") ? String(text.dropLast()) : text
    }
}

extension FileError {
    /// The reason of a failed write, with the path of the output.
    var failedWrite: String { "cannot write \(path): \(writeCause)" }

    /// The reason of a failed write, for lines that begin with the path.
    var writeCause: String {
        if case .notFound = self { "its directory does not exist" } else { cause }
    }

    /// The reason without the path, for lines that begin with the path.
    var cause: String {
        switch self {
        case .notFound: "No such file or directory"
        case .alreadyExists: "it exists already"
        case .notPermitted(_, let code), .system(_, _, let code): String(cString: strerror(code))
        case .noSpace: "No space left on device"
        case .tooLarge(_, let limit): "it is larger than \(limit) bytes"
        case .cancelled: "cancelled"
        case .untrusted(_, let reason): reason
        case .notDurable(_, let code):
            "written, but not yet safe from a power failure: \(String(cString: strerror(code)))"
        }
    }
}

/// The descriptors that a process starts with. Unlike `FileHandle`, a failed write returns an error and does not trap.
enum StandardStream {
    /// Reads standard input, or another stream to its end.
    ///
    /// - Parameters:
    ///   - descriptor: The open stream.
    ///   - name: Its name in errors.
    ///   - limit: The number of bytes after which reading stops, at the end of the block that exceeds it.
    /// - Throws: ``InputFailure``.
    static func readInput(
        from descriptor: Int32 = STDIN_FILENO, named name: String = "standard input", limit: Int = .max
    ) throws -> [UInt8] {
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 1 << 16)
        while bytes.count <= limit {
            let count = read(descriptor, &block, block.count)
            if count == 0 { break }
            if count > 0 {
                bytes += block[..<count]
            } else if errno == EAGAIN {
                var state = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                _ = poll(&state, 1, -1)
            } else if errno != EINTR {
                throw InputFailure(name: name, reason: String(cString: strerror(errno)))
            }
        }
        return bytes
    }

    /// Writes all bytes.
    ///
    /// - Returns: The `errno`, or nil.
    static func write(_ bytes: [UInt8], to descriptor: Int32) -> Int32? {
        bytes.withUnsafeBytes { bytes in
            var offset = 0
            while offset < bytes.count {
                let count = writeSome(
                    descriptor, bytes: bytes.baseAddress.map { $0 + offset }, count: bytes.count - offset)
                if count > 0 {
                    offset += count
                } else if count < 0, errno == EAGAIN {
                    // A terminal that another program has made non-blocking.
                    var state = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    _ = poll(&state, 1, -1)
                } else if count == 0 || errno != EINTR {
                    let code = count == 0 ? EIO : errno
                    if code == EPIPE { Termination.endOnBrokenPipe() }
                    return code
                }
            }
            return nil
        }
    }
}

/// `write(2)`, for functions with its name.
private func writeSome(_ descriptor: Int32, bytes: UnsafeRawPointer?, count: Int) -> Int {
    write(descriptor, bytes, count)
}

/// One JSON object on one line, with keys in alphabetical order. Bytes of paths that are not UTF-8 are `\udbff\udeXX`,
/// as in `PathText`.
enum JSONLine {
    static func text(_ value: some Encodable) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(value) else { return "{}" }
        return Printable.json(String(decoding: data, as: UTF8.self))
    }
}
