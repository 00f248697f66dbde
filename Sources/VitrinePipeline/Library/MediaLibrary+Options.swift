import VitrineCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension MediaLibrary {
    /// Options of a media library: which files belong to it, and how it is kept up to date.
    public struct Options: Sendable {
        /// Default: both.
        public var kinds = Set(MediaAsset.Kind.allCases)
        /// Whether links to directories are followed; each directory counts once, so circles are safe. Default true.
        public var followsDirectoryLinks = true
        /// Directories with these names are left out, beside hidden ones and those with a `CACHEDIR.TAG`
        /// (https://bford.info/cachedir).
        public var skippedDirectories: Set<String> = [
            "@eaDir", "#recycle", "$RECYCLE.BIN", "System Volume Information", "lost+found", "__MACOSX", "node_modules",
            "__pycache__",
        ]
        /// Whether headers of all files are read in the background, for dates and sizes. Default true. Without it
        /// photos have the dates of their files.
        public var readsHeaders = true
        /// Whether changes are noticed by themselves. Default true.
        public var watches = true
        /// The time zone of photos whose date has none. Default: that of the system.
        public var timeZone = TimeZone.current
        /// How long to wait for more after something has changed, before it is reported. Default 0.2 seconds; five
        /// times that when changes do not end.
        public var coalescing = Duration.milliseconds(200)
        /// The most directories to watch. Default: as many as the system allows.
        public var maximumWatches = Int.max

        public init() {}
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

        public var isEmpty: Bool { added.isEmpty && removed.isEmpty && changed.isEmpty }
    }

    /// Whether changes are noticed by themselves.
    public enum Watching: Sendable, Hashable {
        /// Nothing is watched: not asked for, or nothing has been listed yet.
        case off
        /// Every directory is watched.
        case complete
        /// Some directories are not: call ``MediaLibrary/scan()`` from time to time. `reason` says why.
        case incomplete(reason: String)
    }
}
