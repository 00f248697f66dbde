#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineDatabase
import VitrineDownloads
import VitrineNetwork

/// Journals that are damaged, hold numbers of nobody's making, or downloads that end the process.
struct JournalFaultTests {
    private let content = pattern(60_000)

    // MARK: Damage

    enum Damage: String, CaseIterable { case text, noise, cut, schema, later }

    private func damage(_ path: String, _ damage: Damage) throws {
        for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) }
        switch damage {
        case .text: try Data("no database, but a text of some length".utf8).write(to: URL(filePath: path))
        case .noise: try Data(pattern(9000)).write(to: URL(filePath: path))
        case .cut:
            do {
                let database = try Database(path: path)
                try database.execute(
                    """
                    CREATE TABLE download(id TEXT PRIMARY KEY, revision INTEGER NOT NULL, record TEXT NOT NULL)
                        WITHOUT ROWID;
                    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
                        INSERT INTO download SELECT 'id' || i, 1, hex(zeroblob(200)) FROM n;
                    PRAGMA journal_mode=DELETE
                    """)
            }
            #expect(truncate(path, 3 * 4096) == 0)
        case .schema: try Database(path: path).execute("CREATE TABLE download(name TEXT); CREATE TABLE start(x)")
        case .later: try Database(path: path).execute("PRAGMA user_version=99")
        }
    }

    @Test(arguments: Damage.allCases) func damagedJournalsAreToldAndCanBeSetAside(_ kind: Damage) async throws {
        let fixture = try DownloadFixture(), site = FileSite(content)
        let server = try LoopbackServer { site.reply(to: $0) }
        let path = fixture.journal.file("list.sqlite")
        try damage(path, kind)
        let before = FileManager.default.contents(atPath: path)
        let manager = fixture.manager { $0.identifier = "list" }
        // Not once, as if the first had mended it.
        for _ in 0..<2 {
            do {
                try await manager.restore()
                Issue.record("it can be read")
            } catch {
                #expect(error.code == (kind == .later ? -610 : -630))
                #expect(error.description.contains(path))
                #expect(kind == .later || error.description.contains("vitrine download reset"), "\(error)")
            }
        }
        // What a later version has written is of use to that.
        guard kind != .later else { return #expect(await code { try await manager.setListAside() } == -610) }
        let aside = try #require(try await manager.setListAside())
        #expect(aside.hasPrefix(path + ".damaged-"))
        if kind == .text || kind == .noise { #expect(FileManager.default.contents(atPath: aside) == before) }
        #expect(try await manager.restore().isEmpty)
        _ = try await manager.start(server.url("/a").absoluteString).file
        #expect(try await manager.setListAside() == nil)
        #expect(try await manager.restore().count == 1)
    }

    /// Between fork and exec, a child has all descriptors of this process, and so its locks.
    @Test func journalsAreSetAsideWhileProgramsAreStarted() async throws {
        let fixture = try DownloadFixture(), finished = Counter()
        async let starting: Void = offPool {
            while finished.value == 0 {
                let process = Process()
                process.executableURL = URL(filePath: "/bin/true")
                try process.run()
                process.waitUntilExit()
            }
        }
        let manager = fixture.manager { $0.identifier = "list" }
        for _ in 0..<150 {
            try damage(fixture.journal.file("list.sqlite"), .schema)
            #expect(await code { try await manager.restore() } == -630)
            #expect(await code { _ = try await manager.setListAside() } == nil)
        }
        finished.add(1)
        try await starting
    }

    @Test func anAgentWithADamagedJournalSaysSoAndGoesOn() async throws {
        let fixture = try AgentFixture(), site = FileSite(content)
        let server = try LoopbackServer { site.reply(to: $0) }
        try damage(fixture.journal.file("list.agent.sqlite"), .noise)
        let manager = fixture.manager { $0.identifier = "list" }
        for _ in 0..<3 { #expect(await code { try await manager.restore() } == -630) }
        let agents = fixture.agents
        #expect(agents.count == 1)
        #expect(await code { try await manager.start(server.url("/a").absoluteString) } == -630)
        #expect(try await manager.setListAside()?.contains("list.agent.sqlite.damaged-") == true)
        #expect(try await manager.start(server.url("/a").absoluteString).file == fixture.files.file("a"))
        #expect(try await manager.setListAside() == nil)
        #expect(fixture.agents == agents)
    }

    /// A file system without free inodes, which no open for reading finds out.
    @Test(.enabled(if: Namespace.isAvailable, "needs unshare and the right to mount"))
    func theReasonWhyALogCannotBeCreatedIsNamed() async throws {
        let directory = try TemporaryDirectory()
        do { _ = try Database(path: directory.file("a.sqlite")) }
        try FileManager.default.createDirectory(atPath: directory.file("small"), withIntermediateDirectories: false)
        try await offPool {
            // One for the directory, and one for the database.
            let script = "mount -t tmpfs -o nr_inodes=2 tmpfs \"$0/small\" && cp \"$0/a.sqlite\" \"$0/small\""
            let child = try ChildProcess(
                executable: "DownloadChild", [directory.file("small/a.sqlite"), "/", "/", "open=1"],
                wrapper: Namespace.command(script, directory.path))
            let found = child.findings()
            #expect(child.wait() == .exit(0), "\(found)")
            #expect(found["error"]?.contains(String(cString: strerror(ENOSPC))) == true, "\(found)")
        }
    }

    // MARK: Records

    /// Changes the records of a journal that nobody has open, and makes it one of the first format, without checksums.
    private func edit(_ path: String, _ change: (inout [String: Any]) -> Void) throws {
        let database = try Database(path: path)
        let select = try database.prepare("SELECT id, record FROM download")
        var rows: [(String, String)] = []
        while try select.step() { rows.append((select.text(at: 0), select.text(at: 1))) }
        for (id, text) in rows {
            var object = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
            change(&object)
            let changed = String(decoding: try JSONSerialization.data(withJSONObject: object), as: UTF8.self)
            let update = try database.prepare("UPDATE download SET record = ?, revision = ? WHERE id = ?")
            update.bind(changed, at: 1)
            update.bind(object["revision"] as? Int ?? 0, at: 2)
            update.bind(id, at: 3)
            try update.run()
        }
        try database.execute("ALTER TABLE download DROP COLUMN sum; PRAGMA user_version=1")
    }

    @Test func aListOfTheFirstFormatIsAdopted() async throws {
        let fixture = try DownloadFixture(), site = FileSite(content)
        let server = try LoopbackServer { site.reply(to: $0) }
        let path = try await journal(fixture, server.url("/a"))
        try edit(path) { _ in }
        let manager = fixture.manager { $0.identifier = "list" }
        let download = try #require(try await manager.restore().first)
        try await download.resume()
        #expect(try await download.file == fixture.files.file("a"))
        await manager.close()
        #expect(try await fixture.manager { $0.identifier = "list" }.restore().map(\.id) == [download.id])
    }

    /// The bytes of a row change without SQLite noticing.
    @Test func aChangedRowIsNotFollowed() async throws {
        let fixture = try DownloadFixture(), site = FileSite(content)
        let server = try LoopbackServer { site.reply(to: $0) }
        let path = try await journal(fixture, server.url("/here"))
        do {
            let database = try Database(path: path)
            let change = "UPDATE download SET record = replace(record, 'here', 'nere')"
            try database.execute(change)
            #expect(try database.integer("SELECT count(*) FROM download WHERE instr(record, 'nere') > 0") == 1)
        }
        let manager = fixture.manager { $0.identifier = "list" }
        let damaged = try #require(try await manager.restore().first)
        #expect(damaged.status?.state == .failed)
        #expect(damaged.status?.failure?.message.contains("damaged") == true)
        #expect(await code { _ = try await damaged.file } == -635)
        for command in [Download.retry, Download.resume, Download.pause, Download.cancel] {
            #expect(await code { try await command(damaged)() } == -635)
        }
        #expect(await code { try await damaged.setPriority(.high) } == -635)
        // Others are stored beside it.
        let other = try await manager.start(server.url("/b").absoluteString)
        #expect(try await other.file == fixture.files.file("b"))
        try await other.move(before: nil)
        await manager.close()
        #expect(server.requests.map(\.target).filter { $0.contains("ere") } == [])
        #expect(try Database(path: path).integer("SELECT count(*) FROM download") == 2)
        // It stays on the list until it is removed.
        let next = fixture.manager { $0.identifier = "list" }
        let found = try await next.restore()
        #expect(found.map(\.id) == [damaged.id, other.id])
        #expect(found.map { $0.status?.failure?.code } == [-635, nil])
        try await found.first?.remove()
        #expect(try await next.restore().map(\.id) == [other.id])
        await next.close()
        #expect(try Database(path: path).integer("SELECT count(*) FROM download") == 1)
    }

    /// Neither its identifier nor its record can be read. The agent lists it, and removes it with those that have ended.
    @Test(arguments: ["record = '{'", "id = CAST(x'41FF42' AS TEXT)", "id = upper(id)"])
    func aRowThatCannotBeReadIsListedAndRemoved(change: String) async throws {
        let fixture = try AgentFixture()
        let hanging = try LoopbackServer { _ in [.hang] }
        let path = fixture.journal.file("list.agent.sqlite")
        let first = fixture.manager { $0.identifier = "list" }
        try await first.start(hanging.url("/a").absoluteString)
        // It would start the agent again.
        await first.close()
        let old = try #require(fixture.agents.first)
        kill(old, SIGKILL)
        try await offPool { waitForEnd(of: old) }
        try Database(path: path).execute("UPDATE download SET \(change)")
        let manager = fixture.manager { $0.identifier = "list" }
        let damaged = try #require(try await manager.restore().first)
        #expect(damaged.status?.failure?.code == -635)
        try await manager.settled()
        try await manager.removeSettled()
        #expect(try await manager.restore().isEmpty)
        #expect(try Database(path: path).integer("SELECT count(*) FROM download") == 0)
    }

    @Test func aHigherNumberOfARowKeepsNoChangesOut() async throws {
        let fixture = try DownloadFixture(), site = FileSite(content)
        let server = try LoopbackServer { site.reply(to: $0) }
        let path = try await journal(fixture, server.url("/a"))
        try Database(path: path).execute("UPDATE download SET revision = revision + 4096")
        let manager = fixture.manager { $0.identifier = "list" }
        let download = try #require(try await manager.restore().first)
        try await download.resume()
        _ = try await download.file
        await manager.close()
        let next = fixture.manager { $0.identifier = "list" }
        #expect(try await next.restore().first?.status?.state == .completed)
    }

    @Test(arguments: ["directory", "list", "lock"]) func nothingIsStoredInADeletedList(what: String) async throws {
        let fixture = try DownloadFixture(), site = FileSite(content)
        let server = try LoopbackServer { $0.target == "/slow" ? [.hang] : site.reply(to: $0) }
        let list = fixture.journal.file("lists/list.sqlite")
        func configure(_ configuration: inout DownloadManager.Configuration) {
            configuration.identifier = "list"
            configuration.journalDirectory = fixture.journal.file("lists")
        }
        let manager = fixture.manager(configure)
        let slow = try await manager.start(server.url("/slow").absoluteString)
        let paths = ["directory": [fixture.journal.file("lists")], "lock": [list + ".lock"]][what]
        for path in paths ?? ["", "-wal", "-shm"].map({ list + $0 }) {
            try FileManager.default.removeItem(atPath: path)
        }
        let second = try await manager.start(server.url("/b").absoluteString)
        _ = try await second.file
        // Nobody else can have the list meanwhile.
        #expect(await code { try await fixture.manager(configure).restore() } == -631)
        await manager.close()
        #expect(try await Set(fixture.manager(configure).restore().map(\.id)) == [slow.id, second.id])
    }

    /// A journal with one download that is paused before it has begun.
    private func journal(_ fixture: DownloadFixture, _ url: URL) async throws -> String {
        let manager = fixture.manager {
            $0.identifier = "list"
            $0.limit = 1
        }
        let hanging = try LoopbackServer { _ in [.hang] }
        let first = try await manager.start(hanging.url("/first").absoluteString)
        let download = try await manager.start(url.absoluteString)
        try await download.pause()
        try await first.remove()
        await manager.close()
        return fixture.journal.file("list.sqlite")
    }

    @Test(arguments: [Int.max, Int.min, -1]) func numbersOfNobodysMakingAreHarmless(number: Int) async throws {
        let fixture = try DownloadFixture(), site = FileSite(content)
        let server = try LoopbackServer { site.reply(to: $0) }
        let path = try await journal(fixture, server.url("/a"))
        try edit(path) { record in
            for key in ["revision", "source"] { record[key] = number }
            record["position"] = number > 0 ? 1e308 : -1e308
            var status = record["status"] as? [String: Any] ?? [:]
            for key in ["received", "total", "restarts", "retries"] { status[key] = number }
            status["speed"] = 1e300
            status["state"] = "running"
            record["status"] = status
            var request = record["request"] as? [String: Any] ?? [:]
            for key in ["connections", "attempts", "maximumRate"] where number > 0 { request[key] = number }
            request["maximumSeconds"] = number > 0 ? 1e300 : -1e300
            record["request"] = request
        }
        let manager = fixture.manager { $0.identifier = "list" }
        let download = try #require(try await manager.restore().first)
        _ = (download.status?.fraction, download.status?.timeLeft)
        #expect(try await download.file == fixture.files.file("a"))
        // Later changes are kept over it.
        let other = try await manager.start(server.url("/b").absoluteString)
        _ = try await other.file
        try await download.move(before: nil)
        await manager.close()
        let next = fixture.manager { $0.identifier = "list" }
        #expect(try await next.restore().map(\.id) == [other.id, download.id])
        #expect(try await next.restore().allSatisfy { $0.status?.state == .completed })
    }

    @Test(arguments: ["out", "", "../x", "nothing"])
    func relativeDirectoriesAreRefused(directory: String) async throws {
        let fixture = try DownloadFixture(), site = FileSite(content)
        let server = try LoopbackServer { site.reply(to: $0) }
        let path = try await journal(fixture, server.url("/a"))
        try edit(path) { record in
            var status = record["status"] as? [String: Any] ?? [:]
            status["state"] = "waiting"
            record["status"] = status
            var request = record["request"] as? [String: Any] ?? [:]
            request["directory"] = directory == "nothing" ? nil : directory
            record["request"] = request
        }
        let manager = fixture.manager { $0.identifier = "list" }
        let download = try #require(try await manager.restore().first)
        #expect(await code { _ = try await download.file } == -601)
        #expect(server.requests.isEmpty)
    }

    @Test func relativeDirectoriesOfManagersAreResolved() async throws {
        let fixture = try DownloadFixture(), site = FileSite(content)
        let server = try LoopbackServer { site.reply(to: $0) }
        // From here by way of the root.
        let here = FileManager.default.currentDirectoryPath
        let up = here.split(separator: "/").map { _ in ".." }.joined(separator: "/")
        let manager = fixture.manager { $0.directory = up + fixture.files.path }
        let download = try await manager.start(server.url("/a").absoluteString)
        #expect(try await download.file.hasPrefix(here + "/.."))
        #expect(fixture.bytes("a") == content)
        #expect(await code { try await manager.start(request(server.url("/b")) { $0.directory = "out" }) } == -601)
        #expect(await code { try await manager.start(request(server.url("/b")) { $0.expectedSize = -1 }) } == -601)
    }

    // MARK: Downloads that end the process

    private func run(_ words: [String]) throws -> (lines: [String], end: ChildProcess.End) {
        let child = try ChildProcess(executable: "DownloadChild", words)
        var lines: [String] = []
        while let line = child.line() { lines.append(line) }
        return (lines, child.wait())
    }

    @Test func aDownloadThatEndsTheProcessIsPutAside() async throws {
        let fixture = try DownloadFixture(), site = FileSite(content)
        let server = try LoopbackServer { site.reply(to: $0) }
        // Three that are harmless, and between them one that is not: all on the list before one of them comes on.
        let first = fixture.manager { $0.client = RefusingLoader() }
        for name in ["a", "harmful", "b", "c"] {
            let download = try await first.start(request(server.url("/" + name)) { $0.attempts = 1000 })
            await download.reaches { $0.state == .delayed }
        }
        await first.close()
        try await offPool {
            let words = [fixture.journal.path, fixture.files.path, "http://127.0.0.1/", "restore=1", "crash=harmful"]
            var starts = 0
            var last: [String] = []
            while starts < 20 {
                starts += 1
                let (lines, end) = try run(words)
                last = lines
                if end == .exit(0) { break }
                #expect(end == .signal(SIGKILL))
            }
            // Three times it was the reason; the others are not taken for it.
            #expect(starts == 4)
            #expect(last.sorted() == ["completed 0 a", "completed 0 b", "completed 0 c", "failed -634 harmful"])
        }
        // By hand it runs again.
        let manager = fixture.manager()
        let download = try #require(try await manager.restore().first { $0.status?.state == .failed })
        #expect(download.status?.failure?.message.contains("3 times") == true)
        try await download.retry()
        #expect(try await download.file == fixture.files.file("harmful"))
    }

    @Test func retryDelaysGrowWithJitter() {
        let configuration = DownloadManager.Configuration()
        for (failures, longest) in [(0, 2.0), (1, 2), (2, 4), (3, 8), (5, 32), (6, 60), (Int.max, 60)] {
            let delays = [0, 0.5, 1].map { configuration.delay(after: failures, jitter: $0) / .seconds(1) }
            #expect(delays == [longest / 2, longest * 0.75, longest])
        }
    }

    /// The host and the cause of the last failure, and no more requests than tries.
    @Test func unreachableHostsEndADownloadAndMissingNetworksDoNot() async throws {
        let fixture = try DownloadFixture(), loader = RefusingLoader(), isOnline = Locked(true)
        let manager = fixture.manager {
            $0.client = loader
            $0.retryDelay = .milliseconds(1)
            $0.hasRoute = { _ in isOnline.withLock { $0 } }
        }
        let url = try #require(URL(string: "http://nobody.invalid/a"))
        let download = try await manager.start(request(url) { $0.attempts = 4 })
        #expect(await code { _ = try await download.file } == -420)
        #expect(download.status?.failure?.message.contains("nobody.invalid") == true)
        #expect(loader.count == 4 && download.status?.retries == 3)
        isOnline.withLock { $0 = false }
        try await download.retry()
        await download.reaches { $0.retries >= 13 }
        isOnline.withLock { $0 = true }
        #expect(await code { _ = try await download.file } == -420)
    }
}

/// Finds no host.
private final class RefusingLoader: HTTPTransport {
    private let requests = Counter()
    var count: Int { requests.value }
    func load(_ request: HTTPRequest) async throws(NetworkError) -> HTTPResponse {
        _ = requests.add(1)
        throw .nameNotResolved(url: request.url.absoluteString, host: request.url.host() ?? "")
    }
}
#endif
