import Foundation
import TestSupport
import Testing
import VitrineCompatibility
import VitrineCore
import VitrineImaging
import VitrineStores

@Suite struct ImageStoreTests {
    private let temporary: TemporaryDirectory

    init() throws { temporary = try TemporaryDirectory() }

    private func store(_ change: (inout ImageStore.Configuration) -> Void = { _ in }) -> ImageStore {
        var configuration = ImageStore.Configuration()
        configuration.durability = .relaxed
        change(&configuration)
        return ImageStore(.root(temporary.path), path: ["shelf"], configuration: configuration)
    }

    private static func gradient(_ width: Int, _ height: Int, alpha: Bool = false) -> PixelImage {
        var image = PixelImage(size: PixelSize(width: width, height: height), color: alpha ? .clear : .white)
        image.withUnsafeMutableBytes { bytes in
            for y in 0..<height {
                for x in 0..<width {
                    let offset = y * width * 4 + x * 4
                    guard offset + 3 < bytes.count else { continue }
                    bytes[offset] = UInt8(x * 255 / max(1, width - 1))
                    bytes[offset + 1] = UInt8(y * 255 / max(1, height - 1))
                    if alpha { bytes[offset + 3] = 255 }
                }
            }
        }
        return image
    }

    private func format(_ store: ImageStore, _ name: String, _ version: ImageStore.Version = .original) throws -> ImageFormat {
        try ImageInfo(of: .file(store.path(of: name, as: version))).format
    }

    @Test func bytesOfWhichNothingIsAskedStayAsTheyAre() async throws {
        let store = store()
        let bytes = try Samples.bytes("lake.jpg")
        try await store.save(bytes, as: "Bodensee.jpg")
        #expect(try await store.load("Bodensee.jpg") == bytes)
        try await store.save(fileAt: Samples.path("lake.webp"), as: "lake")
        #expect(try await store.load("lake") == Samples.bytes("lake.webp"))
        let thumbnail = try await store.image("lake", as: .thumbnail)
        #expect(thumbnail.size.longestSide == 256)
        #expect(try format(store, "lake", .thumbnail) == .webp)
        #expect(try await store.names == ["Bodensee.jpg", "lake"])
    }

    @Test func thumbnailsLieBesideTheirPictures() async throws {
        let store = store()
        try await store.save(Self.gradient(400, 200), as: "a.png")
        #expect(try store.path(of: "a.png", as: .thumbnail) == store.files.directory + "/thumbnail/a.png")
        let thumbnail = try ImageInfo(of: .file(store.path(of: "a.png", as: .thumbnail)))
        #expect(thumbnail.size == PixelSize(width: 256, height: 128) && thumbnail.format == .png)
        #expect(try await store.image("a.png").size == PixelSize(width: 400, height: 200))
        #expect(throws: StoreError.self) { try store.path(of: "thumbnail") }
    }

    @Test func theExtensionSaysTheFormat() async throws {
        let store = store()
        for (name, expected) in [("a.jpg", ImageFormat.jpeg), ("a.png", .png), ("a.webp", .webp), ("a", .jpeg), ("a.txt", .jpeg)] {
            try await store.save(Self.gradient(40, 20), as: name)
            #expect(try format(store, name) == expected, "\(name)")
        }
        try await store.save(Self.gradient(40, 20, alpha: true), as: "clear")
        // A JPEG that is to be called a PNG becomes one.
        try await store.save(fileAt: Samples.path("lake.jpg"), as: "lake.png")
        #expect(try format(store, "lake.png") == .png)
        // What cannot be written under its extension stays what it is.
        try await store.save(fileAt: Samples.path("lake.jpg"), as: "lake.tiff")
        #expect(try format(store, "lake.tiff") == .jpeg)
        try await self.store { $0.format = .webp }.save(fileAt: Samples.path("lake.jpg"), as: "w")
        #expect(try format(store, "w") == .webp)
    }

    @Test func reducesAndCompressesAsEarlierLibrariesSaidTheyDid() async throws {
        var configuration = ImageStore.Configuration.reduced
        configuration.durability = .relaxed
        let store = ImageStore(.root(temporary.path), configuration: configuration)
        try await store.save(Self.gradient(1000, 1000), as: "square.jpg")
        #expect(try await store.image("square.jpg").size == PixelSize(600))
        try await store.save(Self.gradient(1600, 1200), as: "wide.jpg")
        #expect(try await store.image("wide.jpg").size == PixelSize(width: 800, height: 600))
        #expect(try await store.image("wide.jpg", as: .thumbnail).size == PixelSize(width: 133, height: 100))
        try await store.save(Self.gradient(80, 60), as: "small.jpg")
        #expect(try await store.image("small.jpg").size == PixelSize(width: 80, height: 60))
        // Quality is that of the file, not of a second encoding.
        let better = ImageStore(.root(temporary.path), path: ["better"], configuration: .fullSize)
        let bytes = try Samples.bytes("lake.jpg")
        try await better.save(bytes, as: "lake.jpg")
        try await store.save(bytes, as: "lake.jpg")
        #expect(try await store.load("lake.jpg").count * 3 < better.load("lake.jpg").count)
    }

    @Test func maxSizeReducesBytesAndFilesToo() async throws {
        let store = store { $0.maxSize = PixelSize(width: 100, height: 0) }
        try await store.save(fileAt: Samples.path("lake.jpg"), as: "lake.jpg")
        #expect(try await store.image("lake.jpg").size.width == 100)
        #expect(try format(store, "lake.jpg") == .jpeg)
    }

    @Test func goesWithoutThumbnailsWhenToldTo() async throws {
        let store = store { $0.ignoresThumbnails = true }
        try await store.save(Self.gradient(400, 200), as: "a.png")
        #expect(try store.path(of: "a.png", as: .thumbnail) == store.path(of: "a.png"))
        #expect(try await store.image("a.png", as: .thumbnail).size.width == 400)
        #expect(!FileManager.default.fileExists(atPath: store.files.directory + "/thumbnail"))
        #expect(try await store.delete("a.png"))
    }

    @Test func generatedNamesCarryTheFormat() async throws {
        let store = store()
        let first = try await store.save(Self.gradient(40, 20))
        let second = try await store.save(Samples.bytes("leaf.png"))
        #expect(first.hasSuffix(".jpg") && second.hasSuffix(".png") && first < second)
        #expect(try await store.names == [first, second])
    }

    @Test(arguments: ["notAnImage", "truncated", "empty"])
    func whatCannotBeDecodedIsRefusedBeforeAnythingIsWritten(kind: String) async throws {
        let store = store()
        try await store.save(Self.gradient(40, 20), as: "a.jpg")
        let before = try await store.load("a.jpg")
        let whole = try Samples.bytes("lake.jpg")
        let bytes: [UInt8] = switch kind {
        case "truncated": Array(whole.prefix(whole.count / 2))
        case "empty": []
        default: Array("not an image at all".utf8)
        }
        await #expect {
            try await store.save(bytes, as: "a.jpg")
        } throws: { if case .image(let name, _)? = $0 as? StoreError { name == "a.jpg" } else { false } }
        await #expect(throws: StoreError.self) { try await store.save(bytes, as: "b.jpg") }
        await #expect(throws: StoreError.self) { try await store.save(bytes) }
        #expect(try await store.load("a.jpg") == before)
        #expect(try await store.names == ["a.jpg"])
        #expect(try await store.image("a.jpg", as: .thumbnail).size.width == 40)
        #expect(try FileManager.default.subpathsOfDirectory(atPath: store.files.directory).sorted() == ["a.jpg", "thumbnail", "thumbnail/a.jpg"])
    }

    @Test func deletesAndRenamesBoth() async throws {
        let store = store()
        try await store.save(Self.gradient(400, 200), as: "a.png")
        try await store.save(Self.gradient(300, 300), as: "b.png")
        await #expect(throws: StoreError.self) { try await store.rename("a.png", to: "b.png") }
        #expect(try await store.image("b.png", as: .thumbnail).size == PixelSize(256))
        let thumbnail = try await store.load("a.png", as: .thumbnail)
        try await store.rename("a.png", to: "c.png")
        #expect(FileManager.default.contents(atPath: try store.path(of: "c.png", as: .thumbnail)) == Data(thumbnail))
        #expect(try await store.delete("c.png"))
        #expect(try await !store.delete("c.png"))
        #expect(try FileManager.default.subpathsOfDirectory(atPath: store.files.directory).sorted() == ["b.png", "thumbnail", "thumbnail/b.png"])
    }

    @Test func aThumbnailOfAnotherVersionIsNeverShown() async throws {
        let store = store()
        try await store.save(Self.gradient(400, 200), as: "a.png")
        // Someone else edits the picture.
        let square = try Self.gradient(300, 300).encoded(as: .png)
        try Data(square).write(to: URL(filePath: try store.path(of: "a.png")))
        #expect(try await store.image("a.png", as: .thumbnail).size == PixelSize(256))
        // And the thumbnail is kept again.
        let kept = try ImageInfo(of: .file(store.path(of: "a.png", as: .thumbnail))).size
        #expect(kept == PixelSize(256))
        // A missing one is made, also for pictures that were put there by others.
        try FileManager.default.removeItem(atPath: store.files.directory + "/thumbnail")
        #expect(try await store.image("a.png", as: .thumbnail).size == PixelSize(256))
        #expect(FileManager.default.fileExists(atPath: try store.path(of: "a.png", as: .thumbnail)))
    }

    @Test func removesThumbnailsWithoutPictures() async throws {
        let store = store()
        try await store.save(Self.gradient(40, 20), as: "a.png")
        try await store.save(Self.gradient(40, 20), as: "b.png")
        try FileManager.default.removeItem(atPath: try store.path(of: "a.png"))
        #expect(try await store.removeTemporaryFiles() == 1)
        #expect(!FileManager.default.fileExists(atPath: try store.path(of: "a.png", as: .thumbnail)))
        #expect(FileManager.default.fileExists(atPath: try store.path(of: "b.png", as: .thumbnail)))
    }

    @Test func actsInSeveralStoresWhateverOneLacks() async throws {
        let other = ImageStore(.root(temporary.path), path: ["other"], configuration: store().configuration)
        try await other.save(Self.gradient(40, 20), as: "a.png")
        #expect(try await ImageStore.rename("a.png", to: "b.png", in: [store(), other]) == 1)
        #expect(try await ImageStore.delete("b.png", in: [store(), other]) == 1)
    }

    @Test(arguments: [(StoreLocation.documents, "documents"), (.caches, "cache")], [false, true])
    func eachOperationIsThereForEachPlace(place: (StoreLocation, String), ignoresThumbnails: Bool) async throws {
        var configuration = ImageStore.Configuration()
        configuration.ignoresThumbnails = ignoresThumbnails
        configuration.durability = .relaxed
        let store = ImageStore(
            place.0, configuration: configuration, directories: Directories(root: temporary.path))
        #expect(store.files.directory == temporary.path + "/\(place.1)/UserDocuments")
        let thumbnail = PixelSize(width: ignoresThumbnails ? 400 : 256, height: ignoresThumbnails ? 200 : 128)
        #expect(await !store.exists("a.png"))
        try await store.save(Self.gradient(400, 200), as: "a.png")
        #expect(await store.exists("a.png"))
        #expect(try await store.image("a.png").size == PixelSize(width: 400, height: 200))
        #expect(try await store.image("a.png", as: .thumbnail).size == thumbnail)
        let separate = try store.path(of: "a.png", as: .thumbnail) != store.path(of: "a.png")
        #expect(separate != ignoresThumbnails)
        #expect(FileManager.default.fileExists(atPath: store.files.directory + "/thumbnail/a.png") != ignoresThumbnails)
        try await store.rename("a.png", to: "b.png")
        #expect(try await store.names == ["b.png"])
        #expect(try await store.image("b.png", as: .thumbnail).size == thumbnail)
        #expect(try await store.delete("b.png"))
        #expect(try await !store.delete("b.png"))
        #expect(!FileManager.default.fileExists(atPath: store.files.directory + "/thumbnail/b.png"))
    }

    @Test func writersOfOneNameLeaveOneWholePair() async throws {
        let store = store()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for width in [300, 400, 500, 600] {
                group.addTask {
                    for _ in 0..<10 { try await store.save(Self.gradient(width, 100), as: "a.png") }
                }
            }
            group.addTask {
                for _ in 0..<40 {
                    guard await store.exists("a.png") else { continue }
                    _ = try await store.image("a.png", as: .thumbnail)
                }
            }
            try await group.waitForAll()
        }
        let width = try await store.image("a.png").width
        let expected = try ImageResizer.limit(width: 256, height: 256).outputSize(for: PixelSize(width: width, height: 100))
        #expect(try await store.image("a.png", as: .thumbnail).size == expected)
    }

    @Test func picturesAtAnyPath() async throws {
        let file = ImageFile(temporary.file("x.png"))
        try await file.write(Self.gradient(400, 200), maxSize: PixelSize(width: 0, height: 100))
        #expect(try await file.load().size == PixelSize(width: 200, height: 100))
        #expect(try ImageInfo(of: .file(file.path)).format == .png)
        let other = ImageFile(temporary.file("y.png"))
        try await file.move(to: other.path)
        await #expect(throws: StoreError.self) { try await file.load() }
        try other.blocking.write(Self.gradient(30, 20))
        await #expect(throws: StoreError.self) { try await file.move(to: other.path) }
        #expect(try other.blocking.load().size == PixelSize(width: 30, height: 20))
        try other.blocking.move(to: file.path)
        #expect(try await !other.delete())
        #expect(try file.blocking.delete())
        #expect(try !file.blocking.delete())
        let small = try Self.gradient(1000, 1000).compressed(maxSize: PixelSize(width: 800, height: 600))
        #expect(try await ImageDecoder().info(of: .bytes(small)).size == PixelSize(600))
    }

    @Test func compressionInMemoryObeysSizeAndQuality() async throws {
        let photo = try await ImageDecoder().image(from: .file(Samples.path("lake.jpg")))
        var sizes: [Int] = []
        for quality in [-1, 0, 0.3, 0.9, 1, 2] {
            let bytes = try photo.compressed(maxSize: PixelSize(width: 0, height: 100), quality: quality)
            let info = try ImageInfo(of: .bytes(bytes, name: "compressed"))
            #expect(info.format == .jpeg && info.size.height == 100)
            sizes.append(bytes.count)
        }
        #expect(sizes[0] == sizes[1] && sizes[4] == sizes[5])
        #expect(sizes[1] < sizes[2] && sizes[2] < sizes[3] && sizes[3] < sizes[4])
        // Without a limit the size stays, and nothing is ever enlarged.
        for limit in [PixelSize.zero, PixelSize(10_000)] {
            let bytes = try photo.compressed(maxSize: limit, quality: 0.5)
            #expect(try ImageInfo(of: .bytes(bytes, name: "compressed")).size == photo.size)
        }
    }
}
