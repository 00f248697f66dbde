#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineModels

/// Stores on file systems that are full or must not be written.
@Suite struct DisturbedStoreTests {
    @Test(.enabled(if: Namespace.isAvailable, "needs unshare and the right to mount"))
    func aFullDiskIsATypedErrorAndCostsNothingThatWasThere() async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            let found = try ModelsChildRun.findings(
                ["fill", directory.file("small/a.sqlite")],
                wrapper: Namespace.command(
                    """
                    mkdir "$0/small" && mount -t tmpfs -o size=8m tmpfs "$0/small" \
                    && head -c 3000000 /dev/zero > "$0/small/a.sqlite.ballast"
                    """, directory.path))
            #expect(found["full"] == "full")
            let stored = found.number("stored")
            #expect(stored > 50)
            #expect(found["replacement"] == "full" && found["batch"] == "full", "\(found)")
            #expect(["full", "file:noSpace"].contains { found["backup"]?.hasPrefix($0) == true }, "\(found)")
            let intact = found.lines.filter { $0.name == "intact" }.map(\.value)
            let keys = found.lines.filter { $0.name == "keys" }.map(\.value)
            #expect(intact == [String(stored), String(stored + 1)], "\(found)")
            #expect(keys == intact)
            #expect(found["after"] == "done")
        }
    }

    /// A store with one object.
    private static func makeStore(_ path: String) throws {
        let findings = try ModelsChildRun.findings(["one", path])
        #expect(findings["done"] == "1")
    }

    /// Copies a store into a small file system, and fills that to its last byte.
    private static func filled(_ directory: TemporaryDirectory, _ files: [String]) -> [String] {
        let copies = files.map { #"cp "$0/\#($0)" "$0/small/\#($0)""# }.joined(separator: " && ")
        return Namespace.command(
            """
            mkdir "$0/small" && mount -t tmpfs -o size=8m tmpfs "$0/small" && \(copies) \
            && { cat /dev/zero > "$0/small/a.sqlite.ballast" 2>/dev/null; true; }
            """, directory.path)
    }

    private static func checkFull(_ found: Findings, late: Int) {
        #expect(found.lines.first { $0.name == "k" }?.value == "7", "\(found)")
        #expect(found.number("late") == late && found.number("count") == (late < 0 ? 1 : 2), "\(found)")
        #expect(found["intact"] == "true" && found.number("kept") == 7, "\(found)")
        for name in ["put", "remove"] { #expect(found[name] == "full", "\(found)") }
        #expect(found.lines.filter { $0.name == "after" }.map(\.value) == ["done", "done"], "\(found)")
        #expect(found.number("new") == 11 && found.number("k") == 10, "\(found)")
    }

    @Test(.enabled(if: Namespace.isAvailable, "needs unshare and the right to mount"))
    func aStoreIsOpenedAndReadOnAFullDiskAndWrittenWhenThereIsRoom() async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            try Self.makeStore(directory.file("a.sqlite"))
            let found = try ModelsChildRun.findings(
                ["read", directory.file("small/a.sqlite")], wrapper: Self.filled(directory, ["a.sqlite"]))
            Self.checkFull(found, late: -1)
        }
    }

    /// A store whose last object is in the log only, as a killed process leaves it.
    private static func makeCrashedStore(_ directory: TemporaryDirectory) throws {
        let path = directory.file("a.sqlite")
        try makeStore(path)
        let child = try ChildProcess(executable: "ModelsChild", ["crash", path])
        #expect(child.line() == "done 1")
        child.kill()
        #expect(child.wait() == .signal(SIGKILL))
        try FileManager.default.removeItem(atPath: path + "-shm")
    }

    @Test(.enabled(if: Namespace.isAvailable, "needs unshare and the right to mount"))
    func logIsReadOnAFullDisk() async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            try Self.makeCrashedStore(directory)
            let found = try ModelsChildRun.findings(
                ["read", directory.file("small/a.sqlite")],
                wrapper: Self.filled(directory, ["a.sqlite", "a.sqlite-wal"]))
            // Moving the log into the file may make room, so that the first changes succeed as well.
            #expect(found.lines.first { $0.name == "k" }?.value == "7" && found.number("late") == 8, "\(found)")
            #expect(found.number("count") == 2 && found["intact"] == "true", "\(found)")
            #expect(found.number("new") == 11 && found.number("k") == 10, "\(found)")
        }
    }

    @Test(.enabled(if: Namespace.isAvailable, "needs unshare and the right to mount"))
    func logIsReadOnAReadOnlyFileSystem() async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            try Self.makeCrashedStore(directory)
            let script = """
                mkdir "$0/fixed" && mount -t tmpfs tmpfs "$0/fixed" && cp "$0"/a.sqlite* "$0/fixed" \
                && mount -o remount,ro "$0/fixed"
                """
            let found = try ModelsChildRun.findings(
                ["attempt", directory.file("fixed/a.sqlite")], wrapper: Namespace.command(script, directory.path))
            #expect(found.number("late") == 8 && found.number("number") == 7, "\(found)")
            #expect(found.number("count") == 2 && found["intact"] == "true", "\(found)")
            for name in ["put", "remove"] { #expect(found[name] == "readOnly", "\(found)") }
        }
    }

    @Test(.enabled(if: Namespace.isAvailable, "needs unshare and the right to mount"))
    func aReadOnlyFileSystemIsReadAndNotWritten() async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            try Self.makeStore(directory.file("sample"))
            let script = """
                mkdir "$0/fixed" && mount -t tmpfs tmpfs "$0/fixed" && cp "$0/sample" "$0/fixed/a.sqlite" \
                && mount -o remount,ro "$0/fixed"
                """
            try Self.check(
                ModelsChildRun.findings(
                    ["attempt", directory.file("fixed/a.sqlite")], wrapper: Namespace.command(script, directory.path)))
        }
    }

    @Test(.enabled(if: Namespace.letsNobodyRun("ModelsChild"), "needs root, and a checkout that everybody may read"))
    func aFileOfOthersIsReadAndNotWritten() async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            let path = directory.file("a.sqlite")
            try Self.makeStore(path)
            chmod(directory.path, 0o755)
            chmod(path, 0o644)
            let before = FileManager.default.contents(atPath: path)
            try Self.check(ModelsChildRun.findings(["attempt", path], wrapper: Namespace.asNobody))
            #expect(FileManager.default.contents(atPath: path) == before)
            #expect(directory.names == ["a.sqlite"])
        }
    }

    private static func check(_ found: Findings) throws {
        #expect(["readOnly", "cannotOpen"].contains(found["open"]), "\(found)")
        #expect(found["look"] == "done" && found.number("number") == 7 && found.number("count") == 1, "\(found)")
        for name in ["put", "remove"] { #expect(found[name] == "readOnly", "\(found)") }
        #expect(found["intact"] == "true", "\(found)")
    }
}
#endif
