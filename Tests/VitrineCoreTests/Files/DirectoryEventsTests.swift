#if os(Linux)
import Foundation
import Testing
import TestSupport
@_spi(Files) import VitrineCore

/// What the kernel tells of a directory, as far as other modules count on it.
@Suite struct DirectoryEventsTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func watched(_ kinds: DirectoryEvents.Kinds = .contents) throws -> DirectoryEvents {
        let events = try #require(DirectoryEvents(kinds: kinds))
        guard case .number = events.watch(directory.path) else { throw CocoaError(.fileReadUnknown) }
        return events
    }

    /// What is told, but for ends of writing: children that others start may hold a file open for a moment.
    private func news(_ events: DirectoryEvents) throws -> [DirectoryEvents.Event] {
        try #require(events.read()).filter { $0.mask & UInt32(IN_CLOSE_WRITE) == 0 }
    }

    private func kinds(_ events: [DirectoryEvents.Event]) -> [String] {
        let names: [(kind: Int32, name: String)] = [
            (IN_CREATE, "create"), (IN_DELETE, "delete"), (IN_CLOSE_WRITE, "close"), (IN_MOVED_FROM, "from"),
            (IN_MOVED_TO, "to"), (IN_ATTRIB, "attributes"), (IN_DELETE_SELF, "self"), (IN_IGNORED, "end"),
        ]
        return events.map { event -> String in
            let found = names.first { event.mask & UInt32($0.kind) != 0 }
            let kind = found?.name ?? "other"
            return event.name.isEmpty ? kind : kind + " " + event.name
        }
    }

    @Test func tellsWhatHappensInItsOrder() throws {
        try directory.write("a", to: "a")
        let events = try watched()
        link(directory.file("a"), directory.file("b"))
        rename(directory.file("b"), directory.file("c"))
        unlink(directory.file("c"))
        let found = try news(events)
        #expect(kinds(found) == ["create b", "from b", "to c", "delete c"])
        #expect(found[1].cookie == found[2].cookie && found[1].cookie != 0 && found[0].cookie == 0)
        #expect(try news(events).isEmpty)
    }

    @Test func theEndOfWritingIsTold() throws {
        let events = try watched()
        try directory.write("a", to: "a")
        var found: [String] = []
        // Children that others start may hold the file open for a moment.
        while !found.contains("close a") {
            var polled = pollfd(fd: events.descriptor, events: Int16(POLLIN), revents: 0)
            _ = poll(&polled, 1, -1)
            found += kinds(try #require(events.read()))
        }
        #expect(found == ["create a", "close a"])
    }

    @Test func attributesAreToldWhenAskedFor() throws {
        try directory.write("a", to: "a")
        let (plain, with) = (try watched(), try watched([.contents, .attributes]))
        chmod(directory.file("a"), 0o600)
        #expect(try news(plain).isEmpty)
        #expect(kinds(try news(with)) == ["attributes a"])
    }

    @Test func aSaveOfOursIsARenamingIntoPlace() throws {
        try directory.write("old", to: "a")
        let events = try watched()
        try AtomicFile.write([1], to: directory.file("a"))
        try AtomicFile.write([1], to: directory.file("b"), replacing: false)
        let found = kinds(try #require(events.read())).filter { $0.hasSuffix(" a") || $0.hasSuffix(" b") }
        #expect(found.filter { !$0.hasPrefix("close") } == ["to a", "to b"])
    }

    @Test func theEndOfADirectoryIsTold() throws {
        let events = try watched()
        rmdir(directory.path)
        let found = try #require(events.read())
        #expect(kinds(found) == ["self", "end"])
        #expect(found[0].concernsItself && found[1].isEnd)
    }

    /// How many notices the system keeps for one reader; 0 where nothing tells.
    private static let queueLimit = (try? String(
        contentsOfFile: "/proc/sys/fs/inotify/max_queued_events", encoding: .utf8)).flatMap {
        Int($0.trimmingCharacters(in: .whitespacesAndNewlines))
    } ?? 0

    @Test(.enabled(if: (1...100_000).contains(queueLimit), "needs a system that keeps at most 100,000 notices"))
    func lostNoticesAreTold() throws {
        let limit = Self.queueLimit
        let events = try watched()
        // Equal ones in a row would be taken for one.
        for _ in 0...(limit / 2) {
            rename(directory.file("a"), directory.file("b"))
            close(open(directory.file("a"), O_CREAT | O_WRONLY, 0o600))
        }
        #expect(events.read() == nil)
        rename(directory.file("a"), directory.file("after"))
        let after = kinds(try #require(events.read())).filter { !$0.hasPrefix("close") }
        #expect(after == ["from a", "to after"])
    }

    @Test func saysWhyADirectoryIsNotWatched() throws {
        let events = try #require(DirectoryEvents(maximum: 1))
        try directory.write("x", to: "file")
        for (name, code) in [("absent", ENOENT), ("file", ENOTDIR), (String(repeating: "x", count: 300), ENAMETOOLONG)] {
            guard case .unavailable(let found) = events.watch(directory.file(name)) else {
                Issue.record("\(name) is watched")
                continue
            }
            #expect(found == code)
        }
        guard case .number = events.watch(directory.path), case .limitReached = events.watch("/") else {
            Issue.record("the limit is not kept")
            return
        }
    }
}
#endif
