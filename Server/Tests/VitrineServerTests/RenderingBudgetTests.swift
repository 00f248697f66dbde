#if os(Linux)
import Foundation
import NIOCore
import Synchronization
import Testing
import VitrineCore
import VitrineImaging
import VitrinePipeline
import VitrineServer

/// The bytes of sources that are held at once.
@Suite struct RenderingBudgetTests {
    private func budget(_ bytes: Int, deadline: Duration = .seconds(600)) -> SourceBudget {
        var limits = Admission.Limits()
        (limits.sourceBytes, limits.queueDeadline) = (ByteCount(bytes), deadline)
        return Admission(limits).sources
    }

    @Test func sourcesWaitUntilTheirBytesFit() async throws {
        let budget = budget(100)
        let first = budget.reservation(host: nil)
        let second = budget.reservation(host: nil)
        try await first.reserve(60)
        #expect(!second.reserveNow(50))
        let waiting = Task { try await second.reserve(50) }
        try await wait { budget.counts.waiting == 1 }
        #expect(budget.counts.cost == 60)
        // A part of the first is not needed after all.
        first.correct(to: 50)
        try await waiting.value
        #expect(budget.counts == .init(waiting: 0, running: 2, cost: 100, refused: 0))
        first.release()
        first.release()
        second.release()
        #expect(budget.counts == .init())
    }

    @Test func theOldestGoesFirstAndALargeOneRunsAlone() async throws {
        let budget = budget(100)
        let small = budget.reservation(host: nil)
        try await small.reserve(10)
        let large = budget.reservation(host: nil)
        let next = budget.reservation(host: nil)
        let first = Task { try await large.reserve(1_000) }
        try await wait { budget.counts.waiting == 1 }
        let second = Task { try await next.reserve(95) }
        try await wait { budget.counts.waiting == 2 }
        small.release()
        try await first.value
        #expect(budget.counts.cost == 1_000 && budget.counts.waiting == 1)
        large.release()
        try await second.value
        #expect(budget.counts.cost == 95)
    }

    @Test func oneHostHasAtMostHalf() async throws {
        let budget = budget(100)
        let slow = budget.reservation(host: "slow")
        try await slow.reserve(50)
        let another = budget.reservation(host: "slow")
        let waiting = Task { try await another.reserve(10) }
        try await wait { budget.counts.waiting == 1 }
        let other = budget.reservation(host: "other")
        #expect(other.reserveNow(30))
        #expect(budget.reservation(host: nil).reserveNow(20))
        slow.release()
        try await waiting.value
        // More than half, of a host that has nothing else.
        other.release()
        another.release()
        #expect(slow.reserveNow(90))
        #expect(budget.counts.cost == 90)
        withExtendedLifetime((slow, another, other)) {}
    }

    /// Sources of unknown length would wait for each other without end.
    @Test func growingSourcesNeverWaitForEachOther() async throws {
        let budget = budget(100)
        let sources = (0..<4).map { _ in budget.reservation(host: nil) }
        for source in sources { try await source.reserve(25) }
        let most = Most()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for source in sources {
                group.addTask {
                    for bytes in stride(from: 30, through: 90, by: 10) {
                        try await source.reserve(bytes)
                        let cost = budget.counts.cost
                        most.add(cost)
                        await Task.yield()
                    }
                    source.release()
                }
            }
            try await group.waitForAll()
        }
        #expect(budget.counts == .init())
        // The budget and one source.
        #expect(most.value <= 190)
    }

    @Test func waitsEndAtTheDeadlineAndWithTheRequest() async throws {
        let budget = budget(100, deadline: .milliseconds(20))
        let first = budget.reservation(host: nil), second = budget.reservation(host: nil)
        try await first.reserve(100)
        let error = await #expect(throws: RequestError.self) { try await second.reserve(1) }
        #expect(error?.status == 503 && error?.code == "overloaded" && error?.retryAfter ?? 0 > 0)
        let long = self.budget(100)
        let third = long.reservation(host: nil), fourth = long.reservation(host: nil)
        try await third.reserve(100)
        let cancelled = Task { try await fourth.reserve(1) }
        cancelled.cancel()
        let other = await #expect(throws: RequestError.self) { try await cancelled.value }
        #expect(other?.code == "cancelled")
        #expect(budget.counts.refused == 1 && long.counts.refused == 0 && long.counts.waiting == 0)
        withExtendedLifetime((first, third)) {}
    }

    private final class Most: Sendable {
        private let most = Mutex(0)
        var value: Int { most.withLock { $0 } }
        func add(_ value: Int) { most.withLock { $0 = max($0, value) } }
    }

    // MARK: Through the renderer

    /// The origin declares 80,000 bytes and sends them when the gate opens.
    private func slowOrigin(_ gate: OpenSignal, _ body: [UInt8], declares: Bool = true) throws -> ScriptedOrigin {
        let length = declares ? "Content-Length: \(body.count)\r\n" : "Connection: close\r\n"
        return try ScriptedOrigin { _ in
            [.text("HTTP/1.1 200 OK\r\n\(length)\r\n"), .wait(gate), .bytes(body)] + (declares ? [] : [.close])
        }
    }

    @Test func downloadsAreBoundedByTheirDeclaredBytes() async throws {
        let gate = OpenSignal()
        let body = try Samples.bytes("lake.jpg")
        let origin = try slowOrigin(gate, body)
        let small = try Samples.bytes("leaf.png").count
        let limit = body.count + small + 1_000
        let fixture = try RenderingFixture { $0.admission.sourceBytes = ByteCount(limit) }
        let budget = fixture.renderer.admission.sources
        let requests = (0..<3).map { number in
            let source = origin.url("\(number)")
            return Task { try await fixture.image(source) { $0.width = 60 } }
        }
        try await wait { budget.counts.cost == body.count && budget.counts.waiting == 2 }
        #expect(fixture.renderer.admission.renders == .init())
        // Neither holds back a file that fits.
        #expect(try await fixture.image("local:///leaf.png") { $0.width = 20 }.origin == .made)
        gate.open()
        for request in requests { #expect(try await request.value.origin == .made) }
        try await wait { budget.counts == .init() }
    }

    @Test func filesAndInlineDataAreBounded() async throws {
        let bytes = try Samples.bytes("leaf.png")
        let fixture = try RenderingFixture { $0.admission.sourceBytes = ByteCount(bytes.count + 10) }
        let budget = fixture.renderer.admission.sources
        let other = budget.reservation(host: nil)
        try await other.reserve(bytes.count)
        let inline = "data:image/png;base64," + Data(bytes).base64EncodedString()
        let requests = ["local:///leaf.png", inline].map { source in
            Task { try await fixture.image(source) { $0.width = 20 } }
        }
        try await wait { budget.counts.waiting == 2 }
        other.release()
        for request in requests { #expect(try await request.value.origin == .made) }
        #expect(budget.counts == .init())
    }

    @Test func bodiesOfUnknownLengthAreCounted() async throws {
        let first = OpenSignal(), rest = OpenSignal()
        let body = try Samples.bytes("lake.jpg")
        let half = body.count / 2
        let origin = try ScriptedOrigin { _ in
            [
                .text("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"), .wait(first), .bytes(Array(body.prefix(half))),
                .wait(rest), .bytes(Array(body.dropFirst(half))), .close,
            ]
        }
        let fixture = try RenderingFixture()
        let budget = fixture.renderer.admission.sources
        let source = origin.url("a")
        let request = Task { try await fixture.image(source) { $0.width = 60 } }
        try await wait { origin.received.count == 1 }
        #expect(budget.counts.cost == 0)
        first.open()
        try await wait { budget.counts.cost >= half }
        rest.open()
        #expect(try await request.value.origin == .made)
        #expect(budget.counts == .init())
    }

    @Test func aSourceThatFindsNoPlaceIsRefusedAndNotRemembered() async throws {
        let gate = OpenSignal()
        let body = try Samples.bytes("lake.jpg")
        let origin = try slowOrigin(gate, body)
        gate.open()
        let fixture = try RenderingFixture {
            $0.admission.sourceBytes = ByteCount(body.count + 10)
            $0.admission.queueDeadline = .milliseconds(300)
        }
        let other = fixture.renderer.admission.sources.reservation(host: nil)
        try await other.reserve(body.count)
        for _ in 0..<2 {
            let error = await fixture.error(origin.url("a"))
            #expect(error?.status == 503 && error?.code == "overloaded" && error?.retryAfter ?? 0 > 0)
        }
        other.release()
        #expect(try await fixture.image(origin.url("a")) { $0.width = 60 }.origin == .made)
    }

    // MARK: Deadlines

    @Test func queuesOfTheServerThatAreTooSlowAreAnswered503() async throws {
        let gate = OpenSignal()
        defer { gate.open() }
        let body = try Samples.bytes("lake.jpg")
        let origin = try ScriptedOrigin { _ in [.wait(gate)] + ScriptedOrigin.answer(body) }
        let fixture = try RenderingFixture {
            ($0.admission.loads, $0.admission.renders) = (2, 1)
            $0.admission.sourceBytes = ByteCount(body.count + 10)
        }
        let admission = fixture.renderer.admission
        func error(_ source: String) async -> RequestError? {
            let url = RenderingFixture.url(source) { $0.width = 40 }
            return await #expect(throws: RequestError.self) {
                // Long beside what a busy machine takes to bring the request to its queue.
                try await fixture.renderer.image(for: url, deadline: .now + .seconds(2))
            }
        }
        // The source is too slow, which a request learns that comes while it is asked.
        let url = RenderingFixture.url(origin.url("slow")) { $0.width = 40 }
        let patient = Task { try await fixture.renderer.image(for: url) }
        try await wait { origin.received.count == 1 }
        let slow = await error(origin.url("slow"))
        #expect(slow?.status == 504 && slow?.code == "deadline-exceeded")
        patient.cancel()
        try await wait { admission.loads.running == 0 }
        // All places of loads are taken.
        var loads: [Place] = []
        for host in ["a", "b"] { loads.append(try await admission.load(host: host, priority: .normal)) }
        let load = await error(origin.url("load"))
        #expect(load?.status == 503 && load?.code == "overloaded" && load?.retryAfter ?? 0 > 0)
        for place in loads { place.release() }
        // The place of renders is taken.
        let place = try await admission.render(bytes: 1, priority: .normal)
        let render = await error("local:///leaf.png")
        #expect(render?.status == 503 && render?.code == "overloaded" && render?.retryAfter ?? 0 > 0)
        place.release()
        // The bytes are taken.
        let held = admission.sources.reservation(host: nil)
        try await held.reserve(body.count)
        let bytes = await error("local:///lake.jpg")
        #expect(bytes?.status == 503 && bytes?.code == "overloaded" && bytes?.retryAfter ?? 0 > 0)
        held.release()
        // None of these is remembered.
        #expect(try await fixture.image("local:///lake.jpg") { $0.width = 40 }.origin == .made)
        #expect(try await fixture.image("local:///leaf.png") { $0.width = 40 }.origin == .made)
    }

    @Test func aQueueThatLeavesTooLittleTimeForTheSourceIsAnswered503() async throws {
        let gate = OpenSignal()
        defer { gate.open() }
        let origin = try ScriptedOrigin { _ in [.wait(gate)] }
        let fixture = try RenderingFixture { $0.admission.loads = 1 }
        let place = try await fixture.renderer.admission.load(host: nil, priority: .normal)
        let url = RenderingFixture.url(origin.url("a"))
        let deadline = ContinuousClock.now + .seconds(2)
        let request = Task { try await fixture.renderer.image(for: url, deadline: deadline) }
        try await Task.sleep(until: deadline - .milliseconds(300))
        place.release()
        let error = await #expect(throws: RequestError.self) { try await request.value }
        #expect(error?.status == 503 && error?.code == "overloaded" && error?.retryAfter ?? 0 > 0)
    }

    // MARK: Damage

    @Test(arguments: [true, false])
    func aHundredSizesOfADamagedSourceAreOneLoadAndOneDecode(isAtOnce: Bool) async throws {
        let gate = OpenSignal()
        if !isAtOnce { gate.open() }
        let whole = try Samples.bytes("lake.jpg")
        let body = Array(whole.prefix(whole.count / 2))
        let origin = try ScriptedOrigin { _ in [.wait(gate)] + ScriptedOrigin.answer(body) }
        let fixture = try RenderingFixture { $0.sourceDisk = ByteCount(0) }
        let source = origin.url("a")
        if isAtOnce {
            let requests = (1...100).map { width in
                Task { await fixture.error(source) { ($0.width, $0.format) = (width, .jpeg) } }
            }
            try await wait { fixture.renderer.workCount.results == 100 && origin.received.count == 1 }
            gate.open()
            for request in requests { #expect(await request.value?.code == "damaged-image") }
        } else {
            for width in 1...100 {
                #expect(await fixture.error(source) { $0.width = width }?.code == "damaged-image")
            }
        }
        #expect(origin.received.count == 1)
        #expect(fixture.renderer.pipeline.statistics.calls == 1)
        let (asked, decoded) = (origin.received.count, fixture.renderer.pipeline.statistics.calls)
        for width in 201...300 {
            #expect(await fixture.error(source) { $0.width = width }?.code == "damaged-image")
        }
        #expect(origin.received.count == asked && fixture.renderer.pipeline.statistics.calls == decoded)
        // The bytes themselves are no worse for that.
        let raw = try await fixture.image(source) { $0.isRaw = true }
        #expect(Array(raw.image.bytes.readableBytesView) == body)
        let skipped = try await fixture.image(source) { ($0.skipProcessing, $0.width) = ([.jpeg], 9) }
        #expect(Array(skipped.image.bytes.readableBytesView) == body)
        fixture.clock.advance(by: .seconds(11))
        #expect(await fixture.error(source) { $0.width = 301 }?.code == "damaged-image")
        #expect(fixture.renderer.pipeline.statistics.calls == decoded + 1)
    }

    @Test func variantsOfSourcesWithoutAnImageAreOneLoad() async throws {
        let text = Array("no picture".utf8)
        let origin = try ScriptedOrigin { _ in ScriptedOrigin.answer(text, ["Cache-Control: no-store"]) }
        let fixture = try RenderingFixture { $0.limits.maximumPixels = 1_000 }
        let source = origin.url("a")
        for width in 1...100 { #expect(await fixture.error(source) { $0.width = width }?.code == "not-an-image") }
        #expect(await fixture.error(source) { $0.page = 3 }?.code == "not-an-image")
        #expect(origin.received.count == 1)
        let raw = try await fixture.image(source) { $0.isRaw = true }
        #expect(Array(raw.image.bytes.readableBytesView) == text)
        // Too many pixels.
        for width in 1...20 {
            #expect(await fixture.error("local:///lake.jpg") { $0.width = width }?.code == "limit-exceeded")
        }
    }

    @Test func wishesThatCannotBeFulfilledConcernNoOtherSize() async throws {
        let fixture = try RenderingFixture()
        for change: @Sendable (inout ProcessingOptions) -> Void in [
            { ($0.width, $0.enlarge) = (9_000, true) },
            { $0.padding = .init(top: 9_000, right: 0, bottom: 0, left: 0) },
        ] {
            #expect(await fixture.error("local:///lake.jpg", change)?.code == "result-too-large")
        }
        #expect(await fixture.error("local:///lake.pdf") { $0.page = 99 }?.code == "no-such-page")
        #expect(try await fixture.image("local:///lake.jpg") { $0.width = 30 }.origin == .made)
        #expect(try await fixture.image("local:///lake.pdf") { $0.width = 30 }.origin == .made)
    }
}
#endif
