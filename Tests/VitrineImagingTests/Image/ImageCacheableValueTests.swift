import Testing
import VitrineCore
import VitrineImaging

@Suite struct ImageCacheableValueTests {
    @Test func picturesWithAlphaAreKeptWithoutLoss() throws {
        let color = Color(red: 10, green: 200, blue: 30, alpha: 77)
        let bytes = try Image(size: PixelSize(width: 7, height: 5), color: color).cacheBytes()
        #expect(bytes.starts(with: [0x89, 0x50, 0x4E, 0x47]))
        // Decoding premultiplies, which rounds once; from then on pictures come back exactly.
        let image = try Image(cacheBytes: bytes)
        #expect(image[3, 3].alpha == 77 && abs(Int(image[3, 3].green) - 200) <= 2)
        #expect(try Image(cacheBytes: image.cacheBytes()) == image)
    }

    @Test func opaquePicturesAreJPEG() throws {
        let color = Color(red: 10, green: 200, blue: 30)
        let image = Image(size: PixelSize(width: 16, height: 8), color: color)
        let bytes = try image.cacheBytes()
        #if SystemCodecs
        #expect(bytes.starts(with: [0xFF, 0xD8, 0xFF]))
        #endif
        let again = try Image(cacheBytes: bytes)
        #expect(again.size == image.size)
        #expect(abs(Int(again[3, 3].green) - 200) <= 3)
        #expect(abs(Int(again[3, 3].red) - 10) <= 3)
    }

    @Test func costIsThatOfThePixels() {
        #expect(Image(size: PixelSize(width: 16, height: 8)).cacheCost == 16 * 8 * 4)
    }

    @Test func aPictureIsRevivedWhileItsPixelsAreAlive() throws {
        let makeReviver = try #require(Image.weakReference)
        let image = Image(size: PixelSize(width: 3, height: 2), color: Color(red: 1, green: 2, blue: 3))
        let revive = try #require(makeReviver(image))
        let copy = image
        _ = consume image
        #expect(revive() == copy)
        _ = consume copy
        #expect(revive() == nil)
    }

    @Test func aPictureThatItsLastOwnerChangedIsNotRevivedChanged() throws {
        var image = Image(size: PixelSize(width: 3, height: 2), color: Color(red: 1, green: 2, blue: 3))
        let makeReviver = try #require(Image.weakReference)
        let revive = try #require(makeReviver(image))
        image.withUnsafeMutableBytes { $0[0] = 99 }
        #expect(image[0, 0].red == 99)
        #expect(revive() == nil)
    }

    @Test func bytesThatAreNoPictureAreRefused() {
        #expect(throws: ImageError.self) { try Image(cacheBytes: Array("no picture".utf8)) }
        #expect(throws: ImageError.self) { try Image(cacheBytes: []) }
    }
}
