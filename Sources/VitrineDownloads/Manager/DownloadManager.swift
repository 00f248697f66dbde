#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCore
public import VitrineNetwork

/// Downloads files, in turn and several at once, over as many runs of the program as it takes (R117–R123).
///
/// ```swift
/// let manager = DownloadManager.shared
/// try await manager.restore()                                 // goes on with those of earlier runs
/// let download = try await manager.start("https://example.org/film.mkv")
/// let path = try await download.file
/// ```
///
/// - A file appears under its name when it is whole and verified, and not before; what was there stays until then.
/// - What broke off is gone on with, also after the program was killed or the machine lost its power, as far as the
///   server says that the source is still the same; if not it begins anew. Parts of two versions are never put
///   together.
/// - The list of downloads is a journal on disk. One program at a time has it.
/// - When the manager and all handles have gone everything stops, to be gone on with by the next manager.
///
/// ## Topics
/// ### Starting
/// - ``start(_:)-(DownloadRequest)``
/// - ``start(_:)-(String)``
/// - ``restore()``
/// ### Looking
/// - ``downloads``
/// - ``download(for:)``
/// - ``updates``
/// - ``settled()``
/// ### Limits
/// - ``setLimit(_:perHost:)``
/// - ``setMaximumRate(_:)``
public final class DownloadManager: Sendable {
    /// Where downloads go, and how many run.
    public struct Configuration: Sendable {
        /// Which list of downloads it is (R123): managers of other identifiers have others. Default: the ancestor's
        /// session, `DownloadManagerBackgroundDownload`.
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
        public var client: (any DataLoading)?
        /// What may be downloaded from where, and what requests look like. Its ``RetryPolicy`` counts within one try.
        public var network = NetworkLoader.Configuration()

        public init() {}
    }

    /// One for everyone in the program, with the defaults.
    public static let shared = DownloadManager()

    /// How it was configured.
    public let configuration: Configuration
    private let lease: EngineLease
    private var engine: DownloadEngine { lease.engine }

    /// A manager. Opens nothing: the journal is read at the first use.
    public init(_ configuration: Configuration = Configuration()) {
        self.configuration = configuration
        lease = EngineLease(configuration)
    }

    /// Reads the journal and goes on with what is in it; what was paused stays so. Every other call does it too.
    ///
    /// - Returns: All downloads, in their order.
    @discardableResult
    public func restore() async throws(DownloadError) -> [Download] {
        try await engine.open()
        return engine.all.map { Download(id: $0.id, url: $0.request.url, lease: lease) }
    }

    /// Begins a download, and returns when it is in the journal.
    ///
    /// If the same URL is on the list and not over, that one is given, and goes on if it was paused (R117).
    ///
    /// - Throws: ``DownloadError/invalidURL(_:reason:)`` for what is not `http` or `https` (R122),
    ///   ``DownloadError/invalidDestination(_:reason:)``, ``DownloadError/file(_:)`` when a file is in the way that is
    ///   to be kept, ``DownloadError/journal(_:)``.
    @discardableResult
    public func start(_ request: DownloadRequest) async throws(DownloadError) -> Download {
        Download(id: try await engine.start(request), url: request.url, lease: lease)
    }

    /// The same for an address as text (R117).
    @discardableResult
    public func start(_ url: String) async throws(DownloadError) -> Download {
        guard let address = URL(string: url) else { throw .invalidURL(url, reason: "it is no address") }
        return try await start(DownloadRequest(address))
    }

    /// All downloads, in the order in which they take their turn.
    public var downloads: [Download] {
        get async throws(DownloadError) { try await restore() }
    }

    /// The newest download of a URL; nil if there is none (R117).
    public func download(for url: URL) async throws(DownloadError) -> Download? {
        try await restore().last { $0.url == url }
    }

    /// The download of an identifier.
    public func download(id: String) async throws(DownloadError) -> Download? {
        try await restore().first { $0.id == id }
    }

    /// How all downloads come on.
    public var updates: DownloadUpdates { DownloadUpdates(board: engine.board, id: nil) }

    /// Returns when nothing runs or waits any more (R119).
    ///
    /// - Throws: ``DownloadError/cancelled`` when the task is.
    public func settled() async throws(DownloadError) {
        try await engine.open()
        try await engine.settled()
    }

    /// Takes everything off the list that is over.
    public func removeSettled() async throws(DownloadError) {
        for download in try await restore() where download.status?.state.isOver == true {
            try await download.remove()
        }
    }

    // MARK: Limits

    /// Changes how many run at once, in all and from one host. What runs goes on.
    public func setLimit(_ limit: Int, perHost: Int) { engine.setLimit(limit, perHost: perHost) }

    /// Changes the most bytes a second of all together, at once; nil for as many as come.
    public func setMaximumRate(_ rate: ByteCount?) { engine.setMaximumRate(rate) }

    // MARK: Files

    /// Where the file of a URL goes by its address alone (R123).
    public func path(for url: URL) -> String {
        FilePath.join(configuration.directory, DownloadName.name(for: url))
    }
}
