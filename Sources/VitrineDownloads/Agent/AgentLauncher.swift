import CVitrineDownloads
import VitrineCore
import VitrineDatabase

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Connects to the agent and starts it if it does not run. Concurrent callers start exactly one. All calls block.
struct AgentLauncher: Sendable {
    let location: AgentLocation
    let settings: DownloadManager.Configuration

    static let program = "vitrine-agent"
    /// The number of times an agent may end just after its start.
    private static let attempts = 10

    /// Returns a connection to the agent, which is started if necessary.
    func connect() throws(DownloadError) -> AgentChannel {
        for _ in 0..<Self.attempts {
            if let channel = try connectIfRunning() { return channel }
            if let channel = try start() { return channel }
        }
        throw .agent(reason: "it ends immediately after its start")
    }

    /// Returns a connection to a running agent, or nil if there is none.
    func connectIfRunning() throws(DownloadError) -> AgentChannel? {
        var descriptor: Int32 = -1
        let code = PathText.withSystemPath(location.socket, failure: EINVAL) {
            cdownloads_connect($0, AgentChannel.milliseconds(settings.agentResponseTime), &descriptor)
        }
        switch code {
        case 0: break
        // No process listens, or it has just ended.
        case ENOENT, ECONNREFUSED, ECONNRESET: return nil
        case EAGAIN: throw timeout(nil)
        default: throw .file(FileError(operation: "connect", path: location.socket, code: code))
        }
        let channel = AgentChannel(descriptor, longestLine: AgentProtocol.longestMessage)
        guard channel.isTrusted else {
            throw .file(.untrusted(path: location.socket, reason: "another user listens there"))
        }
        channel.limit(reading: settings.agentResponseTime, sending: nil)
        switch channel.receive(AgentMessage.self) {
        case .hello(AgentProtocol.version)?:
            channel.limit(reading: nil, sending: settings.agentResponseTime)
            return channel
        case nil where channel.isTimedOut: throw timeout(channel.process)
        // It was ending and accepted no more clients.
        case nil: return nil
        case .hello(let version)?:
            throw .agent(
                reason: "its protocol version is \(version), that of this program \(AgentProtocol.version); "
                    + "stop it with the program that started it")
        case let message?: throw .agent(reason: "it started with the unexpected message \(message)")
        }
    }

    private func timeout(_ process: Int32?) -> DownloadError {
        .agentTimedOut(process: process, after: settings.agentResponseTime ?? .zero)
    }

    /// Starts an agent, unless another process does.
    ///
    /// - Returns: A connection to it, or nil if it has ended meanwhile.
    private func start() throws(DownloadError) -> AgentChannel? {
        do {
            let lock = try acquireStartLock()
            defer { lock.release() }
            // The previous owner of the lock may have started it.
            if let channel = try connectIfRunning() { return channel }
            try spawn()
            return try connectIfRunning()
        } catch let error as DownloadError {
            throw error
        } catch let error as FileError {
            throw .file(error)
        } catch {
            throw .agent(reason: "\(error)")
        }
    }

    /// Waits for the lock under which agents are started, one at a time of all processes.
    private func acquireStartLock() throws -> FileLock {
        let start = ContinuousClock.now
        while true {
            if let lock = try FileLock(path: location.startLock) { return lock }
            // The process with the lock waits for the agent as long as this one.
            if let time = settings.agentResponseTime, ContinuousClock.now - start > time * 2 { throw timeout(nil) }
            usleep(1000)
        }
    }

    private func spawn() throws {
        guard let program = settings.agentProgram ?? HelperProgram.path(of: Self.program) else {
            throw DownloadError.agent(
                reason: "\(Self.program) was not found; \(HelperProgram.advice(for: Self.program))")
        }
        let words = [program] + AgentArguments(location: location, idleTime: settings.agentIdleTime).words
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw FileError(operation: "pipe", path: program, code: errno) }
        defer { close(ends[0]) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        var arguments = words.map { word in PathText.withSystemPath(word, failure: nil) { strdup($0) } }
        defer { for argument in arguments { free(argument) } }
        guard arguments.allSatisfy({ $0 != nil }) else {
            throw FileError(operation: "execve", path: program, code: EINVAL)
        }
        arguments.append(nil)
        let code = PathText.withSystemPath(program, failure: EINVAL) { cdownloads_start($0, &arguments, ends[1]) }
        close(ends[1])
        guard code == 0 else { throw FileError(operation: "fork", path: program, code: code) }
        // It writes a byte when it, or another agent, listens, and ends without one if it cannot.
        var byte: UInt8 = 0
        var count: Int
        var descriptor = pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0)
        let time = settings.agentResponseTime.map { Int32(min(AgentChannel.milliseconds($0), Int(Int32.max))) } ?? -1
        var ready: Int32
        repeat { ready = poll(&descriptor, 1, time) } while ready < 0 && errno == EINTR
        guard ready != 0 else { throw timeout(nil) }
        repeat { count = read(ends[0], &byte, 1) } while count < 0 && errno == EINTR
        guard count == 1 else { throw DownloadError.agent(reason: "\(program) ended before it could be reached") }
    }
}

/// The socket and the locks of the agent of a list of downloads.
struct AgentLocation: Sendable, Hashable {
    /// The directory of the list, and its name there.
    let journalDirectory: String, identifier: String
    /// A directory that only this user can enter.
    let directory: String

    /// Creates the directory if it is missing. Blocks.
    ///
    /// - Throws: ``DownloadError/file(_:)`` if it belongs to another user, or is open to others.
    init(_ configuration: DownloadManager.Configuration) throws(DownloadError) {
        journalDirectory = configuration.journalDirectory
        identifier = configuration.identifier
        do throws(FileError) {
            if let given = configuration.agentDirectory {
                try Directory.create(given)
                try Directories.checkPrivate(given)
                directory = given
            } else {
                directory = try Directories.current.runtimeDirectory(for: "vitrine")
            }
        } catch {
            throw .file(error)
        }
    }

    private func path(_ ending: String) -> String {
        // Short enough for the path of a socket, for any list.
        let name = FileName.sha256("\(journalDirectory.utf8.count):\(journalDirectory)\(identifier)").prefix(16)
        return FilePath.join(directory, "agent-\(name).\(ending)")
    }

    /// The socket of the agent.
    var socket: String { path("socket") }
    /// The lock that the agent holds.
    var lock: String { path("lock") }
    /// The lock of a process that starts the agent.
    var startLock: String { path("start") }

    /// The name of the agent's list, which differs from the list of programs without an agent.
    var journalIdentifier: String { Self.journalIdentifier(of: identifier) }

    static func journalIdentifier(of identifier: String) -> String { identifier + ".agent" }
}

/// The command line of `vitrine-agent`. Reading it makes and opens nothing.
package struct AgentArguments: Sendable {
    private var configuration: DownloadManager.Configuration

    /// Creates the command line for the agent of a list.
    init(location: AgentLocation, idleTime: Duration?) {
        configuration = DownloadManager.Configuration()
        configuration.journalDirectory = location.journalDirectory
        configuration.identifier = location.identifier
        configuration.agentDirectory = location.directory
        configuration.agentIdleTime = idleTime
    }

    /// Parses ``words``. An absent option has the default of ``DownloadManager/Configuration``.
    ///
    /// - Returns: nil for any other command line.
    package init?(_ words: [String]) {
        configuration = DownloadManager.Configuration()
        var rest = words[...]
        while let name = rest.popFirst() {
            guard let value = rest.popFirst() else { return nil }
            switch name {
            case "--journal": configuration.journalDirectory = value
            case "--identifier": configuration.identifier = value
            case "--directory": configuration.agentDirectory = value
            case "--idle" where value == "never": configuration.agentIdleTime = nil
            case "--idle":
                guard let milliseconds = Int(value), milliseconds >= 0 else { return nil }
                configuration.agentIdleTime = .milliseconds(milliseconds)
            default: return nil
            }
        }
    }

    /// The time without work after which the agent ends; nil for never.
    var idleTime: Duration? { configuration.agentIdleTime }

    /// Returns the socket and locks of the agent, and creates their directory if it is missing. Blocks.
    func location() throws(DownloadError) -> AgentLocation { try AgentLocation(configuration) }

    /// The command line without the name of the program.
    package var words: [String] {
        var words = ["--journal", configuration.journalDirectory, "--identifier", configuration.identifier]
        if let directory = configuration.agentDirectory { words += ["--directory", directory] }
        return words + ["--idle", idleTime.map { "\(Int(min(max(0, $0 / .milliseconds(1)), 1e15)))" } ?? "never"]
    }
}
