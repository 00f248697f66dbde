import VitrineImaging

#if canImport(VitrineHEIF)
import VitrineHEIF

/// Facts about HEIF files that libvips does not tell.
extension VipsDecoder {
    /// Throws for a file that libheif would show wrong or in part.
    static func checkForLibheif(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) {
        guard let container = try? HEIFContainer(ByteReader(source)) else { return }
        if let reason = container.reasonAgainstLibheif { throw .unsupported(input: source.name, reason: reason) }
        if request.options.page == 0, !request.options.allowsPartial, container.endsEarly {
            throw .truncated(input: source.name)
        }
    }

    /// The map by which a HEIC image of high dynamic range is to be shown; nil without one, or for one that is damaged.
    func gain(_ source: ByteSource, _ request: DecodeRequest) -> GainSamples? {
        guard request.info.format == .heic, let container = try? HEIFContainer(ByteReader(source)),
            container.cut == nil, let map = HEIFGainMap(container), let bytes = container.bytes(withPrimary: map.item)
        else { return nil }
        let file = ByteSource(bytes: bytes, name: source.name)
        guard var info = try? ImageInfo(reading: file, limits: request.limits),
            (try? request.limits.check(info, source: file)) != nil
        else { return nil }
        // Its numbers are no colors.
        (info.colorProfile, info.codedColors) = (nil, nil)
        let picture = DecodeRequest(
            info: info, target: nil, limits: request.limits, cancellation: request.cancellation)
        return (try? decode(file, picture))?.planes.first.flatMap(map.map.applying)
    }

    /// Returns whether the thumbnail of a HEIF file may replace the image if its size and shape fit.
    static func mayUseThumbnail(_ source: ByteSource, _ request: DecodeRequest) -> Bool {
        guard request.options.allowsEmbeddedPreview, request.options.page == 0, request.target != nil,
            request.info.format == .heic || request.info.format == .avif,
            let container = try? HEIFContainer(ByteReader(source))
        else { return false }
        return container.hasThumbnailTurnedAlike
    }
}
#else
/// A host without this codec sends no such files.
extension VipsDecoder {
    static func checkForLibheif(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) {
        throw .unsupported(input: source.name, reason: "VitrineHEIF is not part of this build")
    }
    func gain(_ source: ByteSource, _ request: DecodeRequest) -> GainSamples? { nil }
    static func mayUseThumbnail(_ source: ByteSource, _ request: DecodeRequest) -> Bool { false }
}
#endif
