import Foundation
import Testing
import VitrineImaging
import VitrinePipeline
import VitrinePNG

/// A directory with pictures and a cache of its own, removed with it.
final class DesktopScratch {
    let root: String
    let cache: DesktopThumbnailCache

    init() throws {
        root = FileManager.default.temporaryDirectory.appending(path: "vitrine-desktop-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        cache = DesktopThumbnailCache(directory: root + "/cache/thumbnails", program: "tests-1")
    }

    deinit { try? FileManager.default.removeItem(atPath: root) }

    /// A file with some content, as old as `modified` seconds after 1970.
    func file(_ name: String, modified: Int = 1_700_000_000) throws -> String {
        let path = root + "/" + name
        try FileManager.default.createDirectory(
            atPath: URL(filePath: path).deletingLastPathComponent().path, withIntermediateDirectories: true)
        try Data(name.utf8).write(to: URL(filePath: path))
        try touch(path, modified)
        return path
    }

    func touch(_ path: String, _ modified: Int) throws {
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: Double(modified))], ofItemAtPath: path)
    }

    func mode(_ path: String) throws -> Int {
        try #require(
            (try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber)?.intValue)
    }

    func texts(_ path: String) throws -> [String: String] {
        try PNGText.entries(of: ByteSource(.file(path)))
    }
}

@Suite struct DesktopThumbnailCacheTests {
    private let red = PixelColor(red: 200, green: 30, blue: 20)

    private func picture(_ width: Int, _ height: Int) -> PixelImage {
        PixelImage(size: PixelSize(width: width, height: height), color: red)
    }

    @Test func namesAreDigestsOfTheAddress() {
        // The standard's own example.
        let cache = DesktopThumbnailCache(directory: "/home/jens/.cache/thumbnails")
        #expect(
            cache.location(of: "/home/jens/photos/me.png", size: .normal)
                == "/home/jens/.cache/thumbnails/normal/c6ee772d9e49320e97ec29a7eb5b1697.png")
        #expect(DesktopThumbnailSize.allCases.map(\.directoryName) == ["normal", "large", "x-large", "xx-large"])
    }

    @Test func aStoredThumbnailIsFoundUntilItsFileChanges() throws {
        let scratch = try DesktopScratch()
        let path = try scratch.file("a b;ü.jpg")
        let original = try #require(scratch.cache.original(path))
        #expect(scratch.cache.thumbnail(of: path, size: PixelSize(256)) == nil)
        #expect(try scratch.cache.store(picture(600, 400), of: original, size: .large))
        let found = try #require(scratch.cache.thumbnail(of: path, size: PixelSize(256)))
        #expect(found.size == PixelSize(width: 256, height: 171))
        #expect(found[100, 100] == red)
        // A smaller box is served by the larger thumbnail, a larger one by none.
        #expect(scratch.cache.thumbnail(of: path, size: PixelSize(width: 90, height: 20))?.size.height == 20)
        #expect(scratch.cache.thumbnail(of: path, size: PixelSize(257)) == nil)
        #expect(scratch.cache.hasThumbnail(of: path, size: .large))
        #expect(!scratch.cache.hasThumbnail(of: path, size: .normal))
        for modified in [1_700_000_001, 1_699_999_999] {
            try scratch.touch(path, modified)
            #expect(scratch.cache.thumbnail(of: path, size: PixelSize(256)) == nil)
        }
        try scratch.touch(path, 1_700_000_000)
        #expect(scratch.cache.hasThumbnail(of: path, size: .large))
        // Another length in the same second.
        try Data("longer than it was before".utf8).write(to: URL(filePath: path))
        try scratch.touch(path, 1_700_000_000)
        #expect(!scratch.cache.hasThumbnail(of: path, size: .large))
    }

    @Test func filesSayWhatTheStandardAsksAndOnlyTheirOwnerReadsThem() throws {
        let scratch = try DesktopScratch()
        let path = try scratch.file("film.mkv")
        let original = try #require(scratch.cache.original(path))
        let details = DesktopThumbnailCache.Details(
            mediaType: "video/x-matroska", size: PixelSize(width: 1920, height: 1080), pageCount: 3, duration: 61.7)
        try scratch.cache.store(picture(300, 300), of: original, size: .normal, details: details)
        let file = scratch.cache.location(of: path, size: .normal)
        #expect(
            try scratch.texts(file) == [
                "Thumb::URI": "file://" + path, "Thumb::MTime": "1700000000", "Thumb::Size": "8",
                "Software": "Vitrine", "Thumb::Mimetype": "video/x-matroska", "Thumb::Image::Width": "1920",
                "Thumb::Image::Height": "1080", "Thumb::Document::Pages": "3", "Thumb::Movie::Length": "61",
            ])
        #expect(try scratch.mode(file) == 0o600)
        for directory in ["/cache", "/cache/thumbnails", "/cache/thumbnails/normal"] {
            #expect(try scratch.mode(scratch.root + directory) == 0o700)
        }
        // 8 bits, red, green, blue and alpha, not interlaced, though one colour would do with less.
        let header = try Data(contentsOf: URL(filePath: file))[24..<29]
        #expect(Array(header) == [8, 6, 0, 0, 0])
        let directory = scratch.root + "/cache/thumbnails/normal"
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory).count == 1)
    }

    @Test func aFileThatChangedWhileItWasDecodedIsNotStored() throws {
        let scratch = try DesktopScratch()
        let path = try scratch.file("a.jpg")
        let original = try #require(scratch.cache.original(path))
        try scratch.touch(path, 1_700_000_009)
        #expect(try !scratch.cache.store(picture(10, 10), of: original, size: .normal))
        #expect(try !scratch.cache.storeFailure(of: original))
        #expect(!FileManager.default.fileExists(atPath: scratch.root + "/cache"))
    }

    @Test func thumbnailsHaveNoThumbnails() throws {
        let scratch = try DesktopScratch()
        let path = try scratch.file("a.jpg")
        let original = try #require(scratch.cache.original(path))
        try scratch.cache.store(picture(10, 10), of: original, size: .normal)
        #expect(scratch.cache.original(scratch.cache.location(of: path, size: .normal)) == nil)
        #expect(scratch.cache.original(try scratch.file(".sh_thumbnails/normal/x.png")) == nil)
        // Nor when a link leads there.
        let link = scratch.root + "/link"
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: scratch.cache.directory)
        let name = URL(filePath: scratch.cache.location(of: path, size: .normal)).lastPathComponent
        #expect(FileManager.default.fileExists(atPath: "\(link)/normal/\(name)"))
        #expect(scratch.cache.original("\(link)/normal/\(name)") == nil)
    }

    @Test func whatIsNoReadableFileHasNone() throws {
        let scratch = try DesktopScratch()
        #expect(scratch.cache.original(scratch.root) == nil)
        #expect(scratch.cache.original(scratch.root + "/absent") == nil)
        #expect(scratch.cache.original("") == nil)
        let pipe = scratch.root + "/pipe"
        #expect(mkfifo(pipe, 0o600) == 0)
        #expect(scratch.cache.original(pipe) == nil)
    }

    @Test func failuresAreOfOneVersionOfFileAndProgram() throws {
        let scratch = try DesktopScratch()
        let path = try scratch.file("broken.jpg")
        #expect(!scratch.cache.hasFailed(path))
        try scratch.cache.storeFailure(of: try #require(scratch.cache.original(path)))
        #expect(scratch.cache.hasFailed(path))
        #expect(!DesktopThumbnailCache(directory: scratch.cache.directory, program: "tests-2").hasFailed(path))
        #expect(try scratch.mode(scratch.cache.directory + "/fail/tests-1") == 0o700)
        try scratch.touch(path, 1_800_000_000)
        #expect(!scratch.cache.hasFailed(path))
    }

    @Test func sharedThumbnailsAreReadUnderBothNames() throws {
        for shared in ["a ü.jpg", "./a%20%C3%BC.jpg"] {
            let scratch = try DesktopScratch()
            let path = try scratch.file("photos/a ü.jpg")
            let name = MD5Names.of(shared)
            let place = scratch.root + "/photos/.sh_thumbnails/large"
            try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
            func write(_ texts: [(String, String)]) throws {
                let file = PNGText.adding(texts, to: try picture(256, 128).encoded(as: .png))
                try Data(file).write(to: URL(filePath: "\(place)/\(name).png"))
            }
            // Neither has to be said; what is said must be true.
            try write([])
            #expect(scratch.cache.thumbnail(of: path, size: PixelSize(200))?.size.width == 200)
            try write([("Thumb::URI", "./a%20%C3%BC.jpg"), ("Thumb::MTime", "1700000000")])
            #expect(scratch.cache.thumbnail(of: path, size: PixelSize(200)) != nil)
            try write([("Thumb::MTime", "1700000001")])
            #expect(scratch.cache.thumbnail(of: path, size: PixelSize(200)) == nil)
            try write([("Thumb::URI", "b.jpg")])
            #expect(scratch.cache.thumbnail(of: path, size: PixelSize(200)) == nil)
        }
    }

    @Test func whatIsNoValidThumbnailIsPassedOver() throws {
        let scratch = try DesktopScratch()
        let path = try scratch.file("a.jpg")
        let original = try #require(scratch.cache.original(path))
        try scratch.cache.store(picture(400, 400), of: original, size: .large)
        let file = URL(filePath: scratch.cache.location(of: path, size: .large))
        let good = [UInt8](try Data(contentsOf: file))
        let texts = [("Thumb::URI", original.uri), ("Thumb::MTime", "1700000000")]
        let plain = try picture(256, 256).encoded(as: .png)
        var flipped = good
        flipped[60] ^= 1  // inside the address
        let useless: [[UInt8]] = [
            [], Array(good.prefix(20)), Array(good.prefix(good.count / 2)), flipped, plain,
            PNGText.adding([texts[0]], to: plain), PNGText.adding([texts[1]], to: plain),
            PNGText.adding([texts[0], ("Thumb::MTime", "soon")], to: plain),
            PNGText.adding([("Thumb::URI", "file:///elsewhere"), texts[1]], to: plain),
            PNGText.adding(texts + [("Thumb::Size", "7777")], to: plain),
            PNGText.adding(
                texts + [("Thumb::Image::Width", "900"), ("Thumb::Image::Height", "600")],
                to: try picture(160, 120).encoded(as: .png)),
            try picture(256, 256).encoded(as: .jpeg()),
        ]
        for bytes in useless {
            try Data(bytes).write(to: file)
            #expect(scratch.cache.thumbnail(of: path, size: PixelSize(256)) == nil)
        }
        try Data(PNGText.adding(texts, to: plain)).write(to: file)
        #expect(scratch.cache.thumbnail(of: path, size: PixelSize(256)) != nil)
        try FileManager.default.removeItem(at: file)
        try FileManager.default.createDirectory(at: file, withIntermediateDirectories: true)
        #expect(scratch.cache.thumbnail(of: path, size: PixelSize(256)) == nil)
    }

    private static let gio = "/usr/bin/gio"

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: gio), "needs gio"))
    func gioFindsTheThumbnailsValid() throws {
        let scratch = try DesktopScratch()
        for name in ["plain.jpg", "with space & ümlaut;#?%.png", "日本/x+y=z.pdf"] {
            let path = try scratch.file(name)
            try scratch.cache.store(
                picture(300, 200), of: try #require(scratch.cache.original(path)), size: .large,
                details: .init(mediaType: "image/jpeg", size: PixelSize(width: 300, height: 200)))
            let process = Process()
            process.executableURL = URL(filePath: Self.gio)
            process.arguments = ["info", "-a", "thumbnail::*", path]
            process.environment = ProcessInfo.processInfo.environment.merging(
                ["XDG_CACHE_HOME": scratch.root + "/cache", "LC_ALL": "C.UTF-8"]) { $1 }
            let pipe = Pipe()
            process.standardOutput = pipe
            try process.run()
            let text = String(decoding: try #require(try pipe.fileHandleForReading.readToEnd()), as: UTF8.self)
            process.waitUntilExit()
            #expect(text.contains("thumbnail::path: \(scratch.cache.location(of: path, size: .large))"), "\(text)")
            #expect(text.contains("thumbnail::is-valid: TRUE"), "\(text)")
        }
    }
}

/// Digests computed by another program's rules: the text itself.
private enum MD5Names {
    static func of(_ text: String) -> String {
        // `printf %s TEXT | md5sum`
        ["a ü.jpg": "22adeb6a8bd3138f34303f6f64446236",
         "./a%20%C3%BC.jpg": "8a58de7b903c73ef2ba1034083d79972"][text] ?? ""
    }
}
