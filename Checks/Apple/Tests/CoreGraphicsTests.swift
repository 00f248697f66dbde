import CoreGraphics
import Testing
import UIKit
import VitrineImaging

/// Conversion to and from Core Graphics images.
struct CoreGraphicsTests {
    private let image = PixelImage(width: 3, height: 2, alpha: .straight) { pixels in
        for index in pixels.indices { pixels[index] = UInt8(index * 10) }
    }

    private func bytes(_ image: PixelImage) -> [UInt8] { image.withUnsafeBytes { [UInt8]($0) } }

    @Test func pixelsAreSharedAndStay() throws {
        var original = image
        let before = bytes(original)
        let picture = try #require(original.makeCGImage())
        let place = original.withUnsafeBytes { $0.baseAddress }
        #expect(picture.stubPixels == place && picture.alphaInfo == .last && picture.bytesPerRow == 12)
        // A change of the image makes a copy. The Core Graphics image is unchanged.
        original.withUnsafeMutableBytes { $0[0] = 255 }
        #expect(original.withUnsafeBytes { $0.baseAddress } != place)
        #expect([UInt8](UnsafeRawBufferPointer(start: picture.stubPixels, count: 24)) == before)
    }

    @Test func imagesInUseCanBeRevived() throws {
        let reviver = try #require(PixelImage.weakReference)
        var original: PixelImage? = PixelImage(size: PixelSize(4), color: PixelColor(red: 9, green: 0, blue: 0))
        let revive = original.flatMap { reviver($0) }
        var picture = original?.makeCGImage()
        original = nil
        withExtendedLifetime(picture) { #expect(revive?()?[0, 0].red == 9) }
        picture = nil
        #expect(revive?() == nil)
    }

    @Test(arguments: [PixelImage.Alpha.opaque, .straight, .premultiplied])
    func alphaMeansTheSame(_ alpha: PixelImage.Alpha) throws {
        let image = PixelImage(width: 2, height: 1, alpha: alpha) { pixels in
            for index in pixels.indices { pixels[index] = index % 4 == 3 ? 255 : UInt8(index) }
        }
        let picture = try #require(image.makeCGImage())
        let expected: CGImageAlphaInfo =
            switch alpha {
            case .opaque: .noneSkipLast
            case .straight: .last
            case .premultiplied: .premultipliedLast
            }
        #expect(picture.alphaInfo == expected)
        let back = try #require(PixelImage(picture))
        #expect(bytes(back) == bytes(image) && back.alpha == (alpha == .opaque ? .opaque : .premultiplied))
    }

    @Test func picturesOfUIKitAreTurnedUpright() throws {
        let picture = try #require(image.makeCGImage())
        let turned = try #require(PixelImage(UIImage(cgImage: picture, scale: 1, orientation: .right)))
        #expect(turned.size == PixelSize(width: 2, height: 3))
        #expect(image.makeUIImage(scale: 3)?.scale == 3)
    }
}
