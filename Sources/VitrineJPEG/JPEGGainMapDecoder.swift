#if SystemCodecs
import VitrineCore
import VitrineImageCore

/// Decodes JPEG of high dynamic range by its gain map, where that leads to an image of standard range.
///
/// The map is a JPEG file behind the picture, which the multi-picture index or the XMP lists. It has the metadata of ISO
/// 21496-1, or else those in XMP. The usual files, whose picture is of standard range, are left to the next decoder.
package struct JPEGGainMapDecoder: ImageDecoding {
    package init() {}

    package var formats: Set<ImageFormat> { [.jpeg] }
    package var library: String? { "libjpeg" }

    /// - Throws: ``ImageError/unsupported(input:reason:)`` without such a map, or for one that is damaged. Else as
    ///   ``LibJPEGDecoder`` does.
    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        guard let bytes = request.info.colorProfile, let profile = ColorProfile(highRange: bytes),
            let gain = gain(of: source, profile: bytes, for: request)
        else { throw .unsupported(input: source.name, reason: "no gain map leads to an image of standard range") }
        var image = try pixels(of: source, reduction: request.reduction, for: request)
        let shown = image.planes.first.flatMap { profile.shown($0, through: gain, request.cancellation) }
        guard let shown else {
            if request.cancellation.isCancelled { throw .cancelled(input: source.name) }
            throw .unsupported(input: source.name, reason: "an image with a gain map is grey, or has three colours")
        }
        (image.planes, image.model) = ([shown], .rgb)
        return image
    }

    private func pixels(
        of source: ByteSource, reduction: Double, for request: DecodeRequest
    ) throws(ImageError) -> DecodedImage {
        try LibJPEGDecoder().decode(
            source, eighths: LibJPEGDecoder.eighths(for: reduction), isPlanar: false, limits: request.limits,
            allowsPartial: request.options.allowsPartial, cancellation: request.cancellation)
    }

    private func gain(of source: ByteSource, profile: [UInt8], for request: DecodeRequest) -> GainSamples? {
        let reader = ByteReader(ByteSource(source, polling: request.cancellation))
        for range in JPEGApplication.pictures(of: reader) {
            guard let size = JPEGPicture.size(reader, range), let application = try? JPEGApplication(reader, range),
                var map = application.gainMap.flatMap({ try? reader.bytes($0) }).flatMap({ GainMap($0) })
                    ?? application.xmp.flatMap({ try? reader.bytes($0) }).flatMap({ GainMap(xmp: $0) })
            else { continue }
            // The profile of the map is that of the image to which it leads.
            if !map.isInBase, let other = application.profile.assembled(reader, request.limits), other != profile {
                guard ColorProfile(other)?.isSRGB == true else { return nil }
            } else {
                map.isInBase = true
            }
            let image = try? pixels(
                of: ByteSource(range, of: source), reduction: request.reduction(of: size), for: request)
            return image?.planes.first.flatMap(map.applying)
        }
        return nil
    }
}

extension JPEGApplication {
    /// The files behind the image that its multi-picture index and its XMP list.
    fileprivate static func pictures(of reader: ByteReader) -> [Range<Int>] {
        guard let application = try? JPEGApplication(reader, 0..<reader.count) else { return [] }
        let indexed = application.multiPicture.map { MultiPictureIndex.pictures(reader, $0).map(\.range) } ?? []
        return indexed + (application.xmp.map { containerItems(reader, $0) } ?? [])
    }

    /// The items of a container that XMP describes, the last of which ends with the file.
    ///
    /// Source: Android, "Ultra HDR image format" 1.1.
    private static func containerItems(_ reader: ByteReader, _ xmp: Range<Int>) -> [Range<Int>] {
        guard let document = try? reader.bytes(xmp) else { return [] }
        var scanner = XMLScanner(document, input: reader.name)
        var lengths: [Int] = []
        while let event = try? scanner.next(), lengths.count < MultiPictureIndex.maximumEntries {
            guard event == .start, scanner.isNamed("Item"), scanner.attribute("Semantic") != nil else { continue }
            lengths.append(scanner.attribute("Length").flatMap { Int($0) } ?? 0)
        }
        var items: [Range<Int>] = []
        var end = reader.count
        // The first item is the image, whose length is zero.
        for length in lengths.dropFirst().reversed() {
            guard length > 0, length < end, let item = try? reader.range(from: end &- length, to: end) else { break }
            items.append(item)
            end = item.lowerBound
        }
        return items
    }
}
#endif
