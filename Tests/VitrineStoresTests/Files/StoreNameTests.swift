import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrineStores

/// Which names there are, for files and for pictures.
@Suite struct StoreNameTests {
    private let temporary: TemporaryDirectory

    init() throws { temporary = try TemporaryDirectory() }

    private static let picture = PixelImage(size: PixelSize(8), color: .white)

    @Test func normalFormsAreNamesOfTheirOwn() async throws {
        let store = FileStore(.root(temporary.path), path: [], durability: .relaxed)
        let forms = ["\u{E9}", "e\u{301}", "\u{1E69}", "s\u{323}\u{307}", "s\u{307}\u{323}", "\u{FB01}", "fi"]
        for (index, name) in forms.enumerated() { try await store.save([UInt8(index)], as: name) }
        for (index, name) in forms.enumerated() { #expect(try await store.load(name) == [UInt8(index)]) }
        let names = try await store.names
        #expect(names.count == forms.count)
        #expect(Set(names.map { Array($0.utf8) }) == Set(forms.map { Array($0.utf8) }))
        #expect(try await store.delete("e\u{301}"))
        #expect(await store.exists("\u{E9}"))
    }

    @Test func lengthCountsInBytes() async throws {
        let store = ImageStore(.root(temporary.path), path: [])
        let longest = String(repeating: "ä", count: 125) + "x.png"
        #expect(longest.utf8.count == 255)
        try await store.save(Self.picture, as: longest)
        #expect(try await store.image(longest, as: .thumbnail).size == PixelSize(8))
        try await store.rename(longest, to: "x" + longest.dropFirst())
        await #expect(throws: StoreError.self) { try await store.save(Self.picture, as: "y" + longest) }
    }

    @Test(arguments: [
        "..", ".", "/a", "a/../b", "a\0b", "thumbnail", ".%tmp-a", String(repeating: "字", count: 86),
    ])
    func picturesHaveNoOtherNamesThanFiles(name: String) async throws {
        let store = ImageStore(.root(temporary.path), path: ["s"])
        try await store.save(Self.picture, as: "a.png")
        func refuses(_ body: () async throws -> Void) async {
            do {
                try await body()
                Issue.record("\(name) is taken for a name")
            } catch {
                if case .invalidName(name, _)? = error as? StoreError { return }
                Issue.record("\(error)")
            }
        }
        await refuses { try await store.save(Self.picture, as: name) }
        await refuses { try await store.save([1], as: name) }
        await refuses { try await store.save(fileAt: Samples.path("lake.jpg"), as: name) }
        await refuses { _ = try await store.load(name) }
        await refuses { _ = try await store.image(name, as: .thumbnail) }
        await refuses { _ = try store.blocking.image(name) }
        await refuses { _ = try store.source(name) }
        await refuses { try await store.delete(name) }
        await refuses { try await store.rename("a.png", to: name) }
        await refuses { try await store.rename(name, to: "b.png") }
        #expect(await !store.exists(name))
        let left = try FileManager.default.subpathsOfDirectory(atPath: temporary.path).sorted()
        #expect(left == ["s", "s/a.png", "s/thumbnail", "s/thumbnail/a.png"])
    }

    @Test func anEmptyNameDoesNothing() async throws {
        let store = ImageStore(.root(temporary.path), path: ["s"])
        await #expect(throws: StoreError.self) { try await store.save(Self.picture, as: "") }
        await #expect(throws: StoreError.self) { try await store.delete("") }
        #expect(await !store.exists(""))
        #expect(temporary.names.isEmpty)
    }
}
