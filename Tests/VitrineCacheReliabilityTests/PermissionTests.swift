import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineStores

/// Directories that may be read but not written, or not even read.
struct PermissionTests {
    private static let count = 40

    /// What became of each kind of change: `done`, or the error's case.
    private static func outcomes(_ findings: Findings) -> [String] {
        ["set", "set-large", "remove", "remove-all"].map { findings[$0] ?? "nothing" }
    }

    /// As a program left it that ended well, and as a killed one did.
    @Test(.enabled(if: Namespace.isAvailable, "needs unshare and the right to mount"), arguments: [false, true])
    func readOnlyDirectoryIsReadAndRefusesChanges(withLog: Bool) async throws {
        try await offPool {
            let cache = try FilledCache(count: Self.count, isAbandoned: withLog)
            let child = try ChildProcess(
                ["use", cache.path, "-1", String(Self.count)],
                wrapper: Namespace.command(
                    "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\"", cache.path))
            let findings = child.findings()
            #expect(child.wait() == .exit(0), "\(findings)")
            #expect(findings.number("wrong") == 0)
            #expect(findings.number("intact") == Self.count, "\(findings)")
            for outcome in Self.outcomes(findings) { #expect(["file", "database"].contains(outcome), "\(findings)") }
            // Nothing changed.
            #expect(Inspection(cache.path, count: Self.count).intact == Self.count)
        }
    }

    @Test(.enabled(if: Namespace.isAvailable, "needs unshare and the right to mount"))
    func readOnlyDirectoryWithoutACacheIsEmptyAndRefusesChanges() async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            let child = try ChildProcess(
                ["use", directory.path + "/cache", "-1", "3"],
                wrapper: Namespace.command(
                    "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\"", directory.path))
            let findings = child.findings()
            #expect(child.wait() == .exit(0), "\(findings)")
            #expect(findings.number("intact") == 0)
            #expect(!findings.lines.contains { $0.name.hasPrefix("read-failure") }, "\(findings)")
            #expect(Self.outcomes(findings).prefix(2).allSatisfy { ["file", "database"].contains($0) }, "\(findings)")
        }
    }

    @Test(.enabled(if: Namespace.isAvailable, "needs unshare and the right to mount"))
    func fileSystemThatIsReadOnlyForAMomentIsWrittenAfterwards() async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            do {
                let cache = DiskCache(directory: directory.file("cache")).blocking
                try cache.set([9], forKey: "old")
                try cache.flush()
                _ = try KeyValueStore(directory: directory.file("values"))
            }
            let child = try ChildProcess(
                ["read-only-moment", directory.path],
                wrapper: Namespace.command(
                    "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\"", directory.path))
            let findings = child.findings()
            #expect(child.wait() == .exit(0), "\(findings)")
            #expect(findings.number("found") == 1, "\(findings)")
            for name in ["refused", "refused-opening"] {
                #expect(findings[name]?.hasPrefix("failed") == true, "\(findings)")
            }
            for name in ["set", "values"] { #expect(findings[name] == "done", "\(findings)") }
            #expect(findings.number("got") == 3, "\(findings)")
        }
    }

    /// Files of another user that everyone may read.
    @Test(.enabled(if: Namespace.isRoot, "needs root, to become somebody else"))
    func otherUsersReadableCacheIsReadAndRefusesChanges() async throws {
        try await offPool {
            let cache = try FilledCache(count: Self.count)
            try Self.setModes(in: cache.path, directories: 0o755, files: 0o644)
            let findings = try Self.visit(cache.path)
            #expect(findings.number("wrong") == 0)
            for outcome in Self.outcomes(findings) { #expect(["file", "database"].contains(outcome), "\(findings)") }
            #expect(Inspection(cache.path, count: Self.count).intact == Self.count)
        }
    }

    /// The same with a directory that nobody else may enter: typed errors throughout, and no crash.
    @Test(.enabled(if: Namespace.isRoot, "needs root, to become somebody else"))
    func closedDirectoryGivesTypedErrors() async throws {
        try await offPool {
            let cache = try FilledCache(count: Self.count)
            try Self.setModes(in: cache.path, directories: 0o700, files: 0o600)
            let findings = try Self.visit(cache.path)
            #expect(findings.number("intact") == 0)
            #expect(findings.number("wrong") == 0)
            for outcome in Self.outcomes(findings) { #expect(["file", "database"].contains(outcome), "\(findings)") }
            #expect(Inspection(cache.path, count: Self.count).intact == Self.count)
        }
    }

    private static func visit(_ path: String) throws -> Findings {
        let child = try ChildProcess(["use", path, "65534", String(count)])
        let findings = child.findings()
        #expect(child.wait() == .exit(0), "\(findings)")
        return findings
    }

    private static func setModes(in path: String, directories: mode_t, files: mode_t) throws {
        for name in try FileManager.default.subpathsOfDirectory(atPath: path) + ["."] {
            var info = stat()
            let item = "\(path)/\(name)"
            guard lstat(item, &info) == 0 else { continue }
            #expect(chmod(item, info.st_mode & S_IFMT == S_IFDIR ? directories : files) == 0)
        }
    }
}
