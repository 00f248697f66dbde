@MainActor final class Picture {
    var width = 0.0, height = 0.0, scaleFactor = 1.0
    func setTexture(_ image: PixelImage?, fade: ImageTransition) {}
}
