import Foundation
package import VitrineImaging

/// The processing that a URL of any grammar asks for.
///
/// Steps are done in the order of the properties: trim, crop, resize, rotate and flip, filters, extend, padding,
/// watermark, background, encode.
package struct ProcessingOptions: Sendable, Hashable {
    /// The rule by which the image gets its size.
    package enum ResizingType: String, Sendable, CaseIterable {
        /// As large as possible within the box.
        case fit
        /// Fills the box. The parts outside of it are cut off.
        case fill
        /// Like ``fill``; an image smaller than the box keeps its size and is cut to the box's aspect ratio.
        case fillDown = "fill-down"
        /// Exactly the box, without its aspect ratio.
        case force
        /// ``fill`` if image and box are both portrait or both landscape, else ``fit``.
        case auto
    }

    /// The place of a part within a whole.
    package struct Gravity: Sendable, Hashable {
        /// The anchor.
        package enum Anchor: String, Sendable, CaseIterable {
            case center = "ce", north = "no", south = "so", east = "ea", west = "we"
            case northEast = "noea", northWest = "nowe", southEast = "soea", southWest = "sowe"
            /// The part that attracts most attention.
            case smart = "sm"
            /// The point of ``x`` and ``y``, from 0 to 1.
            case focusPoint = "fp"
        }
        package var anchor = Anchor.center
        /// The offset from the anchor in pixels, if at least 1 or at most -1, else in parts of the image; a
        /// coordinate of the focus point.
        package var x = 0.0
        package var y = 0.0

        /// Creates a gravity; without arguments, that of the centre.
        package init(anchor: Anchor = .center, x: Double = 0, y: Double = 0) {
            (self.anchor, self.x, self.y) = (anchor, x, y)
        }
    }

    /// A part of the image that is cut out before it is resized.
    package struct Crop: Sendable, Hashable {
        /// Pixels from 1 on, below 1 a part of the image; 0 for all of it.
        package var width = 0.0
        package var height = 0.0
        /// Nil for the gravity of ``ProcessingOptions/gravity``.
        package var gravity: Gravity?

        /// Creates a crop; without arguments, one of everything.
        package init(width: Double = 0, height: Double = 0, gravity: Gravity? = nil) {
            (self.width, self.height, self.gravity) = (width, height, gravity)
        }
    }

    /// Removes uniform edges.
    package struct Trim: Sendable, Hashable {
        /// The greatest difference of a channel, from 0 to 255.
        package var threshold = 10.0
        /// The colour to remove; nil for that of the top left pixel.
        package var color: PixelColor?
        /// Whether the same number of columns is cut at the left and right, and of rows at the top and bottom.
        package var equalHorizontal = false
        package var equalVertical = false

        /// Creates a trim with the defaults.
        package init(
            threshold: Double = 10, color: PixelColor? = nil, equalHorizontal: Bool = false, equalVertical: Bool = false
        ) {
            (self.threshold, self.color) = (threshold, color)
            (self.equalHorizontal, self.equalVertical) = (equalHorizontal, equalVertical)
        }
    }

    /// Sides in pixels, before ``ProcessingOptions/dpr``.
    package struct Padding: Sendable, Hashable {
        package var top = 0, right = 0, bottom = 0, left = 0

        /// Creates the widths of four sides.
        package init(top: Int = 0, right: Int = 0, bottom: Int = 0, left: Int = 0) {
            (self.top, self.right, self.bottom, self.left) = (top, right, bottom, left)
        }
    }

    /// The server's watermark on the result.
    package struct Watermark: Sendable, Hashable {
        /// From 0 to 1.
        package var opacity = 1.0
        /// Nil to cover the image with copies.
        package var position: Gravity? = Gravity()
        /// Its size relative to the result's; 0 for its own.
        package var scale = 0.0

        /// Creates a watermark; without arguments, one in the centre in its own size.
        package init(opacity: Double = 1, position: Gravity? = Gravity(), scale: Double = 0) {
            (self.opacity, self.position, self.scale) = (opacity, position, scale)
        }
    }

    // MARK: Size

    package var trim: Trim?
    package var crop: Crop?
    package var resizingType = ResizingType.fit
    /// Pixels before ``dpr``; 0 to follow from the other side.
    package var width = 0
    package var height = 0
    package var minimumWidth = 0
    package var minimumHeight = 0
    package var zoomX = 1.0
    package var zoomY = 1.0
    /// Device pixels for each pixel of the sides and paddings.
    package var dpr = 1.0
    /// Whether the image may grow.
    package var enlarge = false
    /// The place of the image in a box that it does not fill; nil to leave it smaller.
    package var extend: Gravity?
    /// Like ``extend``, up to the box's aspect ratio only.
    package var extendAspectRatio: Gravity?
    package var gravity = Gravity()
    /// Settings that depend on the source's size; ``resolved(forSource:)`` applies them. Nil in the native grammar.
    package var sourceRules: SourceRules?

    // MARK: Drawing

    /// Whether the image is turned upright by its metadata. Default: true.
    package var autoRotate = true
    /// Clockwise, in degrees: a multiple of 90.
    package var rotation = 0
    package var flipHorizontal = false
    package var flipVertical = false
    /// Standard deviation in pixels; 0 for none.
    package var blur = 0.0
    package var sharpen = 0.0
    /// The side of a block in pixels; 0 for none.
    package var pixelate = 0
    package var grayscale = false
    /// Whether every pixel becomes black or white.
    package var isBitonal = false
    package var padding: Padding?
    package var watermark: Watermark?
    package var background: PixelColor?

    // MARK: Source

    /// The page of a document or the frame of an animation, from 1.
    package var page = 1
    /// The second of a video; nil for its poster.
    package var second: Double?

    // MARK: Result

    /// Nil to choose by the client's `Accept` field.
    package var format: ImageFormat?
    /// From 1 to 100; nil for the server's.
    package var quality: Int?
    package var formatQuality: [ImageFormat: Int] = [:]
    /// The size that the result's quality is reduced to fit in, in bytes; 0 for no limit.
    package var maximumBytes = 0
    /// Whether Exif and XMP are removed; nil for the server's setting.
    package var stripMetadata: Bool?
    package var keepCopyright: Bool?
    /// Sources of these formats are answered as they are.
    package var skipProcessing: Set<ImageFormat> = []
    /// Whether the source is answered as it is, an image or not.
    package var isRaw = false

    // MARK: Answer

    /// Text that has no other meaning than to distinguish URLs.
    package var cacheBuster = ""
    /// When the URL stops being valid, in seconds since 1970.
    package var expires: Int?
    /// The name in `Content-Disposition`, without its extension.
    package var fileName: String?
    /// Whether clients are to save the answer instead of showing it.
    package var isAttachment = false

    package init() {}
}

/// A parsed URL of an image.
package struct ImageURL: Sendable, Hashable {
    /// The grammar that the URL is written in.
    package enum Grammar: String, Sendable { case native, thumbor, iiif }

    package var grammar: Grammar
    package var options: ProcessingOptions
    /// The address of the source: a URL, or a path that the server completes with its base URL.
    package var source: String
    /// Whether the answer is JSON about the image instead of the image.
    package var wantsInfo = false
    /// Options that this server leaves out without harm, for example a detector; reported in the answer.
    package var ignored: [String] = []
    /// The wishes of the URL beside the operator's presets. ``ProcessingRules`` judges them.
    package var request: Request

    /// Creates a URL that is parsed already.
    ///
    /// - Parameter request: Its wishes. Default: all that differs from the options of a URL without any.
    package init(
        grammar: Grammar, options: ProcessingOptions, source: String, wantsInfo: Bool = false, ignored: [String] = [],
        request: Request? = nil
    ) {
        (self.grammar, self.options, self.source) = (grammar, options, source)
        (self.wantsInfo, self.ignored) = (wantsInfo, ignored)
        self.request = request ?? .options(options.differences(from: ProcessingOptions()))
    }
}

/// A request that is refused, or an image that cannot be made: a status, a stable code, and a text for people that
/// never contains the address of the source.
public struct RequestError: Error, Hashable, Sendable {
    /// The status of HTTP.
    public var status: Int
    /// Lowercase words joined by hyphens, for example `unknown-option`.
    public var code: String
    /// A sentence for the client, without the address of the source.
    public var reason: String
    /// The seconds after which the client may try again; nil if it is unknown whether that helps.
    public var retryAfter: Int?

    package init(_ status: Int, code: String, reason: String, retryAfter: Int? = nil) {
        (self.status, self.code, self.reason, self.retryAfter) = (status, code, reason, retryAfter)
    }
}
