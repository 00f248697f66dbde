#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrineStores

/// What a store tells of changes, whoever makes them.
@Suite struct StoreChangesTests {
    private let temporary: TemporaryDirectory
    private let store: FileStore

    init() throws {
        temporary = try TemporaryDirectory()
        store = FileStore(.root(temporary.path), path: ["s"], durability: .relaxed)
        try FileManager.default.createDirectory(atPath: store.directory, withIntermediateDirectories: true)
    }

    /// Takes changes until all that are expected have come, in their order. That something was saved may be told once
    /// more: a file is closed late where a child of another test had it open for a moment.
    private func expect(
        _ expected: [StoreChange], _ iterator: inout some AsyncIteratorProtocol<StoreChange, StoreError>,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        for change in expected {
            var next = try await iterator.next(isolation: #isolation)
            while next != change, case .saved = next { next = try await iterator.next(isolation: #isolation) }
            #expect(next == change, sourceLocation: sourceLocation)
        }
    }

    /// So many changes.
    private func take(
        _ count: Int, _ iterator: inout some AsyncIteratorProtocol<StoreChange, StoreError>
    ) async throws -> [StoreChange] {
        var changes: [StoreChange] = []
        while changes.count < count, let change = try await iterator.next(isolation: #isolation) {
            changes.append(change)
        }
        return changes
    }

    @Test func tellsWhatIsSavedRenamedAndDeleted() async throws {
        var changes = store.changes.makeAsyncIterator()
        try await store.save([1], as: "a")
        try await expect([.saved(name: "a")], &changes)
        try await store.save([2], as: "a")
        try await expect([.saved(name: "a")], &changes)
        try await store.save([3], as: "b", replacing: false)
        try await expect([.saved(name: "b")], &changes)
        try await store.rename("a", to: "ä ö")
        try await expect([.renamed(name: "a", to: "ä ö")], &changes)
        try await store.rename("b", to: "ä ö", replacing: true)
        try await expect([.renamed(name: "b", to: "ä ö")], &changes)
        try await store.delete("ä ö")
        try await expect([.deleted(name: "ä ö")], &changes)
        try await store.save([(name: "1", bytes: [1]), (name: "2", bytes: [2])])
        try await expect([.saved(name: "1"), .saved(name: "2")], &changes)
    }

    @Test func tellsWhatOtherProgramsDo() async throws {
        var changes = store.changes.makeAsyncIterator()
        let path = store.directory + "/"
        // In place, without a rename.
        try Data([1]).write(to: URL(filePath: path + "plain"))
        try await expect([.saved(name: "plain")], &changes)
        try FileManager.default.linkItem(atPath: path + "plain", toPath: path + "linked")
        try await expect([.saved(name: "linked")], &changes)
        // In and out of the directory.
        rename(path + "linked", temporary.file("outside"))
        try await expect([.deleted(name: "linked")], &changes)
        rename(temporary.file("outside"), path + "inside")
        try await expect([.saved(name: "inside")], &changes)
    }

    @Test func whatIsNoFileOfTheStoreIsNotTold() async throws {
        var changes = store.changes.makeAsyncIterator()
        let path = store.directory + "/"
        try FileManager.default.createDirectory(atPath: path + "folder", withIntermediateDirectories: false)
        try Data([1]).write(to: URL(filePath: path + "folder/below"))
        try FileManager.default.createSymbolicLink(atPath: path + "link", withDestinationPath: path + "folder")
        rename(path + "folder", path + "renamed")
        try FileManager.default.removeItem(atPath: path + "renamed")
        try Data([1]).write(to: URL(filePath: path + AtomicFile.temporaryPrefix + "x"))
        unlink(path + AtomicFile.temporaryPrefix + "x")
        await #expect(throws: StoreError.self) { try await store.save(fileAt: path + "absent", as: "x") }
        try await store.save([1], as: "end")
        try await expect([.saved(name: "end")], &changes)
    }

    @Test func everyListenerIsTold() async throws {
        var first = store.changes.makeAsyncIterator()
        try await store.save([1], as: "a")
        var second = store.changes.makeAsyncIterator()
        var other = FileStore(.root(temporary.path), path: ["s"]).changes.makeAsyncIterator()
        try await store.save([1], as: "b")
        try await expect([.saved(name: "a"), .saved(name: "b")], &first)
        while try await take(1, &second) != [.saved(name: "b")] {}
        while try await take(1, &other) != [.saved(name: "b")] {}
    }

    @Test func thumbnailsAreInPlaceWhenPicturesAreTold() async throws {
        let store = ImageStore(.root(temporary.path), path: ["pictures"])
        try FileManager.default.createDirectory(atPath: store.files.directory, withIntermediateDirectories: false)
        var changes = store.changes.makeAsyncIterator()
        for number in 0..<20 {
            let saving = Task { try await store.save(PixelImage(size: PixelSize(300 + number), color: .black), as: "a.png") }
            try await expect([.saved(name: "a.png")], &changes)
            let small = try ImageInfo(of: .file(store.path(of: "a.png", as: .thumbnail)))
            #expect(small.size == PixelSize(256))
            _ = try await saving.value
            try await store.rename("a.png", to: "b.png", replacing: true)
            try await expect([.renamed(name: "a.png", to: "b.png")], &changes)
        }
        try await store.delete("b.png")
        try await expect([.deleted(name: "b.png")], &changes)
    }

    @Test func aMirrorOfAnotherProcessAgreesWithTheStore() async throws {
        let directory = store.directory
        let pictures = ImageStore(.root(directory), path: [])
        let changes = pictures.changes
        var names = Set<String>()
        try await offPool {
            let child = try ChildProcess(executable: "StoreChild", ["plan", directory, "3", "0"])
            while let line = child.line(), line != "80" {}
            child.kill()
            child.wait()
        }
        try await store.save([1], as: "end")
        reading: for try await change in changes {
            switch change {
            case .saved("end"): break reading
            case .saved(let name): names.insert(name)
            case .deleted(let name): names.remove(name)
            case .renamed(let name, let newName):
                names.remove(name)
                names.insert(newName)
            case .resync: Issue.record("nothing was lost")
            }
        }
        names.insert("end")
        #expect(try await names == Set(store.names))
    }

    @Test func aDirectoryMayAppearGoAndComeBack() async throws {
        let late = FileStore(.root(temporary.path), path: ["x", "y", "z"], durability: .relaxed)
        var changes = late.changes.makeAsyncIterator()
        #expect(!FileManager.default.fileExists(atPath: temporary.file("x")))
        for _ in 0..<3 {
            try await late.save([1], as: "a")
            try await expect([.resync], &changes)
            try await late.save([1], as: "b")
            while try await take(1, &changes) != [.saved(name: "b")] {}
            try await late.delete("a")
            try await expect([.deleted(name: "a")], &changes)
            // Moved away as a whole.
            rename(late.directory, temporary.file("away"))
            try await expect([.resync], &changes)
            try Data([1]).write(to: URL(filePath: temporary.file("away/not-told")))
            try FileManager.default.removeItem(atPath: temporary.file("away"))
        }
        try await late.save([1], as: "a")
        try await expect([.resync], &changes)
        try FileManager.default.removeItem(atPath: temporary.file("x"))
        while try await take(1, &changes) != [.resync] {}
    }

    @Test func whoDoesNotTakeChangesIsToldToLookAgain() async throws {
        let idle = store.changes
        var reader = store.changes.makeAsyncIterator()
        for number in 0..<5000 {
            try await store.save([], as: "\(number)")
            if number % 100 == 0 { while try await reader.next() != .saved(name: "\(number)") {} }
        }
        // When one listener has been told of the second, all have been of the first.
        for name in ["end", "really"] {
            try await store.save([], as: name)
            while try await reader.next() != .saved(name: name) {}
        }
        var late = idle.makeAsyncIterator()
        #expect(try await late.next() == .resync)
    }

    @Test func endsWithItsTask() async throws {
        let (store, started) = (self.store, Gate())
        let task = Task {
            var changes: [StoreChange] = []
            let all = store.changes
            started.open()
            for try await change in all { changes.append(change) }
            return changes
        }
        await started.wait()
        task.cancel()
        #expect(try await task.value.isEmpty)
    }

    @Test func saysWhyNothingIsNoticed() async throws {
        let store = FileStore(.root(temporary.file(String(repeating: "x", count: 300))), path: [])
        await #expect {
            for try await change in store.changes { Issue.record("\(change)") }
        } throws: { error in
            if case .notWatched(store.directory, let reason)? = error as? StoreError { !reason.isEmpty } else { false }
        }
    }
}
#endif
