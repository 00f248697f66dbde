import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrineNetwork
import VitrinePipeline

@Suite struct BuiltInSourceTests {
    private let path = Samples.path("lake.jpg")

    @Test func optionsOfFilesReachTheirSource() throws {
        let plain = try #require(BuiltInSource.file(path).base as? ImageFileSource)
        #expect(plain.page == 1 && plain.sizing == .box && !plain.allowsEmbeddedPreview && !plain.allowsPartial)
        let chosen = BuiltInSource.file(
            path, page: 2, fitsLongestSide: true, allowsEmbeddedPreview: true, allowsPartial: true)
        let source = try #require(chosen.base as? ImageFileSource)
        #expect(source.page == 2 && source.sizing == .longestSide)
        #expect(source.allowsEmbeddedPreview && source.allowsPartial)
        #expect(try #require(BuiltInSource.bytes([1], page: 3).base as? ImageFileSource).page == 3)
    }

    @Test func optionsOfVideosReachTheirSource() throws {
        let plain = try #require(BuiltInSource.video("a.mp4").base as? VideoFrameSource)
        #expect(plain.moment == .poster && plain.precision == .nearestKeyFrame)
        #expect(!plain.clampsToEnd && !plain.prefersCoverArt)
        let chosen = BuiltInSource.video(
            "a.mp4", at: .second(2), isExact: true, clampsToEnd: true, prefersCoverArt: true)
        let source = try #require(chosen.base as? VideoFrameSource)
        #expect(source.moment == .second(2) && source.precision == .exact)
        #expect(source.clampsToEnd && source.prefersCoverArt)
    }

    @Test func optionsOfWebPagesReachTheirSource() throws {
        let plain = try #require(BuiltInSource.webPage("https://example.org").base as? WebPageSource)
        #expect(plain.allowedSchemes == [.http, .https] && plain.viewportWidth == nil)
        #expect(!plain.showsFullPage && plain.usesSandbox && plain.policy.allowsPrivateAddresses)
        let chosen = BuiltInSource.webPage(
            "file:///a.html", viewportWidth: 800, showsFullPage: true, policy: .publicOnly, schemes: [.file],
            usesSandbox: false)
        let source = try #require(chosen.base as? WebPageSource)
        #expect(source.allowedSchemes == [.file] && source.viewportWidth == 800)
        #expect(source.showsFullPage && !source.usesSandbox && !source.policy.allowsPrivateAddresses)
    }

    @Test func partsOfURLsReachTheirSource() throws {
        let url = try #require(URL(string: "https://example.org/a"))
        func part(_ source: BuiltInSource) throws -> URLImageSource.Part {
            try #require(source.base as? URLImageSource).part
        }
        #expect(try part(.url(url)) == .whole)
        #expect(try part(.url(url, page: 3)) == .page(3))
        #expect(try part(.url(url, at: .second(12))) == .moment(.second(12)))
        #expect(BuiltInSource.url(url).knownIdentity == ImageRequest(url).source.knownIdentity)
        #expect(BuiltInSource.url(url, id: "a").knownIdentity != BuiltInSource.url(url).knownIdentity)
        #expect(try BuiltInSource.url(url).identified(by: "mine").identity() == "mine")
    }

    /// The only test that changes them: tests run at the same time.
    @Test func defaultOptionsCanBeChosenForAll() throws {
        let before = FetchOptions.default
        defer { FetchOptions.default = before }
        let url = try #require(URL(string: "http://signed.example/x?signature=1"))
        FetchOptions.default.identity = { $0.host() == "signed.example" ? $0.path() : nil }
        #expect(NetworkFetcher<String>(url: url).key == "/x")
        #expect(BuiltInSource.url(url).knownIdentity == ImageRequest(url).source.knownIdentity)
        let other = try #require(URL(string: "http://signed.example/x?signature=2"))
        #expect(BuiltInSource.url(url).knownIdentity == BuiltInSource.url(other).knownIdentity)
    }

    @Test func requestsHoldTheSourceItself() throws {
        let request = ImageRequest(.file(path))
        #expect(request.source is ImageFileSource)
        #expect(try request.source.identity() == BuiltInSource.file(path).identity())
    }

    @Test func identitiesCanBeSet() async throws {
        let service = ImagePipeline.withoutDisk()
        let source = BuiltInSource.file(path).identified(by: "lake")
        #expect(source.knownIdentity == "lake")
        _ = try await service.image(for: ImageRequest(source, size: .fit(16)))
        let again = BuiltInSource.bytes([], name: "never read").identified(by: "lake")
        #expect(service.cachedImage(for: ImageRequest(again, size: .fit(16)))?.size.longestSide == 16)
    }
}
