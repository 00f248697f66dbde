#if canImport(CoreGraphics)
public import CoreGraphics

extension PixelImage {
    /// Returns the image for Core Graphics, in sRGB; nil only if memory is short.
    ///
    /// Shares the pixels, which live as long as the result. A later change of the image does not change the result.
    public func makeCGImage() -> CGImage? {
        let pixels = UnsafeRawBufferPointer(storage.bytes)
        guard let space = CGColorSpace(name: CGColorSpace.sRGB), let start = pixels.baseAddress else { return nil }
        let info: CGImageAlphaInfo =
            switch alpha {
            case .opaque: .noneSkipLast
            case .straight: .last
            case .premultiplied: .premultipliedLast
            }
        let owner = Unmanaged.passRetained(storage)
        let provider = CGDataProvider(dataInfo: owner.toOpaque(), data: start, size: pixels.count) { owner, _, _ in
            if let owner { Unmanaged<PixelStorage>.fromOpaque(UnsafeRawPointer(owner)).release() }
        }
        guard let provider else {
            owner.release()
            return nil
        }
        return CGImage(
            width: width, height: height, bitsPerComponent: 8, bitsPerPixel: 32, bytesPerRow: bytesPerRow, space: space,
            bitmapInfo: CGBitmapInfo(rawValue: info.rawValue), provider: provider, decode: nil,
            shouldInterpolate: true, intent: .defaultIntent)
    }

    /// Creates an image from a Core Graphics image of any layout, drawn into sRGB; nil without pixels or memory.
    public init?(_ image: CGImage) {
        guard image.width > 0, image.height > 0, let space = CGColorSpace(name: CGColorSpace.sRGB) else { return nil }
        let hasAlpha: Bool =
            switch image.alphaInfo {
            case .none, .noneSkipFirst, .noneSkipLast: false
            default: true
            }
        let info: CGImageAlphaInfo = hasAlpha ? .premultipliedLast : .noneSkipLast
        var isDrawn = false
        let meaning: Alpha = hasAlpha ? .premultiplied : .opaque
        let result = PixelImage(width: image.width, height: image.height, alpha: meaning) { pixels in
            pixels.initializeMemory(as: UInt8.self, repeating: hasAlpha ? 0 : 255)
            let context = CGContext(
                data: pixels.baseAddress, width: image.width, height: image.height, bitsPerComponent: 8,
                bytesPerRow: image.width * PixelImage.bytesPerPixel, space: space, bitmapInfo: info.rawValue)
            guard let context else { return }
            context.setBlendMode(.copy)
            context.draw(image, in: CGRect(x: 0, y: 0, width: image.width, height: image.height))
            if !hasAlpha { for i in stride(from: 3, to: pixels.count, by: 4) { pixels[i] = 255 } }
            isDrawn = true
        }
        guard isDrawn else { return nil }
        self = result
    }
}
#endif

#if canImport(UIKit)
public import UIKit

extension PixelImage {
    /// Creates an upright image from a UIKit image; nil if that is not made of pixels.
    public init?(_ image: UIImage) {
        guard let pixels = image.cgImage.flatMap({ PixelImage($0) }) else { return nil }
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

    /// Returns the image for UIKit, `scale` pixels a point. Shares the pixels like ``makeCGImage()``.
    public func makeUIImage(scale: Double = 1) -> UIImage? {
        makeCGImage().map { UIImage(cgImage: $0, scale: CGFloat(scale), orientation: .up) }
    }
}
#endif

#if canImport(AppKit) && !targetEnvironment(macCatalyst)
public import AppKit

extension PixelImage {
    /// Creates an image from an AppKit image; nil if that cannot be drawn.
    public init?(_ image: NSImage) {
        guard let pixels = image.cgImage(forProposedRect: nil, context: nil, hints: nil) else { return nil }
        self.init(pixels)
    }

    /// Returns the image for AppKit, `scale` pixels a point. Shares the pixels like ``makeCGImage()``.
    public func makeNSImage(scale: Double = 1) -> NSImage? {
        makeCGImage().map {
            NSImage(cgImage: $0, size: NSSize(width: Double(width) / scale, height: Double(height) / scale))
        }
    }
}
#endif
