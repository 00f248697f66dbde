// Names that the snippets of the documentation use without a declaration. A snippet sees the context of its module, and
// then this file. A comment `<!-- prelude: … -->` in front of a snippet adds declarations, and `<!-- prelude: none … -->`
// exempts it.
import Foundation
import Vitrine
import VitrineCompatibility

// Nothing here is ever run.
var path: String { "/tmp/a" }
var file: String { path }
var backup: String { path }
var bytes: [UInt8] { [] }
var compressed: [UInt8] { [] }
var key: CacheKey { "key" }
var url: URL { URL(filePath: path) }
var token: String { "secret" }
var month: String { "2026-11" }
var urls: [URL] { [url] }
var signedURL: URL { url }
var icon: URL { url }
var glow: URL { url }
var large: URL { url }
var medium: URL { url }
var small: URL { url }
var upcoming: [URL] { [url] }
var scrolledAway: [URL] { [url] }
var image: PixelImage { PixelImage(size: PixelSize(1), color: .white) }
var photo: PixelImage { image }
var thumbnail: PixelImage { image }
var tile: PixelImage { image }
var cache: ValueCache<PixelImage> { SharedCaches.images }
var fetcher: NetworkFetcher<PixelImage> { NetworkFetcher(url: url) }
var service: ImagePipeline { ImagePipeline() }
var pipeline: ImagePipeline { .shared }
var decoder: ImageDecoder { ImageDecoder() }
var loader: NetworkLoader { NetworkLoader.shared }
var pictures: ObservedCache<PixelImage> { ObservedCache(cache) }
var page: BuiltInSource { .pdf(path) }
var chunks: [[UInt8]] { [] }

func show<Value>(_ value: Value) {}
func next() throws -> [UInt8]? { nil }
func decode(_ path: String) async throws -> PixelImage { image }
func makeThumbnail(_ key: CacheKey) async throws -> PixelImage { image }
func drawChart(_ month: String) async throws -> PixelImage { image }

final class Cell: LoadObserver {
    var image: PixelImage? {
        get { nil }
        set {}
    }
    func show<Value>(_ value: Value) {}
    var imageBinding: ImageBinding<VitrineViewsContext.Picture> { ImageBinding(VitrineViewsContext.Picture()) }
    func resourceDidLoad(_ image: PixelImage, from url: URL) {}
}
var cell: Cell { Cell() }
var view: Cell { cell }
var imageView: Cell { cell }

struct Bar { var value = 0.0 }
var bar: Bar {
    get { Bar() }
    set {}
}
struct Caption { var text = "" }
var caption: Caption {
    get { Caption() }
    set {}
}

/// Anything that bytes are written to.
struct Output { func write(_ bytes: [UInt8]) throws {} }

struct Weather { func report(_ city: String) async throws -> String { city } }
var weather: Weather { Weather() }

struct Place: PersistentRecord {
    static let persistentName = "Place"
    static func describe(in record: inout RecordBuilder) { record.header(version: "1") }
    func persistProperties(to writer: inout BinaryWriter) {}
    init(restoring reader: inout BinaryReader) throws(PersistenceError) {}
    init() {}
}
typealias Foo = Place
typealias SubFoo = Place
var foo: Place { Place() }
var place: Place { Place() }

/// A codec of the program's own.
let myCodec: Codec = {
    let format = ImageFormat("mine", mediaTypes: ["image/x-mine"], fileExtensions: ["mine"])
    return Codec(format) { _ in
        false
    } info: { _ in
        ImageInfo(format: format, storedSize: PixelSize(1))
    } decode: { _, _ in
        image
    }
}()

enum VitrineContext {
    static var store: KeyValueStore { preconditionFailure("never run") }
}
enum VitrineCoreContext {
    static var cache: MemoryCache<CacheKey, PixelImage> { MemoryCache(capacity: .megabytes(1)) }
}
enum VitrineCacheContext {
    static var cache: ValueCache<String> { SharedCaches.strings }
    static var fetcher: NetworkFetcher<String> { NetworkFetcher(url: url) }
    static var configuration: CacheConfiguration {
        get { CacheConfiguration() }
        set {}
    }
    static var small: CacheFormat<PixelImage> {
        get { CacheFormat("small") { $0 } }
        set {}
    }
    static var large: CacheFormat<PixelImage> {
        get { small }
        set {}
    }
    struct Note { var key: CacheKey }
    static var notes: [Note] { [] }
    struct User: Decodable {}
    struct WeatherFetcher: Fetcher {
        let city: String
        var key: CacheKey { CacheKey("weather", city) }
        func fetch(_ context: FetchContext) async throws -> FetchResult<String> { FetchResult(value: city) }
    }
}
enum VitrineImagingContext {
    static var chunks: AsyncStream<[UInt8]> { AsyncStream { $0.finish() } }
}
enum VitrineModelsContext {
    static var store: ObjectStore { preconditionFailure("never run") }
}
enum VitrineNetworkContext {
    static var request: HTTPRequest { HTTPRequest(url: url) }
    static var response: HTTPResponse { preconditionFailure("never run") }
    static var file: Output { Output() }
}
enum VitrineDownloadsContext {
    static var request: DownloadRequest {
        get { DownloadRequest(url) }
        set {}
    }
    static var mirror: URL { url }
    static var download: Download { preconditionFailure("never run") }
}
enum VitrineStoresContext {
    static var store: FileStore { FileStore() }
    static var shelf: ImageStore { ImageStore() }
    enum Theme: String, Codable { case dark, light }
    enum Settings { static let volume = ValueKey<Double>("volume", default: 0.5) }
    static var pages: [(name: String, bytes: [UInt8])] { [] }
    static func rename(_ name: String, _ newName: String) {}
    static func remove(_ name: String) {}
}
enum VitrinePipelineContext {
    struct Database: Sendable { func avatar(of user: Int) async throws -> [UInt8] { [] } }
    static var database: Database { Database() }
    struct AvatarFetcher: Fetcher {
        let user: Int
        var key: CacheKey { CacheKey("avatar \(user)") }
        func fetch(_ context: FetchContext) async throws -> FetchResult<Data> {
            FetchResult(bytes: try await database.avatar(of: user))
        }
    }
    static func update<Changes>(_ changes: Changes) {}
}
enum VitrineWebPagesContext {
}
enum VitrineCompatibilityContext {
    static var resources: ObservedCache<PixelImage> { pictures }
}
enum VitrineViewsContext {
    @MainActor final class Picture: ImageTarget {
        func show(_ image: PixelImage?, transition: ImageTransition) {}
    }
    @MainActor static var picture: Picture { Picture() }
    @MainActor static var binding: ImageBinding<Picture> { ImageBinding(picture) }
    @MainActor final class Button: MultiImageTarget {
        enum State { case normal, highlighted }
        enum Slot: Hashable, Sendable { case image(State), background(State) }
        func show(_ image: PixelImage?, in slot: Slot, transition: ImageTransition) {}
    }
    @MainActor static var button: Button { Button() }
}
