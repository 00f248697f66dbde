extension ImageResizer: ImageProcessing {
    /// Size in pixels, mode, and whether enlarging is allowed (R35): results of different rules never share a key.
    public var identifier: String {
        let name =
            switch mode {
            case .fill: "fill"
            case .aspectFit: "fit"
            case .aspectFill: "cover"
            case .crop(let gravity): "crop-\(gravity)"
            case .limit: "limit"
            case .none: "none"
            }
        return "resize(\(size.width)x\(size.height)@\(scale) \(name)\(allowsUpscaling ? "" : " no-upscaling"))"
    }

    public func process(_ image: Image) throws(ImageError) -> Image { try resize(image) }
}

extension ImageProcessor {
    /// Scales, and cuts if the mode is ``ImageResizer/Mode/crop(_:)``.
    ///
    /// For pictures that come from a file, ask ``ImageDecoder`` for the size instead: that is far cheaper.
    public static func resize(_ resizer: ImageResizer) -> ImageProcessor { ImageProcessor(resizer) }
}
