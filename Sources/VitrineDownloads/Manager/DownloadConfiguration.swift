#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
public import VitrineCore
public import VitrineNetwork

extension DownloadManager {
    /// The process that carries the downloads.
    public enum Mode: Sendable, Hashable {
        /// The program itself. Downloads stop with it and resume in its next run.
        case inProcess
        /// `vitrine-agent`, a process of the user that starts on demand, continues when the program ends or is killed,
        /// and ends when no work is left. In a container or a systemd service it ends with the program, as all of its
        /// processes do.
        ///
        /// On iOS, tvOS, visionOS and watchOS a background `URLSession` of the ``Configuration/identifier`` takes its
        /// place. It continues while the program is suspended and after the system has ended the program. It uses one
        /// connection for each download, at a rate that the system chooses, and follows redirects without a check. This
        /// was type-checked and not run on a device. macOS has the agent.
        case agent
    }

    /// The configuration of a manager: directories, limits and the network.
    public struct Configuration: Sendable {
        /// The process that carries the downloads. Default: ``Mode/inProcess``.
        ///
        /// The agent has its own list. It uses ``identifier``, ``directory``, ``journalDirectory`` and the `agent`
        /// properties of this configuration. Its limits are set by ``DownloadManager/setLimit(_:perHost:)`` and
        /// ``DownloadManager/setMaximumRate(_:)``, for all its clients.
        ///
        /// A background session uses ``identifier``, the directories and ``reservedSpace``. It starts all downloads at
        /// once unless ``DownloadManager/setLimit(_:perHost:)`` is called, and has no rate limits.
        public var mode = Mode.inProcess
        /// The name of the list of downloads; managers with other identifiers have other lists.
        ///
        /// Default: `DownloadManagerBackgroundDownload`. It is also the identifier of a background session.
        public var identifier = "DownloadManagerBackgroundDownload"
        /// The directory for files whose request names none. Default: the documents of the user.
        public var directory = Directories.current.documents
        /// The directory of the journal. Default: `vitrine/downloads` in the data directory of the user.
        public var journalDirectory = FilePath.join(Directories.current.data, "vitrine/downloads")
        /// The maximum number of running downloads. Default: 4.
        public var limit = 4
        /// The maximum number of running downloads from one host. Default: 2.
        public var limitPerHost = 2
        /// The maximum number of bytes per second of all downloads together. Default: no limit.
        public var maximumRate: ByteCount?
        /// The space to leave free on the file system of a file, at most as much as the file is large. Default: 64 MB.
        public var reservedSpace = ByteCount.megabytes(64)
        /// The HTTP client. Default: a client of the manager.
        package var client: (any HTTPTransport)?
        /// Access rules and settings of requests. Its `retries` policy does not apply: ``DownloadRequest/attempts``
        /// counts the requests without progress.
        public var network = NetworkLoader.Configuration()
        /// The time of day, for dates of servers. Measurements and waits do not depend on it, so it may jump.
        package var clock = WallClock.system
        /// The path of the agent's executable. Default: `$VITRINE_AGENT`, or `vitrine-agent` beside the running program
        /// or in `PATH`.
        public var agentProgram: String?
        /// The directory of the agent's socket, which only this user may enter. It is created if it is missing.
        ///
        /// Default: `vitrine` in `$XDG_RUNTIME_DIR`, or in a private directory among the temporary files.
        public var agentDirectory: String?
        /// The time without work and clients after which the agent ends, or nil for never. Default: 30 seconds.
        ///
        /// It takes effect if this manager starts the agent.
        public var agentIdleTime: Duration? = .seconds(30)
        /// The time within which the agent must accept a connection, start, and reply, or nil for no limit. Default: 30
        /// seconds.
        ///
        /// After it, calls and tasks that wait for downloads throw ``DownloadError/agentTimedOut(process:after:)``. The
        /// manager polls the agent while tasks wait.
        public var agentResponseTime: Duration? = .seconds(30)
        /// The longest delay before the second attempt of a download. Later delays are longer.
        package var retryDelay = Duration.seconds(2)
        /// How long cancelling and removing wait for a transfer to stop.
        package var stoppingTime = Duration.seconds(5)
        /// Whether this machine has a route to a host. If it has one, the host itself does not answer.
        package var hasRoute: @Sendable (_ host: String) -> Bool = { NetworkWatch.hasRoute(to: $0) }

        /// Creates the default configuration.
        public init() {}

        /// Returns the delay after a number of attempts in a row: twice the previous one, at most a minute. The second
        /// half is random, so that downloads that failed together are not retried together.
        ///
        /// - Parameter jitter: From 0 to 1.
        package func delay(after failures: Int, jitter: Double) -> Duration {
            let longest = min(retryDelay * (1 << min(max(1, failures) - 1, 20)), .seconds(60))
            return longest * (0.5 + min(max(0, jitter), 1) / 2)
        }

        /// Returns the configuration with absolute paths, for other processes.
        func resolved() -> Configuration {
            func resolved(_ path: String) -> String {
                FilePath.isAbsolute(path) ? path : FilePath.join(FileManager.default.currentDirectoryPath, path)
            }
            var result = self
            result.directory = resolved(directory)
            result.journalDirectory = resolved(journalDirectory)
            result.agentDirectory = agentDirectory.map(resolved)
            result.agentProgram = agentProgram.map(resolved)
            return result
        }
    }
}
