#if canImport(AppKit) && !targetEnvironment(macCatalyst)
public import AppKit

extension Image {
    /// The pixels of an AppKit picture; nil if it cannot be drawn.
    public init?(_ image: NSImage) {
        guard let pixels = image.cgImage(forProposedRect: nil, context: nil, hints: nil) else { return nil }
        self.init(pixels)
    }

    /// The picture for AppKit, `scale` pixels a point. The pixels are shared, as by ``makeCGImage()``.
    public func makeNSImage(scale: Double = 1) -> NSImage? {
        makeCGImage().map {
            NSImage(cgImage: $0, size: NSSize(width: Double(width) / scale, height: Double(height) / scale))
        }
    }
}
#endif
