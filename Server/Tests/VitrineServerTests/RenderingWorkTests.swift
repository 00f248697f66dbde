import Foundation
import HTTPTypes
import NIOCore
import Synchronization
import Testing
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrineNetwork
import VitrinePipeline

import VitrineServer

/// Work that is shared, kept, refused and cancelled.
@Suite struct RenderingWorkTests {
    private static func small(_ options: inout ProcessingOptions) { (options.width, options.height) = (120, 120) }

    // MARK: Sharing

    @Test func aThousandRequestsAreOneFetchAndOneRender() async throws {
        let gate = AsyncPromise<Void>()
        let body = try Samples.bytes("lake.jpg")
        let origin = try await Origin.start { _ in
            await gate.value()
            return .init(headers: [("Cache-Control", "max-age=60")], body: body)
        }
        let fixture = try RenderingFixture()
        let source = origin.url("lake.jpg")
        let url = RenderingFixture.url(source, Self.small)
        let origins = try await withThrowingTaskGroup(of: Rendering.self) { group in
            for _ in 0..<1_000 { group.addTask { try await fixture.renderer.image(for: url) } }
            try await wait { try fixture.renderer.waiters(for: url) == 1_000 }
            gate.fulfill(())
            return try await group.reduce(into: [Rendering]()) { $0.append($1) }
        }
        #expect(Set(origins.map(\.image)).count == 1)
        #expect(origins.count { $0.origin == .made } == 1)
        #expect(origins.count { $0.origin == .coalesced } == 999)
        #expect(origin.requests.count == 1)
        #expect(fixture.renderer.pipeline.statistics.calls == 1)
        #expect(try origins[0].image.info.size == PixelSize(width: 120, height: 80))
        // And the next ones come from memory.
        #expect(try await fixture.image(source, Self.small).origin == .memory)
    }

    @Test func fiveSizesAreOneFetchAndOneDecode() async throws {
        let gate = AsyncPromise<Void>()
        let body = try Samples.bytes("lake.jpg")
        let origin = try await Origin.start { _ in
            await gate.value()
            return .init(headers: [("Cache-Control", "max-age=60")], body: body)
        }
        let fixture = try RenderingFixture()
        let source = origin.url("lake.jpg")
        let sizes = [60, 120, 240, 480, 600]
        let results = try await withThrowingTaskGroup(of: Rendering.self) { group in
            for size in sizes { group.addTask { try await fixture.image(source) { $0.width = size } } }
            try await wait { fixture.renderer.workCount.results == 5 && !origin.requests.isEmpty }
            gate.fulfill(())
            return try await group.reduce(into: [Rendering]()) { $0.append($1) }
        }
        #expect(results.compactMap { $0.image.size?.width }.sorted() == sizes)
        #expect(results.allSatisfy { $0.image.size?.height == ($0.image.size?.width ?? 0) * 2 / 3 })
        #expect(origin.requests.count == 1)
        #expect(fixture.renderer.pipeline.statistics.calls == 1)
    }

    @Test func resultsStayOnDisk() async throws {
        let fixture = try RenderingFixture()
        let first = try await fixture.image("local:///lake.jpg", Self.small)
        #expect(first.origin == .made)
        try await fixture.renderer.results.flush()
        fixture.renderer.results.clearMemory()
        let second = try await fixture.image("local:///lake.jpg", Self.small)
        #expect(second.origin == .disk)
        #expect(second.image.bytes == first.image.bytes)
        #expect(second.image.entityTag == first.image.entityTag)
        #expect(second.image.size == first.image.size)
        #expect(second.image.mediaType == "image/jpeg")
        #expect(second.image.entityTag.hasPrefix("\"") && second.image.entityTag.count == 22)
    }

    // MARK: Freshness

    @Test func anUnchangedSourceConfirmsTheResult() async throws {
        let body = try Samples.bytes("lake.jpg")
        let origin = try await Origin.start { request in
            let headers = [
                ("ETag", "\"1\""), ("Cache-Control", "max-age=100"),
                ("Last-Modified", "Sat, 21 Nov 2026 10:00:00 GMT"),
            ]
            return request.headers[.ifNoneMatch] == "\"1\""
                ? .init(status: 304, headers: headers) : .init(headers: headers, body: body)
        }
        let fixture = try RenderingFixture { $0.staleWhileRevalidate = .zero }
        let first = try await fixture.image(origin.url("a"), Self.small)
        #expect(first.image.source.lastModified == "Sat, 21 Nov 2026 10:00:00 GMT")
        #expect(try await fixture.image(origin.url("a"), Self.small).origin == .memory)
        fixture.clock.advance(by: .seconds(200))
        let second = try await fixture.image(origin.url("a"), Self.small)
        #expect(second.origin == .confirmed)
        #expect(second.image.bytes == first.image.bytes)
        #expect(second.image.source.freshUntil > first.image.source.freshUntil)
        #expect(origin.requests.count == 2)
        #expect(fixture.renderer.pipeline.statistics.calls == 1)
    }

    @Test func aStaleResultIsUsedWhileItsSourceIsAsked() async throws {
        let answers = try [Samples.bytes("lake.jpg"), Samples.bytes("lake-grey.jpg")]
        let count = Mutex(0)
        let origin = try await Origin.start { _ in
            let index = count.withLock { count in
                defer { count += 1 }
                return min(count, 1)
            }
            return .init(headers: [("Cache-Control", "max-age=100")], body: answers[index])
        }
        let fixture = try RenderingFixture()
        let first = try await fixture.image(origin.url("a"), Self.small)
        fixture.clock.advance(by: .seconds(120))
        let stale = try await fixture.image(origin.url("a"), Self.small)
        #expect(stale.isStale)
        #expect(stale.image.bytes == first.image.bytes)
        try await wait { origin.requests.count == 2 && fixture.renderer.workCount.results == 0 }
        let fresh = try await fixture.image(origin.url("a"), Self.small)
        #expect(!fresh.isStale)
        #expect(fresh.image.bytes != first.image.bytes)
        #expect(fresh.image.entityTag != first.image.entityTag)
    }

    @Test func aStaleResultIsUsedWhileItsSourceFails() async throws {
        let body = try Samples.bytes("lake.jpg")
        let isDown = Mutex(false)
        let origin = try await Origin.start { _ in
            isDown.withLock { $0 } ? .init(status: 500) : .init(headers: [("Cache-Control", "max-age=100")], body: body)
        }
        let fixture = try RenderingFixture { configuration in
            configuration.staleWhileRevalidate = .zero
            configuration.sources.caching.servesStaleOnServerError = false
        }
        let first = try await fixture.image(origin.url("a"), Self.small)
        isDown.withLock { $0 = true }
        fixture.clock.advance(by: .seconds(200))
        let stale = try await fixture.image(origin.url("a"), Self.small)
        #expect(stale.isStale)
        #expect(stale.image.bytes == first.image.bytes)
        // Not for ever.
        fixture.clock.advance(by: .seconds(90_000))
        #expect(await fixture.error(origin.url("a"), Self.small)?.status == 502)
    }

    @Test func changedFilesAreSeen() async throws {
        let fixture = try RenderingFixture()
        let folder = fixture.root + "/files"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let own = try RenderingFixture { $0.sources.localRoot = folder }
        func write(_ sample: String) throws {
            try Data(Samples.bytes(sample)).write(to: URL(filePath: folder + "/a.jpg"), options: .atomic)
        }
        try write("lake.jpg")
        let first = try await own.image("local:///a.jpg", Self.small)
        own.clock.advance(by: .seconds(2))
        #expect(try await own.image("local:///a.jpg", Self.small).origin == .confirmed)
        try write("lake-grey.jpg")
        own.clock.advance(by: .seconds(2))
        let second = try await own.image("local:///a.jpg", Self.small)
        #expect(second.origin == .made)
        #expect(second.image.bytes != first.image.bytes)
        try FileManager.default.removeItem(atPath: folder + "/a.jpg")
        own.clock.advance(by: .seconds(2))
        #expect(await own.error("local:///a.jpg", Self.small)?.status == 404)
    }

    @Test func sourcesThatMustNotBeStoredAreLoadedAgain() async throws {
        let body = try Samples.bytes("lake.jpg")
        let origin = try await Origin.start { _ in .init(headers: [("Cache-Control", "no-store")], body: body) }
        let fixture = try RenderingFixture()
        for _ in 0..<2 { #expect(try await fixture.image(origin.url("a"), Self.small).origin == .made) }
        #expect(origin.requests.count == 2)
    }

    @Test func purgedResultsAreMadeAgain() async throws {
        let origin = try await Origin.samples()
        let fixture = try RenderingFixture()
        let url = RenderingFixture.url(origin.url("lake.jpg"), Self.small)
        _ = try await fixture.renderer.image(for: url, format: .png)
        _ = try await fixture.renderer.image(for: url)
        #expect(try await fixture.renderer.purge(source: url.source) == 2)
        #expect(try await fixture.renderer.image(for: url, format: .png).origin == .made)
        #expect(try await fixture.renderer.image(for: url).origin == .made)
        #expect(origin.requests.count == 2)
        try await fixture.renderer.purgeAll()
        #expect(try await fixture.renderer.image(for: url).origin == .made)
        #expect(origin.requests.count == 3)
    }

    // MARK: Errors

    @Test func errorsOfSourcesAreKeptForSeconds() async throws {
        let origin = try await Origin.start { request in
            switch request.path {
            case "/404": .init(status: 404)
            case "/410": .init(status: 410)
            case "/403": .init(status: 403)
            case "/500": .init(status: 500)
            default: .init(headers: [("Content-Type", "text/html")], body: Array("<html></html>".utf8))
            }
        }
        let fixture = try RenderingFixture()
        let expected = [
            ("404", 404, "source-not-found", 10), ("410", 410, "source-gone", 10), ("403", 502, "source-denied", 5),
            ("500", 502, "source-failed", 5), ("html", 422, "not-an-image", 10),
        ]
        for (path, status, code, seconds) in expected {
            for width in [10, 20] {
                let error = await fixture.error(origin.url(path)) { $0.width = width }
                #expect(error?.status == status)
                #expect(error?.code == code)
                #expect(error?.reason.contains("127.0.0.1") == false)
            }
            #expect(origin.count(of: path) == 1)
            fixture.clock.advance(by: .seconds(seconds) - .milliseconds(1))
            _ = await fixture.error(origin.url(path))
            #expect(origin.count(of: path) == 1)
            fixture.clock.advance(by: .milliseconds(2))
            _ = await fixture.error(origin.url(path))
            #expect(origin.count(of: path) == 2)
        }
        // The source is back.
        let body = try Samples.bytes("leaf.png")
        let isBack = Mutex(false)
        let second = try await Origin.start { _ in isBack.withLock { $0 } ? .init(body: body) : .init(status: 503) }
        #expect(await fixture.error(second.url("a"))?.status == 502)
        isBack.withLock { $0 = true }
        fixture.clock.advance(by: .seconds(6))
        #expect(try await fixture.image(second.url("a")).image.format == .png)
    }

    @Test func silentAndAbsentServersAreErrorsOfGateways() async throws {
        let gate = AsyncPromise<Void>()
        let origin = try await Origin.start { _ in
            await gate.value()
            return .init()
        }
        defer { gate.fulfill(()) }
        let fixture = try RenderingFixture { configuration in
            configuration.sources.totalTimeout = .milliseconds(300)
            configuration.sources.idleTimeout = .milliseconds(300)
        }
        let silent = await fixture.error(origin.url("a"))
        #expect(silent?.status == 504)
        #expect(silent?.code == "source-timeout")
        // Nobody listens on port 9 of loopback.
        #expect(await fixture.error("http://127.0.0.1:9/a")?.status == 502)
        #expect(await fixture.error("http://name.invalid/a")?.status == 502)
    }

    @Test func longSourcesAreCutOff() async throws {
        let body = [UInt8](repeating: 7, count: 300_000)
        let origin = try await Origin.start { _ in .init(body: body) }
        let fixture = try RenderingFixture { $0.sources.maximumBytes = .kilobytes(100) }
        let error = await fixture.error(origin.url("a"))
        #expect(error?.status == 413)
        #expect(error?.code == "source-too-large")
        #expect(await fixture.error("local:///lake.jpg")?.status == 413)
        #expect(await fixture.error("data:," + String(repeating: "a", count: 150_000))?.status == 413)
    }

    // MARK: Ends

    @Test func theLastCancelledRequestStopsTheLoad() async throws {
        let gate = AsyncPromise<Void>()
        let origin = try await Origin.start { _ in
            await gate.value()
            return .init()
        }
        defer { gate.fulfill(()) }
        let fixture = try RenderingFixture()
        let url = RenderingFixture.url(origin.url("a"), Self.small)
        let requests = (0..<3).map { _ in Task { try await fixture.renderer.image(for: url) } }
        try await wait { try fixture.renderer.waiters(for: url) == 3 && origin.requests.count == 1 }
        for request in requests.dropLast() { request.cancel() }
        try await wait { try fixture.renderer.waiters(for: url) == 1 }
        #expect(fixture.renderer.workCount.sources == 1)
        requests[2].cancel()
        for request in requests {
            let error = await #expect(throws: RequestError.self) { try await request.value }
            #expect(error?.code == "cancelled")
        }
        try await wait { fixture.renderer.workCount == (0, 0) && fixture.renderer.admission.loads.running == 0 }
        // A cancelled request is no failure of the source.
        let again = Task { try await fixture.renderer.image(for: url) }
        try await wait { origin.requests.count == 2 }
        again.cancel()
    }

    @Test func aRequestEndsAtItsDeadline() async throws {
        let gate = AsyncPromise<Void>()
        let body = try Samples.bytes("leaf.png")
        let origin = try await Origin.start { _ in
            await gate.value()
            return .init(body: body)
        }
        let fixture = try RenderingFixture()
        let url = RenderingFixture.url(origin.url("a"))
        let patient = Task { try await fixture.renderer.image(for: url) }
        try await wait { origin.requests.count == 1 }
        let error = await #expect(throws: RequestError.self) {
            try await fixture.renderer.image(for: url, deadline: .now + .milliseconds(50))
        }
        #expect(error?.status == 504)
        #expect(error?.code == "deadline-exceeded")
        gate.fulfill(())
        #expect(try await patient.value.image.format == .png)
    }

    @Test func fullQueuesRefuseAtOnce() async throws {
        let gate = AsyncPromise<Void>()
        let origin = try await Origin.start { _ in
            await gate.value()
            return .init(status: 404)
        }
        let fixture = try RenderingFixture { configuration in
            configuration.admission.loads = 2
            configuration.admission.queueLength = 3
        }
        let waiting = (0..<5).map { index in Task { await fixture.error(origin.url("\(index)")) } }
        try await wait {
            fixture.renderer.admission.loads.running == 2 && fixture.renderer.admission.loads.waiting == 3
        }
        let began = ContinuousClock.now
        let error = await fixture.error(origin.url("6"))
        #expect(ContinuousClock.now - began < .seconds(1))
        #expect(error?.status == 503)
        #expect(error?.code == "overloaded")
        #expect((1...30).contains(error?.retryAfter ?? 0))
        gate.fulfill(())
        for task in waiting { #expect(await task.value?.status == 404) }
        #expect(fixture.renderer.admission.loads == .init(waiting: 0, running: 0, cost: 0, refused: 1))
        // A refusal is not kept.
        #expect(await fixture.error(origin.url("6"))?.status == 404)
    }

    @Test func oneSlowHostLeavesRoomForOthers() async throws {
        let gate = AsyncPromise<Void>()
        let slow = try await Origin.start { _ in
            await gate.value()
            return .init(status: 404)
        }
        let fixture = try RenderingFixture { $0.admission.loadsPerHost = 2 }
        let waiting = (0..<6).map { index in Task { await fixture.error(slow.url("\(index)")) } }
        try await wait {
            fixture.renderer.admission.loads.running == 2 && fixture.renderer.admission.loads.waiting == 4
        }
        // A source elsewhere is not behind them.
        #expect(try await fixture.image("local:///leaf.png").origin == .made)
        #expect(fixture.renderer.admission.renders.running == 0)
        gate.fulfill(())
        for task in waiting { #expect(await task.value?.status == 404) }
        #expect(slow.requests.count == 6)
    }

    // MARK: Places

    private func limits(_ change: (inout Admission.Limits) -> Void) -> Admission {
        var limits = Admission.Limits()
        change(&limits)
        return Admission(limits)
    }

    @Test func rendersAreBoundedByTheirBytes() async throws {
        let admission = limits { $0.renderBytes = 100 }
        let first = try await admission.render(bytes: 60, priority: .normal)
        let second = Task { try await admission.render(bytes: 60, priority: .normal) }
        try await wait { admission.renders.waiting == 1 }
        #expect(admission.renders.cost == 60)
        first.release()
        first.release()
        let place = try await second.value
        #expect(admission.renders == .init(waiting: 0, running: 1, cost: 60, refused: 0))
        place.keep(cost: 30)
        #expect(admission.renders == .init(waiting: 0, running: 0, cost: 30, refused: 0))
        place.release()
        #expect(admission.renders.cost == 0)
        // One that is larger than all runs alone.
        let large = try await admission.render(bytes: 1_000, priority: .normal)
        let small = Task { try await admission.render(bytes: 1, priority: .normal) }
        try await wait { admission.renders.waiting == 1 }
        large.release()
        _ = try await small.value
    }

    private final class Order: Sendable {
        private let priorities = Mutex<[RequestPriority]>([])
        var all: [RequestPriority] { priorities.withLock { $0 } }
        func add(_ priority: RequestPriority) { priorities.withLock { $0.append(priority) } }
    }

    @Test func urgentRendersGoFirst() async throws {
        let admission = limits { $0.renders = 1 }
        let first = try await admission.render(bytes: 1, priority: .normal)
        let order = Order()
        let tasks = [RequestPriority.low, .normal, .high].enumerated().map { index, priority in
            Task {
                try await wait { admission.renders.waiting == index }
                let place = try await admission.render(bytes: 1, priority: priority)
                order.add(priority)
                place.release()
            }
        }
        try await wait { admission.renders.waiting == 3 }
        first.release()
        for task in tasks { try await task.value }
        #expect(order.all == [.high, .normal, .low])
    }

    @Test func waitingHasADeadline() async throws {
        let admission = limits { limits in
            limits.renders = 1
            limits.queueDeadline = .milliseconds(20)
        }
        let place = try await admission.render(bytes: 1, priority: .normal)
        let error = await #expect(throws: RequestError.self) { try await admission.render(bytes: 1, priority: .normal) }
        #expect(error?.code == "overloaded")
        place.release()
        _ = try await admission.render(bytes: 1, priority: .normal)
        let last = try await admission.render(bytes: 1, priority: .normal)
        let cancelled = Task { try await admission.render(bytes: 1, priority: .normal) }
        cancelled.cancel()
        await #expect(throws: RequestError.self) { try await cancelled.value }
        last.release()
        #expect(admission.renders.running == 0)
        #expect(admission.renders.waiting == 0)
    }
}
