import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineNetwork

@testable import VitrineDownloads

/// Downloads by a background session, with a session that the tests control.
struct BackgroundDownloadTests {
    private let session = FakeSession()
    private let directory: TemporaryDirectory
    private let configuration: DownloadManager.Configuration

    init() throws {
        directory = try TemporaryDirectory()
        var configuration = DownloadManager.Configuration()
        configuration.mode = .agent
        configuration.directory = directory.file("files")
        configuration.journalDirectory = directory.file("journal")
        configuration.reservedSpace = .zero
        self.configuration = configuration
    }

    /// One run of a program.
    private struct Program {
        let engine: DownloadEngine
        let inbox: TransferInbox
        let lease: BackendLease

        func start(_ request: DownloadRequest, id: String = "a") async throws -> Download {
            Download(try await engine.start(request, id: id), lease: lease)
        }

        func download(_ id: String = "a") async throws -> Download {
            let statuses = try await engine.list()
            return Download(try #require(statuses.first { $0.id == id }), lease: lease)
        }
    }

    private func program() -> Program {
        let inbox = TransferInbox(BackgroundFiles(configuration))
        let engine = DownloadEngine(configuration, carrier: BackgroundTransfers(session, inbox))
        return Program(engine: engine, inbox: inbox, lease: BackendLease(engine))
    }

    private func request(_ name: String = "film.bin") -> DownloadRequest {
        DownloadRequest(URL(string: "http://example.org/\(name)") ?? URL(filePath: "/"))
    }

    private func file(_ name: String) -> String? { directory.read("files/\(name)") }

    /// The files beside the journal.
    private var kept: [String] {
        let path = BackgroundFiles(configuration).directory
        return (try? FileManager.default.contentsOfDirectory(atPath: path).sorted()) ?? []
    }

    // MARK: Whole files

    @Test func aFileGetsTheNameTheServerGives() async throws {
        let program = program()
        var wanted = request()
        wanted.expectedSize = 5
        wanted.priority = .high
        let download = try await program.start(wanted)
        let task = try await session.task(1)
        #expect(task.url == wanted.url && task.taskDescription == "a" && task.priority == 0.75)
        try await download.setPriority(.veryLow)
        #expect(task.priority == 0)
        program.inbox.wrote(task, received: 2, total: 5)
        await download.reaches { $0.received == 2 && $0.total == 5 }
        let fields = ["Content-Disposition": "attachment; filename=x.txt"]
        try task.finish(Array("hello".utf8), program.inbox, fields: fields)
        #expect(try await download.file == directory.file("files/x.txt"))
        #expect(file("x.txt") == "hello" && kept.isEmpty && session.count == 1)
        try await program.engine.settled()
    }

    @Test func aFileThatWasNotMeantIsThrownAway() async throws {
        let program = program()
        var wanted = request()
        wanted.checksum = Checksum(.md5, "5d41402abc4b2a76b9719d911017c592")
        let download = try await program.start(wanted)
        try await session.task(1).finish(Array("other".utf8), program.inbox)
        #expect(await code { _ = try await download.file } == -620)
        #expect(file("film.bin") == nil && kept.isEmpty)
        // The second attempt succeeds.
        try await download.retry()
        try await session.task(2).finish(Array("hello".utf8), program.inbox)
        _ = try await download.file
        #expect(file("film.bin") == "hello")
    }

    @Test func aPageThatSaysNoIsNoFile() async throws {
        let program = program()
        let download = try await program.start(request())
        try await session.task(1).finish(Array("no".utf8), program.inbox, status: 404)
        #expect(await code { _ = try await download.file } != nil)
        #expect(download.status?.state == .failed && file("film.bin") == nil && kept.isEmpty)
    }

    // MARK: Pause and resume

    @Test func pausedOnesGoOnWhereTheyWere() async throws {
        let program = program()
        let download = try await program.start(request())
        let task = try await session.task(1)
        task.keep("half")
        try await download.pause()
        await program.engine.finish(["a"])
        #expect(kept == ["a.resume"])
        // A late report of a cancelled task.
        task.fail(.cancelled, program.inbox, resumeData: "other")
        #expect(download.status?.state == .paused)
        try await download.resume()
        let next = try await session.task(2)
        #expect(next.resumedFrom == "half" && next.taskDescription == "a")
        task.fail(.timedOut, program.inbox)
        try next.finish(Array("whole".utf8), program.inbox)
        _ = try await download.file
        #expect(file("film.bin") == "whole" && kept.isEmpty)
    }

    @Test func interruptedDownloadsResume() async throws {
        let program = program()
        let download = try await program.start(request())
        try await session.task(1).fail(.networkConnectionLost, program.inbox, resumeData: "half")
        await download.reaches { $0.state == .delayed }
        try await download.retry()
        let next = try await session.task(2)
        #expect(next.resumedFrom == "half")
        try next.finish(Array("whole".utf8), program.inbox)
        _ = try await download.file
        #expect(file("film.bin") == "whole" && kept.isEmpty)
    }

    @Test func anotherPlaceBeginsAnew() async throws {
        let program = program()
        var wanted = request()
        wanted.mirrors = [request("mirror.bin").url]
        let download = try await program.start(wanted)
        try await session.task(1).fail(.networkConnectionLost, program.inbox, resumeData: "half")
        let next = try await session.task(2)
        #expect(next.resumedFrom == nil && next.url == wanted.mirrors[0])
        try next.finish(Array("whole".utf8), program.inbox)
        _ = try await download.file
        #expect(file("film.bin") == "whole" && kept.isEmpty)
    }

    @Test func cancellingLeavesNothing() async throws {
        let program = program()
        let download = try await program.start(request())
        let task = try await session.task(1)
        task.keep("half")
        try await download.cancel()
        #expect(await session.tasks().isEmpty && kept.isEmpty && download.status?.state == .cancelled)
        try task.finish(Array("late".utf8), program.inbox)
        #expect(kept.isEmpty)
    }

    // MARK: The next run of the program

    @Test func theNextRunAdoptsTransfersOfTheSystem() async throws {
        do {
            let program = program()
            _ = try await program.start(request())
            _ = try await session.task(1)
            await program.engine.close()
        }
        // The download was neither stopped nor started again.
        let next = program()
        let download = try await next.download()
        #expect(download.status?.state == .running)
        let task = try await session.task(1)
        try task.finish(Array("whole".utf8), next.inbox)
        _ = try await download.file
        #expect(file("film.bin") == "whole" && session.count == 1 && kept.isEmpty)
    }

    @Test func theNextRunAdoptsFilesThatArrivedMeanwhile() async throws {
        let first = program()
        _ = try await first.start(request())
        let task = try await session.task(1)
        await first.engine.close()
        // The report arrives before the list is read.
        let next = program()
        try task.finish(Array("whole".utf8), next.inbox)
        #expect(kept == ["a.loaded"])
        let download = try await next.download()
        _ = try await download.file
        #expect(file("film.bin") == "whole" && session.count == 1 && kept.isEmpty)
    }

    @Test func downloadsResumeAfterTheUserQuits() async throws {
        let first = program()
        _ = try await first.start(request())
        let task = try await session.task(1)
        await first.engine.close()
        let next = program()
        task.fail(.cancelled, next.inbox, resumeData: "half")
        let download = try await next.download()
        let resumed = try await session.task(2)
        #expect(resumed.resumedFrom == "half")
        try resumed.finish(Array("whole".utf8), next.inbox)
        _ = try await download.file
        #expect(file("film.bin") == "whole" && kept.isEmpty)
    }

    @Test func unknownTasksAreStopped() async throws {
        session.add(nil, nil, id: "stranger").keep("half")
        session.add(nil, nil)
        let program = program()
        #expect(try await program.engine.list().isEmpty)
        #expect(await session.tasks().isEmpty && kept.isEmpty)
    }

    @Test func tasksPausedAtTheLastMomentAreStopped() async throws {
        let first = program()
        let download = try await first.start(request())
        try await session.task(1).keep("none")
        try await download.pause()
        await first.engine.close()
        // The system missed the cancellation, and has the task twice.
        for _ in 0..<2 { session.add(nil, nil, id: "a").keep("half") }
        let next = program()
        #expect(try await next.download().status?.state == .paused)
        #expect(await session.tasks().isEmpty && kept == ["a.resume"])
        try await next.download().resume()
        #expect(try await session.task(4).resumedFrom == "half")
    }

    // MARK: The system's handler

    @Test func theSystemHearsWhenFilesHaveTheirNames() async throws {
        let program = program()
        let download = try await program.start(request())
        let task = try await session.task(1)
        try task.finish(Array("whole".utf8), program.inbox)
        program.inbox.deliveredAll()
        await program.engine.finish(program.inbox.delivered())
        #expect(file("film.bin") == "whole" && download.status?.state == .completed)
        // The next call is counted separately.
        let (inbox, isTold) = (program.inbox, Gate())
        let waiting = Task {
            let arrived = await inbox.delivered()
            isTold.open()
            return arrived
        }
        inbox.deliveredAll()
        await isTold.wait()
        _ = await waiting.value
    }
}

/// The same with the session of Linux's Foundation, which is not a background session.
struct SystemSessionTests {
    @Test func theManagerUsesTheSession() async throws {
        let (files, journal) = (try TemporaryDirectory(), try TemporaryDirectory())
        let server = try LoopbackServer { request in
            let fields = ["Content-Disposition: inline; filename=b.txt"]
            return request.target == "/no" ? [.reply(404)] : [.reply(200, fields, body: [1, 2, 3])]
        }
        var configuration = DownloadManager.Configuration()
        configuration.mode = .agent
        (configuration.directory, configuration.journalDirectory) = (files.path, journal.path)
        configuration.reservedSpace = .zero
        configuration.identifier = "test-\(UUID().uuidString)"
        let manager = DownloadManager(configuration)
        let download = try await manager.start(server.url("/a").absoluteString)
        #expect(try await download.file == files.file("b.txt"))
        #expect(FileManager.default.contents(atPath: files.file("b.txt")) == Data([1, 2, 3]))
        let failing = try await manager.start(server.url("/no").absoluteString)
        await #expect(throws: DownloadError.self) { try await failing.file }
        #expect(files.names == ["b.txt"] && server.requests.allSatisfy { $0.header("Accept-Encoding") == "identity" })

        let transfers = BackgroundTransfers.of(configuration)
        let isTold = Gate()
        #expect(await !manager.handleEvents(forSession: "another") { isTold.open() })
        #expect(await manager.handleEvents(forSession: configuration.identifier) { isTold.open() })
        transfers.inbox.deliveredAll()
        await isTold.wait()
        await manager.close()
    }
}

/// Returns the code of the error that a call throws; nil without an error.
private func code(_ body: () async throws -> Void) async -> Int? {
    do {
        try await body()
        return nil
    } catch {
        return (error as? DownloadError)?.code ?? 0
    }
}

extension Download {
    /// Waits for a status.
    fileprivate func reaches(_ isReached: @Sendable (DownloadStatus) -> Bool) async {
        for await status in updates where isReached(status) { return }
    }
}
