import VitrineCore
public import VitrineImaging

extension ImageStore {
    /// What becomes of pictures when they are saved.
    public struct Configuration: Sendable, Hashable {
        /// The largest a picture may be, in pixels; larger ones are reduced. A side of 0 is no limit. Default: none.
        public var maxSize = PixelSize.zero
        /// The quality of encoded pictures, from 0 to 1. nil, the default, keeps bytes as they came where nothing else
        /// is asked of them, and is `OutputFormat.defaultQuality` where something is.
        public var quality: Double?
        /// The format of every picture; nil, the default, for what the name's extension says, else as the picture came.
        public var format: ImageFormat?
        /// The largest a thumbnail may be, in pixels; a side of 0 is no limit. Default 256 × 256.
        public var thumbnailMaxSize = PixelSize(256)
        /// The quality of thumbnails, from 0 to 1. Default: that of the pictures.
        public var thumbnailQuality: Double?
        /// Whether to go without thumbnails: whoever asks for one gets the picture (R113). Default false.
        public var ignoresThumbnails = false
        /// When a save returns. Default `Durability.full`.
        public var durability = Durability.full
        /// Bounds on what is decoded.
        public var limits = ImageLimits.standard

        /// Bytes stay as they came; thumbnails of at most 256 pixels.
        public init() {}

        /// As the first generation of an earlier library documents it (R110, R111): at most 800 × 600 at quality 0.5,
        /// thumbnails of at most 133 × 100.
        public static var ancestor2015: Configuration {
            var configuration = Configuration()
            configuration.maxSize = PixelSize(width: 800, height: 600)
            configuration.quality = 0.5
            configuration.thumbnailMaxSize = PixelSize(width: 133, height: 100)
            return configuration
        }

        /// As its later generations have it (R110, R111): every pixel, quality 1, no thumbnails unless
        /// ``ignoresThumbnails`` is taken back; those are of any size, at quality 0.9.
        public static var ancestor2016: Configuration {
            var configuration = Configuration()
            configuration.quality = 1
            configuration.thumbnailMaxSize = .zero
            configuration.thumbnailQuality = 0.9
            configuration.ignoresThumbnails = true
            return configuration
        }

        var resizer: ImageResizer { Self.limit(maxSize) }
        var thumbnailResizer: ImageResizer { Self.limit(thumbnailMaxSize) }
        /// Whether a picture of this size is reduced.
        func reduces(_ size: PixelSize) -> Bool {
            (maxSize.width > 0 && size.width > maxSize.width) || (maxSize.height > 0 && size.height > maxSize.height)
        }

        private static func limit(_ size: PixelSize) -> ImageResizer {
            size == .zero ? .none : .limit(width: size.width, height: size.height)
        }
    }
}
