import VitrineCache
public import VitrineCore
public import VitrineImaging

extension ImagePipeline {
    /// The directories, limits and options of a pipeline.
    public struct Configuration: Sendable {
        /// Distinguishes the caches of pipelines that share a ``root``: nil for `Thumbnails`, `SourcePreviews` and `Clips`, else
        /// `Thumbnails_`, `SourcePreviews_` and `Clips_` with this name. Services of one name share their entries on disk.
        public var name: String?
        /// The directory of the caches. Default: `CacheConfiguration.defaultRoot`.
        public var root: String
        /// The number of calls of sources at once; at least 1. If it is more than 1, prefetches leave one slot free.
        public var concurrency: Int
        /// The memory capacity of the cache, in decoded bytes. Default: 64 MB.
        public var memoryCapacity: ByteCount = .megabytes(64)
        /// The disk capacity of the cache. Default: 500 MB.
        public var diskCapacity: ByteCount = .megabytes(500)
        /// Whether images are cached in memory. Default: true.
        public var usesMemoryCache = true
        /// Whether images are cached on disk. Default: true.
        public var usesDiskCache = true
        /// Whether the disk level maps its database into memory: faster lookups, but each page they touch counts as memory
        /// of the process. Default: true.
        package var mapsDiskCache = true
        /// Whether the previews that sources have are cached. Default: false.
        public var cachesPreviews = false
        /// How long one call of a source may take. Then its requests end with ``ImagePipelineError/timedOut(source:)``
        /// and the call is cancelled. Default: 30 seconds.
        ///
        /// Sources of this package bound the processor time of a call by `ImageLimits.deadline`. They may take ten
        /// times as long, so that a good file does not fail because the machine is busy.
        public var timeLimit: Duration = .seconds(30)
        /// How long a cancelled source may continue before its thread counts as abandoned. Default: 1 second.
        package var grace: Duration = .seconds(1)
        /// The number of threads that sources may block for ever. Beyond it, requests end with
        /// ``ImagePipelineError/tooManyAbandonedThreads(source:count:)``, unless the image is cached.
        /// Default: 8.
        package var maximumAbandonedThreads = 8
        /// Limits on the input and work of sources.
        public var limits = ImageLimits.standard
        /// The source of memory pressure, which empties the memory level; nil for none. Default: the system.
        public var memoryPressure: MemoryPressure? = .shared
        /// The clock for expiry. Default: that of the system.
        package var clock: WallClock = .system
        /// The thumbnails of the desktop, which file managers show; nil, the default, to share none.
        public var desktopThumbnails: DesktopThumbnails? {
            get { externalThumbnails as? DesktopThumbnails }
            set { externalThumbnails = newValue }
        }
        /// Thumbnails that other programs share with this one; nil for none.
        package var externalThumbnails: (any ExternalThumbnailCache)?

        /// Creates the defaults, with one call at once for each processor.
        public init(name: String? = nil, root: String? = nil, concurrency: Int? = nil) {
            self.name = name
            self.root = root ?? CacheConfiguration.defaultRoot
            self.concurrency = concurrency ?? ProcessorCount.active
        }

        /// One call at a time, 3 MiB in memory.
        public static var memoryLean: Configuration {
            var configuration = Configuration(concurrency: 1)
            configuration.memoryCapacity = .mebibytes(3)
            return configuration
        }
    }
}

/// Thumbnails that programs share, as those of the desktop. Both methods may block.
package protocol ExternalThumbnailCache: Sendable {
    /// Returns the thumbnail of a source, if there is one that is valid and large enough for `request`.
    func thumbnail(of source: any ImageSource, for request: RenderRequest) -> PixelImage?

    /// Stores an image that the pipeline has made.
    func store(_ image: PixelImage, of source: any ImageSource, for request: RenderRequest)
}
