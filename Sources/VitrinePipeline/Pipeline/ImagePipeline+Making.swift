import VitrineCache
import VitrineCore
import VitrineImaging

/// Calls of sources, and the handling of their results.
extension ImagePipeline {
    /// Puts a job that no cache could serve in line for its source.
    func proceed(_ id: Int) {
        guard let (batchID, batch) = change({ $0.wait(id, &$1) }) else { return startPreviews(ofJob: id) }
        if let remote = batch.source as? any RemoteImageSource { return load(remote, id: batchID, batch: batch) }
        batch.slot.enqueue(on: making) { [self] in start(id: batchID, batch: batch, source: batch.source) }
    }

    /// Loads a remote source's content, and then puts its batch in line. Requests that come meanwhile join the batch.
    private func load(_ remote: any RemoteImageSource, id: Int, batch: RequestScheduler.Batch) {
        let arriving = change { scheduler, _ in scheduler.beginArriving(batch: id, limit: Self.previewedBytes) }
        for job in arriving?.jobs ?? [] { startPreviews(ofJob: job) }
        let task = Task { [self] in
            // The image itself follows soon: bytes that no preview was made of are not worth one.
            defer { arriving?.bytes.end() }
            do {
                var context = beginLoad(ofBatch: id, priority: batch.slot.priority)
                context.arriving = arriving?.bytes
                let loaded = try await remote.load(context)
                noteMotion(of: loaded.source, batch.identity)
                if context.isRefresh { await removeResults(of: batch.identity) }
                guard change({ scheduler, _ in scheduler.setLoaded(loaded, ofBatch: id) }) else { return }
                batch.slot.enqueue(on: making) { [self] in start(id: id, batch: batch, source: loaded.source) }
            } catch {
                if ImagePipelineError(thrown: error, source: "").isGone { await removeResults(of: batch.identity) }
                fail(id) { ImagePipelineError(thrown: error, source: $0) }
            }
        }
        batch.cancellation.onCancel { task.cancel() }
    }

    /// Counts a load of a remote source's content for a batch.
    func beginLoad(ofBatch id: Int, priority: PrioritySource) -> SourceLoadContext {
        beginLoad(levels: state.withLock { $0.scheduler.levels(ofBatch: id) }, priority: priority)
    }

    /// Counts a load of a remote source's content. It uses the pipeline's cache of original bytes, as far as requests
    /// with these levels may read or write.
    func beginLoad(levels: CacheLevels, priority: PrioritySource) -> SourceLoadContext {
        state.withLock { $0.statistics.loads += 1 }
        return SourceLoadContext(
            priority: priority, originals: levels.isEmpty ? nil : originals,
            isRefresh: levels.isDisjoint(with: .readOnly))
    }

    /// Removes the known results of a source whose content was loaded anew or is gone.
    func removeResults(of identity: CacheKey) async {
        for spec in derivedSizes.remove(identity) { await cache.remove(spec.key(for: identity)) }
    }

    /// Makes a call that has a place.
    private func start(id: Int, batch: RequestScheduler.Batch, source: any ImageSource) {
        let onTimeout: @Sendable () -> Void = { [self] in
            fail(id) { .timedOut(source: $0) }
            batch.slot.finish()
        }
        let isMade: Bool
        if let blocking = source as? any BlockingImageSource {
            let priority = state.withLock { $0.scheduler.executionPriority(ofBatch: id) }
            isMade = callPool.call(
                id, priority: priority, onMainActor: blocking.requiresMainActor,
                body: { [self] in run(id, batch, calling: blocking) }, onTimeout: onTimeout)
        } else {
            isMade = callPool.callInTask(
                id, body: { [self] in await run(id, batch, asking: source) }, onTimeout: onTimeout)
        }
        guard !isMade else { return }
        Self.endingExecutor.submit { [self] in
            fail(id) { .tooManyAbandonedThreads(source: $0, count: callPool.stuckCount) }
            batch.slot.finish()
        }
    }

    private func run(_ id: Int, _ batch: RequestScheduler.Batch, calling source: any BlockingImageSource) {
        guard let work = change({ scheduler, _ in scheduler.begin(batch: id) }) else { return batch.slot.finish() }
        callPool.didBegin(id, boundsItself: source.boundsItsCalls)
        let onMainActor = source.requiresMainActor
        let results = make(onMainActor ? work : servedByDerivedSizes(work), from: source)
        callPool.didReturn(id)
        guard onMainActor else { return complete(results) }
        Self.endingExecutor.submit { [self] in complete(results) }
    }

    /// Makes a call of a source that does not block.
    private func run(_ id: Int, _ batch: RequestScheduler.Batch, asking source: any ImageSource) async {
        guard let begun = change({ scheduler, _ in scheduler.begin(batch: id) }) else { return batch.slot.finish() }
        callPool.didBegin(id)
        let work = await Self.endingExecutor.run { [self] in servedByDerivedSizes(begun) }
        let images = await images(of: work, asking: source)
        callPool.didReturn(id)
        Self.endingExecutor.submit { [self] in complete(results(of: images, work)) }
    }

    /// Ends a batch with an error: its call has not come back, or was not made.
    func fail(_ id: Int, _ error: (_ source: String) -> ImagePipelineError) {
        // The requests leave before the source hears of it, so that none of them gets what it says to that.
        guard let (batch, subscribers) = change({ $0.fail(batch: id, &$1) }) else { return }
        batch.cancellation.cancel()
        batch.slot.finish()
        let error = error(batch.identity.sourceName)
        for subscriber in subscribers { subscriber.jobDidEnd(.failure(error)) }
    }

    // MARK: The call

    /// The results of a call.
    struct Results: Sendable {
        let work: Work
        let results: [Result<PixelImage, ImagePipelineError>]
    }

    /// Serves the parts that can be derived from images that came to memory while the work waited.
    private func servedByDerivedSizes(_ work: Work) -> Work {
        var work = work
        work.parts = work.parts.filter { part in
            let known = derivedSizes.candidates(for: part.spec, of: work.identity).known
            guard !known.isEmpty, let plan = plan(for: part.job),
                let (image, lifetime) = derivedInMemory(
                    part.spec, identity: work.identity, known: known, source: plan.source, options: plan.options)
            else { return true }
            conclude(part.job, result: .success(Made(image: image, origin: .derived)), lifetime: lifetime)
            return false
        }
        return work
    }

    /// Calls a source once for all that is wanted from it, on a thread that may block.
    func make(_ work: Work, from source: any BlockingImageSource) -> Results {
        let requests = beginCall(work)
        guard !requests.isEmpty else { return Results(work: work, results: []) }
        let images = checked(Result { try source.images(requests) }, count: requests.count, of: work)
        guard wantsSeparateCalls(images, requests) else { return results(of: separate(images, requests.count), work) }
        let each = requests.map { request in
            checked(Result { [try source.image(request)] }, count: 1, of: work).map { $0[0] }
        }
        return results(of: each, work)
    }

    /// The images of a call of a source that does not block, before they are processed.
    private func images(
        of work: Work, asking source: any ImageSource
    ) async -> [Result<PixelImage, ImagePipelineError>] {
        let requests = beginCall(work)
        guard !requests.isEmpty else { return [] }
        let images = checked(await Result { try await source.images(requests) }, count: requests.count, of: work)
        guard wantsSeparateCalls(images, requests) else { return separate(images, requests.count) }
        var each: [Result<PixelImage, ImagePipelineError>] = []
        for request in requests {
            each.append(checked(await Result { [try await source.image(request)] }, count: 1, of: work).map { $0[0] })
        }
        return each
    }

    /// Counts a call.
    ///
    /// - Returns: Its requests; none if nothing is left to make.
    private func beginCall(_ work: Work) -> [RenderRequest] {
        guard !work.parts.isEmpty else { return [] }
        state.withLock { $0.statistics.calls += 1 }
        return work.parts.map { $0.spec.render(limits: configuration.limits, cancellation: work.cancellation) }
    }

    /// Whether one of several requests cannot be met, which is no reason to fail the others.
    private func wantsSeparateCalls(
        _ images: Result<[PixelImage], ImagePipelineError>, _ requests: [RenderRequest]
    ) -> Bool {
        if case .failure(let error) = images { requests.count > 1 && error.concernsRequest } else { false }
    }

    private func separate(
        _ images: Result<[PixelImage], ImagePipelineError>, _ count: Int
    ) -> [Result<PixelImage, ImagePipelineError>] {
        switch images {
        case .success(let images): images.map { .success($0) }
        case .failure(let error): Array(repeating: .failure(error), count: count)
        }
    }

    /// The results of a call, with the processors of each request applied.
    private func results(of images: [Result<PixelImage, ImagePipelineError>], _ work: Work) -> Results {
        Results(
            work: work,
            results: zip(work.parts, images).map { part, image in
                image.flatMap { processed($0, part: part, work: work) }
            })
    }

    /// Applies the processors of a request to the image of the source.
    private func processed(_ image: PixelImage, part: Work.Part, work: Work) -> Result<PixelImage, ImagePipelineError> {
        guard !part.spec.processors.isEmpty else { return .success(image) }
        do throws(ImageError) {
            return .success(try image.processed(by: part.spec.processors))
        } catch {
            return .failure(ImagePipelineError(error, source: work.identity.sourceName))
        }
    }

    /// The images of a call, if they are as many as there are requests.
    private func checked(
        _ result: Result<[PixelImage], any Error>, count: Int, of work: Work
    ) -> Result<[PixelImage], ImagePipelineError> {
        let name = work.identity.sourceName
        do {
            let images = try result.get()
            guard images.count == count else { return .failure(.underlying(source: name, error: WrongResultCount())) }
            return .success(images)
        } catch {
            let error = ImagePipelineError(thrown: error, source: name)
            // A cancellation without a request for it is a failure.
            guard error.isCancellation, !work.cancellation.isCancelled else { return .failure(error) }
            return .failure(.underlying(source: name, error: CancellationError()))
        }
    }

    /// Stores and delivers the results, and returns the slot.
    func complete(_ results: Results) {
        for (part, result) in zip(results.work.parts, results.results) {
            conclude(
                part.job, result: result.map { Made(image: $0, origin: .source) },
                lifetime: results.work.loaded?.lifetime ?? .unlimited)
        }
        discardUndecodable(results)
        change { $0.end(batch: results.work.batch, &$1) }
        results.work.slot.finish()
    }

    /// Stores a result and delivers it, on a thread that may block. The result of a job that has ended is discarded.
    private func conclude(_ job: Int, result: Result<Made, ImagePipelineError>, lifetime: ResultLifetime) {
        guard let plan = plan(for: job) else {
            return state.withLock { $0.statistics.discarded += 1 }
        }
        if case .success(let made) = result, let image = made.image {
            storeBlocking(image, plan: plan, lifetime: lifetime)
            if made.origin == .source, let shared = configuration.externalThumbnails {
                let request = plan.spec.render(limits: configuration.limits, cancellation: CancellationToken())
                shared.store(image, of: plan.source, for: request)
            }
        }
        tell(job, result)
    }

    /// Removes original bytes that are no image, so that the next request loads them anew.
    private func discardUndecodable(_ results: Results) {
        guard let loaded = results.work.loaded, !results.results.isEmpty else { return }
        let areUndecodable = results.results.allSatisfy { result in
            if case .failure(.damaged) = result { return true }
            if case .failure(.unsupported) = result { return true }
            return false
        }
        if areUndecodable { Task { await loaded.discard() } }
    }

    /// Ends a job.
    func tell(_ id: Int, _ result: Result<Made, ImagePipelineError>) {
        for subscriber in change({ $0.end(id, &$1) }) { subscriber.jobDidEnd(result) }
    }
}

extension Result where Failure == any Error {
    /// The outcome of an asynchronous body.
    fileprivate init(catching body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}

/// A source gave another number of images than it was asked for.
struct WrongResultCount: Error, CustomStringConvertible {
    var description: String { "the source gave another number of thumbnails than it was asked for" }
}

extension ImagePipelineError {
    /// Whether another size of the same source may do better.
    fileprivate var concernsRequest: Bool {
        switch self {
        case .limitExceeded(_, .outputSide, _, _), .underlying(_, ImageError.invalidRequest): true
        default: false
        }
    }
}
