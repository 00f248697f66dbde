import Foundation
import TestSupport
import Testing
import VitrineCore

struct AtomicFileTests {
    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    private func mode(_ path: String) -> UInt32 {
        var status = stat()
        return stat(path, &status) == 0 ? UInt32(status.st_mode & 0o7777) : 0
    }

    @Test func writesAndReplacesWithoutLitter() throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("a")
        try AtomicFile.write(bytes("one"), to: path)
        try AtomicFile.write(bytes("two"), to: path, durability: .full)
        try AtomicFile.write([], to: directory.file("empty"))
        #expect(directory.read("a") == "two")
        #expect(directory.read("empty") == "")
        #expect(directory.names == ["a", "empty"])
    }

    @Test func keepsThePermissionsOfAReplacedFile() throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("a")
        try directory.write("one", to: "a")
        chmod(path, 0o640)
        try AtomicFile.write(bytes("two"), to: path)
        #expect(mode(path) == 0o640)
        try AtomicFile.write(bytes("three"), to: path, permissions: 0o600)
        #expect(mode(path) == 0o600)
    }

    @Test func doesNotReplaceWhenAskedNotTo() throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("a")
        try AtomicFile.write(bytes("one"), to: path, durability: .full, replacing: false)
        #expect(throws: FileError.alreadyExists(path: path)) {
            try AtomicFile.write(bytes("two"), to: path, replacing: false)
        }
        symlink("nowhere", directory.file("link"))
        #expect(throws: FileError.alreadyExists(path: directory.file("link"))) {
            try AtomicFile.write(bytes("two"), to: directory.file("link"), replacing: false)
        }
        #expect(directory.read("a") == "one")
        #expect(directory.names == ["a", "link"])
    }

    @Test func specialFilesStayWhatTheyAre() throws {
        let directory = try TemporaryDirectory()
        let fifo = directory.file("fifo")
        #expect(mkfifo(fifo, 0o600) == 0)
        // Opened for both, so that neither end waits for the other.
        let number = open(fifo, O_RDWR)
        defer { close(number) }
        symlink(fifo, directory.file("link"))
        for path in [fifo, directory.file("link")] {
            try AtomicFile.write(bytes("abc"), to: path, durability: .full)
            var buffer = [UInt8](repeating: 0, count: 8)
            #expect(read(number, &buffer, 8) == 3 && buffer.starts(with: bytes("abc")))
        }
        var status = stat()
        #expect(lstat(fifo, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO)
        try AtomicFile.write(bytes("abc"), to: "/dev/null")
        #expect(stat("/dev/null", &status) == 0 && status.st_mode & S_IFMT == S_IFCHR)
        #expect(directory.names == ["fifo", "link"])
    }

    @Test func socketsAndDirectoriesAreRefused() throws {
        let directory = try TemporaryDirectory()
        let socketPath = directory.file("s")
        let number = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(number) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let name = Array(socketPath.utf8CString)
        try #require(name.count <= MemoryLayout.size(ofValue: address.sun_path))
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name.map { UInt8(bitPattern: $0) }) }
        let length = socklen_t(MemoryLayout<sockaddr_un>.size)
        let isBound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(number, $0, length) == 0 }
        }
        #expect(isBound)
        #expect(throws: FileError.self) { try AtomicFile.write(bytes("abc"), to: socketPath) }
        #expect(throws: FileError.self) { try AtomicFile.write(bytes("abc"), to: directory.file("")) }
        var status = stat()
        #expect(lstat(socketPath, &status) == 0 && status.st_mode & S_IFMT == S_IFSOCK)
        #expect(directory.names == ["s"])
    }

    @Test func onlyOneOfManyCreatorsSucceeds() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("a")
        let wins = Recorder<Int>()
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<16 {
                group.addTask {
                    let contents = Array("\(index)".utf8)
                    let result = await BlockingExecutor.shared.run {
                        Result { try AtomicFile.write(contents, to: path, replacing: false) }
                    }
                    if case .success = result { wins.add(index) }
                }
            }
        }
        #expect(wins.all.count == 1)
        #expect(directory.read("a") == wins.all.first.map(String.init))
        #expect(directory.names == ["a"])
    }

    @Test func symbolicLinksStayAndTheirTargetsAreReplaced() throws {
        let directory = try TemporaryDirectory()
        try directory.write("old", to: "target")
        symlink("target", directory.file("link"))
        symlink("link", directory.file("link to link"))
        symlink("absent", directory.file("dangling"))
        try AtomicFile.write(bytes("new"), to: directory.file("link to link"))
        try AtomicFile.write(bytes("made"), to: directory.file("dangling"))
        #expect(directory.read("target") == "new")
        #expect(directory.read("absent") == "made")
        let destination = try FileManager.default.destinationOfSymbolicLink(atPath: directory.file("link"))
        #expect(destination == "target")
        symlink("loop", directory.file("loop"))
        #expect(throws: FileError.self) { try AtomicFile.write(bytes("x"), to: directory.file("loop")) }
    }

    @Test func failuresNameThePathAndLeaveNothing() throws {
        let directory = try TemporaryDirectory()
        let missing = directory.file("no/such")
        #expect(throws: FileError.notFound(path: missing)) { try AtomicFile.write([1], to: missing) }
        try FileManager.default.createDirectory(atPath: directory.file("folder"), withIntermediateDirectories: true)
        let error = #expect(throws: FileError.self) { try AtomicFile.write([1], to: directory.file("folder")) }
        #expect(error?.description.contains("folder") == true)
        #expect(error?.description.contains("Is a directory") == true)
        #expect(directory.names == ["folder"])
    }

    #if os(Linux)
    @Test func errorsNameTheTargetAndNotTheTemporaryFile() throws {
        // Nobody may make files there.
        let error = #expect(throws: FileError.self) { try AtomicFile.write([1], to: "/sys/target") }
        #expect(error?.path == "/sys/target")
        let directory = try TemporaryDirectory()
        symlink("/sys/target", directory.file("link"))
        let other = #expect(throws: FileError.self) { try AtomicFile.write([1], to: directory.file("link")) }
        #expect(other?.path == directory.file("link"))
    }
    #endif

    @Test func errorNumbersBecomeTheCasesCallersActOn() {
        #expect(FileError(operation: "write", path: "p", code: ENOSPC) == .noSpace(path: "p"))
        #expect(FileError(operation: "write", path: "p", code: EDQUOT) == .noSpace(path: "p"))
        #expect(FileError(operation: "open", path: "p", code: EROFS) == .notPermitted(path: "p", code: EROFS))
    }

    @Test func cancelledWritesLeaveNothing() async throws {
        let directory = try TemporaryDirectory()
        let token = CancellationToken()
        token.cancel()
        #expect(throws: FileError.cancelled(path: directory.file("a"))) {
            try AtomicFile.write([1], to: directory.file("a"), cancellation: token)
        }
        let path = directory.file("b")
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await AtomicFile.write([1], to: path, on: .shared)
        }
        await #expect(throws: FileError.cancelled(path: path)) { try await task.value }
        #expect(directory.names.isEmpty)
    }

    @Test func writerShowsNothingBeforeItsCommit() throws {
        let directory = try TemporaryDirectory()
        let writer = try AtomicFileWriter(path: directory.file("a"))
        try writer.write(bytes("one "))
        try writer.write(bytes("two"))
        #expect(writer.count == 7)
        #expect(directory.read("a") == nil)
        #expect(directory.names.count == 1)
        try writer.commit()
        #expect(directory.read("a") == "one two")
        #expect(directory.names == ["a"])
        do { _ = try AtomicFileWriter(path: directory.file("b")) }
        #expect(directory.names == ["a"])
    }

    @Test func staleTemporariesGoAndLivingOnesStay() throws {
        let directory = try TemporaryDirectory()
        let writer = try AtomicFileWriter(path: directory.file("a"))
        try directory.write("left by a crash", to: ".%tmp-crashed")
        try directory.write("a key's", to: "%25tmp-crashed")
        #expect(try AtomicFile.removeStaleTemporaries(in: directory.path) == 0)
        #expect(try AtomicFile.removeStaleTemporaries(in: directory.path, olderThan: .zero) == 1)
        try writer.commit()
        #expect(directory.names == ["%25tmp-crashed", "a"])
    }

    @Test func readersNeverSeeAPart() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("a")
        try AtomicFile.write([UInt8](repeating: 0, count: 100_000), to: path)
        await withTaskGroup(of: Void.self) { group in
            for value in UInt8(1)...3 {
                group.addTask {
                    await BlockingExecutor.shared.run {
                        for _ in 0..<30 {
                            let contents = [UInt8](repeating: value, count: 100_000)
                            #expect(throws: Never.self) { try AtomicFile.write(contents, to: path) }
                            let found = try? FileContents.read(path)
                            #expect(found?.count == 100_000)
                            #expect(found.map { Set($0).count } == 1)
                        }
                    }
                }
            }
        }
        #expect(directory.names == ["a"])
    }

    @Test func readingHonoursItsLimit() throws {
        let directory = try TemporaryDirectory()
        try directory.write("12345", to: "a")
        #expect(try FileContents.read(directory.file("a"), limit: 5) == bytes("12345"))
        #expect(throws: FileError.tooLarge(path: directory.file("a"), limit: 4)) {
            try FileContents.read(directory.file("a"), limit: 4)
        }
        #expect(throws: FileError.notFound(path: directory.file("b"))) { try FileContents.read(directory.file("b")) }
    }

    @Test(.enabled(if: FileManager.default.fileExists(atPath: "/proc/self/maps"), "needs /proc"))
    func readsFilesThatClaimToBeEmpty() throws {
        #expect(try FileContents.read("/proc/self/maps").count > 1000)
        #expect(throws: FileError.self) { try FileContents.read("/proc/self/maps", limit: 100) }
    }
}
