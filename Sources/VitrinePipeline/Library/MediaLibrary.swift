import VitrineCore

/// The photos and videos of a directory and all below it, by date, kept up to date.
///
/// ```swift
/// let library = MediaLibrary(directory: "/home/ada/Pictures")
/// try await library.scan()
/// for asset in library.assets { show(MediaLibrarySource(asset)) }
/// for await changes in library.changes { update(changes) }
/// ```
///
/// ``scan()`` lists files and decodes nothing, so that 10,000 are there in a fraction of a second; their headers are
/// read afterwards in the background, for the dates they were taken at, and reported as changes. Then the tree is
/// watched (inotify(7)) until the library goes. Hidden files and the usual cache directories are left out.
///
/// The kind of a file follows from its name, or from its content if the name is ambiguous.
///
/// ## Topics
///
/// ### Assets
///
/// - ``scan()``
/// - ``settle()``
/// - ``assets``
/// - ``MediaAsset``
///
/// ### Changes
///
/// - ``changes``
/// - ``watching``
public final class MediaLibrary: Sendable {
    /// The directory.
    public let directory: String
    public let options: Options
    private let work: MediaLibraryWork

    /// The library of a directory. Nothing is listed before ``scan()``.
    public init(directory: String, options: Options = Options()) {
        var directory = directory
        while directory.utf8.count > 1, directory.utf8.last == UInt8(ascii: "/") { directory.removeLast() }
        self.directory = directory
        self.options = options
        work = MediaLibraryWork(directory: directory, options: options)
    }

    deinit { work.stop() }

    /// Lists the directory and all below it, and watches it from then on. A later call finds changes that were missed, if
    /// ``watching`` is incomplete.
    ///
    /// - Throws: ``ImagePipelineError/unreadable(source:reason:)`` when the directory cannot be listed. Those below it that
    ///   cannot are left out.
    public func scan() async throws(ImagePipelineError) {
        let work = work
        let result = await withCheckedContinuation { work.submit(.scan($0)) }
        try result.get()
    }

    /// Returns when all that had happened before the call has been noticed, its headers read, and reported.
    public func settle() async {
        let work = work
        await withCheckedContinuation { work.submit(.settle($0)) }
    }

    /// The assets, oldest first; equal dates are ordered by path.
    public var assets: [MediaAsset] { work.assets }

    /// Whether changes are noticed by themselves.
    public var watching: Watching { work.watching }

    /// The changes from now on, in batches: changes close to each other are reported together. Each use returns a
    /// stream of its own, which ends with the library.
    public var changes: AsyncStream<Changes> { work.changes }

    /// As if the system had lost notices, for tests.
    package func loseNotices() { work.submit(.lose) }
}
