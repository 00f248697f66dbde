#if SystemCodecs && os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineImaging
import VitrinePipeline

/// What a library notices by itself.
@Suite struct MediaLibraryChangeTests {
    /// A scanned library, and what changes in it.
    private final class Watched {
        let library: MediaLibrary
        var changes: AsyncStream<MediaLibrary.Changes>.Iterator

        init(_ folder: MediaFolder, _ change: (inout MediaLibrary.Options) -> Void = { _ in }) async throws {
            library = folder.library(change)
            try await library.scan()
            await library.settle()
            changes = library.changes.makeAsyncIterator()
        }

        /// What is reported together next.
        func next() async throws -> MediaLibrary.Changes { try #require(await changes.next()) }
    }

    private func expect(
        _ assets: [MediaAsset], _ names: [String], in folder: MediaFolder,
        at location: SourceLocation = #_sourceLocation
    ) {
        #expect(folder.names(assets) == names, sourceLocation: location)
    }

    @Test func noticesNewChangedAndDeletedFiles() async throws {
        let folder = try MediaFolder()
        try folder.photo("old.jpg", taken: "2001:01:01 00:00:00")
        let watched = try await Watched(folder)
        #expect(watched.library.watching == .complete)
        try folder.photo("new.jpg", taken: "2002:01:01 00:00:00")
        await watched.library.settle()
        #expect(folder.names(watched.library.assets) == ["old.jpg", "new.jpg"])
        try await expect(watched.next().added, ["new.jpg"], in: folder)
        // Written in place: its end may come late, as children that others start hold the file open for a moment.
        try folder.photo("old.jpg", taken: "2003:01:01 00:00:00")
        let changed = try await watched.next()
        #expect(folder.names(changed.changed) == ["old.jpg"] && changed.added.isEmpty && changed.removed.isEmpty)
        #expect(folder.names(watched.library.assets) == ["new.jpg", "old.jpg"])
        try folder.remove("new.jpg")
        await watched.library.settle()
        try await expect(watched.next().removed, ["new.jpg"], in: folder)
        #expect(folder.names(watched.library.assets) == ["old.jpg"])
    }

    @Test func reportsChangesWithoutBeingAsked() async throws {
        let folder = try MediaFolder()
        let watched = try await Watched(folder)
        try folder.photo("a/b/c/new.jpg")
        try await expect(watched.next().added, ["a/b/c/new.jpg"], in: folder)
        try folder.remove("a")
        try await expect(watched.next().removed, ["a/b/c/new.jpg"], in: folder)
    }

    @Test func reportsManyChangesTogether() async throws {
        let folder = try MediaFolder()
        let watched = try await Watched(folder) { $0.coalescing = .seconds(1_000) }
        for index in 0..<200 { try folder.photo("\(index % 7)/\(index).jpg") }
        try folder.photo("gone.jpg")
        try folder.remove("gone.jpg")
        await watched.library.settle()
        let changes = try await watched.next()
        #expect(changes.added.count == 200 && changes.removed.isEmpty && changes.changed.isEmpty)
    }

    @Test func followsDirectoriesThatAreMoved() async throws {
        let folder = try MediaFolder()
        let other = try MediaFolder()
        try folder.photo("a/deep/one.jpg", taken: "2001:01:01 00:00:00")
        try folder.photo("b/two.jpg", taken: "2002:01:01 00:00:00")
        let watched = try await Watched(folder)
        try folder.move("a/deep", to: "b/moved")
        await watched.library.settle()
        let changes = try await watched.next()
        #expect(folder.names(changes.removed) == ["a/deep/one.jpg"])
        #expect(folder.names(changes.added) == ["b/moved/one.jpg"])
        // Still watched, under the new name only.
        try folder.photo("b/moved/three.jpg", taken: "2003:01:01 00:00:00")
        await watched.library.settle()
        try await expect(watched.next().added, ["b/moved/three.jpg"], in: folder)
        try FileManager.default.moveItem(atPath: folder.path("b"), toPath: other.path("b"))
        await watched.library.settle()
        let removed = try await watched.next().removed
        #expect(removed.count == 3)
        try other.photo("b/moved/four.jpg")
        try folder.photo("five.jpg")
        await watched.library.settle()
        try await expect(watched.next().added, ["five.jpg"], in: folder)
        #expect(folder.names(watched.library.assets) == ["five.jpg"])
    }

    @Test func noticesADirectoryMadeAnew() async throws {
        let folder = try MediaFolder()
        try folder.photo("a/one.jpg")
        let watched = try await Watched(folder)
        for name in ["two", "three"] {
            try folder.remove("a")
            try folder.photo("a/\(name).jpg")
            await watched.library.settle()
            #expect(folder.names(watched.library.assets) == ["a/\(name).jpg"])
        }
        try folder.photo("a/late.jpg")
        await watched.library.settle()
        #expect(Set(folder.names(watched.library.assets)) == ["a/three.jpg", "a/late.jpg"])
    }

    @Test func looksAtEverythingWhenNoticesAreLost() async throws {
        let folder = try MediaFolder()
        try folder.photo("a/one.jpg")
        // Nothing is noticed by itself here but the loss.
        let watched = try await Watched(folder) { $0.watches = false }
        #expect(watched.library.watching == .off)
        try folder.photo("b/two.jpg")
        try folder.photo("three.jpg")
        try folder.remove("a")
        await watched.library.settle()
        #expect(folder.names(watched.library.assets) == ["a/one.jpg"])
        watched.library.loseNotices()
        await watched.library.settle()
        #expect(Set(folder.names(watched.library.assets)) == ["b/two.jpg", "three.jpg"])
    }

    @Test func saysWhenItCannotWatchAllAndFindsTheRestOnRequest() async throws {
        let folder = try MediaFolder()
        for name in ["a", "b", "c"] { try folder.photo("\(name)/one.jpg") }
        let watched = try await Watched(folder) { $0.maximumWatches = 2 }
        guard case .incomplete(let reason) = watched.library.watching else {
            Issue.record("\(watched.library.watching)")
            return
        }
        #expect(reason.contains("max_user_watches"))
        #expect(watched.library.assets.count == 3)
        for name in ["a", "b", "c"] { try folder.photo("\(name)/two.jpg") }
        await watched.library.settle()
        #expect(watched.library.assets.count < 6)
        try await watched.library.scan()
        #expect(watched.library.assets.count == 6)
        // Watches become free.
        try folder.remove("a")
        try folder.remove("b")
        try await watched.library.scan()
        #expect(watched.library.watching == .complete)
    }

    @Test func survivesTheEndOfItsDirectory() async throws {
        let folder = try MediaFolder()
        try folder.photo("root/a/one.jpg")
        var options = MediaLibrary.Options()
        options.coalescing = .milliseconds(10)
        let library = MediaLibrary(directory: folder.path("root") + "/", options: options)
        try await library.scan()
        try folder.remove("root")
        await library.settle()
        #expect(library.assets.isEmpty)
        await #expect(throws: ImagePipelineError.self) { try await library.scan() }
        try folder.photo("root/b/two.jpg")
        try await library.scan()
        #expect(library.assets.map(\.path) == [folder.path("root/b/two.jpg")])
    }

    @Test func endsItsStreamsWhenItGoes() async throws {
        let folder = try MediaFolder()
        try folder.photo("a.jpg")
        var library: MediaLibrary? = folder.library()
        try await library?.scan()
        let changes = try #require(library?.changes)
        library = nil
        for await _ in changes {}
    }

    @Test func agreesWithTheDirectoryAfterAnyChanges() async throws {
        let folder = try MediaFolder()
        try folder.photo("start.jpg")
        let library = folder.library()
        try await library.scan()
        var random = SeededGenerator(7)
        let photo = try MediaFolder.photo()
        let names = ["a", "b", "a/c", "a/c/d", "b/e"]
        for _ in 0..<40 {
            for _ in 0..<6 {
                let one = try #require(names.randomElement(using: &random))
                let other = try #require(names.randomElement(using: &random))
                // Many of these fail, as they may.
                switch Int.random(in: 0..<5, using: &random) {
                case 0: try? folder.move(one, to: other)
                case 1: try? folder.remove(one)
                case 2: try? folder.move(one + "/1.jpg", to: other + "/2.jpg")
                default: try? folder.write(photo, one + "/\(Int.random(in: 1...3, using: &random)).jpg")
                }
            }
            await library.settle()
            let found = try FileManager.default.subpathsOfDirectory(atPath: folder.path)
            #expect(Set(folder.names(library.assets)) == Set(found.filter { $0.hasSuffix(".jpg") }))
        }
    }
}
#endif
