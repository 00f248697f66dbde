import Testing
import VitrineImaging

struct ImageMetadataTests {
    @Test func readsWhatTheCameraSays() throws {
        let metadata = try ImageMetadata(reading: ByteSource(.file(Fixture.path("Info/thumbnail.jpg"))))
        let summary = ExifSummary(exif: try #require(metadata.exif))
        #expect(summary.make == "Vitrine")
        #expect(summary.model == "Fixture 1")
        #expect(summary.hasLocation)
        #expect(summary.orientation == .right)
        let date = try #require(summary.captureDate)
        #expect([date.year, date.month, date.day, date.hour, date.minute, date.second] == [2024, 2, 29, 12, 34, 56])
        #expect(date.fraction == 0.25)
        #expect(date.offset == 19_800)
        #expect(String(decoding: try #require(metadata.xmp), as: UTF8.self).contains("Fixture"))
    }

    @Test(arguments: ["Info/picture.png", "Info/picture.webp"])
    func readsBlocksOfOtherFormats(_ name: String) throws {
        let metadata = try ImageMetadata(reading: ByteSource(.file(Fixture.path(name))))
        #expect(ExifSummary(exif: try #require(metadata.exif)).orientation == .right)
        #expect(String(decoding: try #require(metadata.xmp), as: UTF8.self).contains("Fixture"))
    }

    /// `PNG/raw-profile-exif.png`, 64 × 40, by ImageMagick's rules: compressed text of hexadecimal digits.
    @Test func readsExifThatAPNGStoresAsText() throws {
        let bytes = try Fixture.bytes("PNG/raw-profile-exif.png")
        let source = ByteSource(bytes: bytes, name: "text")
        #expect(try ImageInfo(reading: source).size == PixelSize(width: 40, height: 64))
        let exif = try #require(ImageMetadata(reading: source).exif)
        #expect(ExifSummary(exif: exif).orientation == .right)
        #expect(try ImageDecoder(isolation: .inProcess).decode(.bytes(bytes)).size == PixelSize(width: 40, height: 64))
    }

    @Test(arguments: [
        ("exif", "4578696600004D4D002A00000008000101120003000000010006000000000000", 32, true),
        ("APP1", "45786966 0000 4d4d002a000000080001\n01120003000000010006000000000000\n", 32, true),
        ("exif", "4D4D002A00000008000101120003000000010006000000000000", 26, true),
        ("exif", "4D4D002A00000008000101120003000000010006000000000000", 27, false),
        ("exif", "4D4D002A0000000800010112000300000001000600000000000x", 26, false),
        ("APP1", "687474703A2F2F6E732E61646F6265", 15, false), ("exif", "", 0, false), ("exif", "4D4D", -2, false),
        ("iptc", "4D4D002A00000008000101120003000000010006000000000000", 26, false),
    ])
    func plainTextsWithExifAreCheckedDigitByDigit(
        _ name: String, _ digits: String, _ count: Int, _ isRead: Bool
    ) throws {
        let text = "Raw profile type \(name)\0\n\(name)\n      \(count)\n\(digits)\n"
        var file = try Fixture.bytes("PNG/i0-8.png")
        let length = withUnsafeBytes(of: UInt32(text.utf8.count).bigEndian) { Array($0) }
        // Readers of headers leave the checksum to the decoder.
        file.insert(contentsOf: length + Array("tEXt".utf8) + Array(text.utf8) + [0, 0, 0, 0], at: 33)
        let source = ByteSource(bytes: file, name: "text")
        #expect(try ImageInfo(reading: source).orientation == (isRead ? .right : .up))
        #expect((try ImageMetadata(reading: source).exif != nil) == isRead)
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func readsBlocksOfHEIC() throws {
        let metadata = try ImageMetadata(reading: ByteSource(.file(#require(Corpus.file("heic/IMG_5195.heic")))))
        #expect(ExifSummary(exif: try #require(metadata.exif)).make == "Apple")
        #expect(metadata.xmp?.count == 2543)
    }

    @Test func sanitizingTurnsUprightAndTakesTheThumbnailOut() throws {
        let metadata = try ImageMetadata(reading: ByteSource(.file(Fixture.path("Info/thumbnail.jpg"))))
        let before = try #require(metadata.exif)
        #expect(contains(before, [0xFF, 0xD8, 0xFF]))
        let clean = metadata.sanitizedForUprightPixels()
        let exif = try #require(clean.exif)
        let summary = ExifSummary(exif: exif)
        #expect(summary.orientation == .up)
        #expect(summary.hasLocation)
        #expect(summary.make == "Vitrine")
        #expect(exif.count == before.count)
        #expect(!contains(exif, [0xFF, 0xD8, 0xFF]))
        #expect(!String(decoding: try #require(clean.xmp), as: UTF8.self).contains("<tiff:Orientation>6"))
    }

    @Test func sanitizingTakesTheLocationOutAndLeavesTheRest() throws {
        let metadata = try ImageMetadata(reading: ByteSource(.file(Fixture.path("Info/thumbnail.jpg"))))
        let summary = ExifSummary(exif: try #require(metadata.sanitizedForUprightPixels(removingLocation: true).exif))
        #expect(!summary.hasLocation)
        #expect(summary.orientation == .up)
        #expect(summary.model == "Fixture 1")
        #expect(summary.captureDate?.year == 2024)
    }

    @Test func dropsAPacketThatNamesAPlace() {
        let packet = Array("<x photoshop:City=\"Wien\" tiff:Orientation=\"6\"/>".utf8)
        #expect(ImageMetadata(xmp: packet).sanitizedForUprightPixels(removingLocation: true).xmp == nil)
        #expect(
            ImageMetadata(xmp: packet).sanitizedForUprightPixels().xmp
                == Array("<x photoshop:City=\"Wien\" tiff:Orientation=\"1\"/>".utf8))
    }

    private func contains(_ bytes: [UInt8], _ run: [UInt8]) -> Bool {
        bytes.indices.contains { bytes[$0...].starts(with: run) }
    }
}
