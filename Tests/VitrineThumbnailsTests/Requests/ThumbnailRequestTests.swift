import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrineThumbnails

@Suite struct ThumbnailRequestTests {
    private let service = ThumbnailService.withoutDisk(concurrency: 1)

    @Test func countsPixelsByScale() {
        let source = ClosureSource.picture("a")
        #expect(
            ThumbnailRequest(source, size: PixelSize(width: 101, height: 50), scale: 1.5).pixelSize
                == PixelSize(width: 152, height: 75))
        for scale in [0, -1, .infinity, .nan] as [Double] {
            #expect(ThumbnailRequest(source, size: PixelSize(10), scale: scale).pixelSize.isEmpty)
        }
    }

    @Test func tellsIdentitiesApart() {
        let source = ClosureSource.picture("a")
        let requests = [
            ThumbnailRequest(source, size: PixelSize(100)), ThumbnailRequest(source, size: PixelSize(100), scale: 2),
            ThumbnailRequest(source, size: PixelSize(100), mode: .aspectFill),
            ThumbnailRequest(source, size: PixelSize(100), mode: .crop(.center)),
            ThumbnailRequest(source, size: PixelSize(100), allowsUpscaling: false),
        ]
        #expect(Set(requests.map { service.key(of: $0, identity: "a") }).count == requests.count)
        #expect(
            service.key(of: ThumbnailRequest(source, size: PixelSize(50), scale: 2), identity: "a")
                == service.key(of: requests[0], identity: "a"))
    }

    @Test func refusesWhatHasNoSize() async throws {
        for size in [PixelSize.zero, PixelSize(width: 10, height: -1)] {
            let bad = ThumbnailRequest(ClosureSource.picture("a"), size: size)
            service.enqueue(bad)
            #expect(await bad.ending == .failed)
        }
        let own = ThumbnailRequest(ClosureSource.picture("a"), size: .zero, mode: .none)
        service.enqueue(own)
        #expect(try await own.value.size == PixelSize(width: 1_000, height: 500))
    }

    @Test func letsAnyNumberWaitInAnyWay() async throws {
        let source = FiringSource()
        let request = ThumbnailRequest.counted(source)
        let waiting = (0..<4).map { _ in Task { try await request.value.size } }
        let blocked = (0..<2).map { _ in
            Task { try await onThread { try request.blocking.value().size } }
        }
        service.enqueue(request)
        source.fire()
        for task in waiting + blocked { #expect(try await task.value == PixelSize(width: 100, height: 50)) }
        #expect(try request.blocking.value().width == 100)
        #expect(request.blocking.placeholder() != nil)
        #expect(try await request.placeholder != nil)
    }

    @Test func endingAWaitLeavesTheRequest() async throws {
        let source = FiringSource()
        let request = ThumbnailRequest.counted(source)
        service.enqueue(request)
        let waiting = Task { try await request.value }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        source.fire()
        #expect(await request.ending == .finished)
    }

    @Test func tellsClosuresThatComeLate() async throws {
        let source = FiringSource()
        let request = ThumbnailRequest(source, size: PixelSize(100))
        request.delivery = .immediate
        service.enqueue(request)
        await source.begun.reach(1)
        let seen = Recorder<String>()
        request.onPlaceholder { _ in seen.add("placeholder") }
        _ = try await request.placeholder
        source.fire()
        _ = try await request.value
        request.onThumbnail { _ in seen.add("thumbnail") }
        request.onPlaceholder { _ in seen.add("placeholder again") }
        #expect(seen.all == ["placeholder", "thumbnail", "placeholder again"])
    }

    @Test func placeholdersComeBeforeThumbnails() async throws {
        for index in 0..<50 {
            let seen = Recorder<String>()
            let source = ClosureSource(key: CacheKey("\(index)")) { _ in
                Image(size: PixelSize(2), color: .white)
            } make: { _ in
                Image(size: PixelSize(3), color: .black)
            }
            let request = ThumbnailRequest(source, size: PixelSize(3))
            request.delivery = .immediate
            request.onPlaceholder { _ in seen.add("placeholder") }.onThumbnail { _ in seen.add("thumbnail") }
            service.enqueue(request)
            _ = try await request.value
            #expect(seen.all == ["placeholder", "thumbnail"])
        }
    }

    @Test func aThumbnailWaitsForItsPlaceholder() async throws {
        let slow = FiringSource("slow placeholder")
        let source = ClosureSource(key: "a") { try slow.thumbnail($0) } make: { _ in
            Image(size: PixelSize(3), color: .black)
        }
        let seen = Recorder<String>()
        let request = ThumbnailRequest(source, size: PixelSize(3))
        request.delivery = .immediate
        request.onPlaceholder { _ in seen.add("placeholder") }.onThumbnail { _ in seen.add("thumbnail") }
        let other = ThumbnailRequest.counted(source, 3)
        service.enqueue(request)
        // Without a closure for placeholders nobody waits for one, and slow ones hold nobody else up.
        let plain = ThumbnailRequest(source, size: PixelSize(3))
        service.enqueue(plain)
        _ = try await plain.value
        await slow.begun.reach(1)
        #expect(seen.all.isEmpty)
        slow.fire()
        _ = try await request.value
        #expect(seen.all == ["placeholder", "thumbnail"])
        // What is in memory needs no placeholder.
        service.enqueue(other)
        #expect(other.state == .finished)
        #expect(slow.begun.count == 1)
    }

    @Test func aPlaceholderThatFailsIsNone() async throws {
        let source = ClosureSource(key: "a") { _ in throw TestFailure() } make: { _ in
            Image(size: PixelSize(3), color: .black)
        }
        let request = ThumbnailRequest.counted(source)
        service.enqueue(request)
        #expect(try await request.placeholder == nil)
        #expect(try await request.value.width == 3)
    }

    @Test @MainActor func nothingIsCalledAfterCancelling() async throws {
        let source = ClosureSource.picture("a")
        let calls = Counter()
        let request = ThumbnailRequest(source, size: PixelSize(100)).onThumbnail { _ in calls.add(1) }
        service.enqueue(request)
        // On this actor nothing of the delivery can come in between: it is made, and not told yet.
        let made = Outcome<Void>()
        Task.detached { _ = try? await request.value; made.set(()) }
        made.wait()
        request.cancel()
        for _ in 0..<10 { await Task.yield() }
        #expect(calls.value == 0)
        #expect(request.state == .finished)
    }

    @Test func isUsedOnce() async throws {
        let request = ThumbnailRequest.counted(ClosureSource.picture("a"))
        service.enqueue(request)
        _ = try await request.value
        service.enqueue(request)
        request.cancel()
        #expect(request.state == .finished)
        #expect(service.statistics.calls == 1)
    }

    @Test func knowsItsState() async throws {
        let source = FiringSource()
        let request = ThumbnailRequest.counted(source)
        #expect(request.state == .new)
        service.setSuspended(true)
        service.enqueue(request)
        #expect(request.state == .queued)
        service.setSuspended(false)
        await source.begun.reach(1)
        #expect(request.state == .running)
        source.fire()
        #expect(await request.ending == .finished)
        let cancelled = ThumbnailRequest.counted(source)
        cancelled.cancel()
        #expect(cancelled.state == .cancelled)
        service.enqueue(cancelled)
        await #expect(throws: CancellationError.self) { try await cancelled.value }
    }
}
