import Foundation
internal import VitrineCore

/// A running program of this package, with its standard output and, if asked for, a standard input to close.
package final class ChildProcess {
    /// How a child ended.
    package enum End: Equatable { case exit(Int32), signal(Int32) }

    /// Where a program of this package is: beside the tests.
    package static func path(of executable: String) -> String {
        URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
            .appending(path: executable).path
    }

    /// One child at a time gets its pipes: another must not inherit them before they are marked.
    private static let spawning = Locked(())

    package let identifier: pid_t
    private let output: Int32
    private var input: Int32?
    private var pending: [UInt8] = []
    private var end: End?

    /// Starts a program with arguments.
    ///
    /// - Parameters:
    ///   - executable: Its name.
    ///   - wrapper: Words before the executable's path: a command that ends in executing what follows.
    ///   - holdsInput: Whether standard input stays open until ``closeInput()``; else it is empty.
    package init(
        executable: String, _ arguments: [String], wrapper: [String] = [], holdsInput: Bool = false
    ) throws {
        let (child, out, into) = try Self.spawning.withLock { _ in
            try Self.spawn(wrapper + [Self.path(of: executable)] + arguments)
        }
        (identifier, output, input) = (child, out, into)
        if !holdsInput { closeInput() }
    }

    /// Starts a process and gives its identifier, the end of its output, and that of its input.
    private static func spawn(_ words: [String]) throws -> (child: pid_t, output: Int32, input: Int32) {
        let out = try makePipe(), into = try makePipe()
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, into.read, 0)
        posix_spawn_file_actions_adddup2(&actions, out.write, 1)
        var strings: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        defer { for string in strings { free(string) } }
        var child: pid_t = 0
        let code = posix_spawnp(&child, words[0], &actions, nil, &strings, environ)
        close(out.write)
        close(into.read)
        guard code == 0 else { throw POSIXError(POSIXErrorCode(rawValue: code) ?? .EIO) }
        return (child, out.read, into.write)
    }

    deinit {
        closeInput()
        kill()
        _ = wait()
        close(output)
    }

    /// Ends the child's standard input.
    package func closeInput() {
        if let input { close(input) }
        input = nil
    }

    /// Ends the child where it stands, as `kill -9` does.
    package func kill() {
        if end == nil { Foundation.kill(identifier, SIGKILL) }
    }

    /// Halts the child, and returns when it stands.
    package func stop() {
        var status: Int32 = 0
        Foundation.kill(identifier, SIGSTOP)
        while waitpid(identifier, &status, WUNTRACED) < 0, errno == EINTR {}
    }

    /// Lets a halted child go on.
    package func resume() { Foundation.kill(identifier, SIGCONT) }

    /// Returns when the child has ended.
    @discardableResult
    package func wait() -> End {
        if let end { return end }
        var status: Int32 = 0
        while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
        let signal = status & 0x7F
        let ended = signal == 0 ? End.exit(status >> 8 & 0xFF) : .signal(signal)
        end = ended
        return ended
    }

    /// The next line of output, waiting for it; nil after the last. A line without an end does not count.
    package func line() -> String? {
        while true {
            if let newline = pending.firstIndex(of: 0x0A) {
                defer { pending.removeSubrange(...newline) }
                return String(decoding: pending[..<newline], as: UTF8.self)
            }
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = read(output, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return nil }
            pending += buffer[..<count]
        }
    }

    /// All lines up to the end of the output, as name and value.
    package func findings() -> Findings {
        var findings = Findings()
        while let line = line() { findings.add(line) }
        return findings
    }

    private static func makePipe() throws -> (read: Int32, write: Int32) {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw POSIXError(.EMFILE) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }
}

/// What a child reported: `name value` a line.
package struct Findings: CustomStringConvertible, Sendable {
    package private(set) var lines: [(name: String, value: String)] = []

    package init() {}

    package mutating func add(_ line: String) {
        let words = line.split(separator: " ", maxSplits: 1)
        guard let name = words.first else { return }
        lines.append((String(name), words.count > 1 ? String(words[1]) : ""))
    }

    /// The last value reported under a name.
    package subscript(name: String) -> String? { lines.last { $0.name == name }?.value }

    /// The last value as a number; -1 if there is none.
    package func number(_ name: String) -> Int { self[name].flatMap { Int($0) } ?? -1 }

    package var description: String { lines.suffix(40).map { "\($0.name) \($0.value)" }.joined(separator: "; ") }
}
