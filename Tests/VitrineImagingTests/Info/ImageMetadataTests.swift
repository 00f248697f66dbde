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
