import CDownloads
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
        let code = cdownloads_connect(location.socket, &descriptor)
        switch code {
        case 0: break
        // Nobody listens; or it has just gone.
        case ENOENT, ECONNREFUSED, ECONNRESET: return nil
        default: throw .file(FileError(operation: "connect", path: location.socket, code: code))
        }
        let channel = AgentChannel(descriptor)
        guard channel.isTrusted else {
            throw .file(.untrusted(path: location.socket, reason: "another user listens there"))
        }
        switch channel.receive(AgentMessage.self) {
        case .hello(AgentProtocol.version)?: return channel
        // It was ending, and let nobody in.
        case nil: return nil
        case .hello(let version)?:
            throw .agent(
                reason: "it speaks version \(version), this program \(AgentProtocol.version): "
                    + "stop it by the program it came with")
        case let message?: throw .agent(reason: "it begins with \(message)")
        }
    }

    /// Starts an agent, unless somebody does.
    ///
    /// - Returns: A connection to it; nil if it has ended meanwhile.
    private func start() throws(DownloadError) -> AgentChannel? {
        do {
            // One at a time, of all processes. Let go of when the descriptor closes.
            let lock = try FileDescriptor(
                opening: location.startLock, flags: O_RDWR | O_CREAT | O_NOFOLLOW, mode: 0o600)
            while flock(lock.number, LOCK_EX) != 0 {
                guard errno == EINTR else { throw FileError(operation: "flock", path: lock.path, code: errno) }
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
        var arguments = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        let code = cdownloads_start(program, &arguments, ends[1])
        close(ends[1])
        guard code == 0 else { throw FileError(operation: "fork", path: program, code: code) }
        // It says a byte when it listens, or when another one does; it just ends if it cannot.
        var byte: UInt8 = 0
        var count: Int
        repeat { count = read(ends[0], &byte, 1) } while count < 0 && errno == EINTR
        guard count == 1 else { throw DownloadError.agent(reason: "\(program) ended before it could be reached") }
    }
}
