import Foundation
import TestSupport
import Testing
import Vitrine
import VitrineCompatibility

#if os(Linux)
/// Images by their URLs, over HTTP.
struct ImageURLCacheTests {
    nonisolated private final class View: LoadObserver {
        let sizes = Recorder<PixelSize?>()
        private let told = Gate()

        func resourceDidLoad(_ image: PixelImage, from url: URL) {
            sizes.add(image.size)
            told.open()
        }

        func resourceDidFail(_ error: CacheError, from url: URL) {
            sizes.add(nil)
            told.open()
        }

        func wait() async -> PixelSize?? {
            await told.wait()
            return sizes.all.first
        }
    }

    private func images(_ directory: TemporaryDirectory) -> ObservedCache<PixelImage> {
        var curl = CurlLoader.Configuration()
        curl.proxy = .none
        var loading = NetworkLoader.Configuration()
        loading.retries.limit = 0
        let cache = ValueCache<PixelImage>(name: "images", configuration: CacheConfiguration(root: directory.path))
        return .images(in: cache, options: FetchOptions(loader: NetworkLoader(CurlLoader(curl), loading)))
    }

    @Test func imagesComeFromTheNetworkOnceThenFromDiskThenFromMemory() async throws {
        let bytes = try Samples.bytes("lake.jpg")
        let size = try ImageDecoder().decode(.bytes(bytes, name: "lake")).size
        let server = try LoopbackServer { _ in
            [.reply(200, ["Content-Type: image/jpeg", "Cache-Control: max-age=60"], body: bytes)]
        }
        let directory = try TemporaryDirectory()
        let (images, url) = (images(directory), server.url("/lake.jpg"))
        let view = View()
        #expect(images.value(at: url, depth: .disk, observer: nil) == nil)
        #expect(images.value(at: url, observer: view) == nil)
        #expect(await view.wait() == size)
        #expect(images.value(at: url, depth: .memory, observer: view)?.size == size)
        // The bytes are stored as they came.
        try await images.cache.flush()
        #expect(try await images.cache.bytes(forKey: images.key(for: url)) == bytes)
        try await images.cache.removeAll(levels: .memory)
        #expect(try await images.value(at: url, depth: .disk).size == size)
        #expect(server.requests.count == 1 && server.requests[0].header("Accept") == "image/*")
    }

    @Test(arguments: [(200, "text/html"), (404, "image/jpeg"), (500, "image/jpeg")])
    func whatIsNoImageIsRefusedAndNotStored(_ status: Int, _ type: String) async throws {
        let bytes = try Samples.bytes("lake.jpg")
        let server = try LoopbackServer { _ in [.reply(status, ["Content-Type: \(type)"], body: bytes)] }
        let directory = try TemporaryDirectory()
        let images = images(directory)
        let (view, url) = (View(), server.url("/lake.jpg"))
        #expect(images.value(at: url, observer: view) == nil)
        #expect(await view.wait() == .some(nil))
        #expect(await images.depth(of: url) == .source)
    }
}
#endif
