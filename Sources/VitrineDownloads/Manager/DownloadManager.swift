#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCore

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
/// - When the manager and all handles have gone everything stops, to be gone on with by the next manager. With
///   ``Mode/agent`` nothing stops: a process of its own goes on, also when this one is killed.
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
/// ### Ending
/// - ``close()``
/// - ``setListAside()``
/// ### Limits
/// - ``setLimit(_:perHost:)``
/// - ``setMaximumRate(_:)``
public final class DownloadManager: Sendable {
    /// One for everyone in the program, with the defaults.
    public static let shared = DownloadManager()

    /// How it was configured.
    public let configuration: Configuration
    let lease: BackendLease

    /// A manager. Opens nothing but the background session of ``Mode/agent`` on iOS and its kin: the journal is read at
    /// the first use.
    public init(_ configuration: Configuration = Configuration()) {
        let configuration = configuration.resolved()
        self.configuration = configuration
        switch configuration.mode {
        case .inProcess: lease = BackendLease(DownloadEngine(configuration))
        case .agent:
            #if canImport(Darwin) && !os(macOS)
            lease = BackendLease(DownloadEngine(configuration, carrier: BackgroundTransfers.of(configuration)))
            #else
            lease = BackendLease(AgentClient(configuration))
            #endif
        }
    }

    /// A manager with the defaults.
    public convenience init(mode: Mode) {
        var configuration = Configuration()
        configuration.mode = mode
        self.init(configuration)
    }

    /// Reads the journal and goes on with what is in it; what was paused stays so. Every other call does it too.
    ///
    /// - Returns: All downloads, in the order in which they take their turn.
    @discardableResult
    public func restore() async throws(DownloadError) -> [Download] {
        defer { withExtendedLifetime(lease) {} }
        return try await lease.backend.list().map { Download($0, lease: lease) }
    }

    /// Begins a download, and returns when it is in the journal.
    ///
    /// If the same URL is on the list and not over, that one is given, and goes on if it was paused (R117).
    ///
    /// A relative ``Configuration/directory`` is resolved when the manager is made.
    ///
    /// - Throws: ``DownloadError/invalidURL(_:reason:)`` for what is not `http` or `https` (R122),
    ///   ``DownloadError/invalidDestination(_:reason:)``, ``DownloadError/file(_:)`` when a file is in the way that is
    ///   to be kept, ``DownloadError/journal(_:)``.
    @discardableResult
    public func start(_ request: DownloadRequest) async throws(DownloadError) -> Download {
        defer { withExtendedLifetime(lease) {} }
        try request.check()
        var request = request
        request.directory = request.directory ?? configuration.directory
        let id = UUID().uuidString.lowercased()
        return Download(try await lease.backend.start(request, id: id), lease: lease)
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
    public var updates: DownloadUpdates { DownloadUpdates(lease: lease, id: nil) }

    /// Returns when nothing runs or waits any more (R119).
    ///
    /// - Throws: ``DownloadError/cancelled`` when the task is.
    public func settled() async throws(DownloadError) {
        defer { withExtendedLifetime(lease) {} }
        try await lease.backend.settled()
    }

    /// Takes everything off the list that is over.
    public func removeSettled() async throws(DownloadError) {
        for download in try await restore() where download.status?.state.isOver == true {
            do throws(DownloadError) { try await download.remove() } catch .unknown {
                // Somebody else has.
            }
        }
    }

    /// Stops everything where it is, and returns when another manager, of this program or the next, can go on with it.
    /// The manager is of no use after that: calls throw ``DownloadError/cancelled``.
    public func close() async {
        defer { withExtendedLifetime(lease) {} }
        await lease.backend.close()
    }

    /// Puts the journal out of the way if it is damaged, so that the next call begins an empty list. Files and parts
    /// of files stay. Use it after ``DownloadError/journal(_:)``.
    ///
    /// - Returns: The path it has now: its own with `.damaged-` and the time, or nil if it is not damaged.
    @discardableResult
    public func setListAside() async throws(DownloadError) -> String? {
        var identifier = configuration.identifier
        if !(lease.backend is DownloadEngine) { identifier = AgentLocation.journalIdentifier(of: identifier) }
        return try await Journal.setAside(directory: configuration.journalDirectory, identifier: identifier)
    }

    // MARK: Limits

    /// Changes how many run at once, in all and from one host, at least one each. What runs goes on.
    public func setLimit(_ limit: Int, perHost: Int) async throws(DownloadError) {
        defer { withExtendedLifetime(lease) {} }
        try await lease.backend.set(.count(limit, perHost: perHost))
    }

    /// Changes the most bytes a second of all together, at once; nil for as many as come.
    public func setMaximumRate(_ rate: ByteCount?) async throws(DownloadError) {
        defer { withExtendedLifetime(lease) {} }
        try await lease.backend.set(.rate(rate))
    }

    // MARK: Files

    /// Where the file of a URL goes by its address alone (R123).
    public func path(for url: URL) -> String {
        FilePath.join(configuration.directory, DownloadName.name(for: url))
    }
}
