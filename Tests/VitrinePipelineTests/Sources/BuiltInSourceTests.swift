import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrineNetwork
import VitrinePipeline

@Suite struct BuiltInSourceTests {
    private let path = Samples.path("lake.jpg")

    @Test func optionsOfFilesReachTheirSource() throws {
        let plain = try #require(BuiltInSource.file(path).base as? ImageFileSource)
        #expect(plain.options == DecodeOptions() && plain.sizing == .box)
        let chosen = BuiltInSource.file(
            path, page: 2, fitsLongestSide: true, allowsEmbeddedPreview: true, allowsPartial: true)
        let source = try #require(chosen.base as? ImageFileSource)
        #expect(source.page == 2 && source.sizing == .longestSide)
        #expect(source.options.allowsEmbeddedPreview && source.options.allowsPartial)
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
        #expect(try BuiltInSource.url(url).identified(by: "mine").identityBlocking() == "mine")
    }

    /// The only test that changes them: tests run at the same time.
    @Test func defaultOptionsCanBeChosenForAll() throws {
        let before = FetchOptions.default
        defer { FetchOptions.default = before }
        let url = try #require(URL(string: "http://signed.example/x?signature=1"))
        FetchOptions.default.identity = { $0.host() == "signed.example" ? $0.path() : nil }
        #expect(NetworkFetcher<String>(url: url).key == "http://signed.example/x")
        #expect(BuiltInSource.url(url).knownIdentity == ImageRequest(url).source.knownIdentity)
        let other = try #require(URL(string: "http://signed.example/x?signature=2"))
        #expect(BuiltInSource.url(url).knownIdentity == BuiltInSource.url(other).knownIdentity)
    }

    @Test func requestsHoldTheSourceItself() throws {
        let request = ImageRequest(.file(path))
        #expect(request.source is ImageFileSource)
        #expect(try request.source.identityBlocking() == BuiltInSource.file(path).identityBlocking())
    }

    @Test func identitiesCanBeSet() async throws {
        let service = ImagePipeline.withoutDisk()
        let source = BuiltInSource.file(path).identified(by: "lake")
        #expect(source.knownIdentity == "lake")
        _ = try await service.image(for: ImageRequest(source, resizing: .fit(16)))
        let again = BuiltInSource.bytes([], name: "never read").identified(by: "lake")
        #expect(service.cachedImage(for: ImageRequest(again, resizing: .fit(16)))?.size.longestSide == 16)
    }

    // MARK: Fetchers

    /// Gives the bytes of a sample, and counts the fetches.
    private struct SampleFetcher: Fetcher {
        var key: CacheKey = "sample"
        var timeToLive: Duration?
        var levels: CacheLevels = .all
        let fetches = Counter()

        func fetch(_ context: FetchContext) async throws -> FetchResult<Data> {
            fetches.add(1)
            if key == "none" { throw TestFailure() }
            let bytes = key == "damaged" ? Array("no picture".utf8) : try Samples.bytes("lake.jpg")
            return FetchResult(value: Data(bytes), timeToLive: timeToLive, levels: levels)
        }
    }

    @Test func fetchersGiveTheBytesOfImages() async throws {
        let directory = try TemporaryDirectory(), clock = ManualClock()
        let service = ImagePipeline.stored(in: directory) { $0.clock = .following(clock, from: .seconds(1_000_000)) }
        let fetcher = SampleFetcher(timeToLive: .seconds(60))
        let small = ImageRequest(.fetcher(fetcher), resizing: .fit(16))
        #expect(try await service.image(for: small).size.longestSide == 16)
        // Another size is made from the same bytes.
        #expect(try await service.image(for: ImageRequest(.fetcher(fetcher), resizing: .fit(64))).size.longestSide == 64)
        #expect(fetcher.fetches.value == 1)
        #expect(service.cachedImage(for: small) != nil)
        clock.advance(by: .seconds(61))
        #expect(service.cachedImage(for: small) == nil)
        _ = try await service.image(for: small)
        #expect(fetcher.fetches.value == 2)
        // The key is the image's identity, apart from those of URLs.
        let other = BuiltInSource.fetcher(SampleFetcher(key: "http://127.0.0.1/a"))
        #expect(other.knownIdentity != small.source.knownIdentity)
        #expect(other.knownIdentity != BuiltInSource.url(try #require(URL(string: "http://127.0.0.1/a"))).knownIdentity)
        #expect(BuiltInSource.fetcher(fetcher, page: 2).knownIdentity != BuiltInSource.fetcher(fetcher).knownIdentity)
    }

    @Test func fetchersSayWhereImagesAreKept() async throws {
        let service = ImagePipeline.stored(in: try TemporaryDirectory())
        let secret = SampleFetcher(key: "secret", levels: [])
        let request = ImageRequest(.fetcher(secret), resizing: .fit(16))
        for count in 1...2 {
            _ = try await service.image(for: request)
            #expect(secret.fetches.value == count)
        }
        #expect(await !service.contains(request))
        for (key, isDamaged) in [("none", false), ("damaged", true)] {
            let fetcher = SampleFetcher(key: CacheKey(key))
            let error = await #expect(throws: ImagePipelineError.self) {
                try await service.image(for: ImageRequest(.fetcher(fetcher), resizing: .fit(16)))
            }
            #expect(error?.source == key)
            if case .underlying(_, is TestFailure)? = error { #expect(!isDamaged) } else { #expect(isDamaged) }
            // Bytes that no image can be made from are not kept.
            _ = try? await service.image(for: ImageRequest(.fetcher(fetcher), resizing: .fit(16)))
            #expect(fetcher.fetches.value == 2)
        }
    }

    @Test func fetchersGivePixels() async throws {
        let service = ImagePipeline.withoutDisk()
        let calls = Counter()
        let fetcher = ValueFetcher<PixelImage>(key: "drawing") {
            calls.add(1)
            return PixelImage(size: PixelSize(32), color: .white)
        }
        let request = ImageRequest(.fetcher(fetcher), resizing: .fit(8))
        let image = try await service.image(for: request)
        #expect(image.size == PixelSize(8) && image[0, 0] == .white)
        #expect(try await service.image(for: request) == image)
        #expect(calls.value == 1)
    }
}
