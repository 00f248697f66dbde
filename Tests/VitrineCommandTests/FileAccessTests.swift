import Foundation
import TestSupport
import Testing

/// Files that refer to others: nothing but the named file is opened, and no network is reached. Traced by strace(1),
/// helpers included.
@Suite(.enabled(if: FileTrace.isAvailable, "needs strace"))
struct FileAccessTests {
    /// Paths below the inputs that were opened, and calls that concern other machines.
    private struct Access {
        var opened: Set<String> = []
        var network: [String] = []
    }

    /// Runs the command on copies of files, each in a directory of its own with files of the names that references use.
    private func trace(_ files: [(name: String, bytes: [UInt8])], _ options: [String] = []) throws
        -> (access: Access, inputs: Set<String>)
    {
        let scratch = try Scratch()
        var inputs: Set<String> = []
        for (number, file) in files.enumerated() {
            let folder = scratch.file("in/\(number)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            for other in ["cover.jpg", "secret.jpg", "a.jpg", "page.djvu", "image.png", "evil.jpg"] {
                try Data(Samples.bytes("lake.jpg")).write(to: folder.appending(path: other))
            }
            let path = folder.appending(path: file.name)
            try Data(file.bytes).write(to: path)
            inputs.insert(path.path)
        }
        let log = scratch.file("log").path
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/strace")
        process.arguments =
            ["-f", "-qq", "-s", "4096", "-o", log, "-e", "trace=open,openat,openat2,creat,socket,connect,sendto"]
            + [Tool.executable.path, "thumbnail", "--no-cache", "--quiet", "--size", "64", "-o", scratch.file("out").path]
            + options + inputs.sorted()
        process.environment = ProcessInfo.processInfo.environment
            .merging(Tool.environment(home: scratch.file("home"))) { $1 }
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        #expect([0, 1].contains(process.terminationStatus))

        var access = Access()
        let below = scratch.file("in").path + "/"
        let text = String(decoding: try Data(contentsOf: URL(filePath: log)), as: UTF8.self)
        for line in text.split(separator: "\n") {
            if line.contains("AF_INET") { access.network.append(String(line)) }
            guard line.contains(" open") || line.contains(" creat"),
                let start = line.range(of: below), let end = line[start.upperBound...].firstIndex(of: "\"")
            else { continue }
            access.opened.insert(String(line[start.lowerBound..<end]))
        }
        return (access, inputs)
    }

    private func files(_ folder: String, _ names: [String]? = nil) throws -> [(name: String, bytes: [UInt8])] {
        try Corpus.files(in: folder).compactMap { path in
            let name = URL(filePath: path).lastPathComponent
            guard names?.contains(name) ?? true else { return nil }
            return (name, [UInt8](try Data(contentsOf: URL(filePath: path))))
        }
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func hostileFilesOpenNothingElse() async throws {
        let files = try files("anything/hostile")
        guard !files.isEmpty else { return }
        let (access, inputs) = try await offPool { try trace(files, ["--waveform"]) }
        #expect(access.opened.subtracting(inputs).isEmpty, "\(access.opened.subtracting(inputs))")
        #expect(inputs.subtracting(access.opened).isEmpty)
        #expect(access.network.isEmpty, "\(access.network.prefix(3))")
    }

    /// Two files of each folder of the corpus, the DjVu document that refers to its pages, and playlists.
    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func filesOfEachKindOpenNothingElse() async throws {
        var files = try files("anything/corpus/ebook", ["testDJVU.djvu"])
        let folders = Set(
            Corpus.files(in: "anything/corpus").map { URL(filePath: $0).deletingLastPathComponent().lastPathComponent })
        for folder in folders.sorted() {
            let all = try self.files("anything/corpus/\(folder)")
            files += [all.first, all.last].compactMap(\.self)
        }
        #expect(files.count > 20)
        files.append(("list.m3u8", Array("#EXTM3U\n#EXTINF:1,\na.jpg\nhttp://192.0.2.1/a.ts\n".utf8)))
        files.append(("list.mp4", Array("ffconcat version 1.0\nfile 'secret.jpg'\n".utf8)))
        files.append(("list.sdp", Array("v=0\nc=IN IP4 192.0.2.1\nm=video 5004 RTP/AVP 96\n".utf8)))
        files.append((
            "drawing.svg",
            Array("<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><image href='a.jpg'/></svg>".utf8)))
        let (access, inputs) = try await offPool { [files] in try trace(files) }
        #expect(access.opened.subtracting(inputs).isEmpty, "\(access.opened.subtracting(inputs))")
        #expect(access.network.isEmpty, "\(access.network.prefix(3))")
    }

    /// The trace sees what an option allows.
    @Test func filesBesideRecordingsAreOpenedByOptionOnly() async throws {
        let fixture = Samples.directory.deletingLastPathComponent()
            .appending(path: "Tests/VitrinePipelineTests/Fixtures/video/sound.m4a")
        let song = [("sound.m4a", [UInt8](try Data(contentsOf: fixture)))]
        let (plain, inputs) = try await offPool { try trace(song) }
        #expect(plain.opened == inputs)
        let (allowed, others) = try await offPool { try trace(song, ["--sibling-covers"]) }
        #expect(allowed.opened.subtracting(others).contains { $0.hasSuffix("/cover.jpg") })
    }
}
