#if os(Linux)
import Foundation
import TestSupport

/// Runs `vitrine` with words that need not be UTF-8, its output in files or on a terminal.
///
/// `Process` takes strings, and so cannot pass such words on.
struct RawTool {
    struct Outcome: Sendable {
        var status: Int32
        var output: [UInt8]
        /// Standard error; empty on a terminal, which shows both.
        var errors: [UInt8]

        /// The objects of a `--json` run, one a line.
        var objects: [[String: Any]] {
            output.split(separator: UInt8(ascii: "\n")).compactMap {
                (try? JSONSerialization.jsonObject(with: Data($0))) as? [String: Any]
            }
        }
    }

    /// - Parameters:
    ///   - words: The command line without the program.
    ///   - home: Where the user's directories are.
    ///   - onTerminal: Whether standard output and error are a terminal.
    ///   - watching: Called with all output so far, whenever more of it arrives on a terminal.
    static func run(
        _ words: [[UInt8]], home: URL, onTerminal: Bool = false,
        watching: @escaping @Sendable ([UInt8]) -> Void = { _ in }
    ) async throws -> Outcome {
        try await offPool {
            onTerminal ? try runOnTerminal(words, home, watching) : try runIntoFiles(words, home)
        }
    }

    private static func runIntoFiles(_ words: [[UInt8]], _ home: URL) throws -> Outcome {
        let scratch = try Scratch()
        let paths = ["out", "err"].map { scratch.file($0).path }
        let files = paths.map { open($0, O_RDWR | O_CREAT | O_CLOEXEC, 0o600) }
        defer { for file in files { close(file) } }
        let child = try start(words, home, output: files[0], errors: files[1])
        let status = try wait(for: child)
        let contents = try paths.map { try [UInt8](Data(contentsOf: URL(filePath: $0))) }
        return Outcome(status: status, output: contents[0], errors: contents[1])
    }

    /// Runs `vitrine` with a terminal of 60 columns and 20 rows for all three descriptors.
    ///
    /// - Parameters:
    ///   - environment: Variables in addition to those of the test.
    ///   - typing: Returns the keys to press, of all output so far. Called whenever more arrives.
    static func runAtKeyboard(
        _ words: [String], home: URL, environment: [String: String] = [:],
        typing: @escaping @Sendable ([UInt8]) -> [UInt8]
    ) async throws -> Outcome {
        let words = words.map { Array($0.utf8) }
        return try await offPool {
            try runOnTerminal(words, home, environment: environment, typing: typing) { _ in }
        }
    }

    private static func runOnTerminal(
        _ words: [[UInt8]], _ home: URL, environment: [String: String] = [:], typing: (([UInt8]) -> [UInt8])? = nil,
        _ watching: ([UInt8]) -> Void
    ) throws -> Outcome {
        // posix_openpt(3) and the like by hand, as Swift does not see them (ioctl_tty(2): TIOCSPTLCK, TIOCGPTN).
        let master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        var locked: Int32 = 0, number: UInt32 = 0
        guard master >= 0, ioctl(master, 0x4004_5431, &locked) == 0, ioctl(master, 0x8004_5430, &number) == 0 else {
            throw POSIXError(.ENODEV)
        }
        defer { close(master) }
        let terminal = open("/dev/pts/\(number)", O_RDWR | O_NOCTTY | O_CLOEXEC)
        guard terminal >= 0 else { throw POSIXError(.ENODEV) }
        if typing != nil {
            // TIOCSWINSZ
            var size = winsize(ws_row: 20, ws_col: 60, ws_xpixel: 0, ws_ypixel: 0)
            guard ioctl(master, 0x5414, &size) == 0 else { throw POSIXError(.ENODEV) }
        }
        let child = try start(
            words, home, input: typing == nil ? nil : terminal, output: terminal, errors: terminal,
            environment: environment)
        close(terminal)
        var output: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = read(master, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            // EIO when the last process has closed the terminal.
            guard count > 0 else { break }
            output += buffer[..<count]
            watching(output)
            if let keys = typing?(output), !keys.isEmpty { _ = write(master, keys, keys.count) }
        }
        return Outcome(status: try wait(for: child), output: output, errors: [])
    }

    private static func start(
        _ words: [[UInt8]], _ home: URL, input: Int32? = nil, output: Int32, errors: Int32,
        environment others: [String: String] = [:]
    ) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        if let input {
            posix_spawn_file_actions_adddup2(&actions, input, 0)
        } else {
            posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        }
        posix_spawn_file_actions_adddup2(&actions, output, 1)
        posix_spawn_file_actions_adddup2(&actions, errors, 2)
        var arguments = strings([Array(Tool.executable.path.utf8)] + words)
        let variables = ProcessInfo.processInfo.environment.merging(Tool.environment(home: home)) { $1 }
            .merging(others) { $1 }
        var environment = strings(variables.map { Array("\($0)=\($1)".utf8) })
        defer { for string in arguments + environment { free(string) } }
        var child: pid_t = 0
        let code = posix_spawn(&child, Tool.executable.path, &actions, nil, &arguments, &environment)
        guard code == 0 else { throw POSIXError(POSIXErrorCode(rawValue: code) ?? .EIO) }
        return child
    }

    private static func strings(_ words: [[UInt8]]) -> [UnsafeMutablePointer<CChar>?] {
        words.map { word in (word.map { CChar(truncatingIfNeeded: $0) } + [0]).withUnsafeBufferPointer { strdup($0.baseAddress!) } }
            + [nil]
    }

    private static func wait(for child: pid_t) throws -> Int32 {
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0 {
            guard errno == EINTR else { throw POSIXError(.ECHILD) }
        }
        return status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
    }
}

/// Paths whose names are any bytes.
struct RawFile {
    let bytes: [UInt8]

    init(_ directory: URL, _ name: [UInt8]) { bytes = Array((directory.path + "/").utf8) + name }

    private var cString: [CChar] { bytes.map { CChar(truncatingIfNeeded: $0) } + [0] }

    /// Copies a file here.
    func copy(from path: String) throws {
        let contents = try [UInt8](Data(contentsOf: URL(filePath: path)))
        let file = open(cString, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0, write(file, contents, contents.count) == contents.count else { throw POSIXError(.EIO) }
        close(file)
    }

    func makeDirectory() throws {
        guard mkdir(cString, 0o700) == 0 else { throw POSIXError(.EIO) }
    }

    var exists: Bool { access(cString, F_OK) == 0 }

    /// The names directly in a directory, as bytes, in their order.
    static func names(in directory: URL) -> [[UInt8]] {
        guard let stream = opendir(directory.path) else { return [] }
        defer { closedir(stream) }
        var names: [[UInt8]] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
            if name != [0x2E], name != [0x2E, 0x2E] { names.append(name) }
        }
        return names.sorted { $0.lexicographicallyPrecedes($1) }
    }
}
#endif
