import TestSupport
import Testing
import VitrineHelperProtocol
import VitrineImaging
import VitrinePipeline

/// The frame that stands for a film.
@Suite struct VideoPosterTests {
    @Test func takesTheFirstFrameThatShowsSomething() throws {
        #expect(try VideoFixture.poster("seconds.mp4").colorName() == "red")
    }

    @Test func skipsABlackBeginning() throws {
        let poster = try VideoFixture.poster("black-intro.mp4")
        #expect(poster.colorName(0.25) == "white" && poster.colorName(0.75) == "red")
    }

    @Test func looksBetweenKeyFramesWhenThereAreFew() throws {
        let poster = try VideoFixture.poster("black-one-key.mp4")
        #expect(poster.colorName(0.25) == "white" && poster.colorName(0.75) == "red")
    }

    @Test func takesABlackFrameWhenThereIsNothingElse() throws {
        #expect(try VideoFixture.poster("all-black.mp4").colorName() == "black")
    }

    @Test func takesTheAttachedPictureWhenAsked() throws {
        let workers = VideoFixture.workers()
        for name in ["cover.mp4", "cover.mp3"] {
            var source = try VideoFixture.source(name, at: .poster, workers: workers)
            source.prefersCoverArt = true
            let cover = try source.image(VideoFixture.whole)
            #expect(cover.size == PixelSize(64))
            let color = cover[32, 32]
            #expect(color.red > 240 && (150...180).contains(color.green) && color.blue < 16, "\(name)")
        }
        #expect(try VideoFixture.poster("cover.mp4", workers: workers).colorName() == "red")
    }

    /// The helper itself, which is asked only for covers that are not found in this process.
    @Test func helperTakesTheAttachedPicture() throws {
        var parameters = VideoParameters()
        parameters.prefersCover = true
        let input = try ByteSource(.bytes(try VideoFixture.bytes("cover.mp4")))
        let drawn = try VideoFixture.workers().render(input, target: nil, parameters: parameters.encoded())
        #expect(drawn.planes.first?.width == 64)
    }
}
