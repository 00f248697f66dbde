import CVitrineDownloads
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore

/// What `vitrine-agent` does from its beginning to its end.
package enum AgentProcess {
    /// Serves until nobody needs it any more, or it is told to stop.
    ///
    /// - Parameter words: The command line, without the program's name.
    /// - Returns: The status to exit with: 0, 1 if it could not begin, 64 for another command line.
    package static func run(_ words: [String]) async -> Int32 {
        // Whoever started it may be gone before it hears that it has begun.
        signal(SIGPIPE, SIG_IGN)
        guard let arguments = AgentArguments(words) else { return 64 }
        let location: AgentLocation
        do throws(DownloadError) { location = try arguments.location() } catch { return fail("\(error)") }
        do throws(FileError) {
            guard let lock = try becomeTheOne(location) else { return 0 }
            defer { close(lock) }
            return await serve(arguments, at: location)
        } catch {
            return fail("\(error)")
        }
    }

    private static func fail(_ reason: String) -> Int32 {
        Log.logger("downloads").error("The agent cannot begin", metadata: ["reason": "\(reason)"])
        return 1
    }

    /// Takes the lock that makes a process the agent. Blocks, as nothing else is to be done yet.
    ///
    /// - Returns: nil if another agent lets clients in.
    private static func becomeTheOne(_ location: AgentLocation) throws(FileError) -> Int32? {
        let descriptor = PathText.withSystemPath(location.lock, failure: -1) {
            open($0, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        }
        guard descriptor >= 0 else { throw FileError(operation: "open", path: location.lock, code: errno) }
        var settings = DownloadManager.AgentSettings()
        // One that lets clients in says so at once; whoever started this one waits no longer than that.
        settings.responseTime = .seconds(5)
        let launcher = AgentLauncher(location: location, settings: settings)
        var code = EWOULDBLOCK
        for _ in 0..<5000 {
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return descriptor }
            guard errno == EWOULDBLOCK || errno == EINTR else {
                code = errno
                break
            }
            do throws(DownloadError) {
                if let channel = try launcher.connectIfRunning() {
                    channel.end()
                    close(descriptor)
                    tellReady()
                    return nil
                }
            } catch .agentTimedOut {
                break
            } catch {
                // It is of another version, or another user's: it may end.
            }
            // It is ending, or beginning.
            usleep(2000)
        }
        close(descriptor)
        throw FileError(operation: "flock", path: location.lock, code: code)
    }

    private static func serve(_ arguments: AgentArguments, at location: AgentLocation) async -> Int32 {
        var configuration = DownloadManager.Configuration()
        configuration.journalDirectory = location.journalDirectory
        configuration.identifier = location.journalIdentifier
        let engine = DownloadEngine(configuration)
        await prepare(engine)
        var listener: Int32 = -1
        let code = PathText.withSystemPath(location.socket, failure: EINVAL) { cdownloads_listen($0, &listener) }
        guard code == 0 else { return fail("\(FileError(operation: "bind", path: location.socket, code: code))") }
        let (ends, ending) = AsyncStream<Void>.makeStream()
        let server = AgentServer(engine, listener: listener, idleTime: arguments.idleTime) { ending.yield() }
        server.begin()
        tellReady()
        for await _ in ends { break }
        _ = PathText.withSystemPath(location.socket, failure: -1) { unlink($0) }
        // A client that does not read, or a transfer that does not stop, goes with the process.
        let end = Task {
            await server.stop()
            await engine.close()
        }
        if await !end.hasEnded(within: .seconds(10)) {
            Log.logger("downloads").error("The agent ends though a transfer or a client has not")
        }
        return 0
    }

    /// Opens the list before anybody is let in, so that downloads go on also if nobody comes.
    ///
    /// If another program has it, whoever comes is told so.
    private static func prepare(_ engine: DownloadEngine) async {
        // An agent that was killed may have let go of its own lock, but not yet of the list's.
        for _ in 0..<50 {
            do throws(DownloadError) { return try await engine.open() } catch .inUse {
                try? await Task.sleep(for: .milliseconds(10))
            } catch {
                return
            }
        }
    }

    /// Tells whoever started this process that clients are let in.
    private static func tellReady() {
        guard fcntl(readiness, F_GETFD) >= 0 else { return }
        var status = stat()
        guard fstat(readiness, &status) == 0, status.st_mode & S_IFMT == S_IFIFO else { return }
        _ = write(readiness, [1], 1)
        close(readiness)
    }

    /// The descriptor an agent has for that, see `cdownloads_start`.
    private static let readiness: Int32 = 3
}
