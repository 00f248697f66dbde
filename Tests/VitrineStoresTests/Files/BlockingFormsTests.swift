import Foundation
import TestSupport
import Testing
import VitrineCompatibility
import VitrineCore
import VitrineImaging
import VitrineStores

/// The calls for threads that may block. The asynchronous ones work through them.
@Suite struct BlockingFormsTests {
    private let temporary: TemporaryDirectory

    init() throws { temporary = try TemporaryDirectory() }

    @Test func filesAreManaged() async throws {
        let store = FileStore(.root(temporary.path), path: ["s"], durability: .relaxed)
        let other = FileStore(.root(temporary.path), path: ["t"], durability: .relaxed)
        let files = store.blocking
        try files.save([1], as: "a")
        try files.save(fileAt: store.path(of: "a"), as: "b")
        let generated = try files.save([2], fileExtension: "bin")
        try files.save([(name: "c", bytes: [3, 3])])
        let writer = try files.writer(for: "d", replacing: false)
        try writer.write([4])
        try writer.write([4, 4])
        #expect(!files.exists("d") && writer.count == 3)
        try writer.commit()
        _ = try files.writer(for: "e")
        #expect(try files.names == [generated, "a", "b", "c", "d"].sorted())
        #expect(try files.list(by: .size, ascending: false).map(\.name).prefix(2) == ["d", "c"])
        #expect(try files.totalSize == ByteCount(8))
        #expect(try files.load("d") == [4, 4, 4])
        #expect(try files.map("c").withUnsafeBytes { Array($0) } == [3, 3])
        #expect(throws: StoreError.self) { try files.rename("a", to: "b") }
        try files.rename("a", to: "b", replacing: true)
        #expect(try files.delete("b") && !files.delete("b"))
        #expect(throws: StoreError.self) { try files.load("b") }
        try other.blocking.save([1], as: "c")
        #expect(try await FileStore.rename("c", to: "x", in: [store, other]) == 2)
        #expect(try await FileStore.delete("x", in: [store, other]) == 2)
        await #expect(throws: StoreError.self) { try await FileStore.rename("x", to: "c", in: [store, other]) }
        #expect(try files.removeTemporaryFiles(olderThan: .seconds(-5)) == 0)
    }

    @Test func picturesAreManaged() async throws {
        var configuration = ImageStore.Configuration()
        configuration.durability = .relaxed
        let store = ImageStore(.root(temporary.path), path: ["s"], configuration: configuration)
        let pictures = store.blocking
        let picture = PixelImage(size: PixelSize(width: 400, height: 200), color: .white)
        try pictures.save(picture, as: "a.png")
        try pictures.save(picture.encoded(as: .png), as: "b.png")
        try pictures.save(fileAt: store.path(of: "a.png"), as: "c.png", replacing: false)
        let generated = try pictures.save(picture)
        #expect(try pictures.names == [generated, "a.png", "b.png", "c.png"].sorted())
        #expect(try pictures.list().count == 4)
        #expect(try pictures.image("a.png") == pictures.image("b.png"))
        #expect(try pictures.image("a.png", as: .thumbnail).size == PixelSize(width: 256, height: 128))
        #expect(try pictures.load("c.png") == pictures.load("a.png"))
        try pictures.rename("a.png", to: "d.png")
        #expect(pictures.exists("d.png") && !pictures.exists("a.png"))
        let other = ImageStore(.root(temporary.path), path: ["t"], configuration: configuration)
        try other.blocking.save(picture, as: "d.png")
        #expect(try await ImageStore.rename("d.png", to: "e.png", in: [store, other]) == 2)
        #expect(try await ImageStore.delete("e.png", in: [store, other]) == 2)
        #expect(try pictures.removeTemporaryFiles(olderThan: .seconds(-5)) == 0)
    }
}
