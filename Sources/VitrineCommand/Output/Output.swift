import Foundation
import VitrineCore

/// What the command says on standard output. Everything goes through here, so that no text of a file or a server can
/// do anything to a terminal.
///
/// | Output | On a terminal | Into a pipe or file |
/// | --- | --- | --- |
/// | rows of several columns | escaped | escaped |
/// | a line that is one name or path | escaped | its bytes, as `ls` does |
/// | JSON | `\u` escapes | `\u` escapes |
/// | contents of files | as they are | as they are |
enum Output {
    private static let isTerminal = isatty(STDOUT_FILENO) == 1

    /// A row of text, for people.
    static func row(_ text: String) { write(Array((Printable.line(text) + "\n").utf8)) }

    /// Several lines that are the command's own.
    static func text(_ text: String) { write(Array((Printable.lines(text) + "\n").utf8)) }

    /// A name or path that has the line for itself, for other programs.
    static func name(_ text: String) {
        guard !isTerminal else { return row(text) }
        write(PathText.bytes(of: text) + [UInt8(ascii: "\n")])
    }

    /// An object on one line.
    static func json(_ value: some Encodable) { row(JSONLine.text(value)) }

    /// The contents of a file.
    static func contents(_ bytes: [UInt8]) { write(bytes) }

    /// Whether something could not be written, for exit status 1.
    static var hasFailed: Bool { failure.withLock { $0 } }

    private static let failure = Locked(false)

    /// The work goes on when the disk is full: what it is for may be files. It is said once.
    private static func write(_ bytes: [UInt8]) {
        guard let code = StandardStream.write(bytes, to: STDOUT_FILENO) else { return }
        let isFirst = failure.withLock { failed in
            defer { failed = true }
            return !failed
        }
        if isFirst { Diagnostics.write("standard output: \(String(cString: strerror(code)))") }
    }
}

/// The descriptors a process is started with. Unlike `FileHandle`, a write that fails is an answer and no trap.
enum StandardStream {
    /// Writes all bytes.
    ///
    /// - Returns: The `errno`, or nil.
    static func write(_ bytes: [UInt8], to descriptor: Int32) -> Int32? {
        bytes.withUnsafeBytes { bytes in
            var offset = 0
            while offset < bytes.count {
                let count = Foundation.write(descriptor, bytes.baseAddress.map { $0 + offset }, bytes.count - offset)
                if count > 0 {
                    offset += count
                } else if count < 0, errno == EAGAIN {
                    // A terminal that another program has made non-blocking.
                    var state = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    _ = poll(&state, 1, -1)
                } else if count == 0 || errno != EINTR {
                    return count == 0 ? EIO : errno
                }
            }
            return nil
        }
    }
}

/// One JSON object on one line, keys in alphabetical order. Bytes of paths that are no UTF-8 are `\udbff\udeXX`, as
/// `PathText` has them.
enum JSONLine {
    static func text(_ value: some Encodable) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(value) else { return "{}" }
        return Printable.json(String(decoding: data, as: UTF8.self))
    }
}
