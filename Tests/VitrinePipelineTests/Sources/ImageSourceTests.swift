import Testing
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// What every source gets without writing it.
@Suite struct ImageSourceTests {
    /// A picture of one size, and a count of how often it was asked for.
    private final class Picture: BlockingImageSource {
        let image: PixelImage
        let requests = Locked<[RenderRequest]>([])

        init(_ width: Int, _ height: Int) {
            image = PixelImage(size: PixelSize(width: width, height: height), color: .black)
        }

        func identity() -> CacheKey { "picture" }

        func image(_ request: RenderRequest) throws -> PixelImage {
            requests.withLock { $0.append(request) }
            return try request.resizer.resize(image)
        }
    }

    @Test func asksOnceForSeveralSizes() throws {
        let sizes = [64, 256, 128]
        let modes: [ImageResizer.Mode] = [.fit, .fill, .crop(.center), .stretch, .limit, .none]
        for mode in modes {
            for allowsUpscaling in [true, false] {
                let requests = sizes.map {
                    RenderRequest(size: PixelSize($0), mode: mode, allowsUpscaling: allowsUpscaling)
                }
                for picture in [Picture(1_000, 500), Picture(500, 1_000), Picture(100, 50), Picture(200, 200)] {
                    let together = try picture.images(requests)
                    #expect(picture.requests.withLock { $0.count } == 1)
                    let alone = try requests.map(picture.image)
                    #expect(together.map(\.size) == alone.map(\.size), "\(mode)")
                }
            }
        }
    }

    @Test func asksForNoMoreThanTheLargest() throws {
        let picture = Picture(1_000, 500)
        _ = try picture.images([RenderRequest(size: PixelSize(64)), RenderRequest(size: PixelSize(256))])
        #expect(picture.requests.withLock { $0[0].size } == PixelSize(256))
        #expect(picture.requests.withLock { $0[0].mode } == .fit)
        #expect(try picture.images([]).isEmpty)
    }

    @Test func keepsEachModeAmongMixedOnes() throws {
        let picture = Picture(1_000, 500)
        let requests = [
            RenderRequest(size: PixelSize(300)), RenderRequest(size: PixelSize(100), mode: .crop(.center)),
            RenderRequest(size: PixelSize(width: 0, height: 50), mode: .limit),
        ]
        #expect(
            try picture.images(requests).map(\.size)
                == [PixelSize(width: 300, height: 150), PixelSize(100), PixelSize(width: 100, height: 50)])
    }

    @Test func givesNoPlaceholderOfItsOwn() throws {
        #expect(try Picture(1, 1).preview(RenderRequest(size: PixelSize(9))) == nil)
        #expect(!Picture(1, 1).requiresMainActor)
    }

    @Test(arguments: [
        ("/home/a/b.pdf", "/home/a", "~/b.pdf"), ("/home/a/b.pdf", "/home/a/", "~/b.pdf"),
        ("/home/ab/c.pdf", "/home/a", "/home/ab/c.pdf"), ("/b.pdf", "/", "/b.pdf"), ("b.pdf", "", "b.pdf"),
    ])
    func knowsFilesRelativeToHome(path: String, home: String, relative: String) {
        #expect(FileIdentity.relativeToHome(path, home: home) == relative)
    }
}
