#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineDownloads
import VitrineNetwork

/// In which order downloads run, how many at once, how fast, and who hears of it.
struct DownloadQueueTests {
    @Test func noMoreRunAtOnceThanMay() async throws {
        let fixture = try DownloadFixture(), barrier = LoopbackServer.Barrier()
        let server = try LoopbackServer { _ in [.wait(barrier), .reply(body: [1])] }
        let manager = fixture.manager {
            $0.limit = 3
            $0.limitPerHost = 2
        }
        var downloads: [Download] = []
        for index in 0..<6 { downloads.append(try await manager.start(server.url("/\(index)").absoluteString)) }
        func running() -> Int { downloads.count { $0.status?.state == .running } }
        #expect(running() == 2)
        try await manager.setLimit(8, perHost: 8)
        #expect(running() == 6)
        barrier.open()
        try await manager.settled()
        #expect(downloads.allSatisfy { $0.status?.state == .completed })
    }

    @Test func theMostUrgentGoesFirst() async throws {
        let fixture = try DownloadFixture(), barrier = LoopbackServer.Barrier()
        let server = try LoopbackServer { $0.target == "/first" ? [.wait(barrier), .reply()] : [.reply(body: [1])] }
        let manager = fixture.manager { $0.limit = 1 }
        _ = try await manager.start(server.url("/first").absoluteString)
        let low = try await manager.start(request(server.url("/low")) { $0.priority = .low })
        let normal = try await manager.start(server.url("/normal").absoluteString)
        let second = try await manager.start(server.url("/second").absoluteString)
        _ = try await manager.start(request(server.url("/high")) { $0.priority = .high })
        try await second.move(before: normal)
        try await low.setPriority(.veryHigh)
        barrier.open()
        try await manager.settled()
        #expect(server.requests.map(\.target) == ["/first", "/low", "/high", "/second", "/normal"])
    }

    @Test func ratesAreKept() async throws {
        let fixture = try DownloadFixture(), site = FileSite(pattern(300_000))
        let server = try LoopbackServer { site.reply(to: $0) }
        let manager = fixture.manager { $0.maximumRate = ByteCount(400_000) }
        let start = ContinuousClock.now
        _ = try await manager.start(server.url("/a").absoluteString).file
        // A quarter of a second's bytes pass at once.
        #expect(ContinuousClock.now - start > .milliseconds(450))
        try await manager.setMaximumRate(nil)
        let second = try await manager.start(request(server.url("/b")) { $0.maximumRate = ByteCount(1) })
        await second.reaches { $0.received > 0 }
        // At a byte a second it would take three days.
        try await second.setMaximumRate(nil)
        _ = try await second.file
        #expect(fixture.bytes("b") == site.content)
    }

    @Test func everybodyHearsOfTheEnd() async throws {
        let fixture = try DownloadFixture(), site = FileSite(pattern(1000))
        let server = try LoopbackServer { site.reply(to: $0) }
        let manager = fixture.manager()
        let download = try await manager.start(server.url("/a").absoluteString)
        _ = try await download.file
        var last: DownloadStatus?
        // Also who comes late.
        for await status in download.updates { last = status }
        #expect(last?.state == .completed)
        for await status in manager.updates {
            #expect(status.id == download.id)
            break
        }
        try await manager.settled()
    }

    @Test func observersOfNotificationsHearOfIt() async throws {
        let fixture = try DownloadFixture(), heard = Recorder<String>(), ended = Gate()
        let subjects = Recorder<String>()
        let server = try LoopbackServer { _ in [.reply(404)] }
        let token = NotificationCenter.default.addObserver(
            forName: .downloadDidComplete, object: nil, queue: nil
        ) { notification in
            guard let download = notification.object as? Download, download.url == server.url("/a") else { return }
            let failure = notification.downloadStatus?.error
            heard.add("\(failure?.code ?? 0)")
            subjects.add(download.id)
            ended.open()
        }
        defer { NotificationCenter.default.removeObserver(token) }
        let manager = fixture.manager()
        let download = try await manager.start(server.url("/a").absoluteString)
        await ended.wait()
        #expect(subjects.all == [download.id])
        #expect(heard.all == ["-402"])
        #expect(Notification(name: .downloadDidComplete).downloadStatus == nil)
        #expect(Notification.Name.downloadProgressDidChange.rawValue == "DownloadProgressNotification")
        #expect(Notification.Name.downloadDidComplete.rawValue == "DownloadDidComplete")
    }

    @Test func observersOfNotificationsHearOfProgress() async throws {
        let fixture = try DownloadFixture(), site = FileSite(pattern(1000))
        let came = Gate(), fractions = Recorder<Double>()
        let server = try LoopbackServer { site.reply(to: $0, upTo: 250, then: [.hang]) }
        let token = NotificationCenter.default.addObserver(
            forName: .downloadProgressDidChange, object: nil, queue: nil
        ) { notification in
            guard let download = notification.object as? Download, download.url == server.url("/a") else { return }
            let fraction = notification.downloadStatus?.fraction ?? -1
            fractions.add(fraction)
            if fraction == 0.25 { came.open() }
        }
        defer { NotificationCenter.default.removeObserver(token) }
        let manager = fixture.manager()
        try await manager.start(server.url("/a").absoluteString)
        await came.wait()
        #expect(fractions.all == fractions.all.sorted() && fractions.all.first ?? -1 >= 0)
        await manager.close()
    }

    /// Each ends while the others begin: nobody may be shown as running who has ended.
    @Test func shortOnesAllEnd() async throws {
        let fixture = try DownloadFixture()
        let server = try LoopbackServer { [.reply(body: Array($0.target.utf8))] }
        let manager = fixture.manager {
            $0.limit = 8
            $0.limitPerHost = 8
        }
        let paths = try await withThrowingTaskGroup(of: String.self) { group in
            for index in 0..<200 {
                group.addTask { try await manager.start(server.url("/\(index)").absoluteString).file }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(paths).count == 200)
        for path in paths {
            let text = FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
            #expect(text == "/" + path.split(separator: "/").last!)
        }
        try await manager.settled()
        try await manager.removeSettled()
        #expect(try await manager.restore().isEmpty)
    }

    @Test func whoFollowsKeepsItGoing() async throws {
        let fixture = try DownloadFixture(), site = FileSite(pattern(1000)), barrier = LoopbackServer.Barrier()
        let server = try LoopbackServer { [.wait(barrier)] + site.reply(to: $0) }
        // Only the sequence outlives the function.
        func start() async throws -> some AsyncSequence<DownloadStatus, Never> & Sendable {
            try await fixture.manager().start(server.url("/a").absoluteString).updates
        }
        let updates = try await start()
        barrier.open()
        var last: DownloadStatus.State?
        for await status in updates { last = status.state }
        #expect(last == .completed)
    }

    @Test func waitingCanBeCancelled() async throws {
        let fixture = try DownloadFixture()
        let server = try LoopbackServer { _ in [.hang] }
        let manager = fixture.manager()
        let download = try await manager.start(server.url("/a").absoluteString)
        let settled = Task { await code { try await manager.settled() } }
        let file = Task { await code { _ = try await download.file } }
        settled.cancel()
        file.cancel()
        #expect(await settled.value == -641)
        #expect(await file.value == -641)
        #expect(download.status?.state.isSettled == false)
    }
}
#endif
