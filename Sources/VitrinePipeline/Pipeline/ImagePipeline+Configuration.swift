import VitrineCache
public import VitrineCore
public import VitrineImaging

extension ImagePipeline {
    /// A service's places, limits and options.
    public struct Configuration: Sendable {
        /// Distinguishes the caches of pipelines that share a ``root``: nil for `Thumbnails` and `Placeholders`, else
        /// `Thumbnails_` and `Placeholders_` with this name. Services of one name share their entries on disk.
        public var name: String?
        /// The directory below which the caches are. Default: `CacheConfiguration.defaultRoot`.
        public var root: String
        /// How many thumbnails are made at once; at least 1. Where it is more than 1, one place is kept from
        /// precaching.
        public var concurrency: Int
        /// The memory capacity of the cache, in decoded bytes. Default: 64 MB.
        public var memoryCapacity: ByteCount = .megabytes(64)
        /// The disk capacity of the cache. Default: 500 MB.
        public var diskCapacity: ByteCount = .megabytes(500)
        /// Whether thumbnails are kept in, and taken from, memory. Default true.
        public var usesMemoryCache = true
        /// Whether thumbnails are kept on, and taken from, disk. Default true.
        public var usesDiskCache = true
        /// Whether placeholders are kept, on the levels that are in use. Default false.
        public var cachesPlaceholders = false
        /// How long one call of a source may take. Then its requests end with ``ImagePipelineError/timedOut(source:)`` and
        /// the call is given up. Default 30 seconds.
        public var timeLimit: Duration = .seconds(30)
        /// How long a source may go on after it was told to stop, before its thread is written off. Default a second.
        public var grace: Duration = .seconds(1)
        /// How many threads may be written off, because a source keeps them for ever. Further requests then end with
        /// ``ImagePipelineError/tooManyAbandonedThreads(source:count:)``, unless a cache has their thumbnail. Default 8.
        public var maximumAbandonedThreads = 8
        /// Bounds on the sources' inputs and work.
        public var limits = ImageLimits.standard
        /// The source of memory pressure, which empties the memory level; nil for none. Default: the system.
        public var memoryPressure: MemoryPressure? = .shared
        /// Tells the time for expiry. Default: the system's.
        public var clock: WallClock = .system
        /// Thumbnails that other programs share with this one; nil, the default, for none.
        public var shared: (any ExternalThumbnailCache)?

        /// The defaults: as many at once as there are processors.
        public init(name: String? = nil, root: String? = nil, concurrency: Int? = nil) {
            self.name = name
            self.root = root ?? CacheConfiguration.defaultRoot
            self.concurrency = concurrency ?? ProcessorCount.active
        }

        /// As many at once as there are processors, 64 MB in memory.
        public static var standard: Configuration { Configuration() }

        /// One at a time, 3 MiB in memory: the defaults of the library this one follows.
        public static var memoryLean: Configuration {
            var configuration = Configuration(concurrency: 1)
            configuration.memoryCapacity = .mebibytes(3)
            return configuration
        }
    }
}

/// Thumbnails that programs share, as the desktop's. Both calls may block and are made on threads that may.
public protocol ExternalThumbnailCache: Sendable {
    /// The thumbnail of a source, if there is one that is valid and good enough for `request`.
    func thumbnail(of source: any ImageSource, for request: RenderRequest) -> Image?

    /// Offers a thumbnail that was made.
    func store(_ image: Image, of source: any ImageSource, for request: RenderRequest)
}
