#if canImport(UIKit)
public import UIKit

extension Image {
    /// The pixels of a UIKit picture, turned upright; nil if it is not made of pixels.
    public init?(_ image: UIImage) {
        guard let pixels = image.cgImage.flatMap({ Image($0) }) else { return nil }
        let orientation: Orientation =
            switch image.imageOrientation {
            case .upMirrored: .upMirrored
            case .down: .down
            case .downMirrored: .downMirrored
            case .left: .left
            case .leftMirrored: .leftMirrored
            case .right: .right
            case .rightMirrored: .rightMirrored
            default: .up
            }
        self = pixels.oriented(orientation)
    }

    /// The picture for UIKit, `scale` pixels a point. The pixels are shared, as by ``makeCGImage()``.
    public func makeUIImage(scale: Double = 1) -> UIImage? {
        makeCGImage().map { UIImage(cgImage: $0, scale: CGFloat(scale), orientation: .up) }
    }
}
#endif
