import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrinePipeline

/// The announcement of the next files of a batch.
@Suite struct FileReadAheadTests {
    /// What was announced, in order.
    private final class Announcements: Sendable {
        private let list = Locked<[String]>([])
        var paths: [String] { list.withLock { $0 } }
        func add(_ path: String) { list.withLock { $0.append(path) } }
    }

    private static func limits(files: Int, bytes: Int = 1 << 30, perFile: Int = 10) -> FileReadAhead.Limits {
        var limits = FileReadAhead.Limits()
        (limits.files, limits.bytes, limits.bytesPerFile) = (files, bytes, perFile)
        return limits
    }

    private static let paths = (0..<100).map { "\($0)" }

    @Test func filesAreAnnouncedInTheirOrderBehindTheOneThatBegins() async throws {
        try await offPool {
            let seen = Announcements()
            let ahead = FileReadAhead(Self.paths, limits: Self.limits(files: 4)) { path, most in
                seen.add(path)
                return most
            }
            for number in 0..<100 {
                ahead.begin(number)
                // Never the file whose work has begun, and never more than four behind it.
                let expected = (1..<min(100, number + 5)).map(String.init)
                try waitUntil("\(expected.count) files are announced") { seen.paths.count >= expected.count }
                #expect(seen.paths == expected)
            }
        }
    }

    @Test func announcedBytesStayBelowTheLimit() async throws {
        try await offPool {
            let seen = Announcements()
            let ahead = FileReadAhead(Self.paths, limits: Self.limits(files: 50, bytes: 35)) { path, most in
                #expect(most == 10)
                seen.add(path)
                return 10
            }
            ahead.begin(0)
            try waitUntil("three files are announced") { seen.paths.count >= 3 }
            // The second share becomes free.
            ahead.begin(1)
            try waitUntil("one more is announced") { seen.paths.count >= 4 }
            ahead.begin(2)
            ahead.begin(3)
            try waitUntil("two more are announced") { seen.paths.count >= 6 }
            #expect(seen.paths == ["1", "2", "3", "4", "5", "6"])
        }
    }

    @Test func inputsThatAreNoFilesArePassedOver() async throws {
        try await offPool {
            let seen = Announcements()
            let ahead = FileReadAhead(["a", nil, "b", nil, nil, "c"], limits: Self.limits(files: 3)) { path, most in
                seen.add(path)
                return most
            }
            ahead.begin(0)
            try waitUntil("b is announced") { seen.paths == ["b"] }
            ahead.begin(2)
            try waitUntil("c is announced") { seen.paths == ["b", "c"] }
        }
    }

    @Test func nothingIsAnnouncedAfterCancellation() async throws {
        try await offPool {
            let (seen, entered, released) = (Announcements(), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            var ahead: FileReadAhead? = FileReadAhead(Self.paths, limits: Self.limits(files: 10)) { path, most in
                seen.add(path)
                guard path == "1" else { return most }
                entered.signal()
                released.wait()
                return most
            }
            weak let known = ahead
            ahead?.begin(0)
            entered.wait()
            ahead?.cancel()
            released.signal()
            ahead?.begin(5)
            ahead = nil
            // Work on announcements keeps it.
            try waitUntil("its work has ended") { known == nil }
            #expect(seen.paths == ["1"])
        }
    }

    @Test func onlyRegularFilesAreAnnouncedToTheSystem() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "file").path
        try Data(repeating: 7, count: 5_000).write(to: URL(filePath: file))
        #expect(FileReadAhead.adviseSystem(file, 1 << 20) == 5_000)
        #expect(FileReadAhead.adviseSystem(file, 4_096) == 4_096)
        let pipe = folder.appending(path: "pipe").path
        #expect(mkfifo(pipe, 0o600) == 0)
        // Opening a pipe would wait for a writer, or be seen by one.
        #expect(FileReadAhead.adviseSystem(pipe, 4_096) == 0)
        #expect(FileReadAhead.adviseSystem(folder.path, 4_096) == 0)
        #expect(FileReadAhead.adviseSystem(folder.appending(path: "absent").path, 4_096) == 0)
    }
}
