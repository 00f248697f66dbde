extension ImageInfo.EmbeddedPreview {
    /// Whether it shows the same section as a picture stored with `size`: the shapes agree within 2 %. Cameras
    /// letterbox some previews and crop others.
    func hasShape(of size: PixelSize) -> Bool {
        guard let own = self.size, !own.isEmpty, !size.isEmpty else { return false }
        let shape = Double(size.width) / Double(size.height)
        return abs(Double(own.width) / Double(own.height) / shape - 1) < 0.02
    }

    /// Whether it has at least as many pixels in both directions.
    func covers(_ size: PixelSize) -> Bool {
        guard let own = self.size else { return false }
        return own.width >= size.width && own.height >= size.height
    }
}
