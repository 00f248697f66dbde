#if SystemCodecs
import Foundation
import TestSupport
import Testing
import VitrineImaging
import VitrinePipeline

/// What a library lists, and what it knows of it.
@Suite struct MediaLibraryTests {
    @Test func listsPhotosAndVideosByDateOfCapture() async throws {
        let folder = try MediaFolder()
        try folder.photo("b/second.jpg", taken: "2021:05:06 12:00:00")
        try folder.photo("first.jpg", taken: "2021:05:06 13:00:00", offset: "+02:00")
        try folder.photo("b/c/third.JPG", taken: "2022:01:01 00:00:00")
        try folder.write(VideoFixture.bytes("seconds.mp4"), "film.mp4")
        try folder.write([1, 2, 3], "notes.txt")
        let library = folder.library()
        #expect(library.assets.isEmpty)
        try await library.scan()
        #expect(Set(folder.names(library.assets)) == ["b/second.jpg", "first.jpg", "b/c/third.JPG", "film.mp4"])
        await library.settle()
        #expect(folder.names(library.assets.filter { $0.isPhoto }) == ["first.jpg", "b/second.jpg", "b/c/third.JPG"])
        #expect(library.assets.filter { $0.isPhoto }.map { $0.captureDate.timeIntervalSince1970 }
            == [1_620_298_800, 1_620_302_400, 1_640_995_200])
        #expect(library.assets.allSatisfy { $0.isHeaderRead })
        let film = try #require(library.assets.first { $0.isVideo })
        let bytes = try VideoFixture.bytes("seconds.mp4")
        #expect(film.size.bytes == bytes.count)
        #expect(film.duration.map { $0 > 5 && $0 < 7 } == true)
    }

    @Test func takesDatesWithoutAZoneForTheLibrarys() async throws {
        let folder = try MediaFolder()
        try folder.photo("a.jpg", taken: "2021:07:01 12:00:00")
        try folder.photo("b.jpg", taken: "2021:01:01 12:00:00")
        let zone = try #require(TimeZone(identifier: "Europe/Berlin"))
        let library = folder.library { $0.timeZone = zone }
        try await library.scan()
        await library.settle()
        // Summer time is two hours ahead, winter time one.
        #expect(library.assets.map { $0.captureDate.timeIntervalSince1970 } == [1_609_498_800, 1_625_133_600])
    }

    @Test func hasTheFilesDateWhereThereIsNoOther() async throws {
        let folder = try MediaFolder()
        try folder.photo("a.jpg")
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: 1_000_000_000)], ofItemAtPath: folder.path("a.jpg"))
        let library = folder.library()
        try await library.scan()
        await library.settle()
        #expect(library.assets.map { $0.captureDate.timeIntervalSince1970 } == [1_000_000_000])
        #expect(library.assets.map { $0.modified } == library.assets.map { $0.captureDate })
    }

    @Test(arguments: [(1, 8, 6), (6, 6, 8)])
    func knowsSizesUpright(orientation: Int, width: Int, height: Int) async throws {
        let folder = try MediaFolder()
        try folder.photo("a.jpg", orientation: orientation)
        let library = folder.library()
        try await library.scan()
        await library.settle()
        #expect(library.assets.first?.pixelSize == PixelSize(width: width, height: height))
    }

    @Test func looksIntoFilesWhoseNamesLeaveItOpen() async throws {
        let folder = try MediaFolder()
        try folder.photo("IMG_1")
        try folder.write(VideoFixture.bytes("seconds.ts"), "stream.ts")
        try folder.write(Array("export const answer: number = 42\n".utf8), "program.ts")
        try folder.write(VideoFixture.bytes("seconds.webm"), "film.dat")
        try folder.write(VideoFixture.bytes("sound.m4a"), "sound.bin")
        try folder.write(VideoFixture.bytes("seconds.avi"), "really-a-film.jpg")
        try folder.write([], "empty")
        try folder.write([0xFF], "broken.jpg")
        let library = folder.library()
        try await library.scan()
        await library.settle()
        #expect(Set(folder.names(library.assets.filter { $0.isPhoto })) == ["IMG_1", "broken.jpg"])
        #expect(Set(folder.names(library.assets.filter { $0.isVideo })) == ["stream.ts", "film.dat", "really-a-film.jpg"])
    }

    @Test(arguments: ["mp4", "mkv", "webm", "avi", "ts"])
    func knowsFilmsByTheirBeginning(suffix: String) throws {
        let film = try VideoFixture.bytes("seconds.\(suffix)").prefix(VideoSignature.length)
        #expect(VideoSignature.matches(Array(film)))
        for name in Samples.names {
            let picture = try Samples.bytes(name).prefix(VideoSignature.length)
            #expect(!VideoSignature.matches(Array(picture)), "\(name)")
        }
    }

    @Test func leavesOutHiddenFilesAndCaches() async throws {
        let folder = try MediaFolder()
        for name in [
            "a.jpg", ".hidden.jpg", ".thumbnails/b.jpg", "@eaDir/c.jpg", "tagged/d.jpg", "tagged/deep/e.jpg",
            "untagged/f.jpg", "node_modules/g.jpg",
        ] { try folder.photo(name) }
        try folder.write(Array("Signature: 8a477f597d28d172789f06886806bc55\n".utf8), "tagged/CACHEDIR.TAG")
        try folder.write(Array("something else".utf8), "untagged/CACHEDIR.TAG")
        let library = folder.library()
        try await library.scan()
        #expect(Set(folder.names(library.assets)) == ["a.jpg", "untagged/f.jpg"])
    }

    @Test func goesRoundNoCircles() async throws {
        let folder = try MediaFolder()
        let other = try MediaFolder()
        try other.photo("outside.jpg")
        try folder.photo("a/b/photo.jpg")
        try folder.link("a/b/up", to: "..")
        try folder.link("a/self", to: ".")
        try folder.link("0-same", to: "a/b")
        try folder.link("outside", to: other.path)
        try folder.link("nowhere", to: "nothing")
        try folder.link("linked.jpg", to: "a/b/photo.jpg")
        let library = folder.library()
        try await library.scan()
        #expect(Set(folder.names(library.assets)) == ["a/b/photo.jpg", "outside/outside.jpg", "linked.jpg"])
        let own = folder.library { $0.followsDirectoryLinks = false }
        try await own.scan()
        #expect(Set(folder.names(own.assets)) == ["a/b/photo.jpg", "linked.jpg"])
    }

    @Test func listsTheKindsAskedFor() async throws {
        let folder = try MediaFolder()
        try folder.photo("a.jpg")
        try folder.write(VideoFixture.bytes("seconds.mp4"), "b.mp4")
        let library = folder.library { $0.kinds = [.video] }
        try await library.scan()
        await library.settle()
        #expect(folder.names(library.assets) == ["b.mp4"])
    }

    @Test func readsNoHeadersWhenNotAsked() async throws {
        let folder = try MediaFolder()
        try folder.photo("a.jpg", taken: "2001:01:01 01:01:01")
        let library = folder.library { $0.readsHeaders = false }
        try await library.scan()
        await library.settle()
        #expect(library.assets.first.map { $0.captureDate == $0.modified && $0.pixelSize == nil } == true)
    }

    @Test func listsTenThousandFilesWithoutReadingThem() async throws {
        let folder = try MediaFolder()
        for index in 0..<10_000 { try folder.write([0xFF], "\(index / 500)/\(index).jpg") }
        let library = folder.library { $0.readsHeaders = false }
        try await library.scan()
        #expect(library.assets.count == 10_000)
        #expect(library.assets.allSatisfy { !$0.isHeaderRead })
    }

    @Test func namesADirectoryThatIsNotThere() async throws {
        let folder = try MediaFolder()
        try folder.photo("a.jpg")
        for path in [folder.path("nothing"), folder.path("a.jpg")] {
            let error = await #expect(throws: ImagePipelineError.self) { try await MediaLibrary(directory: path).scan() }
            #expect(error?.caseName == "unreadable" && error?.source == path)
        }
    }

    @Test func makesThumbnailsOfWhatItLists() async throws {
        let folder = try MediaFolder()
        try folder.write(Samples.bytes("orientation-6.jpg"), "photo.jpg")
        try folder.write(VideoFixture.bytes("seconds.mp4"), "film.mp4")
        let library = folder.library()
        try await library.scan()
        await library.settle()
        let photo = MediaLibrarySource(try #require(library.assets.first { $0.isPhoto }))
        let request = RenderRequest(size: PixelSize(32))
        #expect(try photo.image(request) == ImageFileSource(path: folder.path("photo.jpg")).image(request))
        #expect(try photo.identity() == ImageFileSource(path: folder.path("photo.jpg")).identity())
        let asset = try #require(library.assets.first { $0.isVideo })
        var film = MediaLibrarySource(asset, workers: VideoFixture.workers())
        film.second = 2.5
        #expect(try film.image(request).colorName() == "blue")
        let poster = MediaLibrarySource(asset, workers: VideoFixture.workers())
        #expect(try poster.image(request).colorName() == "red")
        #expect(try poster.identity() != film.identity())
    }
}
#endif
