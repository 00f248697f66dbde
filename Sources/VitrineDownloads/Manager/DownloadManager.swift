#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCore

/// Downloads files in a queue that survives the end of the program.
///
/// ```swift
/// let manager = DownloadManager.shared
/// try await manager.restore()                                 // resumes the downloads of earlier runs
/// let download = try await manager.start("https://example.org/video.mkv")
/// let path = try await download.file
/// ```
///
/// - A file appears under its name once it is complete and verified. An existing file stays until then.
/// - Interrupted downloads resume, also after the program was killed or the machine lost power, if the server confirms
///   that the source has not changed. Otherwise they start again. Parts of two versions are never combined.
/// - The list of downloads is a journal on disk, which one program uses at a time.
/// - When the manager and all handles are deinitialized, all downloads stop, and the next manager resumes them. With
///   ``Mode/agent`` they continue in a process of their own, also if this one is killed.
///
/// ## Topics
/// ### Starting
/// - ``start(_:)-(DownloadRequest)``
/// - ``start(_:)-(String)``
/// - ``restore()``
/// ### Observing
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
    /// The shared manager, with the default configuration.
    public static let shared = DownloadManager()

    let configuration: Configuration
    let lease: BackendLease

    /// Creates a manager. Relative paths of the configuration are resolved against the current directory.
    ///
    /// Nothing is opened before the first use, except the background session of ``Mode/agent`` on iOS, tvOS, visionOS
    /// and watchOS.
    ///
    /// - Parameter configuration: Directories, limits and the network.
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

    /// Creates a manager with the default configuration.
    ///
    /// - Parameter mode: The process that carries the downloads.
    public convenience init(mode: Mode) {
        var configuration = Configuration()
        configuration.mode = mode
        self.init(configuration)
    }

    /// Returns the list of downloads. The first call of any method reads the journal and resumes its downloads.
    ///
    /// Paused downloads stay paused.
    ///
    /// - Returns: All downloads, in the order of the queue.
    /// - Throws: ``DownloadError/journal(path:message:isDamaged:)`` or ``DownloadError/inUse(path:)``.
    @discardableResult
    public func restore() async throws(DownloadError) -> [Download] {
        defer { withExtendedLifetime(lease) {} }
        return try await lease.backend.list().map { Download($0, lease: lease) }
    }

    /// Starts a download, and returns once it is in the journal.
    ///
    /// If the list has a download of the same URL that does everything the request asks for, and that has not completed,
    /// that download is returned. It is resumed if it was paused, and retried if it failed. A checksum, name, directory,
    /// header, size, rate or mirror that it lacks makes a second download; if both would write the same file, the call
    /// throws.
    ///
    /// - Parameter request: The address and its options.
    /// - Throws: ``DownloadError/invalidURL(_:reason:)`` for other schemes than `http` and `https`,
    ///   ``DownloadError/invalidDestination(_:reason:)``, also if a download with other options writes the same file,
    ///   ``DownloadError/file(_:)`` if a file that is to be kept has
    ///   the name, or ``DownloadError/journal(path:message:isDamaged:)``.
    @discardableResult
    public func start(_ request: DownloadRequest) async throws(DownloadError) -> Download {
        defer { withExtendedLifetime(lease) {} }
        try request.check()
        var request = request
        request.directory = request.directory ?? configuration.directory
        let id = UUID().uuidString.lowercased()
        return Download(try await lease.backend.start(request, id: id), lease: lease)
    }

    /// Starts a download of a URL, with the default options.
    ///
    /// - Throws: ``DownloadError`` as the form for requests.
    @discardableResult
    public func start(_ url: URL) async throws(DownloadError) -> Download { try await start(DownloadRequest(url)) }

    /// Starts a download of an address as text, with the default options.
    ///
    /// - Parameter url: The address, `http` or `https`.
    /// - Throws: ``DownloadError`` as the form for requests.
    @discardableResult
    public func start(_ url: String) async throws(DownloadError) -> Download {
        guard let address = URL(string: url) else { throw .invalidURL(url, reason: "it is not a URL") }
        return try await start(DownloadRequest(address))
    }

    /// Returns the newest download of a URL, or nil if there is none.
    ///
    /// - Parameter url: The address of its request.
    public func download(for url: URL) async throws(DownloadError) -> Download? {
        try await restore().last { $0.url == url }
    }

    /// The status of each download and each later one, as ``Download/updates`` describes. The sequence does not end
    /// with a download.
    public var updates: some AsyncSequence<DownloadStatus, Never> & Sendable { DownloadUpdates(lease: lease, id: nil) }

    /// Returns once no download runs, waits or is delayed.
    ///
    /// - Throws: ``DownloadError/cancelled`` when the task is cancelled.
    public func settled() async throws(DownloadError) {
        defer { withExtendedLifetime(lease) {} }
        try await lease.backend.settled()
    }

    /// Removes all downloads from the list that have ended. Their files stay.
    package func removeSettled() async throws(DownloadError) {
        for download in try await restore() where download.status?.state.isOver == true {
            do throws(DownloadError) { try await download.remove() } catch .unknown {
                // Another task has removed it.
            }
        }
    }

    /// Stops all downloads, and returns once another manager can resume them. Later calls throw
    /// ``DownloadError/cancelled``.
    public func close() async {
        defer { withExtendedLifetime(lease) {} }
        await lease.backend.close()
    }

    /// Renames a damaged journal, so that the next call starts with an empty list. Files and partial files stay.
    ///
    /// Use it after ``DownloadError/journal(path:message:isDamaged:)``.
    ///
    /// - Returns: The new path of the journal: its own with `.damaged-` and the time. Nil if it is not damaged.
    @discardableResult
    public func setListAside() async throws(DownloadError) -> String? {
        var identifier = configuration.identifier
        if !(lease.backend is DownloadEngine) { identifier = AgentLocation.journalIdentifier(of: identifier) }
        return try await Journal.setAside(directory: configuration.journalDirectory, identifier: identifier)
    }

    // MARK: Limits

    /// Changes the maximum number of running downloads. Running downloads continue.
    ///
    /// - Parameters:
    ///   - limit: The maximum number in all, at least 1.
    ///   - perHost: The maximum number from one host, at least 1.
    public func setLimit(_ limit: Int, perHost: Int) async throws(DownloadError) {
        defer { withExtendedLifetime(lease) {} }
        try await lease.backend.set(.count(limit, perHost: perHost))
    }

    /// Limits the transfer rate of all downloads together, from now on.
    ///
    /// - Parameter rate: The maximum number of bytes per second, or nil for no limit.
    public func setMaximumRate(_ rate: ByteCount?) async throws(DownloadError) {
        defer { withExtendedLifetime(lease) {} }
        try await lease.backend.set(.rate(rate))
    }

    // MARK: Files

    /// Returns the expected path of a URL's file, from its address alone.
    ///
    /// - Parameter url: The address.
    public func path(for url: URL) -> String {
        FilePath.join(configuration.directory, DownloadName.name(for: url))
    }
}
