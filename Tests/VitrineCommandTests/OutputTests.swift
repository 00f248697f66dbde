import Foundation
import TestSupport
import Testing

/// What the outputs of a run may replace.
struct OutputTests {
    private let photo: Data

    init() throws { photo = Data(try Samples.bytes("lake.jpg")) }

    /// `F_SETPIPE_SZ` of fcntl(2), a macro that Swift does not import.
    private static let setPipeSize: Int32 = 1031

    /// A directory with copies of samples by other names.
    private func directory(_ files: [String: String]) throws -> Scratch {
        let scratch = try Scratch()
        for (name, sample) in files {
            let url = scratch.file(name)
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(Samples.bytes(sample)).write(to: url)
        }
        return scratch
    }

    /// Each run would write an output over an input that it is not made from.
    @Test(arguments: [
        ["a.bmp", "a.jpg", "-o", "."], [".", "--recursive", "-o", "."], ["a.jpg", "a.bmp", "-o", "."],
        ["a.bmp", "b.jpg", "-o", "links"], ["sub/b.bmp", "b-thumbnail.jpg"],
        ["sub/b.bmp", "b-64.jpg", "--sizes", "64,32", "-o", "."], ["lake.pdf", "p-page-1.jpg", "--pages", "1", "-o", "p.jpg"],
        ["lake.pdf", "lake-page-1.jpg", "--pages", "1", "-o", "."], ["moon.gif", "moon.webp", "--animated", "-o", "."],
    ])
    func anOutputNeverReplacesAnInput(_ arguments: [String]) async throws {
        let photos = ["a.jpg", "b.jpg", "b-thumbnail.jpg", "b-64.jpg", "p-page-1.jpg", "lake-page-1.jpg"]
        var files = Dictionary(uniqueKeysWithValues: photos.map { ($0, "lake.jpg") })
        files.merge(["a.bmp": "lake.bmp", "sub/b.bmp": "lake.bmp", "lake.pdf": "lake.pdf", "moon.gif": "moon.gif"]) { $1 }
        files["moon.webp"] = "moon.webp"
        let scratch = try directory(files)
        try FileManager.default.createDirectory(at: scratch.file("links"), withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(
            atPath: scratch.file("links/a.jpg").path, withDestinationPath: "../b.jpg")
        let size = arguments.contains("--sizes") ? [] : ["--size", "64"]
        _ = try await Tool.run(["thumbnail", "--no-cache"] + arguments + size, in: scratch.url)
        for (name, sample) in files {
            #expect(try Data(contentsOf: scratch.file(name)) == Data(Samples.bytes(sample)), "\(name)")
        }
    }

    @Test func inputsThatShareANameGiveTheirWholeNames() async throws {
        let scratch = try directory(["a.bmp": "lake.bmp", "a.jpg": "lake.jpg", "c.png": "leaf.png"])
        let outcome = try await Tool.run(
            ["thumbnail", "a.bmp", "a.jpg", "c.png", "--size", "64", "-o", "."], in: scratch.url)
        #expect(outcome.status == 1 && outcome.errors.contains("the output c.png is the input"))
        #expect(scratch.contents == ["a.bmp", "a.bmp.jpg", "a.jpg", "a.jpg.jpg", "c.png"])
    }

    @Test func onlyThumbnailsAreReplacedInADirectory() async throws {
        let scratch = try directory(["photo.heic": "lake.heic", "out/photo.jpg": "lake.jpg"])
        func run(_ options: String...) async throws -> Tool.Outcome {
            try await Tool.run(["thumbnail", "--no-cache", "photo.heic", "-o", "out"] + options, in: scratch.url)
        }
        let refused = try await run("--size", "64")
        #expect(refused.status == 1 && refused.errors.contains("exists, and is no thumbnail of an earlier run"))
        #expect(try Data(contentsOf: scratch.file("out/photo.jpg")) == photo)
        #expect(try await run("--size", "64", "--overwrite").status == 0)
        let small = try Data(contentsOf: scratch.file("out/photo.jpg"))
        #expect(small.count < 10_000)
        // The result of an earlier run is replaced, and no larger one by a smaller one.
        #expect(try await run("--size", "100").status == 0)
        #expect(try Data(contentsOf: scratch.file("out/photo.jpg")) != small)
        #expect(try await run("--size", "64").status == 1)
    }

    @Test func aPhotoWithMetadataIsNoThumbnail() async throws {
        let scratch = try directory(["photo.bmp": "lake.bmp", "out/photo.jpg": "orientation-6.jpg"])
        let outcome = try await Tool.run(
            ["thumbnail", "--no-cache", "photo.bmp", "--size", "1000", "-o", "out"], in: scratch.url)
        #expect(outcome.status == 1)
        #expect(try Data(contentsOf: scratch.file("out/photo.jpg")) == Data(try Samples.bytes("orientation-6.jpg")))
    }

    @Test func linksInADirectoryAreNotFollowed() async throws {
        let scratch = try directory(["photo.bmp": "lake.bmp", "other.jpg": "lake.jpg"])
        try FileManager.default.createDirectory(at: scratch.file("out"), withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(
            atPath: scratch.file("out/photo.jpg").path, withDestinationPath: "../other.jpg")
        for options in [[], ["--overwrite"]] {
            let outcome = try await Tool.run(
                ["thumbnail", "--no-cache", "photo.bmp", "--size", "64", "-o", "out"] + options, in: scratch.url)
            #expect(outcome.status == 1)
            #expect(try Data(contentsOf: scratch.file("other.jpg")) == photo)
        }
    }

    @Test(arguments: [
        (["thumbnail", "a.jpg", "-o", "x.tiff"], "x.tiff: images of this format cannot be written"),
        (["thumbnail", "a.jpg", "b.jpg", "-o", "one.jpg"], "one.jpg is the name of one file"),
        (["contact-sheet", "a.jpg", "b.jpg", "-o", "b.jpg"], "the output b.jpg is the input b.jpg"),
        (["contact-sheet", "a.jpg", "-o", "sheet.psd"], "sheet.psd: images of this format cannot be written"),
        (["storyboard", "film.mp4", "-o", "film.jpg"], "film.vtt exists; name the WebVTT file with --vtt"),
        (["storyboard", "film.mp4", "-o", "s.jpg", "--vtt", "film.mp4"], "the output film.mp4 is the input"),
    ])
    func outputsThatWouldSurpriseAreRefused(_ arguments: [String], _ message: String) async throws {
        let files = ["a.jpg": "lake.jpg", "b.jpg": "lake.jpg", "film.mp4": "lake.mp4"]
        let scratch = try directory(files)
        try Data("WEBVTT\n\nsubtitles\n".utf8).write(to: scratch.file("film.vtt"))
        let before = scratch.contents
        let outcome = try await Tool.run(arguments, in: scratch.url)
        #expect(outcome.status == 2 && outcome.errors.contains(message), "\(outcome.errors)")
        #expect(scratch.contents == before)
        #expect(try Data(contentsOf: scratch.file("b.jpg")) == photo)
        #expect(try String(contentsOf: scratch.file("film.vtt"), encoding: .utf8).contains("subtitles"))
    }

    @Test func theOtherNamesOfStandardOutputGoThere() async throws {
        let scratch = try directory(["a.jpg": "lake.jpg"])
        let outcome = try await Tool.run(
            ["thumbnail", "--no-cache", "a.jpg", "--size", "64", "--format", "jpeg", "-q", "-o", "/dev/stdout"],
            in: scratch.url)
        #expect(outcome.status == 0 && outcome.bytes.starts(with: [0xFF, 0xD8, 0xFF]))
    }

    @Test(arguments: [
        ["thumbnail", "--no-cache", "--size", "64", "a.jpg", "--format", "jpeg", "-o", "fifo"],
        ["fetch", "--no-cache", "file://HERE/a.jpg", "-o", "fifo"], ["contact-sheet", "a.jpg", "-o", "fifo"],
    ])
    func aFIFOIsWrittenInto(_ arguments: [String]) async throws {
        let scratch = try directory(["a.jpg": "lake.jpg"])
        let path = scratch.file("fifo").path
        #expect(mkfifo(path, 0o600) == 0)
        // Opened for both, so that neither end waits for the other.
        let number = open(path, O_RDWR | O_NONBLOCK)
        defer { close(number) }
        #expect(fcntl(number, Self.setPipeSize, 1 << 20) > 0)
        let words = arguments.map { $0.replacing("HERE", with: scratch.url.path) }
        let outcome = try await Tool.run(words, in: scratch.url)
        #expect(outcome.status == 0, "\(outcome.errors)")
        var status = stat()
        #expect(lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO)
        var start = [UInt8](repeating: 0, count: 4)
        #expect(read(number, &start, 4) == 4)
        #expect(start[0] == 0xFF || start[0] == 0x89)
    }

    @Test func aFileWhoseNameBeginsWithADashIsNamed() async throws {
        let scratch = try directory(["-h.jpg": "lake.jpg", "a.jpg": "lake.jpg"])
        let outcome = try await Tool.run(["thumbnail", "-h.jpg", "a.jpg", "-o", "out"], in: scratch.url)
        #expect(outcome.status == 2 && outcome.errors.contains("write ./-h.jpg"), "\(outcome.errors)")
        let named = try await Tool.run(["thumbnail", "-o", "out", "--", "-h.jpg", "a.jpg"], in: scratch.url)
        #expect(named.status == 0 && scratch.contents.contains("out/-h.jpg"), "\(named.errors)")
    }

    @Test func aPipeIsReadWhereAFileIs() async throws {
        let scratch = try Scratch()
        let path = scratch.file("fifo.jpg").path
        #expect(mkfifo(path, 0o600) == 0)
        let feeding = try await offPool {
            let feeder = Process()
            feeder.executableURL = URL(filePath: "/bin/sh")
            feeder.arguments = ["-c", "cat \"$0\" > \"$1\"", Samples.path("lake.jpg"), path]
            try feeder.run()
            return feeder
        }
        let outcome = try await Tool.run(["thumbnail", "fifo.jpg", "--size", "64", "-o", "out/"], in: scratch.url)
        try await offPool { feeding.waitUntilExit() }
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(scratch.contents.contains("out/fifo.jpg"))
        let input = try await Tool.run(
            ["thumbnail", "/dev/stdin", "--size", "64", "-o", "in.jpg"], in: scratch.url, input: photo)
        #expect(input.status == 0, "\(input.errors)")
    }

    @Test func aHomeThatCannotBeWrittenIsNoNews() async throws {
        let scratch = try Scratch()
        // A file where the directory would be, which stops root, too.
        try photo.write(to: scratch.file("home"))
        for log in [[:], ["VITRINE_LOG": "warning"]] {
            let outcome = try await Tool.run(
                ["fetch", "file://" + Samples.path("lake.jpg"), "-o", "a.jpg"], in: scratch.url,
                home: scratch.file("home"), environment: log)
            #expect(outcome.status == 0)
            #expect(outcome.errors.isEmpty == log.isEmpty, "\(outcome.errors)")
        }
    }

    @Test func fetchesIntoADirectoryKeepFilesThatAreThere() async throws {
        let scratch = try directory(["a.jpg": "lake.jpg", "out/a.jpg": "orientation-1.jpg"])
        let address = "file://\(scratch.file("a.jpg").path)"
        #expect(try await Tool.run(["fetch", "--no-cache", address, "-o", "out"], in: scratch.url).status == 0)
        #expect(try Data(contentsOf: scratch.file("out/a.jpg")) == Data(try Samples.bytes("orientation-1.jpg")))
        #expect(try Data(contentsOf: scratch.file("out/a-2.jpg")) == photo)
        let itself = try await Tool.run(["fetch", address, "--size", "64", "-o", "a.jpg"], in: scratch.url)
        #expect(itself.status == 1 && itself.errors.contains("is the input"))
        #expect(try Data(contentsOf: scratch.file("a.jpg")) == photo)
    }

    @Test func precacheTellsFailuresOfEarlierRuns() async throws {
        let scratch = try Scratch(), home = try Scratch()
        try Data(Samples.bytes("leaf.png").prefix(3000)).write(to: scratch.file("broken.png"))
        try photo.write(to: scratch.file("old.jpg"))
        var times = [timespec(tv_sec: -315_619_200, tv_nsec: 0), timespec(tv_sec: -315_619_200, tv_nsec: 0)]
        #expect(utimensat(AT_FDCWD, scratch.file("old.jpg").path, &times, 0) == 0)
        func run(_ name: String) async throws -> Tool.Outcome {
            try await Tool.run(["precache", "--desktop", "--size", "128", name], in: scratch.url, home: home.url)
        }
        #expect(try await run("broken.png").status == 1)
        let again = try await run("broken.png")
        #expect(again.status == 1 && again.errors.contains("it failed before and has not changed; remove "))
        // Of a time before 1970.
        let old = try await run("old.jpg")
        #expect(old.status == 0 && old.output.hasPrefix("1 made"), "\(old.output)\(old.errors)")
        #expect(try await run("old.jpg").output.contains("1 in the cache already"))
        // A link in the place of a thumbnail is replaced, and its target kept.
        let names = home.contents.filter { $0.contains("/normal/") && $0.hasSuffix(".png") }
        let entry = home.file(try #require(names.first))
        try Data("mine".utf8).write(to: scratch.file("mine.txt"))
        try FileManager.default.removeItem(at: entry)
        try FileManager.default.createSymbolicLink(at: entry, withDestinationURL: scratch.file("mine.txt"))
        #expect(try await run("old.jpg").status == 0)
        #expect(try Data(contentsOf: scratch.file("mine.txt")) == Data("mine".utf8))
    }
}
