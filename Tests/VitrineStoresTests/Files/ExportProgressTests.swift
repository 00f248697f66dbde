import Foundation
import TestSupport
import Testing
import VitrineImaging
import VitrineStores

@Suite struct StoreTransferTests {
    private let temporary: TemporaryDirectory

    init() throws { temporary = try TemporaryDirectory() }

    private func steps(_ stream: AsyncThrowingStream<ExportProgress, any Error>) async throws -> [ExportProgress] {
        var steps: [ExportProgress] = []
        for try await step in stream { steps.append(step) }
        return steps
    }

    @Test func filesGoInAndOut() async throws {
        let store = FileStore(.root(temporary.path), path: ["store"], durability: .relaxed)
        try FileManager.default.createDirectory(atPath: temporary.file("in/below"), withIntermediateDirectories: true)
        for name in ["b", "a", ".hidden"] { try temporary.write(name, to: "in/\(name)") }
        try await store.save([1], as: "b")
        let steps = try await steps(store.importFiles(from: temporary.file("in")))
        #expect(steps.map(\.name) == ["a", "b"])
        #expect(steps.map(\.done) == [1, 2] && steps.allSatisfy { $0.total == 2 })
        #expect(steps[0].failure == nil)
        if case .alreadyExists("b")? = steps[1].failure {} else { Issue.record("\(steps[1])") }
        #expect(try await store.load("b") == [1])

        let out = try await self.steps(store.exportFiles(to: temporary.file("out")))
        #expect(out.count == 2 && out.allSatisfy { $0.failure == nil })
        #expect(temporary.read("out/a") == "a")
    }

    @Test func aDirectoryThatCannotBeReadIsAnError() async throws {
        let store = FileStore(.root(temporary.path), path: ["store"], durability: .relaxed)
        await #expect(throws: StoreError.self) { try await self.steps(store.importFiles(from: temporary.file("absent"))) }
    }

    @Test func picturesGoInWithThumbnailsAndTheRestIsNamed() async throws {
        var configuration = ImageStore.Configuration()
        configuration.durability = .relaxed
        let store = ImageStore(.root(temporary.path), path: ["shelf"], configuration: configuration)
        try FileManager.default.createDirectory(atPath: temporary.file("in"), withIntermediateDirectories: true)
        try Data(Samples.bytes("lake.jpg")).write(to: URL(filePath: temporary.file("in/lake.jpg")))
        try temporary.write("text", to: "in/notes.txt")
        let steps = try await steps(store.importImages(from: temporary.file("in")))
        #expect(steps.map { $0.failure == nil } == [true, false])
        #expect(try await store.names == ["lake.jpg"])
        let out = try await self.steps(store.exportImages(to: temporary.file("out"), as: .thumbnail))
        #expect(out.count == 1)
        #expect(try ImageInfo(of: .file(temporary.file("out/lake.jpg"))).size.longestSide == 256)
    }

    @Test func givingUpEndsTheImport() async throws {
        let store = FileStore(.root(temporary.path), path: ["store"], durability: .relaxed)
        try FileManager.default.createDirectory(atPath: temporary.file("in"), withIntermediateDirectories: true)
        for number in 0..<9 { try temporary.write("x", to: "in/\(number)") }
        for try await step in store.importFiles(from: temporary.file("in")) where step.done == 3 { break }
        #expect(try await store.names == ["0", "1", "2"])
    }
}
