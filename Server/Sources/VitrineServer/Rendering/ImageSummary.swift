import Foundation
import VitrineImaging

/// The description of a source by ``Renderer/info(for:priority:deadline:)``.
package struct ImageSummary: Sendable, Hashable, Codable {
    /// The fields of a photo that cameras and authors write.
    package struct Exif: Sendable, Hashable, Codable {
        /// The maker of the camera.
        package var make: String?
        /// The model of the camera.
        package var model: String?
        /// The artist.
        package var artist: String?
        /// The copyright.
        package var copyright: String?
        /// The camera's date, as `2026:11:23 14:05:09`.
        package var dateTaken: String?
        /// In seconds.
        package var exposureTime: Double?
        /// The f-number.
        package var aperture: Double?
        /// The ISO sensitivity.
        package var sensitivity: Int?
        /// In millimetres.
        package var focalLength: Double?
        /// Whether it says where it was taken. The place itself is not told.
        package var hasLocation: Bool
    }

    /// `image`, `document` or `video`.
    package var kind: SourceHeader.Kind
    /// The name of the format, for example `jpeg`; nil for documents and videos.
    package var format: String?
    /// The media type by the content.
    package var mediaType: String
    /// The length of the file in bytes.
    package var bytes: Int
    /// Upright pixels, or points of a page.
    package var width: Int
    /// Upright pixels, or points of a page.
    package var height: Int
    /// The Exif orientation, 1 to 8.
    package var orientation: Int
    /// Whether pixels may be other than opaque.
    package var hasAlpha: Bool
    /// Pages of a document or frames of an animation.
    package var pages: Int
    /// Seconds of a video or an animation.
    package var duration: Double?
    /// The BlurHash, of 4 by 3 components or 3 by 4.
    package var blurHash: String?
    /// The ThumbHash in base64.
    package var thumbHash: String?
    /// Up to five colours as `#rrggbb`, the most frequent first.
    package var dominantColors: [String]
    /// The mean of all pixels as `#rrggbb`.
    package var averageColor: String?
    /// Nil if there are none.
    package var exif: Exif?

    /// - Parameter image: A small image of the source.
    init(_ header: SourceHeader, source: [UInt8], image: PixelImage) {
        kind = header.kind
        format = header.format?.rawValue
        mediaType = header.mediaType
        bytes = source.count
        (width, height) = (header.size.width, header.size.height)
        orientation = header.orientation.rawValue
        hasAlpha = header.hasAlpha
        pages = header.pageCount
        duration = header.duration
        let isWide = image.width >= image.height
        blurHash = try? BlurHash.encode(image, x: isWide ? 4 : 3, y: isWide ? 3 : 4)
        thumbHash = Data(ThumbHash.encode(image)).base64EncodedString()
        dominantColors = image.dominantColors(count: 5).map(Self.text)
        averageColor = Self.text(image.averageColor)
        if header.kind == .image, let block = try? ImageMetadata(of: .bytes(source)).exif {
            exif = Exif(ExifFields(block))
        }
    }

    private static func text(_ color: PixelColor) -> String {
        "#" + [color.red, color.green, color.blue].map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// The summary as JSON with sorted keys.
    func json() throws(RequestError) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(self) else {
            throw RequestError(422, code: "undecodable", reason: "the image cannot be described")
        }
        return [UInt8](data)
    }
}

extension ImageSummary.Exif {
    fileprivate init?(_ fields: ExifFields) {
        make = fields.make
        model = fields.model
        artist = fields.artist
        copyright = fields.copyright
        dateTaken = fields.dateTaken
        exposureTime = fields.exposureTime
        aperture = fields.aperture
        sensitivity = fields.sensitivity
        focalLength = fields.focalLength
        hasLocation = fields.hasLocation
    }
}
