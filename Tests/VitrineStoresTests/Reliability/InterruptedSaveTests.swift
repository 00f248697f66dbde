#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineStores

/// Saves whose process dies, and saves that fail after the file has its name.
@Suite struct InterruptedSaveTests {
    private func temporaries(_ directory: TemporaryDirectory) -> Int {
        directory.names.count { $0.hasPrefix(AtomicFile.temporaryPrefix) }
    }

    private func findings(_ mode: String, _ directory: String, wrapper: [String] = []) throws -> Findings {
        let child = try ChildProcess(executable: "StoreChild", [mode, directory], wrapper: wrapper)
        let findings = child.findings()
        #expect(child.wait() == .exit(0), "\(findings)")
        return findings
    }

    // MARK: Temporary files

    @Test func theNextProcessRemovesWhatDeadWritersLeftAndNothingOfALivingOne() async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            let living = try ChildProcess(executable: "StoreChild", ["hold", directory.path], holdsInput: true)
            #expect(living.line() == "holding")
            let dying = try (0..<3).map { _ in
                try ChildProcess(executable: "StoreChild", ["hold", directory.path], holdsInput: true)
            }
            for dead in dying { #expect(dead.line() == "holding") }
            for dead in dying {
                dead.kill()
                #expect(dead.wait() == .signal(SIGKILL))
            }
            #expect(temporaries(directory) == 4)
            #expect(try findings("names", directory.path).number("names") == 0)
            #expect(temporaries(directory) == 1)
            living.closeInput()
            #expect(living.findings()["held"] == "done")
            #expect(directory.names == ["held"])
        }
    }

    @Test func aKilledSaveOfManyFilesIsTidiedUp() async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            // More files than are held open at once.
            while temporaries(directory) < 3 {
                let child = try ChildProcess(executable: "StoreChild", ["groups", directory.path, "200"])
                #expect(child.line() == "round done")
                usleep(UInt32.random(in: 0..<5000))
                child.kill()
                #expect(child.wait() == .signal(SIGKILL))
            }
            _ = try findings("names", directory.path)
            #expect(temporaries(directory) == 0)
        }
    }

    @Test func aSaveOfManyFilesIsNotDisturbedByTidyingUp() async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            let child = try ChildProcess(executable: "StoreChild", ["groups", directory.path, "200"])
            #expect(child.line() == "round done")
            var found = 0
            for _ in 0..<40 {
                usleep(UInt32.random(in: 0..<3000))
                child.stop()
                found += temporaries(directory)
                // A file that was made but not locked yet may go: its writer makes another.
                #expect(try AtomicFile.removeTemporariesOfDeadWriters(in: directory.path) <= 1)
                child.resume()
                #expect(child.line() == "round done")
            }
            #expect(found > 0)
            child.kill()
        }
    }

    @Test func writersThatComeAndGoAreNotDisturbedByTidyingUp() async throws {
        let directory = try TemporaryDirectory()
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<3 {
                group.addTask {
                    await BlockingExecutor.shared.run {
                        for _ in 0..<500 {
                            #expect(throws: Never.self) {
                                try AtomicFile.write([1, 2, 3], to: directory.file("\(number)"))
                            }
                        }
                    }
                }
            }
            group.addTask {
                await BlockingExecutor.shared.run {
                    for _ in 0..<1500 { _ = try? AtomicFile.removeTemporariesOfDeadWriters(in: directory.path) }
                }
            }
        }
        #expect(directory.names == ["0", "1", "2"])
    }

    // MARK: Failures after the rename

    @Test func aSaveThatFindsNoDescriptorForTheDirectoryChangesNothing() async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            let found = try findings("scarce", directory.path, wrapper: ["prlimit", "--nofile=64"])
            #expect(found["first"] == "done")
            #expect(found["second"]?.hasPrefix("file:") == true, "\(found)")
            #expect(found["second"]?.contains(directory.file("a")) == true, "\(found)")
            #expect(found.number("a") == 1, "\(found)")
            #expect(directory.names == ["a"])
        }
    }

    @Test(.enabled(if: FileTrace.isAvailable, "needs strace"))
    func aChangeWhoseDirectoryCannotBeSynchronizedIsTold() async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            for name in ["a", "c"] { try directory.write("x", to: name) }
            let found = try findings(
                "change", directory.path,
                wrapper: [
                    "strace", "-f", "-qq", "-o", "/dev/null", "-P", directory.path, "-e", "trace=fsync", "-e",
                    "inject=fsync:error=EIO",
                ])
            for name in ["replace", "rename", "delete"] { #expect(found[name] == "notDurable", "\(found)") }
            #expect(found.number("a") == 2 && found.number("b") == 2 && found["c"] == "false", "\(found)")
            #expect(directory.names == ["b"])
        }
    }

    @Test(.enabled(if: FileTrace.isAvailable, "needs strace"))
    func errorsNameTheFileAndNotItsTemporaryFile() async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            for name in ["a", "c"] { try directory.write("x", to: name) }
            let found = try findings(
                "change", directory.path,
                wrapper: [
                    "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync", "-e", "inject=fsync:error=EIO",
                ])
            let error = try #require(found["replace"])
            #expect(error.contains(directory.file("a")) && !error.contains(AtomicFile.temporaryPrefix), "\(error)")
            #expect(found.number("a") == 120, "\(found)")
        }
    }
}
#endif
