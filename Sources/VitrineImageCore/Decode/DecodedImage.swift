/// One rectangle of 8-bit samples, one or more channels interleaved.
package struct PixelPlane: Sendable {
    /// Samples a row and rows.
    package var width: Int
    package var height: Int
    /// Interleaved channels a sample.
    package var channels: Int
    /// Bytes from one row to the next; at least `width * channels`.
    package var bytesPerRow: Int
    /// How many samples the image really spans, which can be a fraction less than `width` and `height`: an eighth of
    /// 1,001 pixels is 125.125 samples in a plane of 126. Scaling maps this extent, not the plane, onto the result.
    package var extentWidth: Double
    package var extentHeight: Double
    package var storage: PixelStorage

    /// - Parameters:
    ///   - bytesPerRow: Default nil: rows without padding.
    ///   - extent: See ``extentWidth``. Default nil: the width and height.
    package init(
        width: Int, height: Int, channels: Int, bytesPerRow: Int? = nil,
        extent: (width: Double, height: Double)? = nil, storage: PixelStorage
    ) {
        self.width = width
        self.height = height
        self.channels = channels
        self.bytesPerRow = bytesPerRow ?? width * channels
        extentWidth = extent?.width ?? Double(width)
        extentHeight = extent?.height ?? Double(height)
        self.storage = storage
        precondition(width > 0 && height > 0 && self.bytesPerRow >= width * channels, "a plane's rows must not overlap")
        precondition(storage.count >= self.bytesPerRow * (height - 1) + width * channels, "a plane must fit its memory")
    }
}

extension PixelPlane {
    /// Returns the channels before `channel` and the others as planes of their own.
    package func split(before channel: Int) -> [PixelPlane] {
        [0..<channel, channel..<channels].map { part in
            var plane = PixelPlane(
                width: width, height: height, channels: part.count,
                storage: PixelStorage(zeroedByteCount: width * height * part.count))
            (plane.extentWidth, plane.extentHeight) = (extentWidth, extentHeight)
            storage.withUnsafeBytes { from in
                for y in 0..<height {
                    for x in 0..<width {
                        let (start, target) = (y * bytesPerRow + x * channels, (y * width + x) * part.count)
                        for c in part { plane.storage.bytes[target + c - part.lowerBound] = from[start + c] }
                    }
                }
            }
            return plane
        }
    }
}

/// The result of a decoder: samples in the file's own colour model, as stored (not turned upright). They are not
/// smaller than requested, unless the image itself is.
///
/// Scaling, conversion to sRGB and orientation happen afterwards and once, for all decoders alike.
package struct DecodedImage: Sendable {
    /// The most bytes of ``rowIndex``.
    package static let maximumRowIndexBytes = 1 << 20

    /// How the planes are to be read.
    package enum Model: Sendable, Hashable {
        /// One plane, 1 channel (2 with alpha).
        case gray
        /// One plane, 3 channels (4 with alpha).
        case rgb
        /// Three planes of one channel, chroma at any resolution (a fourth plane is alpha).
        case yCbCr(Matrix, fullRange: Bool)
        /// One plane, 4 channels (a second plane is alpha, by which inks are multiplied). `inverted`: 255 means no ink,
        /// as Adobe stores it.
        case cmyk(inverted: Bool)
    }

    /// Coefficients from Y′CbCr to R′G′B′ (ITU-T H.273 §8.3).
    package enum Matrix: Sendable, Hashable {
        case bt601, bt709, bt2020
    }

    /// Whether and how alpha is there.
    package enum Alpha: UInt8, Sendable {
        case none, straight, premultiplied
    }

    package var planes: [PixelPlane]
    package var model: Model
    package var alpha: Alpha
    /// ICC profile the samples are in; nil means sRGB (or plain device CMYK, or grey with the sRGB curve).
    package var colorProfile: [UInt8]?
    /// Whether the input ended early and the rest was filled in.
    package var isPartial: Bool
    /// How much of the planes' height, from the top, holds samples of the input, 0 to 1. Rows below it have not arrived,
    /// or are missing, and are shown as transparent.
    package var filledHeight = 1.0
    /// Whether each sample is the mean of the square it stands for (block means, box-reduced rows) rather than a pixel
    /// of the file; scaling then restores the contrast that averaging took.
    package var samplesAreMeans: Bool
    /// The part of the image that the planes show, in stored pixels; nil for all of it.
    package var region: PixelRect?
    /// Where the rows of a JPEG begin, in the form of its codec, if the request asks for that and the file has such an
    /// index.
    package var rowIndex: [UInt8]?

    package init(
        planes: [PixelPlane], model: Model, alpha: Alpha = .none, colorProfile: [UInt8]? = nil, isPartial: Bool = false,
        samplesAreMeans: Bool = false
    ) {
        self.planes = planes
        self.model = model
        self.alpha = alpha
        self.colorProfile = colorProfile
        self.isPartial = isPartial
        self.samplesAreMeans = samplesAreMeans
    }
}
