import CVitrineDownloads
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore

/// Connects to the agent, and starts it if there is none: exactly one, however many want it at once. All calls block.
struct AgentLauncher: Sendable {
    let location: AgentLocation
    let settings: DownloadManager.AgentSettings

    static let program = "vitrine-agent"
    /// How often an agent may end at the very moment at which it is wanted.
    private static let attempts = 10

    /// A connection to the agent, started if need be.
    func connect() throws(DownloadError) -> AgentChannel {
        for _ in 0..<Self.attempts {
            if let channel = try connectIfRunning() { return channel }
            if let channel = try start() { return channel }
        }
        throw .agent(reason: "it ends as soon as it has been started")
    }

    /// A connection to an agent that runs; nil if there is none.
    func connectIfRunning() throws(DownloadError) -> AgentChannel? {
        var descriptor: Int32 = -1
        let code = PathText.withSystemPath(location.socket, failure: EINVAL) {
            cdownloads_connect($0, AgentChannel.milliseconds(settings.responseTime), &descriptor)
        }
        switch code {
        case 0: break
        // Nobody listens; or it has just gone.
        case ENOENT, ECONNREFUSED, ECONNRESET: return nil
        case EAGAIN: throw timeout(nil)
        default: throw .file(FileError(operation: "connect", path: location.socket, code: code))
        }
        let channel = AgentChannel(descriptor)
        guard channel.isTrusted else {
            throw .file(.untrusted(path: location.socket, reason: "another user listens there"))
        }
        channel.limit(reading: settings.responseTime, sending: nil)
        switch channel.receive(AgentMessage.self) {
        case .hello(AgentProtocol.version)?:
            channel.limit(reading: nil, sending: settings.responseTime)
            return channel
        case nil where channel.isTimedOut: throw timeout(channel.process)
        // It was ending, and let nobody in.
        case nil: return nil
        case .hello(let version)?:
            throw .agent(
                reason: "it speaks version \(version), this program \(AgentProtocol.version): "
                    + "stop it by the program it came with")
        case let message?: throw .agent(reason: "it begins with \(message)")
        }
    }

    private func timeout(_ process: Int32?) -> DownloadError {
        .agentTimedOut(process: process, after: settings.responseTime ?? .zero)
    }

    /// Starts an agent, unless somebody does.
    ///
    /// - Returns: A connection to it; nil if it has ended meanwhile.
    private func start() throws(DownloadError) -> AgentChannel? {
        do {
            // One at a time, of all processes. Let go of when the descriptor closes.
            let lock = try FileDescriptor(
                opening: location.startLock, flags: O_RDWR | O_CREAT | O_NOFOLLOW, mode: 0o600)
            let start = ContinuousClock.now
            while flock(lock.number, LOCK_EX | LOCK_NB) != 0 {
                guard errno == EINTR || errno == EWOULDBLOCK else {
                    throw FileError(operation: "flock", path: lock.path, code: errno)
                }
                // Whoever has it waits as long for the agent as this one does.
                if let time = settings.responseTime, ContinuousClock.now - start > time * 2 { throw timeout(nil) }
                usleep(1000)
            }
            // Whoever had the lock may have started it.
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

    private func spawn() throws {
        guard let program = settings.program ?? HelperProgram.path(of: Self.program) else {
            throw DownloadError.agent(
                reason: "\(Self.program) was not found: \(HelperProgram.advice(for: Self.program))")
        }
        let words = [program] + AgentArguments(location: location, idleTime: settings.idleTime).words
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
        // It says a byte when it listens, or when another one does; it just ends if it cannot.
        var byte: UInt8 = 0
        var count: Int
        var descriptor = pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0)
        let time = settings.responseTime.map { Int32(min(AgentChannel.milliseconds($0), Int(Int32.max))) } ?? -1
        var ready: Int32
        repeat { ready = poll(&descriptor, 1, time) } while ready < 0 && errno == EINTR
        guard ready != 0 else { throw timeout(nil) }
        repeat { count = read(ends[0], &byte, 1) } while count < 0 && errno == EINTR
        guard count == 1 else { throw DownloadError.agent(reason: "\(program) ended before it could be reached") }
    }
}
