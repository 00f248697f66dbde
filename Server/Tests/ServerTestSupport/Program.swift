import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A process that a test has started.
///
/// It has standard input, output and error, at most one further descriptor, and no other of this process. Sockets of
/// NIO, and sockets and pipes of Foundation, are not closed on exec. A process that inherits one keeps it open after
/// this process has closed it, so that the other side waits for its end until that process ends.
package final class ChildProcess: Sendable {
    package struct Failure: Error {
        package let call: String
        package let code: Int32
    }

    package let identifier: Int32
    private let ended = Mutex<Int32?>(nil)

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - path: The path of the program.
    ///   - arguments: Its arguments.
    ///   - environment: Its environment; nil for that of this process.
    ///   - input: Its standard input. Default: that of this process.
    ///   - mergesErrors: Whether its standard error is a part of its output.
    ///   - socket: Its descriptor 3; nil for none.
    ///   - receive: Called with parts of its output, on a thread of its own.
    ///   - onEnd: Called after all of its output, when it has ended.
    package init(
        _ path: String, _ arguments: [String], environment: [String: String]? = nil, input: Int32 = 0,
        mergesErrors: Bool = true, socket: Int32? = nil, receive: @escaping @Sendable ([UInt8]) -> Void,
        onEnd: @escaping @Sendable () -> Void = {}
    ) throws {
        let output = try Self.pipe()
        let null = open("/dev/null", O_WRONLY | O_CLOEXEC)
        defer {
            close(output.writing)
            close(null)
        }
        let descriptors = [input, output.writing, mergesErrors ? output.writing : null] + [socket].compactMap(\.self)
        let environment = environment ?? ProcessInfo.processInfo.environment
        do {
            identifier = try Self.spawn([path] + arguments, environment, descriptors)
        } catch {
            close(output.reading)
            throw error
        }
        Thread.detachNewThread { [self] in
            read(output.reading, receive)
            reap()
            onEnd()
        }
    }

    /// Runs a program to its end, and returns its exit status and its output. Blocks.
    package static func run(
        _ path: String, _ arguments: [String], mergesErrors: Bool = false
    ) throws -> (status: Int32, output: [UInt8]) {
        let (said, end) = (Output(), DispatchSemaphore(value: 0))
        let process = try ChildProcess(path, arguments, mergesErrors: mergesErrors) {
            said.receive($0, hasEnded: false)
        } onEnd: {
            end.signal()
        }
        end.wait()
        return (process.status ?? 0, said.bytes)
    }

    /// The exit status, or the negative number of a signal; nil while it runs.
    package var status: Int32? { ended.withLock { $0 } }

    package func send(_ signal: Int32) {
        ended.withLock { if $0 == nil { kill(identifier, signal) } }
    }

    /// Kills the process and waits for its end.
    package func end() {
        guard status == nil else { return }
        send(SIGKILL)
        waitForEnd()
    }

    private typealias CloseFrom = @convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, Int32) -> Int32
    /// A GNU extension, which Swift does not import from the C library.
    private static let closeFrom = dlsym(nil, "posix_spawn_file_actions_addclosefrom_np").map {
        unsafeBitCast($0, to: CloseFrom.self)
    }

    private static func spawn(
        _ words: [String], _ environment: [String: String], _ descriptors: [Int32]
    ) throws -> Int32 {
        guard let closeFrom else { throw Failure(call: "posix_spawn_file_actions_addclosefrom_np", code: ENOSYS) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (number, descriptor) in descriptors.enumerated() {
            posix_spawn_file_actions_adddup2(&actions, descriptor, Int32(number))
        }
        _ = closeFrom(&actions, Int32(descriptors.count))
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // Threads of a pool block signals, and processes inherit that.
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        let argv = words.map { strdup($0) } + [nil]
        let envp = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in argv + envp { free(text) } }
        var process: pid_t = 0
        let code = posix_spawn(&process, words[0], &actions, &attributes, argv, envp)
        guard code == 0 else { throw Failure(call: "posix_spawn \(words[0])", code: code) }
        return process
    }

    fileprivate static func pipe() throws -> (reading: Int32, writing: Int32) {
        var ends: [Int32] = [0, 0]
        guard systemPipe(&ends) == 0 else { throw Failure(call: "pipe", code: errno) }
        for descriptor in ends { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    private func read(_ descriptor: Int32, _ receive: ([UInt8]) -> Void) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = systemRead(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            receive(Array(buffer.prefix(count)))
        }
        close(descriptor)
    }

    /// Waits without reaping the process, so that its number stays its own.
    private func waitForEnd() {
        var information = siginfo_t()
        while waitid(P_PID, id_t(identifier), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
    }

    private func reap() {
        waitForEnd()
        ended.withLock { ended in
            var status: Int32 = 0
            waitpid(identifier, &status, 0)
            ended = status & 0x7F == 0 ? status >> 8 & 0xFF : -(status & 0x7F)
        }
    }
}

private func systemPipe(_ ends: UnsafeMutablePointer<Int32>) -> Int32 { pipe(ends) }
private func systemRead(_ descriptor: Int32, _ bytes: UnsafeMutableRawPointer, _ count: Int) -> Int {
    read(descriptor, bytes, count)
}

/// A program that a test has started, and that ends with it.
package final class Program: Sendable {
    private let process: ChildProcess
    private let said = Output()
    /// The other end of its standard input, until ``closeInput()``.
    private let input: Mutex<Int32?>

    /// Starts a program.
    ///
    /// - Parameter mergesErrors: Whether its standard error is a part of its output.
    package init(_ path: String, _ arguments: [String], mergesErrors: Bool = false) throws {
        let ends = try ChildProcess.pipe()
        defer { close(ends.reading) }
        let said = said
        do {
            process = try ChildProcess(
                path, arguments, input: ends.reading, mergesErrors: mergesErrors
            ) {
                said.receive($0, hasEnded: false)
            } onEnd: {
                said.receive([], hasEnded: true)
            }
        } catch {
            close(ends.writing)
            throw error
        }
        input = Mutex(ends.writing)
    }

    deinit {
        end()
        closeInput()
    }

    /// Its output so far.
    package var output: String { said.text }

    /// Waits until it has written a text; false if it ends before.
    package func hasSaid(_ text: String) async -> Bool { await said.contains(text) }

    /// Waits until it has ended.
    package func waitUntilEnd() async { _ = await said.contains(nil) }

    package var identifier: Int32 { process.identifier }
    /// The exit status, or the negative number of a signal; nil while it runs.
    package var status: Int32? { process.status }
    package var isRunning: Bool { status == nil }

    package func send(_ signal: Int32) { process.send(signal) }

    package func write(_ text: String) {
        input.withLock { input in
            guard let input else { return }
            let bytes = Array(text.utf8)
            _ = systemWrite(input, bytes, bytes.count)
        }
    }

    /// Ends its standard input.
    package func closeInput() {
        input.withLock { input in
            if let descriptor = input.take() { close(descriptor) }
        }
    }

    package func end() { process.end() }
}

private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawPointer, _ count: Int) -> Int {
    write(descriptor, bytes, count)
}

/// The output of a program, and those who wait for a part of it.
private final class Output: Sendable {
    private struct State {
        var bytes: [UInt8] = []
        var hasEnded = false
        /// A text, or nil for the end.
        var waiting: [(text: String?, answer: CheckedContinuation<Bool, Never>)] = []

        var text: String { String(decoding: bytes, as: UTF8.self) }

        /// nil if it is not known yet.
        func contains(_ part: String?) -> Bool? {
            if let part, text.contains(part) { return true }
            return hasEnded ? false : nil
        }
    }

    private let state = Mutex(State())

    var bytes: [UInt8] { state.withLock { $0.bytes } }
    var text: String { state.withLock { $0.text } }

    func receive(_ bytes: [UInt8], hasEnded: Bool) {
        let answers = state.withLock { state in
            state.bytes += bytes
            state.hasEnded = state.hasEnded || hasEnded
            let (waiting, now) = (state.waiting, state)
            state.waiting = waiting.filter { now.contains($0.text) == nil }
            return waiting.compactMap { waiter in now.contains(waiter.text).map { (waiter.answer, $0) } }
        }
        for (answer, isThere) in answers { answer.resume(returning: isThere) }
    }

    func contains(_ part: String?) async -> Bool {
        await withCheckedContinuation { continuation in
            let answer = state.withLock { state in
                let answer = state.contains(part)
                if answer == nil { state.waiting.append((part, continuation)) }
                return answer
            }
            if let answer { continuation.resume(returning: answer) }
        }
    }
}
