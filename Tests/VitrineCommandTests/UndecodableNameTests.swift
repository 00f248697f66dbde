#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCompatibility
import VitrineCore
import VitrineImaging

/// Files whose names are no UTF-8 are inputs and outputs like all others.
@Suite struct UndecodableNameTests {
    private static let latin = Array("caf".utf8) + [0xE9]
    private static let stems: [[UInt8]] = [latin, [0x80, 0x41], [0xFF], Array("\u{10FEE9}".utf8)]

    private let scratch: Scratch
    private let tree: URL
    private var home: URL { scratch.file("home") }

    init() throws {
        scratch = try Scratch()
        tree = scratch.file("tree")
        try FileManager.default.createDirectory(at: tree, withIntermediateDirectories: true)
        for stem in Self.stems { try RawFile(tree, stem + Array(".jpg".utf8)).copy(from: Samples.path("orientation-1.jpg")) }
        try RawFile(tree, Self.latin).makeDirectory()
        try RawFile(tree, Self.latin + [0x2F, 0xFE]).copy(from: Samples.path("orientation-2.jpg"))
    }

    private func words(_ words: String...) -> [[UInt8]] { words.map { Array($0.utf8) } }

    private func inputs() -> [[UInt8]] { Self.stems.map { RawFile(tree, $0 + Array(".jpg".utf8)).bytes } }

    /// The bytes of a path in JSON.
    private func bytes(_ value: Any?) -> [UInt8]? { (value as? String).map { PathText.bytes(of: $0) } }

    @Test func inspectTellsWhatTheyAre() async throws {
        let text = try await RawTool.run(words("inspect") + inputs(), home: home)
        #expect(text.status == 0 && text.errors.isEmpty)
        let output = String(decoding: text.output, as: UTF8.self)
        #expect(output.contains(#"caf\xE9.jpg  jpeg"#) && output.contains(#"\xF4\x8F\xBB\xA9.jpg  jpeg"#), "\(output)")
        let json = try await RawTool.run(words("inspect", "--json") + inputs(), home: home)
        #expect(json.objects.map { bytes($0["input"]) } == inputs())
        #expect(String(decoding: json.output, as: UTF8.self).contains(#"caf\udbff\udee9.jpg"#))
        let uri = Array("file://\(tree.path)/caf%E9.jpg".utf8)
        #expect(try await RawTool.run(words("inspect") + [uri], home: home).status == 0)
        let absent = try await RawTool.run(words("inspect") + [RawFile(tree, [0x61, 0xFF]).bytes], home: home)
        #expect(absent.status == 1)
        #expect(String(decoding: absent.errors, as: UTF8.self) == "\(tree.path)/a\\xFF: No such file or directory\n")
    }

    @Test func thumbnailsOfDirectoriesGetTheirNames() async throws {
        try RawFile(tree, [0xC3] + Array(".jpg".utf8)).copy(from: Samples.path("make-samples"))
        let broken = scratch.file("broken")
        try Data([0xFF, 0xD8, 0xFF, 0xE0, 0]).write(to: broken)
        try RawFile(tree, [0xE4] + Array(".jpg".utf8)).copy(from: broken.path)
        let out = RawFile(scratch.url, [0x6F, 0xFF])
        let arguments = words("thumbnail", "--recursive", "--json", "--size", "32", tree.path, "-o") + [out.bytes]
        let outcome = try await RawTool.run(arguments, home: home)
        // The one that is broken is told, and ends nothing.
        #expect(outcome.status == 1)
        #expect(outcome.objects.count == Self.stems.count + 2)
        #expect(outcome.objects.filter { $0["error"] is String }.map { bytes($0["input"]) } == [RawFile(tree, [0xE4] + Array(".jpg".utf8)).bytes])
        for stem in Self.stems + [Self.latin + [0x2F, 0xFE]] {
            #expect(RawFile(scratch.url, [0x6F, 0xFF, 0x2F] + stem + Array(".jpg".utf8)).exists, "\(stem)")
        }
        // Into a file of such a name, and over none.
        let single = RawFile(scratch.url, [0xFE] + Array(".png".utf8))
        let one = try await RawTool.run(words("thumbnail", "--size", "32") + [inputs()[0]] + words("-o") + [single.bytes], home: home)
        #expect(one.status == 0 && single.exists)
        let itself = try await RawTool.run(words("thumbnail", "--size", "32") + [inputs()[0]] + words("-o") + [inputs()[0]], home: home)
        #expect(itself.status == 1 && String(decoding: itself.errors, as: UTF8.self).contains("is the input"))
    }

    @Test func contactSheetsShowThem() async throws {
        let output = RawFile(scratch.url, [0xFF] + Array(".png".utf8))
        let outcome = try await RawTool.run(
            words("contact-sheet", "--recursive", tree.path, "--size", "32", "-o") + [output.bytes], home: home)
        #expect(outcome.status == 0 && output.exists, "\(String(decoding: outcome.errors, as: UTF8.self))")
        let several = try await RawTool.run(
            words("contact-sheet", "--size", "32", "-o") + [output.bytes] + inputs(), home: home)
        #expect(several.status == 0)
    }

    @Test func cachesAreFilledAheadAndTheDesktopsToo() async throws {
        let arguments = words("precache", "--json", "--size", "128", tree.path)
        let count = Self.stems.count + 1
        let first = try await RawTool.run(arguments, home: home)
        #expect(first.status == 0 && first.objects.first?["made"] as? Int == count)
        let second = try await RawTool.run(arguments, home: home)
        #expect(second.objects.first?["skipped"] as? Int == count)
        let desktop = try await RawTool.run(words("precache", "--desktop", "--size", "128", tree.path), home: home)
        #expect(desktop.status == 0)
        // What GLib calls the file: its bytes, and not what stands for them.
        let name = FileName.md5("file://\(tree.path)/caf%E9.jpg") + ".png"
        #expect(FileManager.default.fileExists(atPath: home.appending(path: "cache/thumbnails/normal/" + name).path))
    }

    @Test func storesKeepThem() async throws {
        let root = RawFile(scratch.url, [0xFD])
        let store = words("--root") + [root.bytes]
        #expect(try await RawTool.run(words("store", "save") + inputs() + store, home: home).status == 0)
        let listed = try await RawTool.run(words("store", "list") + store, home: home)
        let names = Self.stems.map { $0 + Array(".jpg".utf8) }
        let sorted = names.sorted { $0.lexicographicallyPrecedes($1) }
        #expect(listed.output == Array(sorted.joined(separator: [0x0A])) + [0x0A])
        let json = try await RawTool.run(words("store", "list", "--json") + store, home: home)
        #expect(json.objects.map { bytes($0["name"]) } == sorted)
        let loaded = try await RawTool.run(words("store", "load") + [names[0]] + store, home: home)
        #expect(try loaded.output == Samples.bytes("orientation-1.jpg"))
        let exported = scratch.file("exported")
        #expect(try await RawTool.run(words("store", "export", exported.path) + store, home: home).status == 0)
        #expect(RawFile.names(in: exported) == sorted)
        let other = words("--root", scratch.file("other").path)
        #expect(try await RawTool.run(words("store", "import", exported.path) + other, home: home).status == 0)
        #expect(try await RawTool.run(words("store", "list") + other, home: home).output == listed.output)
        #expect(try await RawTool.run(words("store", "exists") + [names[2]] + other, home: home).status == 0)
        #expect(try await RawTool.run(words("store", "delete") + [names[2]] + other, home: home).status == 0)
        #expect(try await RawTool.run(words("store", "exists") + [names[2]] + other, home: home).status == 1)
    }

    @Test func cachesTakeFilesAndDirectoriesOfSuchNames() async throws {
        let cache = words("--name", "c", "--root") + [RawFile(scratch.url, [0x72, 0xFF]).bytes]
        let put = try await RawTool.run(words("cache", "put", "key") + [inputs()[0]] + cache, home: home)
        #expect(put.status == 0, "\(String(decoding: put.errors, as: UTF8.self))")
        let output = RawFile(scratch.url, [0xFA])
        #expect(try await RawTool.run(words("cache", "get", "key", "-o") + [output.bytes] + cache, home: home).status == 0)
        #expect(output.exists)
        #expect(RawFile.names(in: scratch.url).contains([0x72, 0xFF]))
    }

    @Test func filesThatCannotBeReadAreTold() async throws {
        // A directory so deep that the system takes no path to what is in it.
        let deep = scratch.file("deep")
        try FileManager.default.createDirectory(at: deep, withIntermediateDirectories: true)
        try RawFile(deep, Array("a.jpg".utf8)).copy(from: Samples.path("orientation-1.jpg"))
        let long = String(repeating: "n", count: 250)
        var path = deep.path
        while path.utf8.count + 251 < Int(PATH_MAX) - 1 {
            path = FilePath.join(path, long)
            try Directory.create(path)
        }
        let last = try FileDescriptor(opening: path, flags: O_RDONLY | O_DIRECTORY)
        let file = openat(last.number, long, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        close(file)
        let outcome = try await Tool.run(["thumbnail", "--recursive", deep.path, "--size", "32", "-o", scratch.file("out").path])
        #expect(outcome.status == 1 && outcome.errors.contains("File name too long"), "\(outcome.errors.suffix(200))")
        #expect(FileManager.default.fileExists(atPath: scratch.file("out/a.jpg").path))
        #expect(unlinkat(last.number, long, 0) == 0)
    }
}
#endif
