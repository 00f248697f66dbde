public import VitrineCache
import VitrineCore
public import VitrineImaging

extension Cache where Value == Image {
    /// The format of images for a target of a certain size (R35), registered when it is first asked for: at most 50 MiB
    /// on disk, JPEG of quality 0.75 where nothing is transparent. Made straight from original bytes where those are at
    /// hand, which decodes no more than is needed.
    ///
    /// - Parameters:
    ///   - box: The target's; nil for images as they are.
    ///   - processors: What is done to an image after that, in order.
    /// - Returns: `FormatName.original` if nothing is to be done.
    public func format(for box: TargetGeometry?, processors: [ImageProcessor] = []) -> FormatName {
        let resizer = box.flatMap { $0.mode == .none ? nil : $0.resizer } ?? .none
        guard resizer.mode != .none || !processors.isEmpty else { return .original }
        let name = FormatName.automatic(resizer, processors)
        if format(name) == nil { register(.automatic(name, resizer, processors)) }
        return name
    }
}

extension FormatName {
    fileprivate static func automatic(_ resizer: ImageResizer, _ processors: [ImageProcessor]) -> FormatName {
        var text = "auto"
        if resizer.mode != .none {
            text = automatic(
                width: resizer.size.width, height: resizer.size.height, mode: resizer.mode.formatName,
                upscaling: resizer.allowsUpscaling
            ).rawValue
        }
        guard !processors.isEmpty else { return FormatName(text) }
        // A digest, as the name becomes that of a directory.
        let digest = SHA256Digest.digest(of: CacheKey(parts: processors.map(\.identifier)).identity)
        return FormatName(text + "-" + Hexadecimal.text(digest).prefix(16))
    }
}

extension Format<Image> {
    fileprivate static func automatic(
        _ name: FormatName, _ resizer: ImageResizer, _ processors: [ImageProcessor]
    ) -> Format {
        var format = Format(name, diskCapacity: FormatName.automaticDiskCapacity) { image in
            try resizer.resize(image).processed(by: processors)
        }
        format.derive = { bytes in
            try ImageDecoder().decode(.bytes(bytes, name: "original"), at: resizer).processed(by: processors)
        }
        format.encode = { try $0.encoded(as: Image.cacheFormat(quality: FormatName.automaticQuality)) }
        return format
    }
}

extension ImageResizer.Mode {
    /// What it is called in names of formats (R35).
    fileprivate var formatName: String {
        switch self {
        case .fill: "fill"
        case .aspectFit: "aspectfit"
        case .aspectFill: "aspectfill"
        case .crop(let gravity): "crop-\(gravity)"
        case .limit: "limit"
        case .none: "none"
        }
    }
}
