#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
public import VitrineCore
public import VitrineNetwork

extension DownloadManager {
    /// Who carries the downloads.
    public enum Mode: String, Sendable, Hashable, CaseIterable {
        /// The program itself: they stop with it, and go on with its next run.
        case inProcess
        /// `vitrine-agent`, a process of the user's own that is started when it is needed, goes on when the program
        /// ends or is killed, and ends when nothing is left to do. Where everything of a program ends with it, as in a
        /// container or a systemd service, so does the agent.
        ///
        /// On iOS, tvOS, visionOS and watchOS, where programs start no others, the system itself by a background
        /// `URLSession` of the ``Configuration/identifier``: it goes on while the program is suspended, and when the
        /// system has ended it. Downloads come over one connection, as fast as the system likes, and redirects are
        /// followed without being asked about. macOS has the agent. Type-checked, not run on a device.
        case agent
    }

    /// Where downloads go, and how many run.
    public struct Configuration: Sendable {
        /// Who carries the downloads. Default ``Mode/inProcess``. The agent has a list of its own, and of this
        /// configuration only ``identifier``, ``directory``, ``journalDirectory`` and ``agent``; its limits are set by
        /// ``DownloadManager/setLimit(_:perHost:)`` and ``DownloadManager/setMaximumRate(_:)``, for all its clients. A
        /// background session gets everything at once unless ``DownloadManager/setLimit(_:perHost:)`` is used, knows
        /// no rates, and heeds of this configuration ``identifier``, the directories and ``reservedSpace``.
        public var mode = Mode.inProcess
        /// Which list of downloads it is (R123): managers of other identifiers have others. Default: the ancestor's
        /// session, `DownloadManagerBackgroundDownload`. Also the identifier of a background session.
        public var identifier = "DownloadManagerBackgroundDownload"
        /// Where files go that do not say otherwise. Default: the user's documents.
        public var directory = Directories.current.documents
        /// The directory of the journal. Default: `vitrine/downloads` in the user's data.
        public var journalDirectory = FilePath.join(Directories.current.data, "vitrine/downloads")
        /// How many run at once. Default 4.
        public var limit = 4
        /// How many of them from one host. Default 2.
        public var limitPerHost = 2
        /// The most bytes a second of all together; nil for as many as come.
        public var maximumRate: ByteCount?
        /// What is left free on the file system of a file. Default 64 MB.
        public var reservedSpace = ByteCount.megabytes(64)
        /// Carries the requests. Default: a client of the manager's own.
        public var client: (any HTTPTransport)?
        /// What may be downloaded from where, and what requests look like. Its `retries` policy counts within one try.
        public var network = NetworkLoader.Configuration()
        /// The time of day, for dates that servers name. What is measured or waited for does not go by it, so it may
        /// jump. Default: the system's.
        public var clock = WallClock.system
        /// How the agent is found and started.
        public var agent = AgentSettings()
        /// The longest delay before the second try of a download; later ones are longer.
        package var retryDelay = Duration.seconds(2)
        /// How long those who cancel or remove a download wait for its transfer to stop.
        package var stoppingTime = Duration.seconds(5)
        /// Whether this machine has a way to a host, so that it is the host that does not answer.
        package var hasRoute: @Sendable (_ host: String) -> Bool = { NetworkWatch.hasRoute(to: $0) }

        public init() {}

        /// The delay after so many tries in a row: twice that of the one before, at most a minute, of which the second
        /// half is left to chance, so that those who failed together do not come back together.
        ///
        /// - Parameter jitter: From 0 to 1.
        package func delay(after failures: Int, jitter: Double) -> Duration {
            let longest = min(retryDelay * (1 << min(max(1, failures) - 1, 20)), .seconds(60))
            return longest * (0.5 + min(max(0, jitter), 1) / 2)
        }

        /// The same with paths that mean the same in every directory, as another process may use them.
        func resolved() -> Configuration {
            func resolved(_ path: String) -> String {
                FilePath.isAbsolute(path) ? path : FilePath.join(FileManager.default.currentDirectoryPath, path)
            }
            var result = self
            result.directory = resolved(directory)
            result.journalDirectory = resolved(journalDirectory)
            result.agent.directory = agent.directory.map(resolved)
            result.agent.program = agent.program.map(resolved)
            return result
        }
    }

    /// How the agent is found and started.
    public struct AgentSettings: Sendable, Hashable {
        /// The path of its program. Default: `$VITRINE_AGENT`, or `vitrine-agent` beside the running program or in
        /// `PATH`.
        public var program: String?
        /// The directory of its socket, which only this user may enter; made if it is missing. Default: `vitrine` in
        /// `$XDG_RUNTIME_DIR`, or in a directory of the user's own in the temporary one.
        public var directory: String?
        /// After how long without anything to do, and without clients, it ends; nil for never. Counts if this manager
        /// is the one that starts it. Default 30 seconds.
        public var idleTime: Duration? = .seconds(30)
        /// How long the agent may take to accept a connection, to begin, and to answer a question; nil for as long as
        /// it likes. After it calls throw ``DownloadError/agentTimedOut(process:after:)``, and so do those who wait for
        /// downloads: it is asked from time to time whether it is there. Default 30 seconds.
        public var responseTime: Duration? = .seconds(30)

        public init() {}
    }
}
