import VitrineCache
import VitrineCore
import VitrineImaging

/// Calls of sources, and the handling of their results.
extension ImagePipeline {
    /// Puts a job that no cache could serve in line for its source.
    func proceed(_ id: Int) {
        guard let (batchID, batch) = change({ $0.wait(id, &$1) }) else { return startPreviews(ofJob: id) }
        if let remote = batch.source as? any RemoteImageSource { return load(remote, id: batchID, batch: batch) }
        batch.slot.enqueue(on: caller.making) { [self] in start(id: batchID, batch: batch, source: batch.source) }
    }

    /// Loads a remote source's content, and then puts its batch in line. Requests that come meanwhile join the batch.
    private func load(_ remote: any RemoteImageSource, id: Int, batch: RequestScheduler.Batch) {
        let arriving = change { scheduler, _ in scheduler.beginArriving(batch: id, limit: TransferPreviewMaker.maximumBytes) }
        for job in arriving?.jobs ?? [] { startPreviews(ofJob: job) }
        let task = Task { [self] in
            // The image itself follows soon: bytes that no preview was made of are not worth one.
            defer { arriving?.bytes.end() }
            do {
                var context = beginLoad(ofBatch: id, priority: batch.slot.priority)
                context.arriving = arriving?.bytes
                let loaded = try await remote.load(context)
                animationOpener.note(loaded.source, identity: batch.identity)
                if context.isRefresh { await store.removeResults(of: batch.identity) }
                guard change({ scheduler, _ in scheduler.setLoaded(loaded, ofBatch: id) }) else { return }
                batch.slot.enqueue(on: caller.making) { [self] in start(id: id, batch: batch, source: loaded.source) }
            } catch {
                let isGone = ImagePipelineError(thrown: error, source: "").isGone
                if isGone { await store.removeResults(of: batch.identity) }
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

    /// Makes a call that has a slot.
    private func start(id: Int, batch: RequestScheduler.Batch, source: any ImageSource) {
        let body: SourceCaller.Body
        if let blocking = source as? any BlockingImageSource {
            let priority = state.withLock { $0.scheduler.executionPriority(ofBatch: id) }
            body = .blocking(priority: priority, onMainActor: blocking.requiresMainActor) { [self] in
                run(id, batch, calling: blocking)
            }
        } else {
            body = .task { [self] in await run(id, batch, asking: source) }
        }
        caller.start(SourceCaller.Call(id: id, slot: batch.slot), body: body) { [self] error in fail(id, error) }
    }

    private func run(_ id: Int, _ batch: RequestScheduler.Batch, calling source: any BlockingImageSource) {
        guard let work = change({ scheduler, _ in scheduler.begin(batch: id) }) else { return batch.slot.finish() }
        caller.pool.didBegin(id, boundsItself: source.boundsItsCalls)
        let onMainActor = source.requiresMainActor
        let results = make(onMainActor ? work : servedByDerivedSizes(work), from: source)
        caller.pool.didReturn(id)
        guard onMainActor else { return complete(results) }
        Self.endingExecutor.submit { [self] in complete(results) }
    }

    /// Makes a call of a source that does not block.
    private func run(_ id: Int, _ batch: RequestScheduler.Batch, asking source: any ImageSource) async {
        guard let begun = change({ scheduler, _ in scheduler.begin(batch: id) }) else { return batch.slot.finish() }
        caller.pool.didBegin(id)
        let work = await Self.endingExecutor.run { [self] in servedByDerivedSizes(begun) }
        let render = await beginRender(of: work).run(asking: source)
        caller.pool.didReturn(id)
        Self.endingExecutor.submit { [self] in complete(render.results()) }
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

    /// Serves the parts that can be derived from images that came to memory while the work waited.
    private func servedByDerivedSizes(_ work: Work) -> Work {
        var work = work
        work.parts = work.parts.filter { part in
            guard let plan = plan(for: part.job), let (image, lifetime) = store.derivedInMemory(plan) else {
                return true
            }
            conclude(part.job, result: .success(Made(image: image, origin: .derived)), lifetime: lifetime)
            return false
        }
        return work
    }

    /// Calls a source once for all that is wanted from it, on a thread that may block.
    func make(_ work: Work, from source: any BlockingImageSource) -> SourceRender.Results {
        var render = beginRender(of: work)
        render.run(calling: source)
        return render.results()
    }

    /// Counts a call of a source.
    private func beginRender(of work: Work) -> SourceRender {
        if !work.parts.isEmpty { state.withLock { $0.statistics.calls += 1 } }
        return SourceRender(work, limits: configuration.limits)
    }

    /// Stores and delivers the results, and returns the slot.
    func complete(_ results: SourceRender.Results) {
        for (part, result) in zip(results.work.parts, results.results) {
            conclude(
                part.job, result: result.map { Made(image: $0, origin: .source) },
                lifetime: results.work.loaded?.lifetime ?? .unlimited)
        }
        if let loaded = results.work.loaded, results.areUndecodable { Task { await loaded.discard() } }
        change { $0.end(batch: results.work.batch, &$1) }
        results.work.slot.finish()
    }

    /// Stores a result and delivers it, on a thread that may block. The result of a job that has ended is discarded.
    private func conclude(_ job: Int, result: Result<Made, ImagePipelineError>, lifetime: ResultLifetime) {
        guard let plan = plan(for: job) else {
            return state.withLock { $0.statistics.discarded += 1 }
        }
        if case .success(let made) = result, let image = made.image {
            store.insertBlocking(image, plan: plan, lifetime: lifetime)
            if made.origin == .source { store.share(image, plan: plan) }
        }
        tell(job, result)
    }

    /// Ends a job.
    func tell(_ id: Int, _ result: Result<Made, ImagePipelineError>) {
        for subscriber in change({ $0.end(id, &$1) }) { subscriber.jobDidEnd(result) }
    }
}
