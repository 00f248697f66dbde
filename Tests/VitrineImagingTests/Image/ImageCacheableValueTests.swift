import Testing
import VitrineCore
import VitrineImaging

@Suite struct ImageCacheableValueTests {
    @Test func picturesWithAlphaAreKeptWithoutLoss() throws {
        let color = PixelColor(red: 10, green: 200, blue: 30, alpha: 77)
        let bytes = try PixelImage(size: PixelSize(width: 7, height: 5), color: color).cacheBytes()
        #expect(bytes.starts(with: [0x89, 0x50, 0x4E, 0x47]))
        // Decoding premultiplies, which rounds once; from then on pictures come back exactly.
        let image = try PixelImage(cacheBytes: bytes)
        #expect(image[3, 3].alpha == 77 && abs(Int(image[3, 3].green) - 200) <= 2)
        #expect(try PixelImage(cacheBytes: image.cacheBytes()) == image)
    }

    @Test func opaquePicturesAreJPEG() throws {
        let color = PixelColor(red: 10, green: 200, blue: 30)
        let image = PixelImage(size: PixelSize(width: 16, height: 8), color: color)
        let bytes = try image.cacheBytes()
        #if SystemCodecs
        #expect(bytes.starts(with: [0xFF, 0xD8, 0xFF]))
        #endif
        let again = try PixelImage(cacheBytes: bytes)
        #expect(again.size == image.size)
        #expect(abs(Int(again[3, 3].green) - 200) <= 3)
        #expect(abs(Int(again[3, 3].red) - 10) <= 3)
    }

    @Test func costIsThatOfThePixels() {
        #expect(PixelImage(size: PixelSize(width: 16, height: 8)).cacheCost == 16 * 8 * 4)
    }

    @Test func aPictureIsRevivedWhileItsPixelsAreAlive() throws {
        let makeReviver = try #require(PixelImage.weakReference)
        let image = PixelImage(size: PixelSize(width: 3, height: 2), color: PixelColor(red: 1, green: 2, blue: 3))
        let revive = try #require(makeReviver(image))
        let copy = image
        _ = consume image
        #expect(revive() == copy)
        _ = consume copy
        #expect(revive() == nil)
    }

    @Test func aPictureThatItsLastOwnerChangedIsNotRevivedChanged() throws {
        var image = PixelImage(size: PixelSize(width: 3, height: 2), color: PixelColor(red: 1, green: 2, blue: 3))
        let makeReviver = try #require(PixelImage.weakReference)
        let revive = try #require(makeReviver(image))
        image.withUnsafeMutableBytes { $0[0] = 99 }
        #expect(image[0, 0].red == 99)
        #expect(revive() == nil)
    }

    @Test func bytesThatAreNoPictureAreRefused() {
        #expect(throws: ImageError.self) { try PixelImage(cacheBytes: Array("no picture".utf8)) }
        #expect(throws: ImageError.self) { try PixelImage(cacheBytes: []) }
    }
}
