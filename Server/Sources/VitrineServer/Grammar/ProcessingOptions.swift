import Foundation
public import VitrineImaging

/// The processing that a URL asks for, whatever its grammar.
///
/// Steps are done in the order of the properties: trim, crop, resize, rotate and flip, filters, extend, padding,
/// watermark, background, encode.
public struct ProcessingOptions: Sendable, Hashable {
    /// The rule by which the picture gets its size.
    public enum ResizingType: String, Sendable, CaseIterable {
        /// As large as possible within the box.
        case fit
        /// Fills the box; what exceeds it is cut off.
        case fill
        /// Like ``fill``; a picture smaller than the box keeps its size and is cut to the box's aspect ratio.
        case fillDown = "fill-down"
        /// Exactly the box, without its aspect ratio.
        case force
        /// ``fill`` if picture and box are both portrait or both landscape, else ``fit``.
        case auto
    }

    /// The place of a part within a whole.
    public struct Gravity: Sendable, Hashable {
        /// The anchor.
        public enum Anchor: String, Sendable, CaseIterable {
            case center = "ce", north = "no", south = "so", east = "ea", west = "we"
            case northEast = "noea", northWest = "nowe", southEast = "soea", southWest = "sowe"
            /// The part that attracts most attention.
            case smart = "sm"
            /// The point of ``x`` and ``y``, from 0 to 1.
            case focusPoint = "fp"
        }
        public var anchor = Anchor.center
        /// The offset from the anchor in pixels, if at least 1 or at most -1, else in parts of the picture; a
        /// coordinate of the focus point.
        public var x = 0.0
        public var y = 0.0

        /// Creates a gravity; without arguments, that of the centre.
        public init(anchor: Anchor = .center, x: Double = 0, y: Double = 0) {
            (self.anchor, self.x, self.y) = (anchor, x, y)
        }
    }

    /// A part of the picture that is cut out before it is resized.
    public struct Crop: Sendable, Hashable {
        /// Pixels from 1 on, below 1 a part of the picture; 0 for all of it.
        public var width = 0.0
        public var height = 0.0
        /// Nil for the gravity of ``ProcessingOptions/gravity``.
        public var gravity: Gravity?

        /// Creates a crop; without arguments, one of everything.
        public init(width: Double = 0, height: Double = 0, gravity: Gravity? = nil) {
            (self.width, self.height, self.gravity) = (width, height, gravity)
        }
    }

    /// Removes uniform edges.
    public struct Trim: Sendable, Hashable {
        /// The greatest difference of a channel, from 0 to 255.
        public var threshold = 10.0
        /// The colour to remove; nil for that of the top left pixel.
        public var color: Color?
        /// Whether the same number of columns is cut at the left and right, and of rows at the top and bottom.
        public var equalHorizontal = false
        public var equalVertical = false

        /// Creates a trim with the defaults.
        public init(
            threshold: Double = 10, color: Color? = nil, equalHorizontal: Bool = false, equalVertical: Bool = false
        ) {
            (self.threshold, self.color) = (threshold, color)
            (self.equalHorizontal, self.equalVertical) = (equalHorizontal, equalVertical)
        }
    }

    /// Sides in pixels, before ``ProcessingOptions/dpr``.
    public struct Padding: Sendable, Hashable {
        public var top = 0, right = 0, bottom = 0, left = 0

        /// Creates the widths of four sides.
        public init(top: Int = 0, right: Int = 0, bottom: Int = 0, left: Int = 0) {
            (self.top, self.right, self.bottom, self.left) = (top, right, bottom, left)
        }
    }

    /// The server's watermark on the result.
    public struct Watermark: Sendable, Hashable {
        /// From 0 to 1.
        public var opacity = 1.0
        /// Nil to cover the picture with copies.
        public var position: Gravity? = Gravity()
        /// Its size relative to the result's; 0 for its own.
        public var scale = 0.0

        /// Creates a watermark; without arguments, one in the centre in its own size.
        public init(opacity: Double = 1, position: Gravity? = Gravity(), scale: Double = 0) {
            (self.opacity, self.position, self.scale) = (opacity, position, scale)
        }
    }

    // MARK: Size

    public var trim: Trim?
    public var crop: Crop?
    public var resizingType = ResizingType.fit
    /// Pixels before ``dpr``; 0 to follow from the other side.
    public var width = 0
    public var height = 0
    public var minimumWidth = 0
    public var minimumHeight = 0
    public var zoomX = 1.0
    public var zoomY = 1.0
    /// Device pixels for each pixel of the sides and paddings.
    public var dpr = 1.0
    /// Whether the picture may grow.
    public var enlarge = false
    /// The place of the picture in a box that it does not fill; nil to leave it smaller.
    public var extend: Gravity?
    /// Like ``extend``, up to the box's aspect ratio only.
    public var extendAspectRatio: Gravity?
    public var gravity = Gravity()
    /// Settings that depend on the source's size; ``resolved(forSource:)`` applies them. Nil in the native grammar.
    public var sourceRules: SourceRules?

    // MARK: Drawing

    /// Whether the picture is turned upright by its metadata. Default: true.
    public var autoRotate = true
    /// Clockwise, in degrees: a multiple of 90.
    public var rotation = 0
    public var flipHorizontal = false
    public var flipVertical = false
    /// Standard deviation in pixels; 0 for none.
    public var blur = 0.0
    public var sharpen = 0.0
    /// The side of a block in pixels; 0 for none.
    public var pixelate = 0
    public var grayscale = false
    public var padding: Padding?
    public var watermark: Watermark?
    public var background: Color?

    // MARK: Source

    /// The page of a document or the frame of an animation, from 1.
    public var page = 1
    /// The second of a video; nil for its poster.
    public var second: Double?

    // MARK: Result

    /// Nil to choose by the client's `Accept` field.
    public var format: ImageFormat?
    /// From 1 to 100; nil for the server's.
    public var quality: Int?
    public var formatQuality: [ImageFormat: Int] = [:]
    /// The size that the result's quality is reduced to fit in, in bytes; 0 for no limit.
    public var maximumBytes = 0
    /// Whether Exif and XMP are removed; nil for the server's setting.
    public var stripMetadata: Bool?
    public var keepCopyright: Bool?
    /// Sources of these formats are answered as they are.
    public var skipProcessing: Set<ImageFormat> = []
    /// Whether the source is answered as it is, whatever it contains.
    public var isRaw = false

    // MARK: Answer

    /// Text that has no other meaning than to distinguish URLs.
    public var cacheBuster = ""
    /// When the URL stops being valid, in seconds since 1970.
    public var expires: Int?
    /// The name in `Content-Disposition`, without its extension.
    public var fileName: String?
    /// Whether clients are to save the answer instead of showing it.
    public var isAttachment = false

    public init() {}
}

/// A parsed URL of an image.
public struct ImageURL: Sendable, Hashable {
    /// The grammar that the URL is written in.
    public enum Grammar: String, Sendable { case native, thumbor }

    public var grammar: Grammar
    public var options: ProcessingOptions
    /// The address of the source: a URL, or a path that the server completes with its base URL.
    public var source: String
    /// Whether the answer is JSON about the image instead of the image.
    public var wantsInfo = false
    /// What the URL asks for that this server leaves out without harm, for example a detector; reported in the answer.
    public var ignored: [String] = []

    /// Creates a URL that is parsed already.
    public init(
        grammar: Grammar, options: ProcessingOptions, source: String, wantsInfo: Bool = false, ignored: [String] = []
    ) {
        (self.grammar, self.options, self.source) = (grammar, options, source)
        (self.wantsInfo, self.ignored) = (wantsInfo, ignored)
    }
}

/// A request that is refused, or an image that cannot be made: a status, a stable code, and a text for people that
/// never contains the address of the source.
public struct RequestError: Error, Hashable, Sendable {
    public var status: Int
    /// Lowercase words joined by hyphens, for example `unknown-option`.
    public var code: String
    public var reason: String
    /// The seconds after which the client may try again; nil if nobody knows whether that helps.
    public var retryAfter: Int?

    public init(_ status: Int, _ code: String, _ reason: String, retryAfter: Int? = nil) {
        (self.status, self.code, self.reason, self.retryAfter) = (status, code, reason, retryAfter)
    }
}
