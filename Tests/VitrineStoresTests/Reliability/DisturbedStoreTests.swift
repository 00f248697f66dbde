#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrineStores

/// Stores on file systems that are full, must not be written, or are used by several processes at once.
@Suite struct DisturbedStoreTests {
    private func findings(
        _ mode: String, _ directory: String, _ numbers: [Int] = [], wrapper: [String] = []
    ) throws -> Findings {
        let child = try ChildProcess(
            executable: "StoreChild", [mode, directory] + numbers.map(String.init), wrapper: wrapper)
        let findings = child.findings()
        #expect(child.wait() == .exit(0), "\(findings)")
        return findings
    }

    @Test(.enabled(if: Namespace.isAvailable, "needs unshare and the right to mount"))
    func aFullDiskIsATypedErrorAndCostsNothingThatWasThere() async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            let found = try findings(
                "fill", directory.file("small"),
                wrapper: Namespace.command(
                    #"mkdir "$0/small" && mount -t tmpfs -o size=1m tmpfs "$0/small""#, directory.path))
            #expect(found["before"] == "done")
            #expect(found["full"] == "noSpace")
            let saved = found.number("saved")
            #expect(saved > 5)
            for name in ["group", "replacement", "picture", "copy"] { #expect(found[name] == "noSpace", "\(name)") }
            #expect(found.number("intact") == saved && found.number("names") == saved)
            #expect(found.number("temporaries") == 0)
            #expect(found.number("kept") == 64)
            // Made anew where it was lost, even without room to keep it.
            #expect(found["thumbnail"] == "done")
            #expect(found["deletion"] == "done" && found["after"] == "done", "\(found)")
        }
    }

    @Test(.enabled(if: Namespace.isAvailable, "needs unshare and the right to mount"))
    func aReadOnlyFileSystemIsReadAndNotWritten() async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            try FileManager.default.copyItem(atPath: Samples.path("lake.jpg"), toPath: directory.file("sample"))
            let script = """
                mkdir "$0/fixed" && mount -t tmpfs tmpfs "$0/fixed" && cp "$0/sample" "$0/fixed/lake.jpg" \
                && mount -o remount,ro "$0/fixed"
                """
            try check(
                findings(
                    "attempt", directory.file("fixed"), wrapper: Namespace.command(script, directory.path)))
        }
    }

    @Test(.enabled(if: Namespace.letsNobodyRun("StoreChild"), "needs root, and a checkout that everybody may read"))
    func aDirectoryOfOthersIsReadAndNotWritten() async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            chmod(directory.path, 0o755)
            try FileManager.default.copyItem(atPath: Samples.path("lake.jpg"), toPath: directory.file("lake.jpg"))
            chmod(directory.file("lake.jpg"), 0o644)
            try check(findings("attempt", directory.path, wrapper: Namespace.asNobody))
            #expect(directory.names == ["lake.jpg"])
        }
    }

    private func check(_ found: Findings) throws {
        let refused = [
            "save", "save-new", "group", "delete", "rename", "picture", "picture-delete", "picture-rename", "below",
        ]
        for name in refused { #expect(found[name] == "notPermitted", "\(name)") }
        for name in ["load", "list", "names", "thumbnail"] { #expect(found[name] == "done", "\(name)") }
        #expect(found.number("count") == 1 && found.number("width") == 16)
    }

    @Test func processesMayShareAStore() async throws {
        let directory = try TemporaryDirectory()
        let found = try await withThrowingTaskGroup(of: Findings.self) { group in
            for seed in 1...3 {
                group.addTask { try await offPool { try findings("share", directory.path, [seed, 150]) } }
            }
            return try await group.reduce(into: [Findings]()) { $0.append($1) }
        }
        for one in found { #expect(one["error"] == nil, "\(one)") }
        let store = ImageStore(.root(directory.path), path: [])
        let names = try await store.names
        for name in names {
            // Each thumbnail is that of its picture, as it lies there.
            let picture = try await store.image(name)
            let small = try ImageDecoder().decode(.file(store.path(of: name, as: .thumbnail)))
            #expect(small.size == PixelSize(width: 16, height: 12))
            #expect(color(picture) == color(small), "\(name)")
        }
        let left = try FileManager.default.subpathsOfDirectory(atPath: directory.path)
        #expect(left.count == names.count * 2 + 1, "\(left)")
    }

    private func color(_ image: PixelImage) -> [UInt8] { image.withUnsafeBytes { Array($0.prefix(4)) } }

    @Test func manyMoreAreSavedAtOnceThanAProcessMayHaveOpen() async throws {
        let directory = try TemporaryDirectory()
        let found = try await offPool {
            try findings("group", directory.path, [300], wrapper: ["prlimit", "--nofile=100"])
        }
        #expect(found["group"] == "done")
        let store = FileStore(.root(directory.path), path: [])
        #expect(try await store.names.count == 300)
        #expect(try await store.load("257") == [1])
    }

    @Test(arguments: ["root", "thumbnails"])
    func aFileInThePlaceOfADirectoryIsATypedError(place: String) async throws {
        let directory = try TemporaryDirectory()
        let store = ImageStore(.root(directory.path), path: ["s"])
        if place == "thumbnails" {
            try FileManager.default.createDirectory(atPath: directory.file("s"), withIntermediateDirectories: false)
            try directory.write("x", to: "s/thumbnail")
        } else {
            try directory.write("x", to: "s")
        }
        let before = try FileManager.default.subpathsOfDirectory(atPath: directory.path)
        await #expect {
            try await store.save(PixelImage(size: PixelSize(8), color: .white), as: "a.png")
        } throws: { error in
            if case .file(.alreadyExists)? = error as? StoreError { true } else { false }
        }
        #expect(try FileManager.default.subpathsOfDirectory(atPath: directory.path) == before)
        #expect(await !store.exists("a.png"))
        #expect(try await !store.delete("a.png"))
    }
}
#endif
