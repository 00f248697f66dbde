import Foundation
import TestSupport
import Testing
import VitrineImaging

/// What is taken from caches, and what is put there.
@Suite struct CachedThumbnailTests {
    private func sources(_ arguments: [String], home: Scratch, in directory: Scratch) async throws -> [String?] {
        let outcome = try await Tool.run(
            ["thumbnail"] + arguments + ["--json"], in: directory.url, home: home.url)
        #expect(outcome.status == 0, "\(outcome.errors)")
        return outcome.objects.map { $0["source"] as? String }
    }

    @Test func theSecondRunTakesThumbnailsFromDisk() async throws {
        let (home, scratch) = (try Scratch(), try Scratch())
        let inputs = ["lake.jpg", "lake.pdf", "lake.mp4"].map(Samples.path)
        #expect(try await sources(inputs + ["-o", "one"], home: home, in: scratch) == ["made", "made", "made"])
        #expect(try await sources(inputs + ["-o", "two"], home: home, in: scratch) == ["disk", "disk", "disk"])
        #expect(try await sources([inputs[0], "-o", "a.jpg", "--no-cache"], home: home, in: scratch) == ["made"])
        // What the cache's own loss would spoil, and what is changed afterwards, is made anew.
        for arguments in [["--format", "png"], ["--quality", "0.95"], ["--round", "9"], ["--keep-metadata"]] {
            #expect(try await sources([inputs[0], "-o", "b/"] + arguments, home: home, in: scratch) == ["made"])
        }
        // Another page, another second.
        #expect(try await sources([inputs[1], "--page", "2", "-o", "c.jpg"], home: home, in: scratch) == ["made"])
        #expect(try await sources([inputs[2], "--time", "3", "-o", "d.jpg"], home: home, in: scratch) == ["made"])
    }

    @Test func withoutCacheNothingIsKept() async throws {
        let (home, scratch) = (try Scratch(), try Scratch())
        _ = try await sources([Samples.path("lake.jpg"), "-o", "a.jpg", "--no-cache"], home: home, in: scratch)
        #expect(home.contents.isEmpty)
    }

    @Test func precachingIsDoneOnce() async throws {
        let (home, scratch) = (try Scratch(), try Scratch())
        _ = try scratch.tree(["lake.jpg", "a/lake.pdf", "a/b/lake.mp4"])
        try Data([0xFF, 0xD8, 0xFF, 0xE0]).write(to: scratch.file("tree/bad.jpg"))
        func run() async throws -> Tool.Outcome {
            try await Tool.run(["precache", "tree", "--sizes", "64,256", "--json"], in: scratch.url, home: home.url)
        }
        let first = try await run()
        #expect(first.status == 1)
        #expect(first.errors.hasPrefix("tree/bad.jpg: "))
        #expect(first.objects[0]["made"] as? Int == 6)
        #expect(first.objects[0]["failed"] as? Int == 1)
        try FileManager.default.removeItem(at: scratch.file("tree/bad.jpg"))
        let second = try await run()
        #expect(second.status == 0, "\(second.errors)")
        #expect(second.objects[0]["skipped"] as? Int == 6)
        #expect(second.objects[0]["made"] as? Int == 0)
        let page = ["tree/a/lake.pdf", "--size", "64", "-o", "x.jpg"]
        #expect(try await sources(page, home: home, in: scratch) == ["disk"])
        let empty = try await Tool.run(["precache", home.file("cache").path, "--json"], home: home.url)
        #expect(empty.objects[0]["failed"] as? Int == 0)
    }

    @Test func theDesktopsThumbnailsAreUsedAndFilled() async throws {
        let (home, scratch) = (try Scratch(), try Scratch())
        _ = try scratch.tree(["lake.jpg", "lake.pdf"])
        let bad = scratch.file("tree/bad.jpg")
        try Data([0xFF, 0xD8, 0xFF, 0xE0]).write(to: bad)
        func precache() async throws -> [Int?] {
            let outcome = try await Tool.run(
                ["precache", "tree", "--desktop", "--sizes", "128,512", "--json"], in: scratch.url, home: home.url)
            return ["made", "skipped", "failed"].map { outcome.objects[0][$0] as? Int }
        }
        #expect(try await precache() == [4, 0, 1])
        // What failed is not tried again until it changes, and is told as a failure.
        #expect(try await precache() == [0, 4, 1])
        let folders = home.contents.filter { $0.hasPrefix("cache/thumbnails/") && $0.hasSuffix(".png") }
            .map { $0.split(separator: "/")[2] }
        #expect(folders == ["fail", "normal", "normal", "x-large", "x-large"])
        #expect(home.contents.allSatisfy { $0 == "cache" || $0.hasPrefix("cache/thumbnails") })
        let taken = ["tree/lake.jpg", "--size", "200", "--desktop", "-o", "x.jpg"]
        #expect(try await sources(taken, home: home, in: scratch) == ["desktop"])
        let second = ["tree/lake.pdf", "--page", "2", "--desktop", "-o", "y.jpg"]
        #expect(try await sources(second, home: home, in: scratch) == ["made"])
        #expect(try await Tool.run(["precache", "tree", "--desktop", "--size", "200"], in: scratch.url).status == 2)
    }

    @Test func fileManagersAreToldByEntriesThatComeAndGo() async throws {
        let home = try Scratch()
        let shown = try await Tool.run(["thumbnailer", "show"], home: home.url)
        for word in ["image/jpeg;", "application/pdf;", "video/mp4;", "image/svg+xml;", " -o %o -- %i\n", "--size %s"] {
            #expect(shown.output.contains(word), "\(word)")
        }
        #expect(home.contents.isEmpty)
        let names = ["vitrine-documents.thumbnailer", "vitrine.thumbnailer"]
        #expect(try await Tool.run(["thumbnailer", "install"], home: home.url).status == 0)
        #expect(home.contents.filter { $0.hasSuffix("er") } == names.map { "data/thumbnailers/\($0)" })
        let text = try String(contentsOf: home.file("data/thumbnailers/vitrine.thumbnailer"), encoding: .utf8)
        #expect(text.hasPrefix("[Thumbnailer Entry]\nTryExec=\(Tool.executable.path)\nExec=\(Tool.executable.path) "))
        #expect(try await Tool.run(["thumbnailer", "uninstall"], home: home.url).status == 0)
        #expect(home.contents.filter { $0.hasSuffix("er") }.isEmpty)
        #expect(try await Tool.run(["thumbnailer", "uninstall"], home: home.url).status == 0)
    }
}
