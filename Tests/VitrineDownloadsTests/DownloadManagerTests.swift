#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineDownloads
import VitrineNetwork

/// What a manager promises of one download after the other.
struct DownloadManagerTests {
    private let content = pattern(200_000)

    @Test func aFileAppearsWholeUnderItsName() async throws {
        let site = FileSite(content), fixture = try DownloadFixture()
        let server = try LoopbackServer { site.reply(to: $0) }
        let manager = fixture.manager()
        let download = try await manager.start(server.url("/a/lake.jpg?x=1").absoluteString)
        #expect(try await download.file == fixture.files.file("lake.jpg"))
        #expect(fixture.bytes("lake.jpg") == content)
        #expect(fixture.files.names == ["lake.jpg"])
        let status = try #require(download.status)
        #expect(status.state == .completed)
        #expect(status.fraction == 1 && status.received == content.count && status.total == content.count)
        #expect(status.ended != nil && status.failure == nil && status.timeLeft == nil)
        #expect(manager.path(for: server.url("/a/lake.jpg?x=1")) == fixture.files.file("lake.jpg"))
    }

    @Test func theSameAddressGivesTheSameDownload() async throws {
        let barrier = LoopbackServer.Barrier(), fixture = try DownloadFixture(), site = FileSite(content)
        let server = try LoopbackServer { [.wait(barrier)] + site.reply(to: $0) }
        let manager = fixture.manager()
        let one = try await manager.start(server.url("/a").absoluteString)
        let other = try await manager.start(server.url("/a"))
        #expect(one.id == other.id)
        #expect(try await manager.download(for: server.url("/a"))?.id == one.id)
        #expect(try await manager.download(for: server.url("/b")) == nil)
        #expect(try await manager.restore().first { $0.id == one.id }?.url == one.url)
        barrier.open()
        _ = try await one.file
        #expect(server.requests.count == 1)
        // One that is over is not the running one.
        #expect(try await manager.start(server.url("/a").absoluteString).id != one.id)
    }

    @Test func aCallJoinsOnlyADownloadThatDoesAllItAsks() async throws {
        let barrier = LoopbackServer.Barrier(), fixture = try DownloadFixture(), site = FileSite(content)
        let server = try LoopbackServer { [.wait(barrier)] + site.reply(to: $0) }
        let manager = fixture.manager(), url = server.url("/a")
        let wrong = try #require(Checksum("md5:" + String(repeating: "0", count: 32)))
        let one = try await manager.start(request(url) { $0.name = "one" })
        #expect(try await manager.start(request(url) { $0.name = "one" }).id == one.id)
        #expect(try await manager.start(url.absoluteString).id == one.id)
        // Another file is another download.
        let two = try await manager.start(request(url) { $0.name = "two" })
        #expect(two.id != one.id)
        // The same file, and something that the running one does not do.
        let others: [@Sendable (inout DownloadRequest) -> Void] = [
            { $0.checksum = wrong }, { $0.expectedSize = 7 }, { $0.headers["X-A"] = "1" }, { $0.maximumRate = .kibibytes(1) },
            { $0.existing = .keep }, { $0.mirrors = [url] },
        ]
        for other in others {
            let asked = request(url) {
                $0.name = "one"
                other(&$0)
            }
            #expect(await code { try await manager.start(asked) } == -601)
        }
        barrier.open()
        _ = try await (one.file, two.file)
        #expect(fixture.files.names == ["one", "two"])
        // What is complete is loaded and verified again.
        let checked = try await manager.start(
            request(url) {
                $0.name = "one"
                $0.checksum = wrong
            })
        #expect(await code { _ = try await checked.file } == -620)
        #expect(fixture.bytes("one") == content)
    }

    @Test func aRepeatedCallResumesAFailedDownload() async throws {
        let site = FileSite(content), fixture = try DownloadFixture()
        let server = try LoopbackServer { request in
            request.header("Range") == nil ? site.reply(to: request, upTo: 50_000, then: [.close]) : [.reply(404)]
        }
        let manager = fixture.manager()
        let first = try await manager.start(request(server.url("/a")) { $0.attempts = 2 })
        #expect(await code { _ = try await first.file } != nil)
        let requests = server.requests.count
        let second = try await manager.start(server.url("/a").absoluteString)
        #expect(second.id == first.id)
        #expect(await code { _ = try await second.file } != nil)
        #expect(server.requests.count > requests)
        #expect(try await manager.restore().count == 1)
    }

    @Test func pausedOnesGoOnWhereTheyWere() async throws {
        let site = FileSite(content), fixture = try DownloadFixture()
        let server = try LoopbackServer { request in
            request.header("Range") == nil
                ? site.reply(to: request, upTo: 50_000, then: [.hang]) : site.reply(to: request)
        }
        let manager = fixture.manager()
        let download = try await manager.start(server.url("/a").absoluteString)
        await download.reaches { $0.received == 50_000 }
        try await download.pause()
        #expect(download.status?.state == .paused)
        // What is paused counts as settled.
        try await manager.settled()
        #expect(server.requests.count == 1)
        try await download.resume()
        _ = try await download.file
        #expect(fixture.bytes("a") == content)
        #expect(server.requests.last?.header("Range") == "bytes=50000-")
        #expect(fixture.files.names == ["a"])
    }

    @Test func startingAPausedOneLetsItGoOn() async throws {
        let site = FileSite(content), fixture = try DownloadFixture()
        let server = try LoopbackServer { request in
            request.header("Range") == nil
                ? site.reply(to: request, upTo: 50_000, then: [.hang]) : site.reply(to: request)
        }
        let manager = fixture.manager()
        let download = try await manager.start(server.url("/a").absoluteString)
        await download.reaches { $0.received == 50_000 }
        try await download.pause()
        #expect(try await manager.start(server.url("/a").absoluteString).id == download.id)
        _ = try await download.file
        #expect(fixture.bytes("a") == content)
    }

    @Test func whatIsCancelledLeavesNothing() async throws {
        let site = FileSite(content), fixture = try DownloadFixture()
        let attempts = Counter()
        let server = try LoopbackServer { request in
            attempts.add(1) == 1
                ? site.reply(to: request, upTo: 50_000, then: [.hang]) : site.reply(to: request)
        }
        let manager = fixture.manager()
        let download = try await manager.start(server.url("/a").absoluteString)
        await download.reaches { $0.received == 50_000 }
        try await download.cancel()
        #expect(await code { _ = try await download.file } == -641)
        try await manager.settled()
        #expect(fixture.files.names.isEmpty)
        #expect(try await manager.restore().count == 1)
        try await download.retry()
        _ = try await download.file
        #expect(fixture.bytes("a") == content)
        #expect(server.requests.last?.header("Range") == nil)
    }

    @Test func whatIsRemovedIsForgotten() async throws {
        let site = FileSite(content), fixture = try DownloadFixture()
        let server = try LoopbackServer { request in
            request.target == "/slow" ? site.reply(to: request, upTo: 1000, then: [.hang]) : site.reply(to: request)
        }
        let manager = fixture.manager()
        let slow = try await manager.start(server.url("/slow").absoluteString)
        let quick = try await manager.start(server.url("/quick").absoluteString)
        _ = try await quick.file
        await slow.reaches { $0.received == 1000 }
        try await slow.remove()
        #expect(slow.status == nil)
        #expect(fixture.files.names == ["quick"])
        #expect(await code { try await slow.pause() } == -640)
        try await manager.removeSettled()
        #expect(try await manager.restore().isEmpty)
        #expect(fixture.files.names == ["quick"])
    }

    @Test func anotherRunGoesOnWithTheList() async throws {
        let site = FileSite(content), fixture = try DownloadFixture()
        let server = try LoopbackServer { request in
            request.header("Range") == nil
                ? site.reply(to: request, upTo: 50_000, then: [.hang]) : site.reply(to: request)
        }
        let first = fixture.manager()
        let begun = try await first.start(server.url("/a").absoluteString)
        let waiting = try await first.start(request(server.url("/paused")) { $0.priority = .high })
        try await waiting.pause()
        await begun.reaches { $0.received == 50_000 }
        await first.close()
        #expect(await code { try await first.restore() } == -641)
        #expect(await code { _ = try await begun.file } == -641)
        let manager = fixture.manager()
        let downloads = try await manager.restore()
        #expect(downloads.map(\.url) == [server.url("/paused"), server.url("/a")])
        #expect(downloads.last?.id == begun.id)
        #expect(downloads.first?.status?.state == .paused)
        _ = try await downloads.last?.file
        #expect(fixture.bytes("a") == content)
        #expect(server.requests.last?.header("Range") == "bytes=50000-")
    }

    @Test func completionsAreStoredBeforeTheListCloses() async throws {
        let site = FileSite([UInt8](repeating: 7, count: 100)), fixture = try DownloadFixture()
        let server = try LoopbackServer { site.reply(to: $0) }
        for index in 0..<40 {
            let first = fixture.manager()
            let download = try await first.start(server.url("/\(index)").absoluteString)
            await download.reaches { $0.state == .completed }
            await first.close()
            let second = fixture.manager()
            // A download that is not stored as completed would run again.
            #expect(try await second.restore().allSatisfy { $0.status?.state == .completed })
            await second.close()
        }
        #expect(server.requests.count == 40)
    }

    @Test func whatIsRemovedWhileItEndsIsForgotten() async throws {
        let site = FileSite(content), fixture = try DownloadFixture()
        let server = try LoopbackServer { site.reply(to: $0) }
        let manager = fixture.manager {
            $0.limit = 8
            $0.limitPerHost = 8
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<40 {
                group.addTask {
                    let download = try await manager.start(server.url("/\(index)").absoluteString)
                    // At different moments of their lives.
                    await download.reaches { index % 2 == 0 ? $0.state != .waiting : $0.received > 0 }
                    try await download.remove()
                    #expect(download.status == nil)
                    #expect(await code { _ = try await download.file } == -640)
                }
            }
            try await group.waitForAll()
        }
        #expect(try await manager.restore().isEmpty)
        #expect(fixture.files.names.allSatisfy { !$0.hasPrefix(".") })
        await manager.close()
        #expect(try await fixture.manager().restore().isEmpty)
    }

    @Test func whatIsCancelledAndTriedAgainBeginsAnew() async throws {
        let site = FileSite(content), fixture = try DownloadFixture(), requests = Counter()
        let server = try LoopbackServer { request in
            requests.add(1) <= 20 ? site.reply(to: request, upTo: 1000, then: [.hang]) : site.reply(to: request)
        }
        let download = try await fixture.manager().start(server.url("/a").absoluteString)
        for _ in 0..<20 {
            await download.reaches { $0.received == 1000 }
            async let cancelled: Void = download.cancel()
            // Perhaps while it stops, perhaps when it has.
            try await cancelled
            try await download.retry()
        }
        _ = try await download.file
        #expect(fixture.bytes("a") == content)
        #expect(server.requests.count == 21 && server.requests.allSatisfy { $0.header("Range") == nil })
        #expect(fixture.files.names == ["a"])
    }

    @Test func pausingAndGoingOnAtOnceLosesNothing() async throws {
        let site = FileSite(content), fixture = try DownloadFixture(), isOpen = Locked(false)
        let server = try LoopbackServer { request in
            isOpen.withLock { $0 } ? site.reply(to: request) : site.reply(to: request, upTo: 5000, then: [.hang])
        }
        let manager = fixture.manager()
        let download = try await manager.start(server.url("/a").absoluteString)
        await download.reaches { $0.received > 0 }
        for _ in 0..<20 {
            try await download.pause()
            try await download.resume()
        }
        isOpen.withLock { $0 = true }
        try await download.pause()
        try await download.resume()
        _ = try await download.file
        #expect(fixture.bytes("a") == content)
        #expect(fixture.files.names == ["a"])
    }

    @Test func oneManagerAtATimeHasTheList() async throws {
        let fixture = try DownloadFixture()
        let one = fixture.manager(), other = fixture.manager()
        try await one.restore()
        #expect(await code { try await other.restore() } == -631)
        try await fixture.manager { $0.identifier = "another" }.restore()
        withExtendedLifetime(one) {}
    }

    @Test func theSourceMayChangeMidway() async throws {
        let old = FileSite(content), fixture = try DownloadFixture()
        var changed = FileSite(pattern(150_000).reversed())
        changed.tag = "\"v2\""
        let new = changed
        let server = try LoopbackServer { request in
            request.header("Range") == nil && request.connection == 0
                ? old.reply(to: request, upTo: 50_000) : new.reply(to: request)
        }
        let manager = fixture.manager()
        let download = try await manager.start(server.url("/a").absoluteString)
        _ = try await download.file
        #expect(fixture.bytes("a") == new.content)
        #expect(download.status?.restarts == 1)
    }
}
#endif
