import TestSupport
import Testing
import VitrineImaging
import VitrinePipeline

/// What a file tells about itself, and what it is known by.
@Suite struct VideoInfoTests {
    @Test func tellsLengthSizeCodecsAndDate() throws {
        let info = try VideoFixture.source("seconds.mp4", at: .poster).info()
        #expect(info.duration == 6 && info.frameRate == 10)
        #expect(info.size == PixelSize(width: 160, height: 90) && info.storedSize == info.size)
        #expect(info.hasVideo && !info.hasAudio && !info.hasCoverArt)
        #expect(info.videoCodec == "h264" && info.audioCodec == nil)
        #expect(info.container.contains("mp4"))
        #expect(info.creationDate?.timeIntervalSince1970 == 1_614_834_367)
    }

    @Test func tellsTheSizeAsShown() throws {
        let rotated = try VideoFixture.source("rotated.mp4", at: .poster).info()
        #expect(rotated.size == PixelSize(width: 90, height: 160) && rotated.orientation == .left)
        let anamorphic = try VideoFixture.source("anamorphic.mp4", at: .poster).info()
        #expect(anamorphic.size == PixelSize(width: 102, height: 90))
        #expect(anamorphic.storedSize == PixelSize(width: 72, height: 90))
    }

    @Test func describesSound() throws {
        let sound = try VideoFixture.source("sound.m4a", at: .poster).info()
        #expect(!sound.hasVideo && sound.hasAudio && sound.audioCodec == "aac" && sound.size == .zero)
        #expect(abs((sound.duration ?? 0) - 1) < 0.2)
        #expect(try VideoFixture.source("cover.mp3", at: .poster).info().hasCoverArt)
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func describesAndShowsTheCorpus() throws {
        let workers = VideoFixture.workers()
        for file in Corpus.files(in: "corpus/video") {
            let poster = VideoFrameSource(.file(file), at: .poster, workers: workers)
            let info = try poster.info()
            #expect(info.hasVideo && info.duration ?? 0 > 0, "\(file)")
            let image = try poster.image(RenderRequest(size: PixelSize(200)))
            #expect(max(image.width, image.height) == 200, "\(file)")
            #expect((image.width > image.height) == (info.size.width > info.size.height), "\(file)")
        }
    }

    @Test func isKnownByFileSecondAndPrecision() throws {
        let path = try VideoFixture.path("seconds.mp4")
        let file = try FileIdentity.key(of: path)
        #expect(try VideoFrameSource(path: path, second: 1.5).identity() == file.appending("-1.5"))
        #expect(try VideoFrameSource(posterOf: path).identity() == file.appending("-poster"))
        var exact = VideoFrameSource(path: path, second: 1.5)
        exact.precision = .exact
        #expect(try exact.identity() != VideoFrameSource(path: path, second: 1.5).identity())
        exact.identifier = "mine"
        #expect(try exact.identity() == "mine")
    }

    @Test func readsDatesOfContainers() {
        #expect(VideoInfo.date("2000-02-29T23:59:59.000000Z")?.timeIntervalSince1970 == 951_868_799)
        #expect(VideoInfo.date("2026-11-21 00:00:00")?.timeIntervalSince1970 == 1_795_219_200)
        for text in ["", "1904-01-01T00:00:00Z", "2026-13-01T00:00:00Z", "2026-1-1T00:00:00Z-----", "noon, yesterday"] {
            #expect(VideoInfo.date(text) == nil, "\(text)")
        }
    }
}
