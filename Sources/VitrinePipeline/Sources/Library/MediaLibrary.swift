#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCore

/// The photos and videos of a directory and all below it, by date, kept up to date.
///
/// ```swift
/// let library = MediaLibrary(directory: "/home/ada/Pictures")
/// try await library.scan()
/// for asset in library.assets { show(ImageRequest(.asset(asset), resizing: .fit(256))) }
/// for await changes in library.changes { update(changes) }
/// ```
///
/// ``scan()`` lists files and decodes nothing: 10,000 files take a fraction of a second. Headers with capture dates are
/// read afterwards in the background, and reported as changes. Then the tree is watched (inotify(7)) until the library
/// is deallocated. Hidden files and the usual cache directories are skipped.
///
/// The kind of a file follows from its name, or from its content if the name is ambiguous.
///
/// ## Topics
///
/// ### Assets
///
/// - ``scan()``
/// - ``assets``
/// - ``MediaAsset``
///
/// ### Changes
///
/// - ``changes``
public final class MediaLibrary: Sendable {
    /// The directory.
    public let directory: String
    package let options: Options
    private let work: MediaLibraryWork

    /// Creates the library of a directory. Nothing is listed before ``scan()``.
    ///
    /// - Parameters:
    ///   - directory: The directory.
    ///   - kinds: The kinds of assets that belong to the library.
    ///   - skipping: The names of directories that are left out, beside hidden ones, the usual cache directories and
    ///     those with a `CACHEDIR.TAG` (https://bford.info/cachedir).
    ///   - watches: Whether changes are noticed by themselves.
    public convenience init(
        directory: String, kinds: Set<MediaAsset.Kind> = Set(MediaAsset.Kind.allCases), skipping: Set<String> = [],
        watches: Bool = true
    ) {
        var options = Options()
        options.kinds = kinds
        options.skippedDirectories.formUnion(skipping)
        options.watches = watches
        self.init(directory: directory, options: options)
    }

    package init(directory: String, options: Options) {
        var directory = directory
        while directory.utf8.count > 1, directory.utf8.last == UInt8(ascii: "/") { directory.removeLast() }
        self.directory = directory
        self.options = options
        work = MediaLibraryWork(directory: directory, options: options)
    }

    deinit { work.stop() }

    /// Lists the directory and all below it, and watches it from then on. A later call finds changes that were missed,
    /// if it does not watch.
    ///
    /// - Throws: ``ImagePipelineError/unreadable(source:reason:)`` when the directory cannot be listed. Those below it
    ///   that cannot are left out.
    public func scan() async throws(ImagePipelineError) {
        let work = work
        let result = await withCheckedContinuation { work.submit(.scan($0)) }
        try result.get()
    }

    /// Returns when all that had happened before the call has been noticed, its headers read, and reported. Writing to a
    /// file counts from its end, when no process has the file open for writing any more.
    package func settle() async {
        let work = work
        await withCheckedContinuation { work.submit(.settle($0)) }
    }

    /// The assets, oldest first; equal dates are ordered by path.
    public var assets: [MediaAsset] { work.assets }

    /// Whether all changes are noticed by themselves. If not, although the library has been scanned and `watches` was
    /// not false, the system cannot watch all directories: call ``scan()`` from time to time. The log says why.
    package var isWatching: Bool { work.watching == .complete }

    /// Whether changes are noticed by themselves.
    package var watching: Watching { work.watching }

    /// The changes from now on, in batches: changes close to each other are reported together. Each use returns a
    /// stream of its own, which ends with the library.
    public var changes: AsyncStream<Changes> { work.changes }

    /// As if the system had lost notices, for tests.
    package func loseNotices() { work.submit(.lose) }
}

extension MediaLibrary {
    /// Options of a media library: which files belong to it, and how it is kept up to date.
    package struct Options: Sendable {
        /// Default: both.
        package var kinds = Set(MediaAsset.Kind.allCases)
        /// Whether links to directories are followed; each directory counts once, so circles are safe. Default true.
        package var followsDirectoryLinks = true
        /// Directories with these names are left out, beside hidden ones and those with a `CACHEDIR.TAG`
        /// (https://bford.info/cachedir).
        package var skippedDirectories: Set<String> = [
            "@eaDir", "#recycle", "$RECYCLE.BIN", "System Volume Information", "lost+found", "__MACOSX", "node_modules",
            "__pycache__",
        ]
        /// Whether headers of all files are read in the background, for dates and sizes. Default true. Without it
        /// photos have the dates of their files.
        package var readsHeaders = true
        /// Whether changes are noticed by themselves. Default true.
        package var watches = true
        /// The time zone of photos whose date has none. Default: that of the system.
        package var timeZone = TimeZone.current
        /// How long to wait for more after something has changed, before it is reported. Default 0.2 seconds; five
        /// times that when changes do not end.
        package var coalescing = Duration.milliseconds(200)
        /// The most directories to watch. Default: as many as the system allows.
        package var maximumWatches = Int.max

        /// Creates the default options.
        package init() {}
    }

    /// The changes between two states of a library.
    public struct Changes: Sendable, Hashable {
        /// Assets that were not there. A file or directory with a new name is removed under the old one and added under
        /// the new one, in one batch.
        public var added: [MediaAsset] = []
        /// Assets that are gone, as they last were.
        public var removed: [MediaAsset] = []
        /// Assets whose file has changed, or whose header has been read, as they are now.
        public var changed: [MediaAsset] = []

        package var isEmpty: Bool { added.isEmpty && removed.isEmpty && changed.isEmpty }
    }

    /// Whether changes are noticed by themselves.
    package enum Watching: Sendable, Hashable {
        /// Nothing is watched: not asked for, or nothing has been listed yet.
        case off
        /// Every directory is watched.
        case complete
        /// Some directories are not: call ``MediaLibrary/scan()`` from time to time. `reason` says why.
        case incomplete(reason: String)
    }
}
