import Testing
import TestSupport
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// Which frame is taken, and what becomes of it.
@Suite struct VideoFrameTests {
    @Test(arguments: ["seconds.mp4", "moov-last.mp4", "seconds.mkv", "seconds.webm", "seconds.avi", "ten-bit.mp4"])
    func takesTheFrameSeenAtASecond(_ film: String) throws {
        let workers = VideoFixture.workers()
        for (second, color) in VideoFixture.seconds.enumerated() {
            for part in [0.05, 0.5, 0.95] {
                let frame = try VideoFixture.frame(film, at: Double(second) + part, workers: workers)
                #expect(frame.colorName() == color, "\(film) at \(Double(second) + part)")
                #expect(frame.size == PixelSize(width: 160, height: 90))
            }
        }
    }

    @Test func takesExactFramesOfATransportStream() throws {
        let workers = VideoFixture.workers()
        for second in 0..<4 {
            let frame = try VideoFixture.frame("seconds.ts", at: Double(second) + 0.5, workers: workers)
            #expect(frame.colorName() == VideoFixture.seconds[second], "\(second)")
        }
    }

    @Test(arguments: ["seconds.mp4", "moov-last.mp4", "seconds.mkv", "seconds.webm", "ten-bit.mp4"])
    func takesTheNearestKeyFrame(_ film: String) throws {
        let workers = VideoFixture.workers()
        for (second, color) in [
            (0.0, "red"), (0.9, "red"), (1.2, "blue"), (2.0, "blue"), (2.9, "blue"), (3.2, "cyan"), (3.95, "cyan"),
            (4.0, "cyan"), (6.0, "cyan"),
        ] {
            let frame = try VideoFixture.frame(film, at: second, .nearestKeyFrame, workers: workers)
            #expect(frame.colorName() == color, "\(film) near \(second)")
        }
    }

    @Test func takesAKeyFrameOfATransportStreamAtAnySecond() throws {
        let workers = VideoFixture.workers()
        for second in [0.0, 1.0, 2.0, 3.2, 3.9] {
            let frame = try VideoFixture.frame("seconds.ts", at: second, .nearestKeyFrame, workers: workers)
            #expect(["red", "blue"].contains(frame.colorName()), "\(second)")
        }
    }

    @Test func turnsFramesUpright() throws {
        let frame = try VideoFixture.frame("rotated.mp4", at: 0)
        #expect(frame.size == PixelSize(width: 90, height: 160))
        // The white band is below in the stored frame, the black one at its left.
        #expect(frame.colorName(0.9, 0.5) == "white")
        #expect(frame.colorName(0.3, 0.95) == "black")
        #expect(frame.colorName(0.3, 0.5) == "red")
        let fitted = try VideoFixture.source("rotated.mp4", at: .second(0))
            .image(RenderRequest(size: PixelSize(80)))
        #expect(fitted.size == PixelSize(width: 45, height: 80))
    }

    @Test func showsPixelsThatAreNotSquareInTheirShape() throws {
        let frame = try VideoFixture.frame("anamorphic.mp4", at: 0)
        #expect(frame.size == PixelSize(width: 102, height: 90))
        #expect(frame.colorName() == "red")
        let fitted = try VideoFixture.source("anamorphic.mp4", at: .second(0))
            .image(RenderRequest(size: PixelSize(51)))
        #expect(fitted.size == PixelSize(width: 51, height: 45))
    }

    @Test func readsInterlacedFrames() throws {
        let frame = try VideoFixture.frame("interlaced.mp4", at: 4.5)
        #expect(frame.colorName() == "cyan" && frame.colorName(0.5, 0.9) == "white")
    }

    @Test func bringsHighDynamicRangeToDisplayWhite() throws {
        let frame = try VideoFixture.frame("hdr.mp4", at: 0.5)
        #expect(frame.colorName() == "red")
        #expect(frame.colorName(0.5, 0.9) == "white")
        #expect(frame[80, 85].red > 240, "10,000 cd/m² are as bright as it gets")
        #expect(frame[4, 30].red < 16)
    }

    @Test func keepsEverySizeRule() throws {
        let workers = VideoFixture.workers()
        let film = try VideoFixture.source("seconds.mp4", at: .second(0), workers: workers)
        func size(_ request: RenderRequest) throws -> PixelSize { try film.image(request).size }
        let box = PixelSize(width: 40, height: 40)
        #expect(try size(RenderRequest(size: box)) == PixelSize(width: 40, height: 23))
        #expect(try size(RenderRequest(size: box, mode: .fill)) == PixelSize(width: 72, height: 40))
        #expect(try size(RenderRequest(size: box, mode: .crop(.center))) == box)
        #expect(try size(RenderRequest(size: box, mode: .stretch)) == box)
        #expect(try size(RenderRequest(size: PixelSize(320))) == PixelSize(width: 320, height: 180))
        #expect(
            try size(RenderRequest(size: PixelSize(320), allowsUpscaling: false)) == PixelSize(width: 160, height: 90))
        #expect(
            try size(RenderRequest(size: PixelSize(width: 80, height: 0), mode: .limit))
                == PixelSize(width: 80, height: 45))
    }

    @Test func givesSeveralSizesAtOnce() throws {
        let film = try VideoFixture.source("seconds.mp4", at: .second(2))
        let images = try film.images([80, 40, 20].map { RenderRequest(size: PixelSize($0)) })
        #expect(images.map(\.width) == [80, 40, 20])
        #expect(images.allSatisfy { $0.colorName() == "blue" })
    }

    @Test func readsFilmsFromMemory() throws {
        let source = VideoFrameSource(
            .bytes(try VideoFixture.bytes("seconds.mkv"), name: "film"), at: .second(2),
            workers: VideoFixture.workers())
        #expect(try source.image(VideoFixture.whole).colorName() == "blue")
    }

    @Test func clampsToTheLastFrameWhenAsked() throws {
        var film = try VideoFixture.source("seconds.mp4", at: .second(1_000))
        film.precision = .exact
        film.clampsToEnd = true
        #expect(try film.image(VideoFixture.whole).colorName() == "magenta")
    }
}
